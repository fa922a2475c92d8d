"""Asking a person for the arguments of a tool, by its schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym_clients.console import escaped, out
from mcpgym_clients.lines import Lines

LONG_TEXT = 10_000
"""Texts that may have so many characters (their schema's ``maxLength``) are offered to be typed in several lines."""
BEGIN, END = "/lines", "/end"


class Leave(Exception):
    """The person wants no more."""


class Say(Exception):
    """The person would rather say something than call a tool."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


async def ask_call(lines: Lines, tools: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Which tool, with which arguments.

    Raises:
        Leave: the input ended.
        Say: the person typed ``/say words``.
    """
    tool = tools[0] if len(tools) == 1 else await _ask_tool(lines, tools)
    properties = tool["inputSchema"].get("properties", {})
    required = tool["inputSchema"].get("required", [])
    if not properties:
        if len(tools) == 1:
            await _ask(lines, f"[bold]{escaped(tool['name'])}[/bold] [dim](Enter)[/dim] ")
        return tool["name"], {}
    arguments = {}
    for name, schema in properties.items():
        value = await _ask_value(lines, f"{tool['name']} {name}", schema, name in required)
        if value is not _OMITTED:
            arguments[name] = value
    return tool["name"], arguments


async def ask_words(lines: Lines) -> str:
    """What the person says where there is no tool to call.

    Raises:
        Leave: the input ended.
    """
    line = await lines.ask("[bold]your answer[/bold]: ")
    if line is None:
        raise Leave
    return line


async def _ask_tool(lines: Lines, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    names = [tool["name"] for tool in tools]
    if "tools" in lines.told:  # what they do is read once
        out().print("  ".join(f"[cyan]{index}[/cyan] {escaped(name)}" for index, name in enumerate(names, 1)))
    else:
        lines.told.add("tools")
        for index, tool in enumerate(tools, 1):
            out().print(f"  [cyan]{index}[/cyan] {escaped(tool['name'])}  [dim]{escaped(tool['description'])}[/dim]")
        out().print("  [dim]or /say WORDS, to answer in words[/dim]")
    while True:
        answer = (await _ask(lines, "[bold]which tool?[/bold] ")).strip()
        if answer in names:
            return tools[names.index(answer)]
        if answer.isdecimal() and 1 <= int(answer) <= len(tools):
            return tools[int(answer) - 1]
        out().print(f"[yellow]a number from 1 to {len(tools)}, or a name, please[/yellow]")


_OMITTED = object()


async def _ask_value(lines: Lines, label: str, schema: Mapping[str, Any], required: bool) -> Any:
    hint = str(schema.get("description", "")).strip().rstrip(".")
    if "enum" in schema:
        hint += f" ({', '.join(json.dumps(value) for value in schema['enum'])})"
    text = schema.get("type") == "string" and "enum" not in schema
    long = text and schema.get("maxLength", 0) >= LONG_TEXT
    if long:
        hint += f"; paste it, or {BEGIN} for several lines"
    if not required:
        hint += f"; Enter for {json.dumps(schema['default'])}" if "default" in schema else "; Enter to leave it out"
    while True:
        told = label in lines.told  # a hint is read once
        lines.told.add(label)
        answer = await _ask(lines, f"[bold]{escaped(label)}[/bold]{'' if told else f' [dim]({escaped(hint)})[/dim]'}: ")
        if text and answer.strip() == BEGIN:
            return await _ask_lines(lines, [])
        if long and await lines.more():
            return await _ask_lines(lines, [answer])
        if not answer.strip() and not required:
            return _OMITTED
        try:
            return read_value(answer, schema)
        except ValueError as problem:
            out().print(f"[yellow]{escaped(problem)}[/yellow] [dim](/say WORDS answers in words instead)[/dim]")


async def _ask_lines(lines: Lines, first: list[str]) -> str:
    """Several lines, the ``first`` of which are there already, until one that is ``/end`` alone.

    Raises:
        Leave: the input ended.
    """
    out().print(f"[dim]{END} on a line of its own ends it[/dim]")
    while True:
        line = await lines.ask("[dim]…[/dim] ")
        if line is None:
            raise Leave
        if line.strip() == END:
            return "\n".join([*first, ""])
        first.append(line)


def read_value(text: str, schema: Mapping[str, Any]) -> Any:
    """What a person typed, as the type that ``schema`` asks for. Bounds are left to the environment.

    Raises:
        ValueError: it cannot be read so; the text says what would be right.
    """
    stripped = text.strip()
    if "enum" in schema:
        for value in schema["enum"]:
            if stripped in (str(value), json.dumps(value)):
                return value
        raise ValueError(f"one of {', '.join(map(str, schema['enum']))}, please")
    match schema.get("type"):
        case "string":
            return text
        case "integer":
            try:
                return int(stripped)
            except ValueError:
                raise ValueError("a whole number, please") from None
        case "number":
            try:
                number = float(stripped)
            except ValueError:
                raise ValueError("a number, please") from None
            if number != number or number in (float("inf"), float("-inf")):
                raise ValueError("a finite number, please")
            return number
        case "boolean":
            if stripped.lower() in ("y", "yes", "true", "1"):
                return True
            if stripped.lower() in ("n", "no", "false", "0"):
                return False
            raise ValueError("yes or no, please")
        case "array" if not stripped.startswith("["):
            return [read_value(part, schema.get("items", {})) for part in stripped.split(",")] if stripped else []
    try:
        return json.loads(stripped)
    except ValueError:
        raise ValueError("JSON, please") from None


async def _ask(lines: Lines, prompt: str) -> str:
    line = await lines.ask(prompt)
    if line is None:
        raise Leave
    if line.startswith("/say "):
        raise Say(line.removeprefix("/say "))
    return line

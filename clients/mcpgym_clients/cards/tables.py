"""Tables of what an environment has: tools, rewards, configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mcpgym.environment import Environment


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def prose(text: str) -> str:
    """Words that may have code in back-ticks, but no HTML: a ``<think>`` in them is to be read."""
    parts = text.split("`")
    return "`".join(part if at % 2 else part.replace("<", "\\<").replace(">", "\\>") for at, part in enumerate(parts))


def facts(environment: Environment[Any, Any, Any]) -> str:
    """What it is, in a paragraph."""
    splits = ", ".join(f"`{split}` ({environment.size(split):,} tasks)" for split in environment.splits)
    policies = ", ".join(f"`{name}`" for name in sorted(environment.reference_policies())) or "none"
    text = f"{prose(environment.description)} Version {environment.version}; splits {splits}; "
    text += f"reference policies {policies}"
    return text + (f"; at most {environment.max_turns} turns.\n" if environment.max_turns else ".\n")


def contract(environment: Environment[Any, Any, Any]) -> Iterator[str]:
    """Its tools, rewards and configuration, a part of a page each."""
    for tool in environment.tools.values():
        arguments = tool.parser.schema["properties"]
        rows = [[f"`{name}`", str(item["type"]), prose(str(item["description"]))] for name, item in arguments.items()]
        yield f"**Tool `{tool.name}`**: {prose(tool.description)}\n"
        yield table(["argument", "type", "what it is"], rows) if rows else "It takes no arguments.\n"
    rewards = [
        [f"`{name}`", f"{item.weight:g}", f"{item.low:g} to {item.high:g}", prose(item.description)]
        for name, item in environment.rewards.items()
    ]
    yield "**Rewards**\n"
    yield table(["name", "weight", "range", "what it pays for"], rewards)
    described = environment.config_class.model_json_schema().get("properties", {})
    fields = [
        [
            f"`{name}`",
            f"`{field.get_default()}`" if field.get_default() != "" else "nothing",
            prose(" ".join(str(described[name].get("description", "")).split())),
        ]
        for name, field in environment.config_class.model_fields.items()
    ]
    if fields:
        yield "**Configuration** (`--config name=value`)\n"
        yield table(["name", "default", "what it is"], fields)


def code(text: str, language: str = "text") -> str:
    """A block of code, fenced by more back-ticks than it has in a row."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}\n"

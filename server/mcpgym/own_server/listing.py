"""The tools of a brought server as tools of an environment: with the same names, descriptions and schemas where every
client would send those on as they are; else as near to them as that goes, with what was changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

from mcpgym.errors import ConfigurationError, SchemaError
from mcpgym.own_server.shapes import Shape, fixed
from mcpgym.schema import MAX_DESCRIPTION, MAX_NAME, NAME, ArgumentParser, schema_faults
from mcpgym.tools import Tool

MAX_TOOLS = 256
"""Tools of one server; a model could not choose among more."""

Caller = Callable[[str], Callable[..., Awaitable[str]]]
"""Makes the handler of the tool that the server knows by this name."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server's tools became. ``differences`` says what was changed and why; ``names`` leads from a tool's name
    here to the server's."""

    tools: Mapping[str, Tool]
    names: Mapping[str, str]
    differences: Sequence[str]


class ProxyParser(ArgumentParser):
    """Checks arguments against the schema that the policy sees, and hands them on as the server knows them."""

    def __init__(self, tool: str, shape: Shape) -> None:
        self.tool = tool
        self.schema = shape.schema
        self._convert = shape.convert

    @cached_property
    def _validator(self) -> Draft202012Validator:
        return Draft202012Validator(self.schema)

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """One keyword argument, ``arguments``: what goes to the server.

        Raises:
            ValueError: they do not fit; the text says which, why and what would be right.
        """
        if not isinstance(arguments, dict):
            raise ValueError(self._told([f"the arguments must be an object, not {type(arguments).__name__}"]))
        try:
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            odd = "half a surrogate pair, which is no character" if isinstance(error, UnicodeError) else str(error)
            raise ValueError(self._told([odd])) from None
        errors = self._validator.iter_errors(arguments)
        problems = [self._problem(error) for error, _ in zip(errors, range(5), strict=False)]
        if problems:
            raise ValueError(self._told(problems))
        if self._convert is None:
            return {"arguments": arguments}
        try:
            return {"arguments": self._convert(arguments)}
        except ValueError as error:
            raise ValueError(self._told([str(error)])) from None

    def _problem(self, error: ValidationError) -> str:
        where = ".".join(str(part) for part in error.absolute_path)[:60]
        before = f"{where}: " if where else ""
        match error.validator:
            case "required":
                given = error.instance if isinstance(error.instance, Mapping) else {}
                missing = [name for name in error.validator_value if name not in given]
                return f"{before}{', '.join(missing)} is missing"
            case "additionalProperties":
                known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
                extra = [str(name)[:60] for name in error.instance if name not in known]
                return f"{before}{', '.join(extra[:5])} is not a parameter of this tool"
        return f"{before}{error.message[:200]}"


def made_tools(
    environment: str,
    server: str,
    listed: Sequence[Mapping[str, Any]],
    seconds: float,
    call: Caller,
    taken: Collection[str],
) -> Listing:
    """The tools of a server.

    Args:
        environment: its name, which counts against the length of a tool's.
        server: what messages call the server.
        listed: the tools as it lists them.
        seconds: how long one call may take.
        call: makes their handlers.
        taken: names that the environment's own tools have.

    Raises:
        ConfigurationError: no tool is left, or there are too many.
    """
    if len(listed) > MAX_TOOLS:
        raise ConfigurationError(
            f"{server} lists {len(listed)} tools; {MAX_TOOLS} at most, of which a model can choose"
        )
    tools: dict[str, Tool] = {}
    names: dict[str, str] = {}
    differences: list[str] = []
    for entry in listed:
        theirs = str(entry.get("name", ""))
        if theirs in names.values():
            differences.append(f"{theirs[:80]}: listed twice; the second is left out")
            continue
        name = _name(environment, theirs, {*tools, *taken}, differences)
        description = _description(theirs, entry.get("description"), differences)
        try:
            shape, changes = fixed(theirs[:80], entry.get("inputSchema"))
            listing = {"name": name, "description": description, "inputSchema": shape.schema}
            if faults := schema_faults(environment, listing):
                raise SchemaError("; ".join(faults))
        except SchemaError as error:
            differences.append(f"{theirs[:80]}: left out: {error}")
            continue
        differences += changes
        annotations = entry.get("annotations")
        tools[name] = Tool(
            name=name,
            description=description,
            handler=call(theirs),
            title=str(entry.get("title") or ""),
            timeout=seconds,
            read_only=isinstance(annotations, Mapping) and annotations.get("readOnlyHint") is True,
            parser=ProxyParser(name, shape),
        )
        names[name] = theirs
    if not tools and not taken:
        why = f": {'; '.join(differences)[:500]}" if differences else ""
        raise ConfigurationError(f"{server} has no tool that a policy could be given{why}")
    return Listing(tools, names, differences)


def _name(environment: str, theirs: str, taken: Collection[str], differences: list[str]) -> str:
    room = MAX_NAME - len(f"mcp__{environment}__")
    name = theirs
    if not NAME.fullmatch(name) or len(name) > room or name in taken:
        mark = hashlib.sha256(theirs.encode("utf-8", "backslashreplace")).hexdigest()[:6]
        name = re.sub(r"[^A-Za-z0-9_-]", "_", theirs)
        if not name or len(name) > room or name in taken:
            name = f"{name[: room - 7]}_{mark}"
        differences.append(
            f"{theirs[:80]!r}: a name has only letters, digits, _ and -, {room} at most beside the environment's, "
            f"and is no other tool's; it is called {name}"
        )
    return name


def _description(tool: str, given: Any, differences: list[str]) -> str:
    text = given if isinstance(given, str) else ""
    if not text.strip():
        differences.append(f"{tool[:80]}: has no description; write a docstring, it is all that a model knows of it")
        return f"The tool {re.sub(r'[_-]+', ' ', tool)[:80]}."
    if len(text) >= MAX_DESCRIPTION:
        differences.append(
            f"{tool[:80]}: {len(text)} characters of description are cut; some take {MAX_DESCRIPTION - 1}"
        )
        return f"{text[: MAX_DESCRIPTION - 2]}…"
    return text

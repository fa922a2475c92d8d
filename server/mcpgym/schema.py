"""Tool schemas at their fixed point: what the server sends is what every model sees, whichever client is between.

Clients rewrite schemas (drop keywords, add ``title``, expand nulls). A schema they all leave alone has: an object at
the top, ``additionalProperties: false``, every property described, no ``title``, no null, no ``$ref``, and only the
keywords of ``KEYWORDS``. :class:`ArgumentParser` makes such a schema from a tool's parameters and refuses, when the
class is defined, what cannot be brought there.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PydanticSchemaGenerationError, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from mcpgym.calls import sendable
from mcpgym.errors import SchemaError
from mcpgym.parameter_types import described, refuse_other_types, refuse_unknown_types

MAX_NAME = 64
"""Claude Code counts ``mcp__<server>__<tool>`` against this many characters; so do OpenAI's function names."""
MAX_DESCRIPTION = 1024
"""OpenAI's limit on a function's description; other hosts cut later."""
MAX_INSTRUCTIONS = 2048
"""Claude Code cuts server instructions at 2 KB."""
KEYWORDS = frozenset(
    {
        "type", "description", "enum", "default", "items", "properties", "required", "additionalProperties",
        "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
    }
)  # fmt: skip
NAME = re.compile(r"[A-Za-z0-9_-]+")


def canonical_json(value: Any) -> str:
    """The one JSON text of ``value``: keys sorted, no spaces, no NaN, and ``1`` for ``1.0`` (JSON has one number).

    Raises:
        ValueError: it has NaN or an infinity.
        TypeError: it has what JSON has not.
    """
    plain = _whole_numbers(value)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(value: Any) -> str:
    """SHA-256 of the canonical JSON of ``value``, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def schema_hash(tools: Sequence[Mapping[str, Any]]) -> str:
    """SHA-256 over what a model sees of the tools: name, description and input schema; order does not matter."""
    seen = [{"name": t["name"], "description": t["description"], "inputSchema": t["inputSchema"]} for t in tools]
    return content_hash(sorted(seen, key=lambda tool: str(tool["name"])))


class ArgumentParser:
    """Checks the arguments of one tool, strictly: ``true`` is no integer, ``"4"`` is no number, extras are refused."""

    def __init__(self, tool: str, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]) -> None:
        self.tool = tool
        fields: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        for place, (name, parameter) in enumerate(parameters.items()):
            if name not in hints:
                raise SchemaError(
                    f"{tool}: parameter {name!r} has no type; write {name}: Annotated[int, 'What it is.']"
                )
            if parameter.default is not inspect.Parameter.empty:
                defaults[name] = parameter.default
            # An alias, for pydantic keeps some names (copy, schema, _x) to itself.
            hint: Any = described(hints[name], f"{tool}.{name}")
            hint = Annotated[hint, Field(alias=name)]
            fields[f"p{place}"] = (hint, defaults.get(name, ...))
        try:
            model = create_model(
                f"{tool}_arguments",
                __config__=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False),
                **fields,
            )
            with warnings.catch_warnings(action="ignore"):  # of a default that is no JSON: refused below, in our words
                raw = TypeAdapter(model).json_schema()
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError, TypeError) as error:
            raise SchemaError(f"{tool}: cannot describe its parameters in JSON Schema: {error}") from error
        core: Any = model.__pydantic_core_schema__
        refuse_other_types(core, tool)
        self.schema = _fixed_point(tool, raw, made=True)
        refuse_unknown_types(core, tool)
        self._names = tuple(zip(fields, parameters, strict=True))
        self._validate = model.__pydantic_validator__.validate_python
        self._check_defaults(defaults)

    def _check_defaults(self, defaults: Mapping[str, Any]) -> None:
        try:
            self._validate(dict(defaults))
        except ValidationError as error:
            for item in error.errors(include_url=False, include_context=False):
                if item["type"] != "missing":
                    where = ".".join(str(part) for part in item["loc"])
                    problem = item["msg"].removeprefix("Input ")
                    raise SchemaError(f"{self.tool}.{where}: its default {problem}, not {item['input']!r}") from None

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the tool's handler.

        Raises:
            ValueError: the arguments do not fit the schema; the text says which, why and what would be right.
        """
        try:
            model = self._validate(arguments)
        except ValidationError as error:
            try:
                model = self._validate(_whole_numbers(arguments))
            except (ValidationError, RecursionError):
                raise ValueError(self._explain(error)) from None
        values = model.__dict__
        return {name: values[field] for field, name in self._names}

    def _explain(self, error: ValidationError) -> str:
        problems = []
        for item in error.errors(include_url=False, include_context=False)[:5]:
            where = _cut(".".join(str(part) for part in item["loc"]) or "arguments")
            match item["type"]:
                case "model_type":
                    problems.append(f"the arguments must be an object, not {_shorten(item['input'])}")
                case "missing":
                    problems.append(f"{where} is missing")
                case "extra_forbidden":
                    problems.append(f"{where} is not a parameter of this tool")
                case "string_unicode":
                    problems.append(f"{where}: has half a surrogate pair, which is no character")
                case _:
                    shown = _shorten(item["input"])
                    problems.append(f"{where}: {item['msg'].removeprefix('Input ')}, not {shown}")
        return self._told(problems)

    def _told(self, problems: Sequence[str]) -> str:
        """What a policy reads of arguments with these problems: what they are, and what would be right."""
        required = self.schema["required"]
        expected = ", ".join(
            f"{name}: {_kind(prop)}{'' if name in required else ' (optional)'}"
            for name, prop in self.schema["properties"].items()
        )
        return sendable(f"{self.tool}: {'; '.join(problems)}. Expected {{{expected}}}.")


def _fixed_point(tool: str, raw: dict[str, Any], *, made: bool = False) -> dict[str, Any]:
    """``raw`` brought to the fixed point; ``made`` by ourselves, so that a bound which says nothing is left out."""
    definitions = raw.pop("$defs", {})

    def clean(given: Any, where: str, seen: tuple[str, ...]) -> dict[str, Any]:
        node: dict[str, Any] = given
        if not isinstance(node, dict):
            raise SchemaError(f"{where}: {_shorten(node)} is no schema of one type; name one")
        if "$ref" in node:
            target = str(node["$ref"]).rsplit("/", 1)[-1]
            if target in seen:
                raise SchemaError(
                    f"{where}: a type that contains itself has no flat schema; take a string and parse it"
                )
            if target not in definitions:
                raise SchemaError(f"{where}: refers to {node['$ref']}, which is not there")
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return clean({**definitions[target], **rest}, where, (*seen, target))
        node = {key: value for key, value in node.items() if key != "title"}
        if "const" in node:
            node["enum"] = [node.pop("const")]
        nothing = node.get("default", ...) is None or None in _listed(node.get("enum")) or node.get("type") == "null"
        if nothing or "anyOf" in node or isinstance(node.get("type"), list):
            raise SchemaError(
                f"{where}: unions and null reach models differently in each client; "
                "make it required, or give it a default of its own type (an empty string, 0)"
            )
        if node.get("minLength") == 0 and made:
            del node["minLength"]
        if odd := sorted(set(node) - KEYWORDS):
            raise SchemaError(f"{where}: {', '.join(odd)} is dropped by some clients; check it in the tool (ToolError)")
        if not isinstance(node.get("type"), str):
            raise SchemaError(f"{where}: has no single type; name one (int, str, bool, float, a list or a TypedDict)")
        if node["type"] == "object":
            node |= clean_object(node, where, seen)
            node.pop("description", None) if where == tool else None
        if node["type"] == "array":
            if "items" not in node:
                raise SchemaError(f"{where}: a list needs the type of its items: list[int], list[str]")
            node["items"] = clean(node["items"], f"{where}[]", seen)
        return node

    def clean_object(node: dict[str, Any], where: str, seen: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(given := node.get("properties", {}), dict):
            raise SchemaError(f"{where}: its properties must be an object, by name")
        if not given and node.get("additionalProperties") is not False:
            raise SchemaError(f"{where}: an object needs named fields; use a TypedDict")
        properties = {name: clean(child, f"{where}.{name}", seen) for name, child in given.items()}
        for name, child in properties.items():
            if not NAME.fullmatch(name) or len(name) > MAX_NAME:
                raise SchemaError(
                    f"{where}.{name}: some models take only letters, digits, _ and - in names, {MAX_NAME} at most"
                )
            if not child.get("description"):
                raise SchemaError(f"{where}.{name}: not described; write {name}: Annotated[…, 'What it is.']")
        required = [name for name in properties if name in _listed(node.get("required"))]
        return {"properties": properties, "additionalProperties": False, "required": required}

    return clean(raw, tool, ())


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def schema_faults(server: str, tool: Mapping[str, Any]) -> list[str]:
    """What keeps a tool's listing from being at the fixed point; empty when nothing does.

    Works on any MCP tool listing (``name``, ``description``, ``inputSchema``), ours or another server's.
    """
    name = str(tool.get("name", ""))
    description = str(tool.get("description") or "")
    faults = []
    if not NAME.fullmatch(name):
        faults.append(f"{name!r}: a name may have only letters, digits, _ and -")
    if len(full := f"mcp__{server}__{name}") > MAX_NAME:
        faults.append(f"{full}: {len(full)} characters with a host's prefix; {MAX_NAME} at most")
    if not description:
        faults.append(f"{name}: has no description")
    if len(description) >= MAX_DESCRIPTION:
        faults.append(f"{name}: its description has {len(description)} characters; fewer than {MAX_DESCRIPTION}")
    try:
        schema = tool.get("inputSchema")
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            faults.append(f"{name}: its schema is not an object")
        elif (fixed := _fixed_point(name, copy.deepcopy(dict(schema)))) != schema:
            changed = sorted(key for key in {*fixed, *schema} if fixed.get(key) != schema.get(key))
            faults.append(f"{name}: clients would rewrite its schema at: {', '.join(changed)}")
    except SchemaError as error:
        faults.append(str(error))
    return faults


def _whole_numbers(value: Any) -> Any:
    """JSON has one kind of number: ``4.0`` is the integer 4, in arguments as in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_numbers(item) for item in value]
    return value


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if schema["type"] == "array":
        return f"array of {_kind(schema['items'])}" if "items" in schema else "array"
    return str(schema["type"])


def _shorten(value: Any) -> str:
    try:
        return _cut(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


def _cut(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"

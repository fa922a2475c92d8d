"""The schema of a brought tool, brought to the fixed point with as little change as that takes.

What every client sends on alike is kept as it is (see :mod:`mcpgym.schema`). The rest is said in another way, so that a
model still knows it: a bound that some clients drop stands in the description, null is leaving the argument out, and
what has no flat schema (a union, an object with any keys) is a text of JSON, which is read here before it goes on.
Every change is noted, for the tool's author to mend.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpgym.errors import SchemaError
from mcpgym.schema import KEYWORDS, MAX_NAME, NAME

MAX_NODES = 2_000
"""Schemas inside one tool's schema, references followed: beyond it, nobody could read it."""
MAX_SCHEMA = 64 * 1024
"""Characters of one tool's schema."""
SHOWN = 300
"""Characters of a schema that a description repeats."""

_SAID = {
    "pattern": "pattern", "format": "format", "exclusiveMinimum": "above", "exclusiveMaximum": "below",
    "multipleOf": "a multiple of", "uniqueItems": "all different", "contentEncoding": "encoding",
    "examples": "examples",
    "minProperties": "at least so many", "maxProperties": "at most so many",
}  # fmt: skip
"""Keywords that clients drop and that a model should know of, and how its description says them."""
_SILENT = {"title", "$schema", "$id", "$comment", "$defs", "definitions", "deprecated", "readOnly", "writeOnly"}
_BOUNDS = {
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
    "boolean": set[str](),
    "array": {"minItems", "maxItems"},
    "object": set[str](),
}
_PYTHON = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}


@dataclass(frozen=True, slots=True)
class Shape:
    """A schema at the fixed point, and what makes the server's value of a policy's.

    ``convert`` is None where they are the same; it raises ``ValueError`` for a text that is no JSON.
    """

    schema: dict[str, Any]
    convert: Callable[[Any], Any] | None = None


def fixed(tool: str, raw: Any) -> tuple[Shape, list[str]]:
    """The shape of a tool's input, and what was changed, each with its place and what to write instead.

    Raises:
        SchemaError: it is no schema of an object, or has no end.
    """
    if not isinstance(raw, Mapping) or raw.get("type", "object") != "object":
        raise SchemaError(f"{tool}: its input schema is not one of an object")
    try:
        text = json.dumps(raw)
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"{tool}: its input schema is no JSON: {error}") from None
    if len(text) > MAX_SCHEMA:
        raise SchemaError(f"{tool}: its input schema has {len(text)} characters; {MAX_SCHEMA} at most")
    reading = _Reading(tool, {**_mapping(raw.get("definitions")), **_mapping(raw.get("$defs"))})
    try:
        shape = reading.fields({**raw, "type": "object"}, tool, ())
    except RecursionError:
        raise SchemaError(f"{tool}: its input schema is nested too deep") from None
    shape.schema.pop("description", None)
    return shape, reading.changes


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@dataclass(slots=True)
class _Reading:
    tool: str
    definitions: Mapping[str, Any]
    changes: list[str] = field(default_factory=list)
    nodes: int = 0

    def node(self, given: Any, where: str, seen: tuple[str, ...]) -> Shape:
        """The shape of one schema inside the tool's."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise SchemaError(f"{self.tool}: its input schema has over {MAX_NODES} parts, references followed")
        if not isinstance(given, Mapping):
            return self.json_text({}, where, "any value")
        if (target := given.get("$ref")) is not None:
            return self.referred(given, str(target), where, seen)
        raw, _ = flat(given)
        if raw is None:
            return self.json_text(given, where, "a union")
        if "$ref" in raw:
            return self.node(raw, where, seen)
        kind = _kind_of(raw)
        if kind is None:
            return self.json_text(given, where, "no single type")
        if kind == "object":
            if not raw.get("properties") or raw.get("patternProperties") or _free(raw):
                return self.json_text(given, where, "an object with any keys")
            return self.fields(raw, where, seen)
        schema = self.plain(raw, kind, where)
        if kind != "array":
            return Shape(schema)
        if not isinstance(raw.get("items"), Mapping) or "prefixItems" in raw:
            return self.json_text(given, where, "a list of no single type")
        inner = self.node(raw["items"], f"{where}[]", seen)
        convert = inner.convert
        return Shape({**schema, "items": inner.schema}, None if convert is None else lambda v: [convert(x) for x in v])

    def referred(self, given: Mapping[str, Any], target: str, where: str, seen: tuple[str, ...]) -> Shape:
        """What ``$ref`` names, with what stands beside it."""
        match = re.fullmatch(r"#/(?:\$defs|definitions)/([^/]+)", target)
        name = match[1].replace("~1", "/").replace("~0", "~") if match else ""
        if name not in self.definitions or name in seen:
            why = "a type that contains itself" if name in seen else f"a reference to {target[:80]}, which is not there"
            return self.json_text({key: value for key, value in given.items() if key != "$ref"}, where, why)
        rest = {key: value for key, value in given.items() if key != "$ref"}
        return self.node({**_mapping(self.definitions[name]), **rest}, where, (*seen, name))

    def plain(self, raw: Mapping[str, Any], kind: str, where: str) -> dict[str, Any]:
        """The keywords of one schema that are kept, ``type`` first; what others say goes into the description."""
        schema: dict[str, Any] = {"type": kind}
        said = []
        for key, value in raw.items():
            if key == "description" and isinstance(value, str):
                schema[key] = value
            elif key == "enum" and isinstance(value, list):
                schema[key] = [item for item in value if item is not None]
            elif _is_a(value, "number" if key in _BOUNDS[kind] else kind if key == "default" else None):
                schema[key] = value
            elif key in _SAID and value is not False:
                self.change(f"{where}: {key} is dropped by some clients; its description says it now")
                said.append(f"{_SAID[key]}{'' if value is True else f' {_short(value, 120)}'}")
            elif key not in _SILENT and key not in KEYWORDS and key not in ("const", "allOf", "anyOf", "oneOf"):
                self.change(f"{where}: {_short(key, 40)} is dropped by some clients; it is left out")
        if said:
            schema["description"] = f"{schema.get('description', '')} ({'; '.join(said)})".strip()
        return schema

    def fields(self, raw: Mapping[str, Any], where: str, seen: tuple[str, ...]) -> Shape:
        """An object with named fields."""
        schema = self.plain(raw, "object", where)
        if where == self.tool and (more := [key for key in ("anyOf", "oneOf", "allOf") if key in raw]):
            self.change(f"{where}: {more[0]} beside the arguments is told to no model; the server alone checks it")
        required = raw.get("required")
        needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        properties: dict[str, Any] = {}
        reads: dict[str, tuple[str, Callable[[Any], Any] | None]] = {}
        nulls: list[str] = []
        for name, child in _mapping(raw.get("properties")).items():
            place = f"{where}.{name[:80]}"
            shape = self.node(child, place, seen)
            shown = name
            if not NAME.fullmatch(name) or len(name) > MAX_NAME:
                shown = _free_name(re.sub(r"[^A-Za-z0-9_-]", "_", name)[:MAX_NAME] or "_", properties, raw)
                self.change(f"{place}: some models take only letters, digits, _ and - in names; it is called {shown}")
            properties[shown] = self.described(shape.schema, name, place)
            if shown != name or shape.convert is not None:
                reads[shown] = (name, shape.convert)
            if isinstance(child, Mapping) and flat(child)[1]:
                self.change(f"{place}: null reaches models differently in each client; leaving it out means null")
                if name in needed:
                    needed.remove(name)
                    nulls.append(name)
        schema |= {"properties": properties, "additionalProperties": False}
        kept = {shown: reads.get(shown, (shown, None))[0] for shown in properties}
        schema["required"] = [shown for shown, name in kept.items() if name in needed]
        return Shape(schema, _reader(reads, tuple(nulls)) if reads or nulls else None)

    def described(self, schema: dict[str, Any], name: str, where: str) -> dict[str, Any]:
        """``schema`` with a description, made of its name where its author wrote none."""
        if schema.get("description"):
            return schema
        self.change(f"{where}: not described; write {name}: Annotated[…, Field(description='What it is.')]")
        text = re.sub(r"[_\W]+", " ", name).strip() or name
        return {"type": schema["type"], "description": f"{text[:1].upper()}{text[1:]}.", **schema}

    def json_text(self, raw: Mapping[str, Any], where: str, why: str) -> Shape:
        """A text of JSON, for what has no flat schema."""
        self.change(f"{where}: {why} has no schema that all clients send on alike; it is a text of JSON")
        rest = {key: value for key, value in raw.items() if key not in _SILENT | {"description", "default"}}
        like = f" that fits {_short(rest, SHOWN)}" if rest else ""
        description = f"{raw.get('description') or ''} As JSON text{like}.".strip()
        return Shape({"type": "string", "description": description}, _from_json(_takes_text(raw)))

    def change(self, text: str) -> None:
        """Note a change, once."""
        if text not in self.changes:
            self.changes.append(text)


def flat(raw: Mapping[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """``raw`` without unions of one thing (and null), and whether null was among them; None for a real union."""
    node = dict(raw)
    null = node.get("default", ...) is None
    if null:
        del node["default"]
    for key in ("anyOf", "oneOf", "allOf"):
        if key not in node:
            continue
        options = node.pop(key)
        if not isinstance(options, list) or not all(isinstance(option, Mapping) for option in options):
            return None, null
        kept = [option for option in options if option.get("type") != "null" and option.get("const", ...) is not None]
        null |= len(kept) < len(options)
        if len(kept) != 1:
            return None, null
        inner, also = flat(kept[0])
        if inner is None:
            return None, null
        node, null = {**inner, **node}, null or also
    if isinstance(kinds := node.get("type"), list):
        kept_kinds = [kind for kind in kinds if kind != "null"]
        null |= len(kept_kinds) < len(kinds)
        if len(kept_kinds) != 1:
            return None, null
        node["type"] = kept_kinds[0]
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if isinstance(node.get("enum"), list) and None in node["enum"]:
        null = True
    return node, null


def _kind_of(raw: Mapping[str, Any]) -> str | None:
    """The one JSON type of a flat schema, told or plain from the rest; None where there is none."""
    kind = raw.get("type")
    values = raw.get("enum")
    if isinstance(values, list):
        values = [value for value in values if value is not None]
        kinds = [name for name in _BOUNDS if values and all(_is_a(value, name) for value in values)]
        if kind is None and kinds:
            kind = kinds[0]
        if kind not in kinds:
            return None
    if kind is None:
        kind = "object" if "properties" in raw else "array" if "items" in raw else None
    return kind if isinstance(kind, str) and kind in _BOUNDS else None


def _is_a(value: Any, kind: str | None) -> bool:
    """Whether a value is of a JSON type; nothing is of none."""
    if kind is None:
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    expected: Any = _PYTHON[kind]
    return isinstance(value, expected) and (kind == "boolean" or not isinstance(value, bool))


def _free(raw: Mapping[str, Any]) -> bool:
    """Whether an object may have keys beyond its properties that mean something."""
    return isinstance(raw.get("additionalProperties"), Mapping) and bool(raw["additionalProperties"])


def _takes_text(raw: Mapping[str, Any]) -> bool:
    """Whether a text that is no JSON may be meant as it is."""
    kinds = raw.get("type")
    options = [option for key in ("anyOf", "oneOf") for option in raw.get(key) or () if isinstance(option, Mapping)]
    if options:
        return any(_takes_text(option) for option in options)
    return kinds is None or kinds == "string" or (isinstance(kinds, list) and "string" in kinds)


def _from_json(takes_text: bool) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            if takes_text:
                return value
            raise ValueError(f"must be a text of JSON, not {_short(value, 60)}") from None

    return read


def _reader(
    reads: Mapping[str, tuple[str, Callable[[Any], Any] | None]], nulls: tuple[str, ...]
) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        made: dict[str, Any] = dict.fromkeys(nulls)
        for shown, item in value.items():
            name, convert = reads.get(shown, (shown, None))
            try:
                made[name] = item if convert is None else convert(item)
            except ValueError as error:
                raise ValueError(f"{shown}: {error}") from None
        return made

    return read


def _free_name(wanted: str, taken: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
    others = {*taken, *_mapping(raw.get("properties"))}
    name, number = wanted, 2
    while name in others:
        name, number = f"{wanted[: MAX_NAME - 4]}_{number}", number + 1
    return name


def _short(value: Any, limit: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= limit else text[: limit - 1] + "…"

"""What may be called, and with what: tools that say they only read come first, and what a person names above all."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from mcpgym_clients.failures import UsageProblem

MOST = 6
"""Tools that are called when nobody says which."""
HARMFUL = frozenset(
    (
        "delete", "remove", "rm", "del", "drop", "purge", "erase", "wipe", "destroy", "truncate", "kill",
        "terminate", "shutdown", "reboot", "uninstall", "unlink", "revoke", "overwrite", "write", "send",
        "email", "mail", "post", "publish", "tweet", "notify", "pay", "buy", "purchase", "transfer", "charge",
        "refund", "exec", "execute", "eval", "shell", "bash", "run", "deploy", "merge", "push", "commit",
        "migrate", "ban", "sudo",
    )
)  # fmt: skip
"""Words in the name of a tool that declares nothing, for which it is not called unless a person names it."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
DEPTH = 6
"""How deep generated arguments go."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that may be made: the tool, arguments for it, and whether a person named it."""

    tool: str
    arguments: Mapping[str, Any]
    named: bool = False


@dataclass(frozen=True, slots=True)
class Permission:
    """What may be called: ``named`` always; else, with ``read_only``, only tools that are declared to read.

    A tool that declares nothing may destroy, as the protocol has it. Of those, all are called but such as destroy,
    send or run something by their names.
    """

    named: Sequence[PlannedCall] = ()
    read_only: bool = False

    def allows(self, tool: Mapping[str, Any]) -> bool:
        """Whether the tool may be called with arguments of our own."""
        if any(call.tool == tool.get("name") for call in self.named):
            return True
        hints = tool.get("annotations")
        hints = hints if isinstance(hints, Mapping) else {}
        if hints.get("readOnlyHint") is True:
            return True
        if self.read_only or hints.get("destructiveHint") is True:
            return False
        return hints.get("destructiveHint") is False or not sounds_harmful(tool.get("name"))

    def plan(self, tools: Sequence[Mapping[str, Any]], seed: int = 0) -> list[PlannedCall]:
        """Calls to make: those that were named, or one for each of the first few tools that may be called."""
        if self.named:
            return list(self.named)
        allowed = [tool for tool in tools if isinstance(tool.get("name"), str) and self.allows(tool)]
        allowed.sort(key=lambda tool: not _reads(tool))
        # State shows only through tools that change it, so some of each kind.
        reading = [tool for tool in allowed if _reads(tool)]
        changing = [tool for tool in allowed if not _reads(tool)]
        chosen = reading[: MOST - min(len(changing), MOST // 2)]
        chosen += changing[: MOST - len(chosen)]
        return [PlannedCall(str(tool["name"]), example_arguments(tool, Random(seed))) for tool in chosen]


def sounds_harmful(name: object) -> bool:
    """Whether a tool's name has a word that says that calling it cannot be taken back: ``delete_all``, ``sendMail``."""
    words = _WORDS.findall(name) if isinstance(name, str) else []
    return any(word.lower() in HARMFUL for word in words)


def parse_calls(texts: Sequence[str], option: str = "--call") -> list[PlannedCall]:
    """The calls of ``TOOL=JSON`` options.

    Raises:
        UsageProblem: one is not of that form.
    """
    calls = []
    for text in texts:
        tool, equals, given = text.partition("=")
        try:
            arguments = json.loads(given) if equals else {}
        except ValueError as error:
            raise UsageProblem(f"{option} {text}: after the = comes a JSON object, and this is none: {error}") from None
        if not tool or not isinstance(arguments, dict):
            raise UsageProblem(f"{option} {text}: write TOOL=JSON, as {option} 'add={{\"number\": 1}}'")
        calls.append(PlannedCall(tool, arguments, named=True))
    return calls


def schema_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool's input schema; an empty one where it has none."""
    found = tool.get("inputSchema")
    return found if isinstance(found, Mapping) else {}


def properties_of(tool: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schema of each parameter, with references followed."""
    schema = schema_of(tool)
    found = schema.get("properties")
    items = found.items() if isinstance(found, Mapping) else ()
    return {str(name): _resolved(child, schema) for name, child in items if isinstance(child, Mapping)}


def required_of(tool: Mapping[str, Any]) -> list[str]:
    """The parameters that must be given."""
    found = schema_of(tool).get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def example_arguments(tool: Mapping[str, Any], random: Random) -> dict[str, Any]:
    """Arguments that should fit the tool's schema, whatever keywords it uses: those that are required."""
    schema = schema_of(tool)
    properties = properties_of(tool)
    return {name: example(properties.get(name, {}), random, schema) for name in required_of(tool)}


def example(schema: Mapping[str, Any], random: Random, root: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that should fit a JSON Schema; None where no value is clear."""
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if isinstance(choices := schema.get("enum"), list) and choices:
        return random.choice(choices)
    if "default" in schema and schema["default"] is not None:
        return schema["default"]
    if isinstance(examples := schema.get("examples"), list) and examples:
        return examples[0]
    if depth > DEPTH:
        return None
    for word in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(word), list):
            real = [each for each in options if isinstance(each, Mapping) and each.get("type") != "null"]
            return example(real[0], random, root, depth + 1) if real else None
    if isinstance(parts := schema.get("allOf"), list):
        schema = {**schema, **{k: v for part in parts if isinstance(part, Mapping) for k, v in part.items()}}
    match _kind(schema):
        case "boolean":
            return random.random() < 0.5
        case "integer":
            low, high = _range(schema)
            return random.randint(int(low), int(high))
        case "number":
            low, high = _range(schema)
            return round(random.uniform(low, high), 2)
        case "array":
            count = _whole(schema.get("minItems"), 1)
            items = schema.get("items")
            child = items if isinstance(items, Mapping) else {"type": "string"}
            return [example(child, random, root, depth + 1) for _ in range(min(count, 8))]
        case "object":
            inner = schema.get("properties")
            inner = inner if isinstance(inner, Mapping) else {}
            wanted = schema.get("required")
            names = wanted if isinstance(wanted, list) else []
            return {
                name: example(inner[name], random, root, depth + 1)
                for name in names
                if isinstance(inner.get(name), Mapping)
            }
        case "null":
            return None
        case _:
            return _text(schema, random)


def string_parameters(tool: Mapping[str, Any]) -> Iterator[str]:
    """The parameters that take any text."""
    for name, child in properties_of(tool).items():
        if _kind(child) == "string" and not {"enum", "const", "format", "pattern"} & set(child):
            yield name


def _reads(tool: Mapping[str, Any]) -> bool:
    hints = tool.get("annotations")
    return isinstance(hints, Mapping) and hints.get("readOnlyHint") is True


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(DEPTH):
        if not isinstance(reference := schema.get("$ref"), str):
            break
        target: Any = root
        for part in reference.removeprefix("#").strip("/").split("/"):
            target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
        schema = {**(target if isinstance(target, Mapping) else {}), **{k: v for k, v in schema.items() if k != "$ref"}}
    return schema


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _range(schema: Mapping[str, Any]) -> tuple[float, float]:
    low = _number(schema.get("minimum", schema.get("exclusiveMinimum")))
    high = _number(schema.get("maximum", schema.get("exclusiveMaximum")))
    if "minimum" not in schema and low is not None:
        low += 1
    if "maximum" not in schema and high is not None:
        high -= 1
    if low is None:
        low = 1.0 if high is None else min(1.0, high)
    return low, max(low, low + 8 if high is None else high)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "hostname": "example.com",
}


def _text(schema: Mapping[str, Any], random: Random) -> str:
    if (known := _FORMATS.get(str(schema.get("format")))) is not None:
        return known
    word = "".join(random.choice(string.ascii_lowercase) for _ in range(8))
    low, high = _whole(schema.get("minLength"), 0), _whole(schema.get("maxLength"), 10_000)
    return (word * (low // len(word) + 1))[: max(low, min(len(word), high))]

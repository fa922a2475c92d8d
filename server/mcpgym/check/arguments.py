"""Arguments for tools, made from their schemas: valid ones at random, extreme valid ones, and hostile ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

WORDS = (
    "a",
    "x",
    "apple",
    "Bob",
    "the capital of France",
    "0",
    "4",
    "-1",
    "true",
    "None",
    "ÄÖ ß 日本 🎲",
    "a\nb",
    "a'b\"c",
)
HUGE = 100_000
"""Characters in the longest text that is tried."""


def valid(schema: Mapping[str, Any], random: Random) -> Any:
    """A random value that fits ``schema`` (a schema at its fixed point)."""
    if "enum" in schema:
        return random.choice(schema["enum"])
    match schema["type"]:
        case "boolean":
            return random.random() < 0.5
        case "integer":
            low, high = _bounds(schema, random)
            return random.randint(int(low), int(high))
        case "number":
            low, high = _bounds(schema, random)
            return round(random.uniform(low, high), 3) if high - low > 0.01 else low
        case "array":
            low = schema.get("minItems", 0)
            count = random.randint(low, max(low, min(schema.get("maxItems", low + 3), low + 3)))
            return [valid(schema["items"], random) for _ in range(count)]
        case "object":
            return valid_arguments(schema, random)
        case _:
            return _text(schema, random.choice(WORDS))


def valid_arguments(schema: Mapping[str, Any], random: Random) -> dict[str, Any]:
    """Random arguments that fit a tool's input schema; optional ones are given half of the time."""
    required = schema.get("required", ())
    return {
        name: valid(child, random)
        for name, child in schema["properties"].items()
        if name in required or random.random() < 0.5
    }


def extreme_arguments(schema: Mapping[str, Any], random: Random) -> Iterator[dict[str, Any]]:
    """Valid arguments at the edges: bounds, empty and very long texts and lists, large numbers; one edge at a time."""
    base = {name: valid(child, random) for name, child in schema["properties"].items()}
    for name, child in schema["properties"].items():
        for value in _extremes(child, random):
            yield {**base, name: value}


def hostile_arguments(schema: Mapping[str, Any], random: Random) -> Iterator[Any]:
    """What no schema of ours allows: wrong kinds, missing and extra names, nests, no object at all."""
    base = {name: valid(child, random) for name, child in schema["properties"].items()}
    deep: Any = 0
    for _ in range(200):
        deep = [deep]
    yield {**base, "no_such_parameter": 1}
    yield {**base, "": None, "\ud800": "x" * HUGE}
    yield from ([], "play", 4, [base])
    for name in schema.get("required", ()):
        yield {key: value for key, value in base.items() if key != name}
    for name, child in schema["properties"].items():
        for value in (None, deep, {"$ref": "#"}, float("nan"), float("inf"), "\ud800", *_wrong(child)):
            yield {**base, name: value}


def _wrong(schema: Mapping[str, Any]) -> Iterator[Any]:
    match schema["type"]:
        case "string":
            yield from (4, True, ["a"])
        case "integer" | "number":
            yield from ("4", True, [4], "four")
            if "minimum" in schema:
                yield schema["minimum"] - 1
            if "maximum" in schema:
                yield schema["maximum"] + 1
        case "boolean":
            yield from (1, "true")
        case kind:
            yield from ("x", 1, {"x": 1} if kind == "array" else [1])
    if "enum" in schema:
        yield "no-such-choice"


def _extremes(schema: Mapping[str, Any], random: Random) -> Iterator[Any]:
    if "enum" in schema:
        yield from schema["enum"]
        return
    match schema["type"]:
        case "integer":
            yield from (schema.get("minimum", -(10**30)), schema.get("maximum", 10**30))
        case "number":
            yield from (schema.get("minimum", -1e300), schema.get("maximum", 1e300))
        case "string":
            yield from (_text(schema, ""), _text(schema, "\x00\x1b[31m\u202e"), _text(schema, "é🎲" * (HUGE // 2)))
        case "array":
            low = schema.get("minItems", 0)
            yield [valid(schema["items"], random) for _ in range(low)]
            yield [valid(schema["items"], random) for _ in range(schema.get("maxItems", low + 500))]
        case "object":
            yield from extreme_arguments(schema, random)
        case _:
            yield from (True, False)


def _bounds(schema: Mapping[str, Any], random: Random) -> tuple[float, float]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        low = -3 if high is None or high >= 0 else high - 10
    return low, low + 15 if high is None else high


def _text(schema: Mapping[str, Any], text: str) -> str:
    text += "x" * (schema.get("minLength", 0) - len(text))
    return text[: schema["maxLength"]] if "maxLength" in schema else text

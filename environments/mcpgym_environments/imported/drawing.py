"""Random arguments that fit a tool's schema, for policies that act at random."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

_WORDS = ("a", "report.txt", "AAPL", "John", "USR001", "2024-09-01", "New York", "notes", "m", "completed")


def drawn(schema: Mapping[str, Any], random: Random) -> Any:
    """A value that fits ``schema`` (one at the fixed point, without bounds of texts and lists)."""
    if "enum" in schema:
        return random.choice(schema["enum"])
    match schema["type"]:
        case "object":
            required = schema.get("required", ())
            return {
                name: drawn(child, random)
                for name, child in schema["properties"].items()
                if name in required or random.random() < 0.5
            }
        case "array":
            return [drawn(schema["items"], random) for _ in range(random.randint(1, 3))]
        case "boolean":
            return random.random() < 0.5
        case "integer":
            return random.randint(int(schema.get("minimum", 0)), int(schema.get("maximum", 100)))
        case "number":
            return round(random.uniform(schema.get("minimum", 0.0), schema.get("maximum", 100.0)), 2)
        case _:
            return random.choice(_WORDS)

"""What an episode ran under, for a person to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def conditions_line(conditions: Mapping[str, Any]) -> str:
    """What an episode ran under, in one line: ``isolation namespaces, python 3.11.2, packages numpy 2.1.0``."""
    parts = []
    for name, value in conditions.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items()) or "none"
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        parts.append(f"{name.replace('_', ' ')} {shown}")
    return "ran under " + "; ".join(parts)

"""The conditions of an episode: facts of the machine it ran on, as they stand in traces and receipts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MAX_CONDITIONS = 4_096
"""Characters of their JSON: they stand in every trace and every receipt."""


def sound_conditions(given: Any) -> dict[str, Any]:
    """``given``, what an environment says in ``conditions()``, as plain JSON.

    Raises:
        TypeError: it is no mapping of names to JSON; numbers must be finite.
        ValueError: it is too long.
    """
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"conditions() gave {str(given)[:80]!r}; it must return a mapping of names to JSON")
    if not given:
        return {}
    try:
        text = json.dumps(dict(given), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"conditions() gave what is no JSON: {error}") from None
    if len(text) > MAX_CONDITIONS:
        raise ValueError(f"conditions() gave {len(text)} characters of JSON; {MAX_CONDITIONS} at most")
    return dict(json.loads(text))

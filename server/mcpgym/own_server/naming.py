"""How a brought server is named where an environment is: ``fastmcp:module:factory``, ``stdio:COMMAND``."""

from __future__ import annotations

import re

SPEC = re.compile(r"(fastmcp)(?:@([\w-]*))?:([\w.]*(?::[\w.]*)?)|(stdio)(?:@([\w-]*))?:(.*)", re.DOTALL)
"""Its kind, what to call it (``fastmcp@notes:…``), and where it is. A command is all that follows."""


def is_brought(name: str) -> bool:
    """Whether ``name`` names a brought server."""
    return SPEC.fullmatch(name) is not None


def split_brought(name: str) -> tuple[str, str | None, str] | None:
    """The kind, the name that is wished for and the place; None where ``name`` is written otherwise."""
    match = SPEC.fullmatch(name)
    if match is None:
        return None
    return (match[1], match[2], match[3]) if match[1] else (match[4], match[5], match[6])

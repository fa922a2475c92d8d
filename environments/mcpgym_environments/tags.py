"""Answers in tags: where a policy's answer stands, so that nothing around it counts."""

from __future__ import annotations


def last_tag(text: str, tag: str) -> str | None:
    """What stands in the last complete ``<tag>…</tag>`` of ``text``, without the spaces around it; None without one."""
    before, closed, _ = text.rpartition(f"</{tag}>")
    if not closed:
        return None
    _, opened, inside = before.rpartition(f"<{tag}>")
    return inside.strip() if opened else None

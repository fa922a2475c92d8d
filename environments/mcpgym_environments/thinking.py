"""Whether a turn thinks before it acts: the form that several environments ask for."""

from __future__ import annotations

from mcpgym import Message

OPEN, CLOSE = "<think>", "</think>"


def thinks_first(turn: Message) -> bool:
    """Whether an assistant turn begins with a ``<think>…</think>`` that has something in it.

    Where an endpoint takes the tags out and hands over what was inside as ``reasoning_content``, that counts alike. A
    turn without text does not think; neither does one that speaks first, or never closes the tag.
    """
    if (turn.get("reasoning_content") or "").strip():
        return True
    text = (turn.get("content") or "").lstrip()
    if not text.startswith(OPEN):
        return False
    thought, closed, _ = text[len(OPEN) :].partition(CLOSE)
    return bool(closed and thought.replace(OPEN, "").strip())

"""The answers of an agent, checked: it may be hostile, so nothing of one is used before all of it is found in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcpgym_environments.python_sandbox.jail.frames import FrameError, header, parsed
from mcpgym_environments.python_sandbox.sessions.backend import STATUSES

LONGEST_WHY = 1_000
LONGEST_PATH = 8_192
MOST_ENTRIES = 10_000
MOST_PACKAGES = 100
LONGEST_FACT = 200


class Odd(Exception):
    """An answer that no agent of ours gives; the text says what is odd, and repeats nothing of it at length."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a workspace: its path from there, what it is, and its size in bytes."""

    path: str
    kind: str
    size: int


def checked_answer(text: bytes, number: int) -> dict[str, Any]:
    """The header of the answer to request ``number``, its known and common keys alone.

    Raises:
        Odd: it is none.
    """
    found = _object(text)
    for name in ("n", "status", "why", "fresh", "milliseconds", "omitted"):
        if name not in found:
            raise Odd(f"its answer lacks {name!r}")
    if type(found["n"]) is not int or found["n"] != number:
        raise Odd(f"it answers request {_short(found['n'])}, and {number} was asked")
    if type(found["status"]) is not str or found["status"] not in STATUSES:
        raise Odd(f"its status is {_short(found['status'])}")
    if found["why"] is not None and (type(found["why"]) is not str or len(found["why"]) > LONGEST_WHY):
        raise Odd(f"it says why at length or not in words: {_short(found['why'])}")
    if type(found["fresh"]) is not bool:
        raise Odd(f"its 'fresh' is {_short(found['fresh'])}")
    return {
        "n": number,
        "status": found["status"],
        "why": None if found["why"] is None else shown(found["why"]),
        "fresh": found["fresh"],
        "milliseconds": count_of(found, "milliseconds", 2**31),
        "omitted": count_of(found, "omitted", 2**50),
        **{name: found[name] for name in ("more", "size", "python", "packages", "facts", "asks") if name in found},
    }


def count_of(found: Mapping[str, Any], name: str, most: int) -> int:
    """A whole number in 0 to ``most``.

    Raises:
        Odd: it is none.
    """
    value = found.get(name)
    if type(value) is not int or not 0 <= value <= most:
        raise Odd(f"its {name!r} is {_short(value)}")
    return value


def flag_of(found: Mapping[str, Any], name: str) -> bool:
    """A truth value.

    Raises:
        Odd: it is none.
    """
    value = found.get(name)
    if type(value) is not bool:
        raise Odd(f"its {name!r} is {_short(value)}")
    return value


def checked_facts(found: Mapping[str, Any]) -> dict[str, Any]:
    """What the agent says of its interpreter: ``python`` and ``packages``, short texts.

    Raises:
        Odd: it says it otherwise.
    """
    python, packages = found.get("python"), found.get("packages")
    if not _fact(python):
        raise Odd(f"its 'python' is {_short(python)}")
    if type(packages) is not dict or len(packages) > MOST_PACKAGES:
        raise Odd(f"its 'packages' are {_short(packages)}")
    if not all(_fact(name) and _fact(version) for name, version in packages.items()):
        raise Odd("its 'packages' are no names with versions")
    return {"python": python, "packages": dict(packages)}


def checked_entries(blob: bytes) -> list[Entry]:
    """The entries of a listing.

    Raises:
        Odd: they are none.
    """
    rows = value_of(blob)
    if type(rows) is not list or len(rows) > MOST_ENTRIES:
        raise Odd(f"its listing is {_short(rows)}")
    found = []
    for row in rows:
        if type(row) is not dict:
            raise Odd("an entry of its listing is no object")
        path, kind = row.get("path"), row.get("kind")
        if type(path) is not str or len(path) > LONGEST_PATH or type(kind) is not str or len(kind) > 20:
            raise Odd(f"an entry of its listing has the path {_short(path)} and the kind {_short(kind)}")
        found.append(Entry(path, shown(kind), count_of(row, "size", 2**62)))
    return found


def value_of(blob: bytes) -> Any:
    """The value that is written in ``blob`` as JSON.

    Raises:
        Odd: it is none.
    """
    try:
        return parsed(blob)
    except FrameError as error:
        raise Odd(f"{error}"[:200]) from None


def shown(text: str) -> str:
    """``text`` with what is not to be printed escaped: it may end up in a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _fact(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= LONGEST_FACT and value.isprintable()


def _object(text: bytes) -> dict[str, Any]:
    try:
        return header(text)
    except FrameError as error:
        raise Odd(f"{error}"[:200]) from None


def _short(value: Any) -> str:
    """A value of anybody's in a few characters, whatever it is."""
    if type(value) in (list, dict):
        return f"a {type(value).__name__} of {len(value)}"
    if type(value) is int and value.bit_length() > 64:
        return "a huge number"
    text = repr(value[:60] if type(value) is str else value)
    return shown(text if len(text) <= 80 else f"{text[:79]}…")

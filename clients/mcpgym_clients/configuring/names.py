"""What an option is called in a file and in the environment: as on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from typing import Any

PREFIX = "MCPGYM"
RESERVED = frozenset({"MCPGYM_SCAN_CANARY"})
"""Names that mean something else: a scan plants that one itself (for --canary there is MCPGYM_SCAN_CANARIES)."""


def options_of(command: Any) -> Iterator[Any]:
    """The options of a command, --help aside."""
    return (item for item in command.params if item.param_type_name == "option")


def key_of(option: Any) -> str:
    """The option's key in its command's table: its long name."""
    long = [name for name in option.opts if name.startswith("--")]
    return max(long, key=len)[2:] if long else str(option.name).replace("_", "-")


def words_of(context: Any) -> tuple[str, ...]:
    """What was typed to come to a command, as ``("env", "add")``."""
    words: list[str] = []
    while context.parent is not None:
        words.insert(0, str(context.info_name))
        context = context.parent
    return tuple(words)


def variable_of(words: Sequence[str], option: Any) -> str | None:
    """The environment variable that sets the option of a command; None where there is none."""
    name = "_".join([PREFIX, *words, key_of(option)]).replace("-", "_").upper()
    return None if name in RESERVED else name


def kind_of(option: Any) -> str:
    """What an option takes: ``flag``, ``number``, ``choice``, ``path`` or ``text``; a list is what is in it."""
    if option.is_flag:
        return "flag"
    kind = option.type_descriptor.annotation
    inner = getattr(kind, "__args__", (kind,))[0]
    if inner in (int, float):
        return "number"
    if isinstance(inner, type) and issubclass(inner, Enum):
        return "choice"
    return "text" if inner is str else "path"


def nearest(name: str, known: Collection[str], cutoff: float = 0.5) -> str | None:
    """The name in ``known`` that ``name`` was probably meant to be."""
    near = difflib.get_close_matches(name[:200], sorted(known), n=1, cutoff=cutoff)
    return near[0] if near else None


def no_such(kind: str, name: str, known: Collection[str]) -> str:
    """The sentence about a name that is not there."""
    near = nearest(name, known)
    return f"there is no such {kind}; " + (
        f"did you mean {near}?" if near else f"there is: {', '.join(sorted(known)) or 'none'}"
    )

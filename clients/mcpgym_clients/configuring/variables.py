"""Environment variables that look like an option's and are none's: most often a name that was written wrongly."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence

from mcpgym_clients.configuring.files import VARIABLE
from mcpgym_clients.configuring.names import PREFIX, nearest

_NEAR = 0.75
"""How near a variable's end must be to an option's: programs that set variables for others (Kubernetes does, for each
service) use such names too."""


def misspelt(words: Sequence[str], known: Collection[str], others: Iterable[Sequence[str]]) -> list[str]:
    """Sentences about the variables of a command that no option of it reads, though one nearly has their name.

    Args:
        words: the command.
        known: the variables of its options.
        others: the other commands; variables may be theirs.
    """
    prefix = _prefix(words)
    longer = [own for other in others if (own := _prefix(other)) != prefix and own.startswith(prefix)]
    ends = [name[len(prefix) :] for name in known]
    said = []
    for name in sorted(os.environ):
        if not name.startswith(prefix) or name in known or name.startswith(tuple(longer)):
            continue
        if near := nearest(name[len(prefix) :], ends, _NEAR):
            said.append(f"no option has the environment variable {name}; did you mean {prefix}{near}?")
    return said


def unconfigured(commands: Iterable[Sequence[str]]) -> dict[str, str]:
    """This process's environment, with nothing in it that configures those commands: for those that we start."""
    prefixes = tuple(map(_prefix, commands))
    kept: Mapping[str, str] = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return {**kept, VARIABLE: os.devnull}


def _prefix(words: Sequence[str]) -> str:
    return "_".join([PREFIX, *words, ""]).replace("-", "_").upper()

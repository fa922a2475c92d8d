"""What the calls of a session come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mcpgym.errors import ToolError
from mcpgym_environments.python_sandbox.sessions.answers import Entry
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Status


class FileFault(ToolError):
    """A file cannot be read, written or listed as was asked; the text says why, for the policy to read."""


Entries: TypeAlias = list[Entry]


class Missing:
    """The type of :data:`MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()
"""There is no value: the function gave none. (``None`` is a value.)"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended.

    Args:
        status: what the jail's init saw: never what user code says of itself.
        why: more of it: ``timeout``, ``cpu``, ``memory``, ``disk``, ``exit N``, ``signal NAME``; None where there is
            nothing to add.
        output: what was printed, standard output and error in one; of long output the beginning and the end.
        fresh: whether there is a new worker: variables are lost, files are kept.
        milliseconds: how long it took, by the agent's clock.
        omitted: how many bytes of output were left out in the middle.
        header: the whole checked answer.
    """

    status: Status
    why: str | None
    output: bytes
    fresh: bool
    milliseconds: int
    omitted: int
    header: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How the call of a function ended, and the value that it returned; :data:`MISSING` where it returned none."""

    outcome: Outcome
    value: Any


@dataclass(slots=True)
class Counters:
    """What the sessions of a pool have done."""

    calls: int = 0
    lost: int = 0


def outcome_of(header: Mapping[str, Any], output: bytes) -> Outcome:
    """The outcome that a checked answer tells."""
    return Outcome(
        header["status"], header["why"], output, header["fresh"], header["milliseconds"], header["omitted"], header
    )

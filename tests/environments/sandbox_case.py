"""What an abuse case of the Python sandbox is: steps against one session, and what must be true of their answers.

Every case also meets the oracles of ``sandbox_abuse``: no secret comes out, nothing outside is touched, bounds of time,
memory and output hold, ``1+1`` answers 2 afterwards, and nothing outlives the session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

DECOYS = "DECOYS"
"""A name that code may use: ``paths`` of secret files, ``port``, ``abstract`` and ``unix`` of listeners, ``pids`` of
the server and of a victim, ``venv``."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run code for at most ``seconds``; with ``neighbour`` in the neighbour's session."""

    code: str
    seconds: float = 4.0
    neighbour: bool = False


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Call a function of the session; its value comes back in ``Answer.value``."""

    function: str
    arguments: tuple[Any, ...] = ()
    seconds: float = 4.0


@dataclass(frozen=True, slots=True)
class Read:
    """Read a file with the file tool. The path ``{0}`` stands for the first decoy file."""

    path: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    """Write a file with the file tool."""

    path: str
    data: bytes = b"pwned"


@dataclass(frozen=True, slots=True)
class ListFiles:
    """List a folder with the file tool."""

    path: str = "."


@dataclass(frozen=True, slots=True)
class Export:
    """Ask for the whole workspace as a tar file."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Ask for a fresh worker and an empty workspace."""


@dataclass(frozen=True, slots=True)
class Reopen:
    """Close the session and go on with a new one."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Do nothing for a while, with no call running."""

    seconds: float


Step = Run | Evaluate | Read | Write | ListFiles | Export | Reset | Reopen | Sleep


@dataclass(frozen=True, slots=True)
class Answer:
    """What one step came to. ``status`` of a file fault is ``error``, its text in ``why``."""

    status: str
    why: str | None = None
    output: bytes = b""
    fresh: bool = False
    header: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
    seconds: float = 0.0


Answers = Sequence[Answer]


@dataclass(frozen=True, slots=True)
class Case:
    """One way to misuse a session."""

    name: str
    steps: tuple[Step, ...]
    proves: Callable[[Answers], bool] | None = None
    heavy: bool = False
    """It takes memory or both cores: only two such cases run at a time."""
    landlock: bool = True
    """The weaker tier stands it too. Where it does not, the documentation says so."""
    again: bool = False
    """The worker is so broken that only the next call finds it out: that one may end with a new worker."""


def case(
    name: str,
    *steps: str | Step,
    seconds: float = 4.0,
    proves: Callable[[Answers], bool] | None = None,
    heavy: bool = False,
    landlock: bool = True,
    again: bool = False,
) -> Case:
    """A case of which each text is code to run for at most ``seconds``."""
    made = tuple(Run(dedent(step).strip("\n"), seconds) if isinstance(step, str) else step for step in steps)
    return Case(name, made, proves, heavy, landlock, again)


def neighbour(code: str) -> Run:
    """Code for the neighbour's session."""
    return Run(dedent(code).strip("\n"), neighbour=True)


def nothing(*words: bytes) -> Callable[[Answers], bool]:
    """None of these words is in any output."""
    return lambda answers: not any(word in answer.output for word in words for answer in answers)


def not_ok(answers: Answers) -> bool:
    """The first step did not end as if nothing had happened."""
    return answers[0].status != "ok"

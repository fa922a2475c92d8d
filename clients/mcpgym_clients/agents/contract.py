"""What an agent product is to an evaluation: how it is started with a task, and how what it printed is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mcpgym_rl.policy import Usage

SERVER = "environment"
"""What our server is called in every product's configuration."""
CALL_SECONDS = 600.0
"""How long a product is told to wait for one tool call; the server's own limits are shorter."""


@dataclass(frozen=True, slots=True)
class Model:
    """The model an agent is to use. ``kind`` is the API it is asked by, ``url`` where; None for the product's own."""

    name: str
    kind: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Workplace:
    """An episode's private folders: the product's home and configuration, an empty folder to work in, one for files."""

    root: Path

    @property
    def home(self) -> Path:
        """What the product takes for the user's home."""
        return self.root / "home"

    @property
    def work(self) -> Path:
        """Where it is started; empty."""
        return self.root / "work"

    @property
    def temporary(self) -> Path:
        """Its folder for temporary files."""
        return self.root / "tmp"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a product is started for.

    ``system`` and ``text`` are the task's messages, or what the environment said next; ``session`` is the conversation
    to go on with, as the product called it; None for a new one.
    """

    url: str
    system: str
    text: str
    place: Workplace
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """How it is started: a command, what it reads on standard input, and variables beside those that all are given."""

    command: Sequence[str]
    stdin: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Told:
    """A tool call as a product tells it."""

    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a product's model, as the product tells it: what it wrote, and the calls it made."""

    text: str
    calls: Sequence[Told] = ()


@dataclass(slots=True)
class Said:
    """All that a product told of itself in one start.

    ``failure`` is why it could not go on, where it says so itself, and ``everybody`` whether that would befall any
    other episode too (its endpoint is gone). ``unanswered`` is what it got from its endpoint instead of an answer, when
    it last told of it; None once that has answered. ``out_of_turns``: it stopped at a limit of its own. ``session``
    names the conversation. ``usage`` is of this start, or with ``in_all`` of the whole conversation, as ``usd`` is,
    what it says that it cost.
    """

    steps: list[Step] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    failure: str | None = None
    everybody: bool = False
    unanswered: str | None = None
    out_of_turns: bool = False
    session: str | None = None
    version: str | None = None
    model: str | None = None
    usd: float | None = None
    in_all: bool = False


class Agent(Protocol):
    """An agent product. ``secrets`` are the values that no trace and no message may show, ``key`` the name of the
    variable that holds its API's key; None where it asks no API that is known."""

    name: str
    model: Model | None
    version: str | None
    secrets: Sequence[str]
    key: str | None
    goes_on: bool
    """Whether a conversation can go on after the product's answer, when the environment has more to say."""

    async def prepare(self) -> None:
        """Look whether the product is there, and which version it is.

        Raises:
            UsageProblem: it is not; the message says how to get it.
        """
        ...

    def start(self, ask: Ask) -> Start:
        """How it is started; its configuration is written into its private folders."""
        ...

    def read(self, printed: bytes) -> Said:
        """What it told on standard output, which may be anything, and cut off anywhere."""
        ...

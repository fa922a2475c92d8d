"""The state of a combined episode: one part for each member, each with a life of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpgym.environment import Environment
from mcpgym.messages import Message
from mcpgym.tasks import Task


@dataclass(frozen=True, slots=True)
class CombinedTask(Task):
    """A task of each member. ``info`` maps each mount to what that member's task hides."""

    parts: tuple[Task, ...] = ()


@dataclass(slots=True)
class Part:
    """One member's share of an episode.

    ``calls`` and ``answers`` count what reached the member: calls of its tools, and turns without a call. ``replies``
    is what it answered to the latter. ``over`` says why it is over (``done``, ``max_turns``, ``answered``), None while
    it is not; ``by_call`` whether a call ended it, and ``note`` is what the policy was told then.
    """

    mount: str
    task: Task
    seed: int
    state: Any
    messages: tuple[Message, ...] = ()
    calls: int = 0
    answers: int = 0
    replies: list[tuple[Message, ...]] = field(default_factory=list)
    over: str | None = None
    by_call: bool = False
    note: str = ""
    fault: str | None = None

    @property
    def turns(self) -> int:
        """What counts against its limit, as it would alone."""
        return self.calls + len(self.replies)

    def look(self, member: Environment[Any, Any, Any]) -> None:
        """Ask the member whether its part is over, and keep it: what is over stays over."""
        if self.over is not None or self.fault is not None:
            return
        try:
            if member.is_done(self.state):
                self.over = "done"
            elif member.max_turns is not None and self.turns >= member.max_turns:
                self.over = "max_turns"
        except (Exception, SystemExit) as error:
            self.fault = f"{self.mount}: {type(error).__name__}: {error}"


@dataclass(slots=True)
class CombinedState:
    """The parts by mount."""

    parts: dict[str, Part]

    def open(self) -> Iterator[Part]:
        """Those that are not over."""
        return (part for part in self.parts.values() if part.over is None)

    def is_over(self, ends: str) -> bool:
        """Whether the episode is.

        Raises:
            RuntimeError: a member could not say.
        """
        for part in self.parts.values():
            if part.fault is not None:
                raise RuntimeError(part.fault)
        over = [part.over is not None for part in self.parts.values()]
        return any(over) if ends == "any" else all(over)

    def note(self, mount: str) -> str:
        """What a policy reads when the part is over: that, and what is left to do."""
        return over_note(mount, [part.mount for part in self.open()])


def over_note(mount: str, still_open: list[str]) -> str:
    """The sentence that a part is over."""
    rest = f" Still open: {', '.join(still_open)}." if still_open else ""
    return f"({mount} is over.{rest})"


Members = Mapping[str, Environment[Any, Any, Any]]
"""The members of a combination by mount, each under its section of the configuration."""

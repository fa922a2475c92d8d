"""What a replay found: where a recorded rollout and the same calls on a fresh episode part."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mcpgym_rl.traces import Trace


class DifferenceKind(StrEnum):
    """What differs."""

    OPENING = "opening"
    """The episode cannot be opened again: no such environment, task or configuration any more."""
    TOOLS = "tools"
    """The tools are others: their schema hash differs."""
    PROMPT = "prompt"
    """A message of the prompt."""
    OBSERVATION = "observation"
    """What a tool call was answered with, or whether that was an error."""
    REPLY = "reply"
    """What the environment said as the user."""
    CALLS = "calls"
    """The trace's list of calls, where its messages agree: the trace contradicts itself."""
    END = "end"
    """Where or why the episode ended."""
    SCORE = "score"
    """The total, a component, or the game's outcome."""
    FAILURE = "failure"
    """The environment broke in the replay, and had not when the rollout was recorded."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: the texts on both sides, and ``where`` it is, in words (``call 3, play({"position": 4})``).

    ``message`` is the place in the trace's messages, and ``call`` counts tool calls from 1, malformed ones included;
    None where the difference is at none.
    """

    kind: DifferenceKind
    where: str
    recorded: str
    replayed: str
    message: int | None = None
    call: int | None = None

    def __str__(self) -> str:
        return f"{self.where}: recorded {self.recorded!r}, replayed {self.replayed!r}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A rollout and its replay.

    ``number`` is the trace's place among those that were given; ``replayed`` is None where no episode was opened.
    ``differences`` are in the order in which they show: other tools first, then the first text that differs, or else
    the end, or else the score. ``observations`` is how many texts of the environment were compared. ``notes`` say what
    is no difference and should be known: another version, a rollout without a score.
    """

    number: int
    recorded: Trace
    replayed: Trace | None
    differences: tuple[Difference, ...] = ()
    observations: int = 0
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing differed."""
        return not self.differences

    @property
    def difference(self) -> Difference | None:
        """The first difference."""
        return self.differences[0] if self.differences else None

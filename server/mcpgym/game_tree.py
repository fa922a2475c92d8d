"""A finite game as a tree: everything that can follow from what a policy does, for each reply of its opponent.

An environment whose episodes are games of two players may give its tree (:meth:`mcpgym.Environment.game_tree`). Then a
policy can be played against every possible opponent at once and certified, and a person can take the opponent's part.
The tree must say exactly what episodes say: the same prompts, the same answers, the same refusals.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NamedTuple, Protocol

from typing_extensions import TypeVar

from mcpgym.calls import answer_text, no_such_tool, sendable, too_deep, too_deep_answer
from mcpgym.environment import Environment, GameOutcome
from mcpgym.errors import ToolError
from mcpgym.messages import Message
from mcpgym.tasks import Task

StateT = TypeVar("StateT", bound=Hashable, default=Any)


class Chances(NamedTuple):
    """How likely one reply of the opponent is, of two opponents; each column adds up to 1 over all that can follow."""

    random: Fraction
    """Under an opponent that chooses uniformly among its legal moves."""
    perfect: Fraction
    """Under the strongest opponent that the environment has; 0 for a reply that it never gives."""


CERTAIN = Chances(Fraction(1), Fraction(1))
"""The chances of what alone can follow."""


@dataclass(frozen=True, slots=True)
class Start(Generic[StateT]):
    """One way for a game to begin: the position and the prompt that the policy finds, and the opponent's opening."""

    state: StateT
    messages: Sequence[Message]
    act: str | None = None
    """What the opponent opened with; None where the policy moves first."""
    chances: Chances = CERTAIN


@dataclass(frozen=True, slots=True)
class Answer(Generic[StateT]):
    """One thing that can follow a call: what the policy reads, and where the game stands then."""

    state: StateT
    text: str
    is_error: bool = False
    act: str | None = None
    """The policy's move; None where the call was refused."""
    reply: str | None = None
    """The opponent's move after it; None where it made none."""
    chances: Chances = CERTAIN


class LegalCall(NamedTuple):
    """A call that makes a legal move."""

    tool: str
    arguments: Mapping[str, Any]


class Mixture(NamedTuple):
    """Whom a task's policy meets: the part it has itself, and how its opponent moves.

    Each of the opponent's moves is drawn uniformly from its legal ones with the chance ``random``, and is otherwise the
    strongest opponent's. The draws are independent of each other, over all seeds of the task's episodes.
    """

    seat: str
    random: Fraction


class StatedPolicy(Protocol):
    """A reference policy that also states its chances: then what it is worth is worked out, and no longer sampled."""

    def choices(self, state: Any, /) -> Sequence[tuple[Fraction, LegalCall]]:
        """The calls that it makes in this position of the tree, and how often; the chances add up to 1.

        It is called with the positions of a :class:`GameTree` in which it is the policy's turn. It must play alike in
        positions with the same :meth:`GameTree.key`: what follows is worked out once for all of them.
        """
        ...


class GameTree(Protocol[StateT]):
    """The tree of a finite game of two players, seen from the policy. Every method is a pure function.

    Moves have labels (``acts``): short texts without spaces, equal for equal moves, which people read and type. States
    are values: hashable, never changed. The policy's turn is over with its call; what the opponent replies is part of
    the answer.

    A tree may also have ``opponent(task) -> Mixture | None`` (:func:`opponent_of`): then evaluations show the exact
    value beside the estimate.
    """

    seats: Sequence[str]
    """The parts that the policy can have under this configuration (``first``, ``second``)."""

    def starts(self, seat: str) -> Sequence[Start[StateT]]:
        """Every way in which a game can begin for the policy in ``seat``."""
        ...

    def answers(self, state: StateT, tool: str, arguments: Mapping[str, Any]) -> Sequence[Answer[StateT]]:
        """Everything that can follow a call, one for each reply; one alone where it was refused or the game is over.

        The texts are, byte for byte, those of an episode, whatever the policy sent (see :func:`call_tool`).
        """
        ...

    def legal(self, state: StateT) -> Sequence[LegalCall]:
        """The calls that make a legal move, one for each move; none when the game is over."""
        ...

    def outcome(self, state: StateT) -> GameOutcome | None:
        """How the game ended for the policy; None while it goes on."""
        ...

    def key(self, state: StateT) -> Hashable:
        """Equal only for states that are worth the same to both players, symmetric ones for example.

        What is worked out about a state is remembered by its key: the fewer there are, the faster.
        """
        ...

    def draw(self, seat: str, acts: Sequence[str]) -> str:
        """The position after these moves of both players, as text for people.

        Raises:
            ConfigurationError: the moves are none of this game.
        """
        ...

    def line_task(
        self,
        seat: str,
        acts: Sequence[str],
        random_move_prob: float = 0.0,
        others: Sequence[Sequence[str]] = (),
    ) -> str:
        """The id of a task whose opponent steers into this line: it makes its moves of ``acts`` while the game follows
        them. Off the line it steers into one of the lines ``others`` where the game allows it; off all of them it moves
        at random with this probability, else perfectly."""
        ...


def opponent_of(tree: GameTree[Any], task: Task) -> Mixture | None:
    """Whom the policy meets in ``task``; None where the tree does not say, or the opponent is none of this kind."""
    said: Any = getattr(tree, "opponent", None)
    return None if said is None else said(task)


def call_tool(
    environment: Environment[Any, Any, Any], state: Any, tool: str, arguments: Mapping[str, Any]
) -> tuple[str, bool]:
    """What an episode in ``state`` answers to one call: the text, and whether it is an error. ``state`` may change.

    For inline tools of environments that have a tree. An exception other than ``ToolError`` is a bug of the environment
    and comes out as it is.
    """
    if too_deep(arguments):
        return too_deep_answer(tool), True
    found = environment.tools.get(tool)
    if found is None:
        return sendable(no_such_tool(tool, environment.tools)), True
    try:
        parsed = found.parser.parse(arguments)
    except ValueError as problem:
        return sendable(environment.invalid_arguments(state, found.name, str(problem))), True
    try:
        return sendable(answer_text(found.handler(environment, state, **parsed))), False
    except ToolError as problem:
        return sendable(str(problem)), True

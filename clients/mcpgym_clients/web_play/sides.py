"""One policy's side of a game on its tree: it moves by its own calls, and somebody else makes the opponent's moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcpgym.environment import GameOutcome
from mcpgym.errors import ConfigurationError
from mcpgym_clients.web_play.game import Said
from mcpgym_rl.certificate.lines import Point, Rules
from mcpgym_rl.certificate.twice import Player
from mcpgym_rl.stop_reason import StopReason


class Side:
    """A policy in one seat. ``points`` are what may follow, by the moves that are known so far.

    A turn leads to one point for each reply of the opponent; which of them it is, :meth:`take` says.
    """

    def __init__(self, player: Player, rules: Rules, seat: str, points: Sequence[Point]) -> None:
        self.player = player
        self.rules = rules
        self.seat = seat
        self.points = list(points)
        self.known = 0

    @property
    def name(self) -> str:
        """The policy's."""
        return self.player.policy.name

    @property
    def point(self) -> Point | None:
        """Where the game stands for this side, when every move that is known has been made; None until then."""
        first = self.points[0]
        return first if all(len(point.acts) == self.known for point in self.points) else None

    @property
    def turn(self) -> bool:
        """Whether the policy is to be asked."""
        return self.point is not None and self.point.end is None

    @property
    def end(self) -> StopReason | None:
        """Why this side's game ended; None while it goes on."""
        return None if self.point is None else self.point.end

    @property
    def outcome(self) -> GameOutcome | None:
        """How it ended for this side."""
        return None if self.point is None else self.rules.tree.outcome(self.point.state)

    def own(self) -> str | None:
        """The next move where it is the policy's own, and is known."""
        first = self.points[0]
        if self.point is None and first.movers[self.known] == "policy":
            return first.acts[self.known]
        return None

    def choices(self) -> list[str]:
        """What the opponent may move now; nothing where it is not its turn."""
        if self.point is not None or self.points[0].movers[self.known] != "opponent":
            return []
        return list(dict.fromkeys(point.acts[self.known] for point in self.points))

    def after(self, act: str) -> list[Point]:
        """What may follow this move.

        Raises:
            ConfigurationError: it is none that can be made now.
        """
        found = [point for point in self.points if len(point.acts) > self.known and point.acts[self.known] == act]
        if not found:
            raise ConfigurationError(f"{act!r} is no move that can be made now; there is: {', '.join(self.choices())}")
        return found

    def take(self, act: str) -> None:
        """Go on by this move.

        Raises:
            ConfigurationError: it is none that can be made now.
        """
        self.points = self.after(act)
        self.known += 1

    async def think(self) -> list[Said]:
        """Ask the policy for its turn; what it said, and what it was refused.

        Raises:
            PolicyError: it gave none; it may be asked again.
        """
        point = self.point
        assert point is not None
        turn = await self.player.act(point.messages)
        if turn is None:
            self.points = [replace(point, end=StopReason.TRUNCATED)]
            return [Said("note", f"The conversation is too long for {self.name}.", wrong=True)]
        said = [Said("policy", turn.message["content"])] if turn.message["content"].strip() else []
        self.points = self.rules.after(point, turn)
        told = self.points[0].messages[len(point.messages) :]
        refusals = [message["content"] for message in told if message.get("is_error")]
        return said + [Said("tool", text, self.name, wrong=True) for text in refusals]

    async def aclose(self) -> None:
        """Let go of the policy's session."""
        await self.player.aclose()

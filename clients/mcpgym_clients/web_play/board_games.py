"""Games on the tree: the person against a policy, and two policies against each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcpgym.environment import Environment, GameOutcome
from mcpgym.errors import ConfigurationError, McpgymError
from mcpgym.game_tree import GameTree
from mcpgym_clients.viewer.move_values import Game as ValuedGame
from mcpgym_clients.web_play.game import Game, Said
from mcpgym_clients.web_play.sides import Side
from mcpgym_rl.certificate.lines import Point, Rules
from mcpgym_rl.certificate.values import GUARANTEED, value_at, values_of

_FLIPPED: dict[GameOutcome | None, GameOutcome | None] = {"win": "loss", "loss": "win", "draw": "draw", None: None}


@dataclass(slots=True, kw_only=True)
class BoardGame(Game):
    """A game of one or two sides. ``sides[0]`` is the one from which the board is drawn."""

    environment: Environment[Any, Any, Any]
    sides: Sequence[Side]
    again: str = ""

    def __post_init__(self) -> None:
        self._settle()

    @property
    def over(self) -> bool:
        """Whether any side's game has ended: by the game's rules, or by a limit of the policy."""
        return any(side.end is not None for side in self.sides)

    @property
    def acts(self) -> tuple[str, ...]:
        """The moves that have been made."""
        return self.sides[0].points[0].acts[: self.sides[0].known]

    def _whose(self) -> str:
        if self.over:
            return "over"
        return "policy" if any(side.turn for side in self.sides) else "person"

    async def view(self) -> dict[str, Any]:
        """With the position, and what the person may move."""
        base = await Game.view(self)
        tree: GameTree[Any] = self.sides[0].rules.tree
        base |= {"board": tree.draw(self.sides[0].seat, self.acts), "turn": self._whose()}
        if self.over:
            base |= {"verdict": self._verdict(), "again": self.again}
        elif self.part == "opponent" and base["turn"] == "person":
            base["choices"] = self.sides[0].choices()
        elif self.part == "opponent":
            base["choices"] = []
        return base

    def _outcome(self) -> GameOutcome | None:
        """How it ended for the first side."""
        found = self.sides[0].outcome
        return _FLIPPED[self.sides[1].outcome] if found is None and len(self.sides) > 1 else found

    def _verdict(self) -> str:
        outcome = self._outcome()
        if outcome is None:
            ended = next(side for side in self.sides if side.end is not None)
            return f"The game has no outcome: {ended.name} ended it ({str(ended.end).replace('_', ' ')})."
        if self.part == "opponent":
            return {"win": "You lost.", "draw": "A draw.", "loss": "You won."}[outcome]
        names = [f"{side.name} ({side.seat})" for side in self.sides]
        return {"win": f"{names[0]} won.", "draw": "A draw.", "loss": f"{names[1]} won."}[outcome]

    async def choose(self, act: str) -> None:
        """The person's move."""
        if self.part != "opponent" or self._whose() != "person":
            raise ConfigurationError("it is not your turn")
        self.sides[0].take(act)
        self.said.append(Said("you", "", act))
        self.version += 1
        self._settle()

    async def step(self) -> None:
        """One turn of the policy whose turn it is.

        Raises:
            PolicyError: it gave none; it may be asked again.
        """
        side = next((one for one in self.sides if one.turn and not self.over), None)
        if side is None:
            return
        self.said += await side.think()
        self.version += 1
        self._settle()

    def _settle(self) -> None:
        """Hand each policy's moves to the other side, as far as they are known."""
        while (mover := next((side for side in self.sides if side.own() is not None), None)) is not None:
            act = mover.own()
            assert act is not None
            self.said.append(Said("policy", "", f"{mover.name} plays {act}"))
            for side in self.sides:
                side.take(act)

    async def values(self) -> dict[str, Any]:
        """What the moves are worth to who moves: the policy whose turn it is, or the person."""
        if self.over:
            return {"moves": [], "note": ""}
        try:
            return {"moves": await asyncio.to_thread(self._values), "note": ""}
        except (McpgymError, RecursionError) as error:
            return {"moves": [], "note": f"the values of moves are not known: {error}"}

    def _values(self) -> list[dict[str, Any]]:
        mover = next((side for side in self.sides if side.turn), None)
        if mover is not None and mover.point is not None:
            left = mover.rules.left(mover.point)
            return [option.as_json() for option in ValuedGame(self.environment).options(mover.point.state, left)]
        side = self.sides[0]
        values = values_of(self.environment, side.rules.max_turns)
        worth = {
            act: min(value_at(values, side.rules, point).guaranteed for point in side.after(act))
            for act in side.choices()
        }
        best = min(worth.values(), default=0)
        return [
            {"act": act, "call": act, "best": value == best, "forced": GUARANTEED[-value]}
            for act, value in worth.items()
        ]

    async def aclose(self) -> None:
        """Let go of the policies' sessions."""
        for side in self.sides:
            await side.aclose()


def facing_points(points: Sequence[Point], others: Sequence[Point]) -> None:
    """See that two policies can have these beginnings: one of them moves first, and the other then answers.

    Raises:
        ConfigurationError: they cannot.
    """
    first = [all(not point.acts for point in found) for found in (points, others)]
    if first[0] == first[1]:
        raise ConfigurationError("in this game no seat moves first and the other second: two policies cannot meet")


def rules_of(environment: Environment[Any, Any, Any], max_turns: int) -> Rules:
    """The rules of the environment's game.

    Raises:
        ConfigurationError: it gives no tree.
    """
    tree = environment.game_tree()
    if tree is None:
        raise ConfigurationError(f"{environment.name} has no game tree, so nobody can take an opponent's part in it")
    return Rules(tree, max_turns)

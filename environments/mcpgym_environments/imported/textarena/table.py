"""One game: the policy's seat, the opponent's moves, and what is said to the policy."""

from __future__ import annotations

import copy
import numbers
from random import Random
from typing import Any

from mcpgym.errors import ConfigurationError, MissingPackage
from mcpgym_environments.imported.textarena.chance import copied, drawing_from, take_over
from mcpgym_environments.imported.textarena.games import base, is_alone
from mcpgym_environments.imported.textarena.moves import candidates
from mcpgym_environments.imported.textarena.package import EXTRA, import_game, textarena

MOST = 5_000
"""Moves of an opponent in a row; no game that is played here takes so many."""

TURNED_ROUND = ("Countdown", "Cryptarithm", "Slitherlink")
"""Games for one that give an invalid move's reward where its reason belongs: a policy would read a number."""


class Table:
    """A game under way. Every call of the game draws from ``generator``, and the opponent from one of its own."""

    def __init__(self, game: str, seat: int, seed: int) -> None:
        self.game = game
        self.seat = seat
        self.players = 1 if is_alone(game) else 2
        self.generator = Random(seed)
        self.opponent = Random(seed ^ 0x5EED)
        self.actions = 0
        self.over = False
        self.crashed = False
        self.made = self._begin(seed)
        self._play_others()
        self.first = self.seen()

    def _begin(self, seed: int) -> Any:
        try:
            import_game(f"{self.game}-raw")
            take_over()
            with drawing_from(self.generator):
                made = textarena().make(f"{self.game}-raw")
                made.reset(num_players=self.players, seed=seed)
            if base(self.game) in TURNED_ROUND:
                _turn_round(made.state)
        except MissingPackage:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"textarena {EXTRA.version}: {self.game} cannot be played here: {type(error).__name__}: {error}"
            ) from error
        return made

    @property
    def state(self) -> Any:
        """The game's own state."""
        return self.made.state

    def act(self, action: str) -> None:
        """The policy's action, and the opponent's until it is the policy's turn again. A game that fails on an action
        is over, and lost: a policy must not be able to break its way out."""
        self.actions += 1
        try:
            self._step(action)
            self._play_others()
        except Exception:
            self.over = self.crashed = True

    def _step(self, action: str) -> None:
        with drawing_from(self.generator):
            done, _ = self.made.step(action)
        self.over = bool(done)

    def _play_others(self) -> None:
        for _ in range(MOST):
            if self.over or self.state.current_player_id == self.seat:
                return
            self.state.get_current_player_observation()
            self._step(self._legal())
        raise RuntimeError("the opponent's turn has no end")

    def _legal(self) -> str:
        """A move of the opponent's, drawn evenly from those that the game takes: they are tried on a copy."""
        player = self.state.current_player_id
        again: Any = None
        for move in (tried := candidates(base(self.game), self.state, self.opponent)):
            again = copy.deepcopy(self.made) if again is None else again
            state = again.state
            state.error_count = 0
            state.made_invalid_move = False
            with drawing_from(copied(self.generator)):
                try:
                    again.step(move)
                except Exception:
                    again = None
                    continue
            if state.error_count == 0 and not state.game_info[player]["invalid_move"]:
                return move
            if state.done:
                again = None
        return tried[0]

    def seen(self) -> str:
        """What the policy has not read yet."""
        if self.crashed:
            return "The game could not take that action. It is over."
        kinds = textarena().ObservationType
        said = self.state.observations[self.seat]
        self.state.observations[self.seat] = []
        lines = []
        for who, text, kind in said:
            if kind is kinds.PLAYER_ACTION and who == self.seat:
                continue
            lines.append(f"[Player {who}] {text}" if kind is kinds.PLAYER_ACTION else str(text))
        if self.over:
            reason = self.state.game_info.get(self.seat, {}).get("reason")
            lines.append(f"The game is over. {reason or ''}".strip())
        return "\n".join(lines).strip() or "Go on."

    @property
    def outcome(self) -> float:
        """What the game gives its player; -1 where it is not over, or broke."""
        given = (self.state.rewards or {}).get(self.seat)
        if not self.over or self.crashed or not isinstance(given, numbers.Real):
            return -1.0
        return min(max(float(given), -1.0), 1.0)


def _turn_round(state: Any) -> None:
    """Let the state of one of :data:`TURNED_ROUND` tell the reason. The game is lost by a second one: some would pay
    more for it than for play."""
    tell = state.set_invalid_move
    state.set_invalid_move = lambda _, reason: tell(reason)

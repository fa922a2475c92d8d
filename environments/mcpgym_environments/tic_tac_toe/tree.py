"""Tic-tac-toe as a tree: every reply of O to whatever the policy does, in the words of the real game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from mcpgym import GameOutcome, Task
from mcpgym.errors import UnknownNameError
from mcpgym.game_tree import CERTAIN, Answer, Chances, LegalCall, Mixture, Start, call_tool
from mcpgym_environments.tic_tac_toe import engine
from mcpgym_environments.tic_tac_toe.engine import Board
from mcpgym_environments.tic_tac_toe.environment import Game, TicTacToe
from mcpgym_environments.tic_tac_toe.lines import line_id, played
from mcpgym_environments.tic_tac_toe.observation import show
from mcpgym_environments.tic_tac_toe.opponent import Opponent, make_opponent

_SEATS = ("first", "second")
_NOBODY = Opponent(b"", 0)
"""Stands in where its reply is not looked at."""

# The eight symmetries of the board: where each cell's mark comes from.
_TURN = (6, 3, 0, 7, 4, 1, 8, 5, 2)
_MIRROR = (2, 1, 0, 5, 4, 3, 8, 7, 6)


class Position(NamedTuple):
    """Where a game stands when it is the policy's turn, or over."""

    board: Board
    outcome: GameOutcome | None = None


class TicTacToeTree:
    """The tree of one configuration. Real tools make every answer, with an opponent that is told what to reply."""

    def __init__(self, environment: TicTacToe) -> None:
        self._environment = environment
        moves = environment.config.policy_moves
        self.seats: Sequence[str] = _SEATS if moves == "either" else (moves,)

    def starts(self, seat: str) -> Sequence[Start[Position]]:
        """The empty board, or the nine that O may have opened."""
        if seat not in self.seats:
            raise UnknownNameError("seat", seat, self.seats)
        if seat == "first":
            return [self._start(seat, None, CERTAIN)]
        return [self._start(seat, cell, chances) for cell, chances in self._replies(engine.new_board("O"))]

    def _start(self, seat: str, opening: int | None, chances: Chances) -> Start[Position]:
        act = None if opening is None else str(opening)
        task = self._environment.task(line_id(seat, [] if act is None else [act]))
        game = self._environment.reset(task, 0)
        return Start(Position(game.board), self._environment.messages(task, game), act, chances)

    def answers(self, state: Position, tool: str, arguments: Mapping[str, Any]) -> Sequence[Answer[Position]]:
        """What follows a call, for each free cell that O may take."""
        answered = self._answered(state, _NOBODY, tool, arguments)
        taken = [cell for cell in range(9) if answered.state.board.cells[cell] == "X" != state.board.cells[cell]]
        if not taken:
            return [answered]
        after = engine.play(state.board, taken[0])
        act = str(taken[0])
        if engine.result(after) is not None:
            return [Answer(answered.state, answered.text, act=act)]
        found = []
        for cell, chances in self._replies(after):
            steered = Opponent(b"", 0, {after.cells: (cell,)})
            answered = self._answered(state, steered, tool, arguments)
            found.append(Answer(answered.state, answered.text, act=act, reply=str(cell), chances=chances))
        return found

    def _answered(
        self, state: Position, opponent: Opponent, tool: str, arguments: Mapping[str, Any]
    ) -> Answer[Position]:
        game = Game(state.board, opponent, outcome=state.outcome)
        text, is_error = call_tool(self._environment, game, tool, arguments)
        return Answer(Position(game.board, game.outcome), text, is_error)

    def _replies(self, board: Board) -> tuple[tuple[int, Chances], ...]:
        return _replies(board, self._environment.config.best_move == "any")

    def opponent(self, task: Task) -> Mixture | None:
        """Who plays O in ``task``; None where it steers into a line."""
        info = task.info
        if info.get("line"):
            return None
        share = Fraction(make_opponent(0, info["random_move_prob"]).threshold, 2**64)
        return Mixture("first" if info["policy_first"] else "second", share)

    def legal(self, state: Position) -> Sequence[LegalCall]:
        """One call of ``play`` for each free cell."""
        moves = () if state.outcome is not None else engine.legal_moves(state.board)
        return [LegalCall("play", {"position": cell}) for cell in moves]

    def outcome(self, state: Position) -> GameOutcome | None:
        """How the game ended for X."""
        return state.outcome

    def key(self, state: Position) -> str:
        """One of the eight boards that are this one turned or mirrored, and how it ended.

        The board itself where O always takes the first of its best moves: that is not alike on all eight.
        """
        cells = state.board.cells
        return f"{_canonical(cells) if self._environment.config.best_move == 'any' else cells}{state.outcome}"

    def draw(self, seat: str, acts: Sequence[str]) -> str:
        """The board after these moves, as the policy is shown it."""
        return show(played(seat, acts)[-1])

    def line_task(
        self,
        seat: str,
        acts: Sequence[str],
        random_move_prob: float = 0.0,
        others: Sequence[Sequence[str]] = (),
    ) -> str:
        """The id of the line's task (see :mod:`mcpgym_environments.tic_tac_toe.lines`)."""
        return line_id(seat, acts, random_move_prob, others)


@cache
def _replies(board: Board, varied: bool) -> tuple[tuple[int, Chances], ...]:
    """What O may play on ``board``, and how likely that is of a random and of a perfect opponent."""
    legal, best = engine.legal_moves(board), engine.best_moves(board)[: None if varied else 1]
    perfect = Fraction(1, len(best))
    return tuple((cell, Chances(Fraction(1, len(legal)), perfect * (cell in best))) for cell in legal)


@cache
def _canonical(cells: str) -> str:
    turned = [cells]
    for _ in range(3):
        turned.append("".join(turned[-1][cell] for cell in _TURN))
    return min([*turned, *("".join(board[cell] for cell in _MIRROR) for board in turned)])

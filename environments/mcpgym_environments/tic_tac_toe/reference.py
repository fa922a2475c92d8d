"""Policies to compare with. They see what any policy sees: the messages.

``random`` plays any free cell and says nothing; ``minimax`` plays any of the best moves against perfect play;
``expert`` never loses, and of all policies that never lose it wins most often against a purely random opponent:
95.56 % of games, and draws the rest, on average over moving first and second. Against perfect play it draws every game.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from mcpgym import Message, ReferencePolicy
from mcpgym.game_tree import LegalCall
from mcpgym.messages import assistant, tool_call
from mcpgym_environments.tic_tac_toe.engine import Board, best_moves, legal_moves, play, result, value
from mcpgym_environments.tic_tac_toe.observation import last_board

if TYPE_CHECKING:
    from mcpgym_environments.tic_tac_toe.tree import Position


@cache
def win_chance(board: Board) -> Fraction:
    """The exact chance that X, playing as ``expert``, wins from ``board`` against an O that moves at random."""
    if (ended := result(board)) is not None:
        return Fraction(ended == "X")
    if board.turn == "O":
        moves = legal_moves(board)
        return sum((win_chance(play(board, cell)) for cell in moves), Fraction(0)) / len(moves)
    return max(win_chance(play(board, cell)) for cell in safe_moves(board))


def safe_moves(board: Board) -> tuple[int, ...]:
    """X's moves after which perfect play by O cannot beat it; all its moves where every one can be beaten."""
    moves = legal_moves(board)
    return tuple(cell for cell in moves if value(play(board, cell)) >= 0) or moves


@cache
def expert_moves(board: Board) -> tuple[int, ...]:
    """X's safe moves with the best chance to win against random play; where equal, the best against perfect play."""
    after = {cell: play(board, cell) for cell in safe_moves(board)}
    merits = {cell: (win_chance(board), value(board)) for cell, board in after.items()}
    return tuple(cell for cell, merit in merits.items() if merit == max(merits.values()))


class _Chooser:
    """A policy that takes any of the ``moves`` of a board, uniformly; it states its chances too (``StatedPolicy``)."""

    def __init__(self, moves: Callable[[Board], tuple[int, ...]], *, think: bool) -> None:
        self._moves, self._think = moves, think

    def __call__(self, messages: Sequence[Message], random: Random) -> Message:
        board = last_board(messages)
        cell = random.choice(self._moves(board))
        call = tool_call(f"call_{len(messages)}", "play", json.dumps({"position": cell}))
        return assistant(f"<think>{_reason(board, cell)}</think>" if self._think else "", [call])

    def choices(self, state: Position) -> list[tuple[Fraction, LegalCall]]:
        """The moves of a position of the game tree, each as likely as the others."""
        return uniform(self._moves(state.board))


def uniform(cells: Sequence[int], whole: Fraction = Fraction(1)) -> list[tuple[Fraction, LegalCall]]:
    """A call of ``play`` for each of ``cells``; the chances are equal and add up to ``whole``."""
    return [(whole / len(cells), LegalCall("play", {"position": cell})) for cell in cells]


def _reason(board: Board, cell: int) -> str:
    if result(play(board, cell)) == "X":
        return f"I complete a line with {cell} and win."
    threats = [c for c in legal_moves(board) if result(play(Board(board.cells, "O"), c)) == "O"]
    if cell in threats:
        return f"I cannot complete a line now. O would win with {cell}, so I block it."
    if threats:
        return f"I cannot keep O from a line for sure. {cell} is the best free cell."
    return f"There is no line to complete and none to block. {cell} is the best free cell."


POLICIES: Mapping[str, ReferencePolicy] = {
    "random": _Chooser(legal_moves, think=False),
    "minimax": _Chooser(best_moves, think=True),
    "expert": _Chooser(expert_moves, think=True),
}

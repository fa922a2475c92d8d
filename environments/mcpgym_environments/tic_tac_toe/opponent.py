"""The opponent: perfect play with variety, and a share of random moves.

A minimax that always takes the first of its best moves is memorised, not beaten, so this one chooses uniformly among
equally good moves. Each reply is a pure function of the opponent and the board: two games that reach the same board
against the same opponent get the same reply, in every process.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from mcpgym_environments.tic_tac_toe.engine import Board, best_moves, legal_moves

_BITS = 64
_MASK = (1 << _BITS) - 1


class Opponent(NamedTuple):
    """Who plays O in one episode: ``key`` is all its randomness, ``threshold`` 2^64 times its share of random moves."""

    key: bytes
    threshold: int


def make_opponent(seed: int, random_move_prob: float) -> Opponent:
    """The opponent of ``seed`` (64 bits) that moves at random with probability ``random_move_prob``, 0 to 1."""
    return Opponent(seed.to_bytes(8, "big"), int(random_move_prob * (1 << _BITS)))


def reply(opponent: Opponent, board: Board) -> int:
    """The cell that ``opponent`` plays on ``board``, where it is to move and the game goes on.

    A keyed hash of the board gives 128 bits: the upper half decides between random and perfect play, the lower half
    chooses among the moves. Taking the upper bits of a product favours no move by more than 9 / 2^64.
    """
    drawn = int.from_bytes(blake2b(board.cells.encode(), digest_size=16, key=opponent.key).digest(), "big")
    moves = legal_moves(board) if drawn >> _BITS < opponent.threshold else best_moves(board)
    return moves[(drawn & _MASK) * len(moves) >> _BITS]

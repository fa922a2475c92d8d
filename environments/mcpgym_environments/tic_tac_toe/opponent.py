"""The opponent: perfect play with variety, and a share of random moves.

A minimax that always takes the first of its best moves is memorised, not beaten, so this one chooses uniformly among
equally good moves. Each reply is a pure function of the opponent and the board: two games that reach the same board
against the same opponent get the same reply, in every process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from struct import Struct
from types import MappingProxyType
from typing import NamedTuple

from mcpgym_environments.tic_tac_toe.engine import Board, best_moves, legal_moves

_TWO_NUMBERS = Struct(">QQ16x")
"""How a SHA-256 digest is read: two unsigned 64-bit numbers, and the rest unused."""
_NOTHING: Mapping[str, Sequence[int]] = MappingProxyType({})


class Opponent(NamedTuple):
    """Who plays O in one episode: ``key`` is all its randomness, ``threshold`` 2^64 times its share of random moves.

    ``line`` maps boards to the cells it chooses from there whatever its strength: it steers into lines of play.
    ``varied`` is whether its perfect moves are any of the best, and not always the first.
    """

    key: bytes
    threshold: int
    line: Mapping[str, Sequence[int]] = _NOTHING
    varied: bool = True


def make_opponent(
    seed: int, random_move_prob: float, line: Mapping[str, Sequence[int]] = _NOTHING, *, varied: bool = True
) -> Opponent:
    """The opponent of ``seed`` (64 bits) that moves at random with probability ``random_move_prob``, 0 to 1."""
    return Opponent(seed.to_bytes(8, "big"), int(random_move_prob * 2**64), line, varied)


def reply(opponent: Opponent, board: Board) -> int:
    """The cell that ``opponent`` plays on ``board``, where it is to move and the game goes on.

    The SHA-256 of key and board gives two independent numbers below 2^64. The first decides between a random and a
    perfect move, the second chooses among the moves: ``choice * n >> 64`` favours none by more than 9 / 2^64.
    """
    steered = opponent.line.get(board.cells)
    if steered is not None and len(steered) == 1:
        return steered[0]
    drawn: tuple[int, int] = _TWO_NUMBERS.unpack(sha256(opponent.key + board.cells.encode()).digest())
    chance, choice = drawn
    if steered is not None:
        return steered[choice * len(steered) >> 64]
    at_random = chance < opponent.threshold
    moves = legal_moves(board) if at_random else best_moves(board)
    if not (at_random or opponent.varied):
        return moves[0]
    return moves[choice * len(moves) >> 64]

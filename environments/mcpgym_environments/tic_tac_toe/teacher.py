"""The teacher of tic-tac-toe: it looks one move ahead and knows no more.

It completes a line if it can, else blocks one of O's, else takes any free cell; with probability 1 - skill it takes any
free cell at once. Even at skill 1 it walks into every fork: whoever learns from it has the form of a turn and the
first two rules of the game, and must find the rest alone. A move that looking ahead would not make has the weight 0:
one learns from what follows it, not from it.

Its thoughts are a few words, each of them true of the board that it sees. Once a mark stands there twice, they begin
with the board turned into its lines: columns, diagonals, rows, and after each the free cell that completes it for one
of the two, or 9, which is no cell. They end with what comes of it::

    Lines
    X O . 9 X O . 9 . . . 9 X O . 9 . O . 9 X X . 2 O O . 5 . . . 9 Win with 2.

    Win with 6.     it completes a line there
    Block 6.        O would complete a line there
    Take 6.         neither

A model that is to see all that in one step learns it slowly and forgets it soon; line by line it is copying.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from mcpgym import Message, ReferencePolicy
from mcpgym.game_tree import LegalCall
from mcpgym.messages import assistant, tool_call
from mcpgym_environments.tic_tac_toe.engine import EMPTY, LINES, Board, cells_of, legal_moves, play, result
from mcpgym_environments.tic_tac_toe.observation import last_board
from mcpgym_environments.tic_tac_toe.reference import uniform

if TYPE_CHECKING:
    from mcpgym_environments.tic_tac_toe.tree import Position

NO_CELL = 9
"""What stands for the cell that completes a line, where there is none."""


@cache
def wins(board: Board) -> tuple[int, ...]:
    """The cells with which X, to move, completes a line."""
    return tuple(cell for cell in legal_moves(board) if result(play(board, cell)) == "X")


@cache
def blocks(board: Board) -> tuple[int, ...]:
    """The cells with which O would complete a line, were it to move."""
    turned = Board(board.cells, "O")
    return tuple(cell for cell in legal_moves(turned) if result(play(turned, cell)) == "O")


def one_ply_moves(board: Board) -> tuple[int, ...]:
    """What one move of looking ahead finds best for X: the winning cells, else the blocking ones, else all."""
    return wins(board) or blocks(board) or legal_moves(board)


def thought(board: Board, cell: int) -> str:
    """What one move of looking ahead sees on the board, and in ``cell``."""
    verdict = "Win with" if cell in wins(board) else "Block" if cell in blocks(board) else "Take"
    return f"{_lines(board)}{verdict} {cell}."


@cache
def _lines(board: Board) -> str:
    """The lines of a board and what completes them; nothing where no line can have two of a mark yet."""
    if max(len(cells_of(board, "X")), len(cells_of(board, "O"))) < 2:
        return ""
    return "Lines\n" + "".join(f"{_line(board, line)} " for line in LINES[3:] + LINES[:3])


def _line(board: Board, line: tuple[int, ...]) -> str:
    """A line's marks, and the cell that completes it for one of the two: always one digit, so that all boards' lines
    stand in the same places."""
    marks = [board.cells[cell] for cell in line]
    completed = marks.count(EMPTY) == 1 and len(set(marks)) == 2
    return f"{' '.join(marks)} {line[marks.index(EMPTY)] if completed else NO_CELL}"


def make_teacher(skill: float) -> ReferencePolicy:
    """The teacher that looks ahead with probability ``skill`` in each turn."""
    return _Teacher(skill)


class _Teacher:
    """It states its chances too (``StatedPolicy``)."""

    def __init__(self, skill: float) -> None:
        self._skill = skill

    def __call__(self, messages: Sequence[Message], random: Random) -> Message:
        board = last_board(messages)
        cell = random.choice(one_ply_moves(board) if random.random() < self._skill else legal_moves(board))
        return turn(board, cell, len(messages))

    def choices(self, state: Position) -> list[tuple[Fraction, LegalCall]]:
        """The moves of a position of the game tree; a cell may stand there twice."""
        looked = Fraction(self._skill)
        return uniform(one_ply_moves(state.board), looked) + uniform(legal_moves(state.board), 1 - looked)


@cache
def _arguments(cell: int) -> str:
    return f'{{"position": {cell}}}'


def turn(board: Board, cell: int, number: int) -> Message:
    """The turn that plays ``cell`` on ``board``; ``number`` makes the id of its call."""
    call = tool_call(f"call_{number}", "play", _arguments(cell))
    message = assistant(f"<think>{thought(board, cell)}</think>", [call])
    if cell not in one_ply_moves(board):
        message["weight"] = 0
    return message

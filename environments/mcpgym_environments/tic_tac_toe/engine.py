"""The rules of tic-tac-toe, and perfect play. No dependency and no randomness: everything here is a pure function.

Cells are numbered row by row::

    0 1 2
    3 4 5
    6 7 8

A board never changes; playing a cell makes a new one. Either mark may move first, so a board says whose turn it is.
Results are remembered per board: there are 5,478 boards when X begins and as many when O does, so memory is bounded.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

Mark = Literal["X", "O"]
Result = Literal["X", "O", "draw"]

EMPTY = "."
LINES = (
    (0, 1, 2), (3, 4, 5), (6, 7, 8),
    (0, 3, 6), (1, 4, 7), (2, 5, 8),
    (0, 4, 8), (2, 4, 6),
)  # fmt: skip


class Board(NamedTuple):
    """Nine cells, each ``X``, ``O`` or ``.``, and the mark whose turn it is."""

    cells: str
    turn: Mark


def new_board(first: Mark) -> Board:
    """The empty board; ``first`` moves first."""
    return Board(EMPTY * 9, first)


def cells_of(board: Board, mark: str) -> tuple[int, ...]:
    """The cells that hold ``mark``, in order."""
    return tuple(cell for cell, held in enumerate(board.cells) if held == mark)


@cache
def free_cells(board: Board) -> tuple[int, ...]:
    """The empty cells, in order; also of a finished game."""
    return cells_of(board, EMPTY)


def winning_line(board: Board) -> tuple[int, int, int] | None:
    """Three equal marks in a line, if there are."""
    cells = board.cells
    for a, b, c in LINES:
        if cells[a] == cells[b] == cells[c] != EMPTY:
            return a, b, c
    return None


@cache
def result(board: Board) -> Result | None:
    """The winner, or ``draw`` on a full board that nobody has won; None while the game goes on."""
    line = winning_line(board)
    if line is not None:
        return "X" if board.cells[line[0]] == "X" else "O"
    return None if EMPTY in board.cells else "draw"


@cache
def legal_moves(board: Board) -> tuple[int, ...]:
    """The cells that may be played: the free ones until the game is over, none after."""
    return free_cells(board) if result(board) is None else ()


@cache
def play(board: Board, cell: int) -> Board:
    """The board after the mark whose turn it is takes ``cell``.

    Raises:
        ValueError: that is not a legal move.
    """
    if cell not in legal_moves(board):
        raise ValueError(f"cell {cell} cannot be played on {board.cells}")
    return Board(board.cells[:cell] + board.turn + board.cells[cell + 1 :], "O" if board.turn == "X" else "X")


@cache
def value(board: Board) -> int:
    """What perfect play by both makes of ``board``, for X: positive if X wins, 0 for a draw, negative if O wins.

    A win is worth one more than the cells still free after it, so that sooner wins and later losses are better.
    """
    match result(board):
        case "X":
            return 1 + len(free_cells(board))
        case "O":
            return -1 - len(free_cells(board))
        case "draw":
            return 0
    after = [value(play(board, cell)) for cell in legal_moves(board)]
    return max(after) if board.turn == "X" else min(after)


@cache
def best_moves(board: Board) -> tuple[int, ...]:
    """Every move that is best for the mark whose turn it is: all of them have the value of the board."""
    return tuple(cell for cell in legal_moves(board) if value(play(board, cell)) == value(board))

"""Everything the policy reads, and how to read the board back out of it.

A board is shown twice: as a grid, and as lists of cells, which small models read far better::

    X O .
    . X .
    . . O
    X 0 4 · O 1 8 · free 2 3 5 6 7
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from mcpgym import Message
from mcpgym.messages import system, user
from mcpgym_environments.tic_tac_toe.engine import EMPTY, Board, cells_of, free_cells, result, winning_line

SYSTEM = """\
You play tic-tac-toe. You are X, your opponent is O. The cells are numbered row by row:
0 1 2
3 4 5
6 7 8
Three of your marks in a row, column or diagonal win. If the board fills up first, it is a draw.

In every turn, think first, briefly, inside <think> and </think>: Can I complete a line now? If not, must I block O? \
If not, which free cell is best? Then call the tool `play` once, with the number of a free cell. The answer shows \
what O played and the new board. """
COSTS = "Playing a cell that is not free changes nothing on the board and counts against you."
LOSES = "Playing a cell that is not free loses the game."

INSTRUCTIONS = """\
Tic-tac-toe: you are X, the opponent is O. Cells are numbered row by row, 0 to 8. Call play with the number of a free \
cell; the answer shows the opponent's reply and the new board, as a grid and as lists of cells. Think before each \
move: complete a line of three if you can, else block the opponent, else take the cell that serves you best. Cells \
that are not free cannot be played; trying counts against you. When the answer says that the game is over, stop."""

_LISTS = re.compile(r"X (none|\d(?: \d)*) · O (none|\d(?: \d)*) · free (none|\d(?: \d)*)")


def prompt(policy_first: bool, *, illegal_loses: bool) -> tuple[Message, Message]:
    """What is known of a game before it begins."""
    seat = "You move first." if policy_first else "O moves first."
    return _rules(illegal_loses), user(f"A new game begins. {seat}")


def opening_prompt(board: Board, opening: int | None, *, illegal_loses: bool) -> tuple[Message, Message]:
    """The prompt with the board as the policy finds it; ``opening`` is the cell O began with, if it did."""
    moved = "You move first." if opening is None else f"O moved first and played {opening}. Your turn."
    return _rules(illegal_loses), user(f"A new game begins. {moved}\n{show(board)}")


def _rules(illegal_loses: bool) -> Message:
    return system(SYSTEM + (LOSES if illegal_loses else COSTS))


@cache
def show(board: Board) -> str:
    """The board as a grid and as lists of cells."""
    rows = (" ".join(board.cells[start : start + 3]) for start in (0, 3, 6))
    return "\n".join((*rows, show_lists(board)))


@cache
def show_lists(board: Board) -> str:
    """The board as lists of cells, in one line."""
    return f"X {_cells(cells_of(board, 'X'))} · O {_cells(cells_of(board, 'O'))} · free {_cells(free_cells(board))}"


def show_moves(board: Board, played: int, answer: int | None) -> str:
    """What the policy reads after its move: what ``O`` answered, how the game stands, and the board."""
    moves = f"You played {played}." if answer is None else f"You played {played}. O played {answer}."
    return f"{moves} {_standing(board)}"


def show_illegal(board: Board, position: int, *, lost: bool) -> str:
    """What the policy reads after a cell that it cannot play."""
    if not 0 <= position <= 8:
        shown = position if abs(position) < 1_000_000 else "that number"
        problem = f"There is no cell {shown}; cells are 0 to 8."
    else:
        problem = f"Cell {position} is taken by {board.cells[position]}."
    return show_refusal(board, problem, lost=lost)


def show_refusal(board: Board, problem: str, *, lost: bool) -> str:
    """``problem``, what follows from it, and which cells are free."""
    follows = "An illegal move loses: game over, O won." if lost else "Nothing was played; it is still your turn."
    return f"{problem} {follows}\n{show_lists(board)}"


def read_board(text: str) -> Board | None:
    """The last board shown in ``text``, X to move; None where there is none."""
    found = _LISTS.findall(text)
    if not found:
        return None
    cells = [EMPTY] * 9
    for mark, listed in zip("XO", found[-1][:2], strict=True):
        for cell in listed.replace("none", "").split():
            cells[int(cell) % 9] = mark
    return Board("".join(cells), "X")


def last_board(messages: Sequence[Message]) -> Board:
    """The board as the policy last saw it.

    Raises:
        ValueError: no message shows one.
    """
    for message in reversed(messages):
        if message["role"] in ("user", "tool") and (board := read_board(message["content"])) is not None:
            return board
    raise ValueError("no message shows a tic-tac-toe board")


@cache
def _standing(board: Board) -> str:
    line = _cells(winning_line(board) or ())
    match result(board):
        case "X":
            stands = f"Game over: you won with {line}."
        case "O":
            stands = f"Game over: O won with {line}."
        case "draw":
            stands = "Game over: the board is full, a draw."
        case None:
            stands = "Your turn."
    return f"{stands}\n{show(board)}"


def _cells(cells: Sequence[int]) -> str:
    return " ".join(map(str, cells)) or "none"

"""Boards in an observation, drawn for people. Where there is none, the text is shown as it is."""

from __future__ import annotations

import re

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from mcpgym_clients.console import clean

_CELLS = r"(none|\d(?: \d)*)"
_LISTS = re.compile(rf"^X {_CELLS} · O {_CELLS} · free {_CELLS}$", re.MULTILINE)
_GRID = re.compile(r"^[XO.] [XO.] [XO.]$\n?", re.MULTILINE)
_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
_MARKS = {"X": ("X", "bold red"), "O": ("O", "bold blue")}


def observation(text: str, style: str = "") -> RenderableType:
    """``text`` for a terminal: its words as they are, in ``style``, and its last tic-tac-toe board drawn."""
    text = clean(text)
    cells = read_board(text)
    if cells is None:
        return Text(text, style)
    said = words(text)
    return Group(*([Text(said, style)] if said else []), Padding(draw(cells), (0, 0, 0, 2), expand=False))


def words(text: str) -> str:
    """``text`` without the lines that show a board."""
    return _LISTS.sub("", _GRID.sub("", text)).strip()


def read_board(text: str) -> str | None:
    """The nine cells of the last board in ``text``: ``X``, ``O`` or ``.``; None where there is none."""
    found = _LISTS.findall(text)
    if not found:
        return None
    cells = ["."] * 9
    for mark, listed in zip("XO", found[-1][:2], strict=True):
        for cell in listed.replace("none", "").split():
            if cell == "9":
                return None
            cells[int(cell)] = mark
    return "".join(cells)


def draw(cells: str) -> Text:
    """Nine cells as a board; free ones show their number, and a line that won stands out."""
    text = Text()
    won = {
        cell for line in _LINES if cells[line[0]] != "." and len({cells[cell] for cell in line}) == 1 for cell in line
    }
    for row in range(3):
        if row:
            text.append("───┼───┼───\n", "dim")
        for column in range(3):
            cell = 3 * row + column
            mark, style = _MARKS.get(cells[cell], (str(cell), "dim"))
            text.append(f" {mark} ", f"{style} reverse" if cell in won else style)
            text.append("│" if column < 2 else "\n", "dim")
    text.rstrip()
    return text

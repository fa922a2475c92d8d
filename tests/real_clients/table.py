"""The table of real clients in docs/clients.md: written from what was measured, and read back to be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.real_clients.clients import WAYS
from tests.real_clients.measuring import Cell, Row
from tests.real_clients.schema_differences import told

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
BEGIN, END = "<!-- real clients: measured, not written -->\n", "<!-- real clients: end -->\n"
HEAD = (
    "| client | version | episode URL | `/mcp` | stdio | what the model is given otherwise than we send it |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)
_VERSION = 1
"""The column that is not compared: within the ranges we allow, versions move by themselves."""


def line(row: Row) -> str:
    """A row as it stands in the table."""
    cells = [_marks(row.cells[way]) for way in WAYS]
    changes = told([*row.changes, *row.answers]) or ("nothing" if any(c.plays for c in row.cells.values()) else "")
    return f"| {' | '.join([row.name, row.version, *cells, _escaped(changes)])} |\n"


def _marks(cell: Cell) -> str:
    if cell.cannot:
        return _escaped(cell.cannot)
    return " ".join("✓" if good else "✗" for good in (cell.plays, cell.isolated, cell.same_hash))


def not_run(name: str, reason: str) -> str:
    """The row of a client that is not on this machine."""
    return f"| {name} | | not run: {_escaped(reason)} | | | |\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def committed() -> dict[str, str]:
    """The table's lines as they stand in the page, by client."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    table, _, _ = rest.partition(END)
    lines = [text + "\n" for text in table.strip().splitlines() if text.startswith("| ")]
    return {text.split("|")[1].strip(): text for text in lines[2:]}


def compared(text: str) -> list[str]:
    """The cells of a line that must be what is measured."""
    cells = [cell.strip() for cell in text.replace("\\|", "\0").strip().strip("|").split("|")]
    return [cell for place, cell in enumerate(cells) if place != _VERSION]


def write(lines: Mapping[str, str], order: Sequence[str]) -> None:
    """Put ``lines`` into the page's table, in ``order``; lines of other clients in ``order`` stay as they are."""
    known = committed() | lines
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "".join(known[name] for name in order if name in known)
    PAGE.write_text(f"{before}{BEGIN}\n{HEAD}{table}\n{END}{after}", encoding="utf-8")

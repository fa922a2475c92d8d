"""Which traces of a run a list shows, and in which order. ``static/embedded.js`` does the same in an exported page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcpgym.errors import ConfigurationError, UnknownNameError

if TYPE_CHECKING:
    from mcpgym_clients.viewer.trace_index import Row

ONLY = ("bad", "unscored", "penalised", "errors", "mistakes")
"""Lost, unscored or worst paid; without a score; with a negative component; with a call that was refused; with a move
that gave the game, or a won game, away."""
ORDERS = ("place", "total", "turns", "mistakes")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a reader asked for; the default is all, by place. ``low`` and ``high`` bound the total, both included.

    ``outcome`` may be ``unfinished``: a scored game without an outcome. ``order`` is one of ``ORDERS``; ``-`` in front
    of it turns it round.
    """

    only: str = ""
    outcome: str = ""
    stop: str = ""
    task: str = ""
    low: float | None = None
    high: float | None = None
    text: str = ""
    order: str = "place"

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Selection:
        """The selection that a page's address asks for.

        Raises:
            ConfigurationError: it asks for what there is not.
        """
        made = cls(
            only=query.get("only", ""),
            outcome=query.get("outcome", ""),
            stop=query.get("stop", ""),
            task=query.get("task", ""),
            low=_number(query, "low"),
            high=_number(query, "high"),
            text=query.get("q", ""),
            order=query.get("order", "place"),
        )
        if made.only and made.only not in ONLY:
            raise UnknownNameError("filter", made.only, ONLY)
        if made.order.removeprefix("-") not in ORDERS:
            raise UnknownNameError("order", made.order, ORDERS)
        return made

    def takes(self, row: Row) -> bool:
        """Whether the row is wanted, but for what is said in its trace."""
        return (
            (not self.only or self._only(row))
            and (not self.outcome or self.outcome == (row.outcome or "unfinished"))
            and (not self.stop or self.stop == row.stop)
            and (not self.task or self.task == row.task)
            and (self.low is None or (row.total is not None and row.total >= self.low))
            and (self.high is None or (row.total is not None and row.total <= self.high))
        )

    def _only(self, row: Row) -> bool:
        match self.only:
            case "unscored":
                return row.total is None
            case "penalised":
                return row.penalised
            case "errors":
                return row.errors > 0
            case "mistakes":
                return bool(row.blunders or row.missed)
            case _:
                return row.bad

    def sorted(self, rows: Iterable[Row]) -> list[Row]:
        """The rows in the order that is asked for; those without a value come last."""
        name = self.order.removeprefix("-")
        sign = -1 if self.order.startswith("-") else 1

        def key(row: Row) -> tuple[bool, float, int]:
            value: float | None = row.n
            if name == "total":
                value = row.total
            elif name == "turns":
                value = row.turns
            elif name == "mistakes":
                value = None if row.blunders is None else row.blunders + 0.01 * (row.missed or 0)
            return value is None, sign * (value or 0), row.n

        return sorted(rows, key=key)


def _number(query: Mapping[str, str], name: str) -> float | None:
    if not (text := query.get(name, "")):
        return None
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(f"{name}={text!r} is no number") from None

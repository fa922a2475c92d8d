"""Several runs as a table, and the spread of one run's rewards, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mcpgym_clients.console import clean, escaped
from mcpgym_clients.report import number
from mcpgym_clients.viewer.distributions import ENDS, histogram
from mcpgym_clients.viewer.trace_index import Row

COLOURS = {"win": "green", "draw": "blue", "loss": "red", "unfinished": "yellow"}
WIDTH = 40
"""Columns of the longest bar."""


def runs_table(cards: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Runs, one a line: who played what and how it went; then training runs and certificates."""
    played = [card for card in cards if card["kind"] == "evaluation"]
    others = [card for card in cards if card["kind"] != "evaluation"]
    parts: list[RenderableType] = []
    if played:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
        table.add_column("run", overflow="fold")
        for name in ("reward", "95 % interval", "win / draw / loss %", "episodes"):
            table.add_column(name, justify="right", no_wrap=True)
        for card in played:
            table.add_row(*_cells(card))
        parts.append(table)
    made = (Text.assemble((clean(card["name"]), "bold"), f"  {card['kind']}  ", _certificate(card)) for card in others)
    return Group(*parts, *made)


def _cells(card: Mapping[str, Any]) -> list[str]:
    name = f"[bold]{escaped(card['name'])}[/bold]"
    if "problem" in card:
        return [f"{name}\n[red]{escaped(card['problem'])}[/red]"]
    reward, outcomes = card["reward"], card["outcomes"]
    interval = reward["interval"]
    shown = "" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
    games = " / ".join(f"{100 * outcomes.get(end, {'mean': 0})['mean']:.0f}" for end in ENDS[:3]) if outcomes else "–"
    left = "" if card["complete"] is not False else " [yellow]not complete[/yellow]"
    what = f"[dim]{escaped(card['policy'] or '?')} on {escaped(card['environment'] or '?')}[/dim]"
    return [f"{name}{left}\n{what}", number(reward["mean"]), shown, games, str(card["episodes"])]


def _certificate(card: Mapping[str, Any]) -> Text:
    if "problem" in card:
        return Text(clean(str(card["problem"])), "red")
    what = clean(" on ".join(str(part) for part in (card.get("policy"), card.get("environment")) if part))
    found = card.get("certificate")
    if found is None:
        return Text(f"{what}  {' → '.join(card.get('stages') or [])}")
    said = f"none of {found['lines']} lines lost" if found["certified"] else f"{found['lost_lines']} lines lost"
    return Text.assemble(f"{what}  ", (said, "green" if found["certified"] else "red"))


def distribution(rows: Sequence[Row]) -> RenderableType:
    """The rewards as bars, in the colours of how the games ended."""
    found = histogram(rows)
    bars = found["bars"]
    if len(bars) < 2:
        return Text()
    most = max(bar["count"] for bar in bars)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right")
    grid.add_column(justify="right")
    for bar in bars:
        label = f"{bar['low']:.3g}" if found["exact"] else f"{bar['low']:.3g} to {bar['high']:.3g}"
        grid.add_row(Text(label, "dim"), str(bar["count"]), _bar(bar, most))
    return Group(Text("rewards", "dim"), grid)


def _bar(bar: Mapping[str, Any], most: int) -> Text:
    text, drawn, counted = Text(), 0, 0
    for end, count in bar["ends"].items() or [("", bar["count"])]:
        counted += count
        upto = max(round(WIDTH * counted / most), drawn + 1)
        text.append("━" * (upto - drawn), COLOURS.get(end, "cyan"))
        drawn = upto
    return text

"""A certificate as people read it in a terminal."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mcpgym_clients.boards import observation
from mcpgym_clients.console import clean

SHOWN_DECISIONS = 5
"""How many of the costliest decisions are shown."""


def render(certificate: Mapping[str, Any]) -> Group:
    """What a ``certificate.json`` says: the verdict, the numbers, the shortest lost line and the costliest moves."""
    parts: list[RenderableType] = [_verdict(certificate), "", _table(certificate)]
    for key, what in (("shortest_loss", "lost"), ("shortest_unfinished", "unfinished")):
        if certificate[key] is not None:
            parts.append(_line(certificate[key], what))
    if certificate["regrets"]:
        parts.append(_decisions(certificate))
    return Group(*parts)


def _verdict(certificate: Mapping[str, Any]) -> Text:
    text = Text.assemble(
        (clean(certificate["environment"]), "bold cyan"), f" {clean(certificate['environment_version'])}  "
    )
    text.append(clean(certificate["policy"]), "bold")
    if certificate["policy_seed"] is not None:
        text.append(f", beginning every game with the seed {certificate['policy_seed']}")
    lines, lost, unfinished = (certificate[name] for name in ("lines", "lost_lines", "unfinished_lines"))
    if certificate["certified"]:
        text.append("\ncertified: it never loses. ", "bold green")
        text.append(f"All {lines} lines of play were played, {certificate['decisions']} decisions.")
    else:
        text.append("\nnot certified. ", "bold red")
        text.append(f"Of all {lines} lines of play, {lost} are lost and {unfinished} come to no end.")
    if certificate["invalid_moves"]:
        text.append(f"\n{certificate['invalid_moves']} calls were refused or malformed.", "yellow")
    return text


def _table(certificate: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    for name in ("lines", "lost", "no end"):
        table.add_column(name, justify="right", no_wrap=True)
    ends = {"win": "win", "draw": "draw", "loss": "loss"}
    if certificate["unfinished_lines"]:
        ends["unfinished"] = "no end"
    for name in ("random", "perfect"):
        table.add_column(f"vs {name} play, %\n{'/'.join(ends.values())}", justify="right", no_wrap=True)
    rows = [*certificate["by_seat"].items()]
    if len(rows) > 1:
        rows.append(("both", certificate))
    for name, row in rows:
        numbers = [str(row[key]) for key in ("lines", "lost_lines", "unfinished_lines")]
        shares = [_shares(row[key], ends) for key in ("versus_random", "versus_perfect")]
        table.add_row(clean(name), *numbers, *shares)
    best = ("optimum", "", "0", "0", _shares(certificate["optimum"], ends), "")
    table.add_row(*best, style="dim")
    return table


def _shares(shares: Mapping[str, Any], ends: Collection[str]) -> str:
    """Percentages of how games end."""
    return "/".join(f"{100 * shares[end]:.{2 if len(ends) == 3 else 1}f}" for end in ends)


def _line(line: Mapping[str, Any], what: str) -> Group:
    """A line of play, position after position."""
    title = Text.assemble(f"\nThe shortest {what} line", (f" (task {clean(line['task'])}", "dim"))
    title.append(f", {line['invalid_moves']} invalid moves)" if line["invalid_moves"] else ")", "dim")
    if what == "unfinished":
        title.append(f": {clean(line['stop_reason'])}")
    drawn = [
        Group(Text(clean(move), "bold" if move.startswith("policy") else ""), observation(position))
        for move, position in zip(line["moves"], line["positions"][1:], strict=True)
    ]
    if not drawn:
        return Group(title, Text("  no move was made", "dim"))
    return Group(title, Padding(Columns(drawn, padding=(0, 3)), (0, 0, 0, 2)))


def _decisions(certificate: Mapping[str, Any]) -> Group:
    """The costliest decisions."""
    rows = certificate["regrets"][:SHOWN_DECISIONS]
    blunders, all_of_them = certificate["blunders"], certificate["suboptimal"]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    for name in ("seat", "after", "played", "best", "could force", "wins against random play"):
        table.add_column(name, no_wrap=name != "after")
    for row in rows:
        could, can = row["guaranteed"]
        force = Text(could if could == can else f"{could} → {can}", "red" if row["blunder"] else "")
        wins = " → ".join(f"{100 * share:.1f} %" for share in row["win"])
        acts = " ".join(map(clean, row["acts"])) or "the beginning"
        table.add_row(
            clean(row["seat"]), acts, clean(row["played"] or "nothing"), clean(row["best"] or ""), force, wins
        )
    title = f"\n{blunders} decisions give a safe game away, {all_of_them} are not the best; the costliest:"
    return Group(Text(title), table)

"""A comparison of runs, as people read it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mcpgym_clients.console import clean, escaped
from mcpgym_clients.report import number
from mcpgym_clients.statistics import CONFIDENCE
from mcpgym_clients.statistics.differences import FEW, POWER, fewest


def render(found: Mapping[str, Any]) -> Group:
    """Two runs against each other."""
    rows = found["comparisons"]
    row = next(row for row in rows if row["metric"] == found["metric"])
    return Group(
        _runs(found), Text(), _metrics(rows), Text(), Text(clean(verdict(row))), *_said(found, notes(found, row))
    )


def render_many(found: Mapping[str, Any]) -> Group:
    """Several runs, each against each."""
    rows = found["comparisons"]
    table = _table("pair", "p", "apart")
    for row in rows:
        judged = "yes" if row["distinguishable"] else "no"
        table.add_row(f"{row['b']} − {row['a']}", *_numbers(row), _p(row["p_corrected"]), judged)
    alike = [f"{row['a']} and {row['b']}" for row in rows if not row["distinguishable"]]
    text = f"Not distinguishable in {found['metric']}: {', '.join(alike)}." if alike else "All can be told apart."
    several = f"{len(rows)} comparisons; their p-values are corrected (Holm), their intervals are not"
    seen = [note for row in rows for note in _left_out(row)]
    return Group(_runs(found), Text(), table, Text(), Text(clean(text)), *_said(found, [several, *seen]))


def verdict(row: Mapping[str, Any]) -> str:
    """What a reader may conclude, in a sentence or two."""
    a, b, metric = row["a"], row["b"], row["metric"]
    if row["interval"] is None:
        return f"A and B are not distinguishable in {metric}: one pair tells nothing of others."
    low, high = row["interval"]
    apart = f"{abs(row['difference']):.3f} (95 % interval of {b} − {a}: {low:+.3f} to {high:+.3f}, {_equals(row['p'])})"
    if row["distinguishable"]:
        higher, lower = (b, a) if row["difference"] > 0 else (a, b)
        return f"{higher} has the higher {metric} than {lower}, by {apart}."
    if not row["differing_tasks"]:
        return f"{a} and {b} are not distinguishable: {metric} is the same in every one of {row['n']} pairs."
    text = f"{a} and {b} are not distinguishable in {metric}: the difference of {apart} may be chance."
    return " ".join([text, *_size(row)])


def _size(row: Mapping[str, Any]) -> Iterator[str]:
    """How large a difference the comparison could have found, and how many tasks one as large as this takes."""
    paired_tasks = row["tasks"] if row["tasks"] > 1 else row["n"]
    if row["paired_by"] is not None and paired_tasks < (least := fewest(CONFIDENCE)):
        yield f"So few tasks cannot tell any runs apart: it takes {least} that differ, at the least."
    if row["detectable"] is None:
        return
    yield (
        f"With {row['tasks']} tasks a true difference of {row['detectable']:.3f} would be found "
        f"in about {100 * POWER:.0f} % of all cases; "
        f"one as large as this takes about {row['tasks_needed']:,} tasks."
        if row["tasks_needed"]
        else ""
    )


def notes(found: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """What a reader must know before believing the verdict."""
    said = list(_left_out(row))
    if row["paired_by"] == "episode" and row["tasks"] == 1 < row["n"]:
        said.append("all pairs are of one task: they tell nothing of others")
    if row["paired_by"] == "episode" and row["n"] > 1 and 2 * row["distinct_pairs"] <= row["n"]:
        said.append(
            f"only {row['distinct_pairs']} of {row['n']} pairs differ from each other: games that repeat are no "
            "further samples, and the interval may be too narrow"
        )
    if row["equal_games"] and row["differing_tasks"]:
        said.append(f"in {row['equal_games']} of {row['n']} pairs the same happened, call by call")
    if 0 < row["differing_tasks"] <= FEW and row["interval"] is not None:
        said.append(f"the runs differ on {row['differing_tasks']} tasks: the p-value is that of Fisher's exact test")
    return said


def _left_out(row: Mapping[str, Any]) -> Iterator[str]:
    a, b = row["a"], row["b"]
    match row["paired_by"]:
        case "task":
            yield f"{a} and {b} have no episode in common (task and seed): they are paired by task"
        case None:
            yield f"{a} and {b} have no task in common: they are not paired, and tell less than if they were"
    for name, count in zip((a, b), row["left_out"], strict=True):
        if count:
            whose = f"{count} scored {'episodes' if count > 1 else 'episode'} of {name}"
            yield f"{whose} left out against {b if name == a else a}, which has no score for the same"


def _said(found: Mapping[str, Any], said: Sequence[str]) -> Iterator[Text]:
    unscored = [(run["name"], run["episodes"] - run["scored"]) for run in found["runs"]]
    said = [*(f"{count} episodes of {name} are unscored and in no pair" for name, count in unscored if count), *said]
    said += [f"{run['name']} was not completed" for run in found["runs"] if run["complete"] is False]
    said = [*found.get("harness", ()), *said]
    said += [f"they ran under other conditions: {text}" for text in found.get("conditions", ())]
    said += [f"compared in spite of this: {reason}" for reason in found["in_spite_of"]]
    for note in said:
        yield Text.from_markup(f"[yellow]![/yellow] {escaped(note)}")


def _runs(found: Mapping[str, Any]) -> Table:
    grid = Table.grid(padding=(0, 3, 0, 0))
    for run in found["runs"]:
        what = f"{run['environment']} {run['environment_version']}"
        mean = f"{found['metric']} {number(run['mean'])}, n {run['scored']}"
        cells = (run["name"], run["policy"] or "–", what, mean, run["folder"])
        grid.add_row(
            f"[bold]{cells[0]}[/bold]", *(escaped(cell) for cell in cells[1:4]), f"[dim]{escaped(cells[4])}[/dim]"
        )
    return grid


def _table(first: str, *more: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    table.add_column(escaped(first), no_wrap=first == "pair")
    for name in (
        "A" if first == "" else "first",
        "B" if first == "" else "second",
        "difference",
        "95 % interval",
        *more,
    ):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _metrics(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("", "pairs")
    for place, row in enumerate(rows):
        style = "bold" if place == 0 else ""
        table.add_row(escaped(row["metric"]), *_numbers(row), str(row["n"]), style=style)
    return table


def _numbers(row: Mapping[str, Any]) -> list[str]:
    interval = row["interval"]
    shown = "" if interval is None else f"{interval[0]:+.3f} to {interval[1]:+.3f}"
    return [number(row["a_mean"]), number(row["b_mean"]), f"{row['difference']:+.3f}", shown]


def _p(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _equals(p: float) -> str:
    return f"p {_p(p)}" if p < 0.001 else f"p = {_p(p)}"

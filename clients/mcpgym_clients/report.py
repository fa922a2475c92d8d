"""A summary as people read it in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mcpgym.schema import schema_hash
from mcpgym_clients.amounts import dollars
from mcpgym_clients.console import escaped
from mcpgym_rl.policies import asks_endpoint, default_mode


def render(summary: Mapping[str, Any]) -> Group:
    """The table of a ``summary.json``."""
    run = summary.get("run") or {}
    parts: list[Any] = [_title(run), _table(summary)]
    parts += [Text.from_markup(f"[yellow]![/yellow] {escaped(note)}") for note in notes(summary)]
    return Group(*parts)


def notes(summary: Mapping[str, Any]) -> list[str]:
    """What a reader must know before believing the numbers."""
    said = []
    run = summary.get("run") or {}
    if summary.get("complete") is False:
        ended = summary["episodes"] - summary["stop_reasons"].get("cancelled", 0)
        said.append(f"the run was not completed: {ended} of {run.get('planned', '?')} episodes came to their end")
    for reason, count in summary["unscored"].items():
        example = (summary.get("unscored_examples") or {}).get(reason) or ""
        said.append(f"{count} unscored: {reason.replace('_', ' ')}{': ' + _cut(example) if example else ''}")
    scored, distinct = summary["scored"], summary["distinct_episodes"]
    if scored > 1 and 2 * distinct <= scored:
        said.append(
            f"only {distinct} of {scored} episodes differ: games that repeat are no further samples, "
            "and the intervals may be too narrow" + _as_so_many(summary)
        )
    elif (effective := summary.get("effective_sample_size")) is not None and 2 * effective <= scored:
        said.append(
            f"the {scored} episodes tell only as much as {_size(summary)} independent ones: those of one task are alike"
            + _as_so_many(summary)
        )
    calls = summary.get("tool_calls") or {"made": 1}  # a summary from before they were counted
    if scored and not any(calls.values()) and run.get("schema_hash") not in (None, schema_hash([])):
        said.append("no tool was ever called")
        policy = str(run.get("policy"))
        mode = (run.get("policy_options") or {}).get("mode") or default_mode(policy)
        if asks_endpoint(policy) and mode in ("native", "text"):
            said[-1] += ": can the model call any, and does the endpoint show them to it? Try --tool-mode guided"
    if scored > 1 and run.get("n") == 1:
        said.append("all episodes are of one task: the intervals tell nothing of others")
    if len(hashes := run.get("schema_hashes") or []) > 1:
        said.append(f"the tools changed during the run ({len(hashes)} schema hashes): do not compare its score")
    return said


def _worth_less(summary: Mapping[str, Any]) -> bool:
    """Whether the effective sample size falls short by more than what rounding hides."""
    effective = summary.get("effective_sample_size")
    return effective is not None and round(effective) < summary["scored"]


def _size(summary: Mapping[str, Any]) -> str:
    return f"{summary['effective_sample_size']:,.0f}"


def _as_so_many(summary: Mapping[str, Any]) -> str:
    """What the interval of the reward would be, where that is another than the table's."""
    cautious = summary.get("cautious_interval")
    if cautious is None or cautious == summary["reward"]["interval"]:
        return ""
    return f"; as {_size(summary)} samples, the reward's is {_means(cautious)}"


def number(value: float | None) -> str:
    """A mean, as the table has it."""
    return "–" if value is None else f"{value:.3f}"


def percent(value: float) -> str:
    """A share, as the table has it."""
    return f"{100 * value:.1f} %"


def _title(run: Mapping[str, Any]) -> Text:
    if not run:
        return Text("summary", style="bold")
    text = Text.assemble((str(run["environment"]), "bold cyan"), f" {run['environment_version']}  ")
    text.append(str(run["policy"]), "bold")
    repeats = f" × {run['repeats']}" if run["repeats"] > 1 else ""
    text.append(
        f"  {run['split']}, {run['n']} {'task' if run['n'] == 1 else 'tasks'}{repeats}, seed {run['seed']}", "dim"
    )
    return text


def _table(summary: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    table.add_column("")
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", style="dim", no_wrap=True)
    table.add_column("n", justify="right", style="dim", no_wrap=True)
    exact: Mapping[str, Any] = (summary.get("exact") or {}).get("outcomes") or {}
    if exact:
        table.add_column("exact", justify="right", no_wrap=True)
    reward = summary["reward"]
    table.add_row(
        "[bold]reward[/bold]", f"[bold]{number(reward['mean'])}[/bold]", _means(reward["interval"]), str(reward["n"])
    )
    for name, value in summary["components"].items():
        interval, count = summary["component_intervals"][name], summary["component_counts"][name]
        table.add_row(f"  {escaped(name)}", number(value), _means(interval), str(count))
    colours = {"win": "green", "draw": "blue", "loss": "red", "unfinished": "yellow"}
    for name, value in (summary.get("outcomes") or {}).items():
        interval = summary["outcome_intervals"][name]
        colour = colours.get(name, "white")
        cells = [f"[{colour}]{name}[/{colour}]", percent(value), _shares(interval), str(summary["scored"])]
        table.add_row(*cells, *([_exactly(exact[name])] if name in exact else []))
    for rate in (summary.get("passes") or {}).get("rates", []):
        for name in ("pass_at_k", "pass_hat_k") if rate["k"] > 1 else ("pass_at_k",):
            label = f"{'pass@' if name == 'pass_at_k' else 'pass^'}{rate['k']}"
            interval = rate[f"{name}_interval"]
            table.add_row(label, percent(rate[name]), _shares(interval), f"{rate['tasks']:,} tasks")
    for name, item in summary["penalised"].items():
        label = f"episodes with {escaped(name.replace('_', ' '))}"
        table.add_row(label, percent(item["share"]), _shares(item["interval"]), str(item["n"]))
    turns = summary["turns"]
    if turns["mean"] is not None:
        table.add_row("turns", f"{turns['mean']:.2f}", f"{turns['min']} to {turns['max']}", str(summary["scored"]))
    tokens = summary["tokens"]
    if tokens["prompt"] or tokens["completion"]:
        table.add_row("tokens read / written", f"{tokens['prompt']:,} / {tokens['completion']:,}", "", "")
    usd = (summary.get("cost") or {}).get("usd")
    if usd is not None:
        table.add_row("cost", dollars(usd), "", "")
    ends = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in summary["stop_reasons"].items())
    table.add_section()
    episodes = f"{summary['episodes']}, {summary['scored']} scored, {summary['distinct_episodes']} distinct"
    if _worth_less(summary):
        episodes += f", worth at least {_size(summary)} independent ones"
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_row("[dim]episodes[/dim]", episodes)
    grid.add_row("[dim]ended by[/dim]", escaped(ends))
    if passes := summary.get("passes"):
        grid.add_row("[dim]a pass is[/dim]", escaped(passes["success"]))
    if exact:
        grid.add_row("[dim]exact[/dim]", "worked out for these tasks, over all seeds")
    outer = Table.grid()
    outer.add_row(table)
    outer.add_row(grid)
    return outer


def _means(interval: list[float] | None) -> str:
    if interval is None:
        return ""
    return "all equal" if interval[0] == interval[1] else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _shares(interval: list[float] | None) -> str:
    return "" if interval is None else f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f} %"


def _exactly(value: float) -> str:
    return f"{100 * value:.2f} %"


def _cut(text: str, limit: int = 200) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"

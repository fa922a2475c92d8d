"""The figures of a stress run: what was counted, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from mcpgym_clients.console import escaped
from mcpgym_clients.doctor.processes import Held
from mcpgym_clients.stress.load import Tally


@dataclass(slots=True)
class Figures:
    """One run. ``calls`` and ``bare`` are stretches that were taken in turn; ``whole`` are whole episodes or sessions,
    opened and closed under load; ``before`` and ``after``: what the server's processes held (None: not seen, ``why``).
    """

    subject: str
    unit: str
    concurrency: int
    calls: list[Tally] = field(default_factory=list)
    bare: list[Tally] = field(default_factory=list)
    whole: list[Tally] = field(default_factory=list)
    before: Held | None = None
    after: Held | None = None
    why: str = ""
    own_cpu: float = 0.0
    """CPU microseconds of the load itself, a call."""

    @property
    def errors(self) -> dict[str, int]:
        """Everything that went wrong, in words, with how often."""
        found: dict[str, int] = {}
        for tally in (*self.calls, *self.whole, *self.bare):
            for words, count in tally.errors.items():
                found[words] = found.get(words, 0) + count
        return found

    def ratio(self) -> float | None:
        """CPU of a call to that of a call of the bare endpoint: the median over the stretches taken in turn."""
        pairs = zip(self.calls, self.bare, strict=False)
        ratios = [mine / bare for a, b in pairs if (mine := _cpu([a])) and (bare := _cpu([b]))]
        return median(ratios) if ratios else None

    def as_json(self) -> dict[str, Any]:
        """For a file: rates by wall seconds, latencies in milliseconds, CPU in microseconds a call."""
        low, middle, high = latencies(self.calls)
        return {
            "schema": "mcpgym.stress/1",
            "subject": self.subject,
            "unit": self.unit,
            "concurrency": self.concurrency,
            "calls": sum(each.calls for each in self.calls),
            "refused": sum(each.refused for each in self.calls),
            "calls_per_second": _rate(self.calls),
            "milliseconds": {"p50": low, "p90": middle, "p99": high},
            "cpu_microseconds_per_call": _cpu(self.calls),
            f"{self.unit}s": sum(each.episodes for each in self.whole),
            f"{self.unit}s_per_second": _episode_rate(self.whole),
            f"cpu_milliseconds_per_{self.unit}": _episode_cpu(self.whole),
            "bare": {
                "calls_per_second": _rate(self.bare),
                "milliseconds": dict(zip(("p50", "p90", "p99"), latencies(self.bare), strict=True)),
                "cpu_microseconds_per_call": _cpu(self.bare),
            },
            "ratio_to_bare": self.ratio(),
            "load_cpu_microseconds_per_call": self.own_cpu,
            "server_before": _held(self.before),
            "server_after": _held(self.after),
            "server_not_measured": self.why,
            "errors": self.errors,
        }


def render(console: Console, figures: Figures) -> None:
    """Print the table, and what bounds it."""
    table = Table(
        title=escaped(f"{figures.subject}, {figures.concurrency} at once"), title_justify="left", title_style="bold"
    )
    for heading in ("", "calls/s", "p50 ms", "p90 ms", "p99 ms", "CPU µs a call", "× bare"):
        table.add_column(heading, justify="right" if heading else "left")
    ratio = figures.ratio()
    for name, tallies, times in (("calls", figures.calls, ratio), ("bare ASGI JSON endpoint", figures.bare, 1.0)):
        quantiles = [f"{each:.2f}" for each in latencies(tallies)]
        cpu = _cpu(tallies)
        table.add_row(
            name, f"{_rate(tallies):,.0f}", *quantiles, "–" if cpu is None else f"{cpu:.0f}",
            "–" if times is None else f"{times:.2f}",
        )  # fmt: skip
    console.print(table)
    whole, rate = sum(each.episodes for each in figures.whole), _episode_rate(figures.whole)
    cpu = _episode_cpu(figures.whole)
    spent = "" if cpu is None else f", {cpu:.2f} ms of the server's CPU each"
    console.print(
        f"whole {figures.unit}s, opened, played, closed: {whole:,}, {rate:,.1f} a second{spent}",
        soft_wrap=True,
    )
    if figures.before is not None and figures.after is not None:
        a, b = figures.before, figures.after
        console.print(
            f"the server held {a.memory / 2**20:.1f} MiB, {a.descriptors} descriptors before; "
            f"{b.memory / 2**20:.1f} MiB, {b.descriptors} after"
        )
    elif figures.why:
        console.print(f"the server's CPU and memory were not measured: {escaped(figures.why)}", soft_wrap=True)
    console.print(
        f"[dim]The load itself took {figures.own_cpu:.0f} µs of CPU a call on this machine: where cores are shared, "
        "rates and latencies are bounded by that too. CPU time and the ratio are not.[/dim]",
        soft_wrap=True,
    )
    for words, count in figures.errors.items():
        console.print(f"[red]✗[/red] {count} times: {escaped(words)}", soft_wrap=True)


def latencies(tallies: list[Tally]) -> tuple[float, float, float]:
    """Milliseconds within which half, 90 % and 99 % of the calls were answered; zeros without calls."""
    ordered = sorted(second for tally in tallies for second in tally.seconds)
    if not ordered:
        return 0.0, 0.0, 0.0
    low, middle, high = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 for share in (0.5, 0.9, 0.99))
    return low, middle, high


def _rate(tallies: list[Tally]) -> float:
    wall = sum(each.wall for each in tallies)
    return sum(each.calls for each in tallies) / wall if wall else 0.0


def _cpu(tallies: list[Tally]) -> float | None:
    calls = sum(each.calls for each in tallies)
    if not calls or any(each.cpu is None for each in tallies):
        return None
    return sum(each.cpu or 0.0 for each in tallies) / calls * 1e6


def _episode_rate(tallies: list[Tally]) -> float:
    wall = sum(each.wall for each in tallies)
    return sum(each.episodes for each in tallies) / wall if wall else 0.0


def _episode_cpu(tallies: list[Tally]) -> float | None:
    count = sum(each.episodes for each in tallies)
    if not count or any(each.cpu is None for each in tallies):
        return None
    return sum(each.cpu or 0.0 for each in tallies) / count * 1e3


def _held(held: Held | None) -> dict[str, Any] | None:
    if held is None:
        return None
    return {
        "memory_bytes": held.memory,
        "descriptors": held.descriptors,
        "threads": held.threads,
        "children": held.children,
    }

"""``python -m tests.bench.fleet``: what a call costs behind the front of 1, 2 and 4 workers, against one plain server.

All run at once and are loaded in turn, round after round, so that what disturbs a round disturbs all of it. What counts
is CPU time, of the front and of the workers apart; wall time is what this machine's cores allow beside everything else
on it. The last table says what those costs allow where every process has a core of its own. ``--quick`` makes few
calls; ``--json FILE`` keeps the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table
from tests.bench.load import Server, drive
from tests.bench.servers import EPISODES, Counter, say, until_stdin_closes

WORKERS = (1, 2, 4)
COMMAND = [sys.executable, "-m", "tests.bench.fleet"]


@dataclass(frozen=True)
class Cost:
    """CPU microseconds of a call in the front and in the workers, and calls a second of wall time."""

    front: float
    workers: float
    rate: float


def work() -> None:
    """Be one worker, with the tool that all servers of the benchmark have."""
    from mcpgym.episodes import Episodes, Limits
    from mcpgym.fleet.workers import read_orders
    from mcpgym.serving import run_server

    orders = read_orders()
    sys.exit(
        run_server(
            Episodes({"counter": Counter()}, Limits(live=orders.cap), orders.name),
            player_socket=orders.player_socket,
            control_socket=orders.control_socket,
            secret=orders.secret,
            public_url=orders.public_url,
            announce=lambda server: None,
        )
    )


async def serve(workers: int) -> None:
    """A fleet with its episodes open, until standard input closes."""
    from mcpgym.episodes import Episodes
    from mcpgym.fleet.serving import WorkerCommand, fleet_serving

    command = WorkerCommand([*COMMAND, "--work"], {})
    async with fleet_serving(Episodes({"counter": Counter()}), command, workers) as server:
        opened = [await server.crew.open("counter", split="train", index=i) for i in range(EPISODES)]
        say([episode.url or "" for episode in opened])
        await until_stdin_closes()


class Fleet:
    """A fleet in processes of its own, up and warm."""

    def __init__(self, workers: int, warm: int) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "--serve", str(workers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the fleet of {workers} did not start")
        self.urls: list[str] = json.loads(line)
        self._front = psutil.Process(self._process.pid)
        self._workers = self._front.children()
        asyncio.run(drive(self.urls, warm))

    def measure(self, calls: int) -> Cost:
        """Load it with about ``calls`` calls."""
        before = [_spent(one) for one in (self._front, *self._workers)]
        started = time.monotonic()
        asyncio.run(drive(self.urls, calls))
        seconds = time.monotonic() - started
        front, *workers = (_spent(one) - at for one, at in zip((self._front, *self._workers), before, strict=True))
        made = calls // len(self.urls) * len(self.urls)
        return Cost(front / made * 1e6, sum(workers) / made * 1e6, made / seconds)

    def stop(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.wait(10)


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def measured(quick: bool) -> dict[str, Any]:
    """All costs, as medians over rounds, and as ratios to the plain server in the same round."""
    calls, rounds = (1_280, 2) if quick else (12_800, 15)
    plain = Server("fast", calls // 4)
    fleets: dict[int, Fleet] = {}
    alone: list[float] = []
    rates: list[float] = []
    costs: dict[int, list[Cost]] = {count: [] for count in WORKERS}
    try:
        for count in WORKERS:
            fleets[count] = Fleet(count, calls // 4)
        for _ in range(rounds):
            load = plain.measure(calls)
            alone.append(load.cpu_microseconds)
            rates.append(load.calls_per_second)
            for count, fleet in fleets.items():
                costs[count].append(fleet.measure(calls))
    finally:
        plain.stop()
        for fleet in fleets.values():
            fleet.stop()
    rows: dict[str, Any] = {}
    for count, found in costs.items():
        pairs = list(zip(found, alone, strict=True))
        rows[str(count)] = {
            "front_microseconds": median(cost.front for cost in found),
            "worker_microseconds": median(cost.workers for cost in found),
            "front_over_plain": median(cost.front / max(one, 1e-9) for cost, one in pairs),
            "workers_over_plain": median(cost.workers / max(one, 1e-9) for cost, one in pairs),
            "all_over_plain": median((cost.front + cost.workers) / max(one, 1e-9) for cost, one in pairs),
            "calls_per_second_here": median(cost.rate for cost in found),
        }
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "plain_microseconds": median(alone),
        "plain_calls_per_second_here": median(rates),
        "workers": rows,
        "projected_calls_per_second": projected(median(alone), rows["1"]),
    }


def projected(plain: float, one: dict[str, float], heavier: float = 1_000.0) -> dict[str, dict[str, float]]:
    """Calls a second where each process has a core, from what a call costs each: the scarcest process bounds them.

    ``trivial`` is for the benchmark's tool, ``1 ms`` for one that computes for ``heavier`` microseconds in a worker.
    """
    made: dict[str, dict[str, float]] = {"trivial": {"plain": 1e6 / plain}, "1 ms": {"plain": 1e6 / (plain + heavier)}}
    for count in (1, 2, 4, 8, 16):
        for name, more in (("trivial", 0.0), ("1 ms", heavier)):
            by_workers = count * 1e6 / (one["worker_microseconds"] + more)
            made[name][str(count)] = min(by_workers, 1e6 / one["front_microseconds"])
    return made


def report(console: Console, found: dict[str, Any]) -> None:
    """The tables."""
    table = Table(title="One tool call over HTTP, 64 episodes at once: CPU µs", title_justify="left")
    for heading in ("server", "front", "workers", "front / plain", "workers / plain", "all / plain", "calls/s here"):
        table.add_column(heading, justify="left" if heading == "server" else "right")
    plain = f"{found['plain_microseconds']:.0f}"
    table.add_row("one plain", "", plain, "", "1.00", "1.00", f"{found['plain_calls_per_second_here']:,.0f}")
    for count, row in found["workers"].items():
        ratios = (f"{row[f'{who}_over_plain']:.2f}" for who in ("front", "workers", "all"))
        spent = (f"{row['front_microseconds']:.0f}", f"{row['worker_microseconds']:.0f}")
        table.add_row(_workers(count), *spent, *ratios, f"{row['calls_per_second_here']:,.0f}")
    console.print(table)
    console.print(f"This machine has {found['cores']} cores, which the load, the front and the workers share.")
    table = Table(title="Calls a second with a core for each process, by these costs", title_justify="left")
    names = list(found["projected_calls_per_second"]["trivial"])
    for heading in ("a tool that takes", *(name if name == "plain" else _workers(name) for name in names)):
        table.add_column(heading, justify="left" if heading.startswith("a tool") else "right")
    for name, row in found["projected_calls_per_second"].items():
        table.add_row(name, *(f"{value:,.0f}" for value in row.values()))
    console.print(table)


def _workers(count: str) -> str:
    return "1 worker" if count == "1" else f"{count} workers"


def main() -> None:
    """Measure, print, and keep the figures if asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fleet", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few calls, to see that it runs; the figures mean little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work()
    if options.serve:
        import uvloop

        return uvloop.run(serve(options.serve))
    found = measured(options.quick)
    report(Console(width=120), found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()

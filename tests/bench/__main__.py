"""``python -m tests.bench``: every lane in one run, as CPU time and as a ratio to a bare JSON endpoint.

CPU time comes from the operating system, not from the wall clock: on a shared machine only that, and ratios within one
run, mean anything. ``--quick`` makes few calls (to see that it runs); ``--json FILE`` keeps the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.bench.load import Server
from tests.bench.servers import Counter

CALLS = {"bare": 10_000, "fast": 10_000, "sdk": 2_000, "fastmcp": 500}
"""How many calls each server gets in a round."""
NAMES = {
    "bare": "bare ASGI JSON endpoint",
    "fast": "mcpgym, fast lane",
    "sdk": "mcpgym, SDK lane",
    "fastmcp": "FastMCP, its defaults",
}
ROUNDS = 15


@dataclass(frozen=True)
class Cost:
    """A server's CPU microseconds a call and its ratio to the bare endpoint in the same round: medians over rounds."""

    microseconds: float
    ratio: float
    ratios: tuple[float, ...]


def http_lanes(quick: bool) -> dict[str, Cost]:
    """All servers up at once, loaded in turn round after round: what disturbs a round disturbs all of it."""
    kinds = [kind for kind in CALLS if kind != "fastmcp" or importlib.util.find_spec("fastmcp")]
    servers: dict[str, Server] = {}
    spent: dict[str, list[float]] = {kind: [] for kind in kinds}
    try:
        for kind in kinds:
            servers[kind] = Server(kind, max(64, CALLS[kind] // (10 if quick else 2)))
        for _ in range(2 if quick else ROUNDS):
            for kind, server in servers.items():
                spent[kind].append(server.measure(max(64, CALLS[kind] // (4 if quick else 1))).cpu_microseconds)
    finally:
        for server in servers.values():
            server.stop()
    costs = {}
    for kind, rounds in spent.items():
        ratios = tuple(sorted(mine / max(bare, 1e-9) for mine, bare in zip(rounds, spent["bare"], strict=True)))
        costs[kind] = Cost(median(rounds), median(ratios), ratios)
    return costs


async def step_in_process(quick: bool) -> dict[str, float]:
    """CPU microseconds of one tool call in process: the trivial tool, and tic-tac-toe's with the opponent's reply."""
    from mcpgym.control import Call, LocalControl
    from mcpgym.episodes import Episodes

    calls = 1_000 if quick else 50_000
    counter = Episodes({"counter": Counter()})
    control = LocalControl(counter)
    made: dict[str, float] = {}
    rounds = 2 if quick else 10

    async def add() -> float:
        opened = [await control.open("counter", split="train", index=i) for i in range(16)]
        batches = calls // 16 // rounds
        started = time.process_time()
        for _ in range(batches):
            await control.step([Call(episode.token, "add", {"number": 1}) for episode in opened])
        spent = time.process_time() - started
        for episode in opened:
            await control.close(episode.token)
        return spent / (batches * 16) * 1e6

    games = Episodes.of("tic-tac-toe")

    async def play() -> float:
        spent, played = 0.0, 0
        for index in range(calls // 20 // rounds):
            episode = await games.open("tic-tac-toe", split="train", index=index % 1000, seed=index)
            started = time.process_time()
            for cell in (4, 0, 8, 2, 6, 1, 7, 3):
                if episode.done:
                    break
                await episode.call("play", {"position": cell})
                played += 1
            spent += time.process_time() - started
            await games.close(episode.token)
        return spent / played * 1e6

    for name, once in {"step, trivial tool": add, "step, tic-tac-toe move and reply": play}.items():
        await once()  # the first fills the tables of positions
        made[name] = median([await once() for _ in range(rounds)])
    return made


async def episodes_per_second(quick: bool) -> dict[str, float]:
    """Whole tic-tac-toe rollouts by the ``random`` policy, per second of this process' CPU (client and server)."""
    from mcpgym import load_environment
    from mcpgym.control import LocalControl
    from mcpgym.control_client import HttpControl
    from mcpgym.episodes import Episodes
    from mcpgym.serving import serving
    from mcpgym_rl.lanes import ControlLane, McpLane
    from mcpgym_rl.policies import make_policy
    from mcpgym_rl.run import EpisodeSpec, run

    policy = make_policy("random", load_environment("tic-tac-toe"))

    async def timed(lane: Any, count: int) -> float:
        specs = [EpisodeSpec("tic-tac-toe", split="train", index=index) for index in range(count)]
        started = time.process_time()
        result = await run(policy, lane, specs, concurrency=64)
        spent = time.process_time() - started
        assert result.failure is None
        assert all(trace.score is not None for trace in result.traces)
        return count / spent

    count = 50 if quick else 1_000
    rates = {"in process": await timed(ControlLane(LocalControl(Episodes.of("tic-tac-toe"))), count)}
    async with serving(Episodes.of("tic-tac-toe")) as server:
        lane = McpLane(HttpControl(server.control_url, server.secret))
        rates["over MCP, client and server together"] = await timed(lane, count)
        await lane.aclose()
    return rates


def report(console: Console, costs: dict[str, Cost], steps: dict[str, float], rates: dict[str, float]) -> None:
    """The tables, and what bounds each figure."""
    table = Table(title="One tool call over HTTP, 64 episodes at once", title_justify="left")
    for heading in ("server", "CPU µs a call", "× bare", "of 90 % of rounds"):
        table.add_column(heading, justify="left" if heading == "server" else "right")
    for kind, cost in costs.items():
        low, high = (cost.ratios[int(share * (len(cost.ratios) - 1))] for share in (0.05, 0.95))
        table.add_row(NAMES[kind], f"{cost.microseconds:.0f}", f"{cost.ratio:.2f}", f"{low:.2f} to {high:.2f}")
    console.print(table)
    if "fastmcp" in costs:
        console.print(f"FastMCP / fast lane: {costs['fastmcp'].ratio / costs['fast'].ratio:.1f} ×")
    else:
        console.print("FastMCP is not installed here (make bench installs it); its row is left out.")
    for name, microseconds in steps.items():
        console.print(f"{name}: {microseconds:.1f} µs CPU")
    for name, rate in rates.items():
        console.print(f"tic-tac-toe, random policy, {name}: {rate:,.0f} episodes per CPU second")
    console.print(
        "What bounds them: the bare endpoint and the fast lane, uvicorn's HTTP handling; the SDK lane, pydantic models "
        "and task groups made for each request; FastMCP, that and its own layers and an SSE stream; the step in "
        "process, argument validation and the call record; whole episodes in process, the rollout's messages and "
        "JSON; over MCP, the HTTP client."
    )


def main() -> None:
    """Measure, print, and keep the figures if asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few calls, to see that it runs; the figures mean little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()
    console = Console()
    costs = http_lanes(options.quick)
    steps = asyncio.run(step_in_process(options.quick))
    if importlib.util.find_spec("fastmcp"):
        from tests.bench.own_server import brought_server

        steps |= asyncio.run(brought_server(options.quick))
    rates = asyncio.run(episodes_per_second(options.quick))
    report(console, costs, steps, rates)
    if options.json:
        figures = {
            "cpu_microseconds_per_call": {kind: cost.microseconds for kind, cost in costs.items()},
            "ratio_to_bare": {kind: cost.ratio for kind, cost in costs.items()},
            "in_process_microseconds": steps,
            "episodes_per_cpu_second": rates,
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

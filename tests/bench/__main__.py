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
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.bench.load import Load, measure
from tests.bench.servers import Counter

CALLS = {"bare": 40_000, "fast": 40_000, "sdk": 10_000, "fastmcp": 3_000}
NAMES = {
    "bare": "bare ASGI JSON endpoint",
    "fast": "mcpgym, fast lane",
    "sdk": "mcpgym, SDK lane",
    "fastmcp": "FastMCP, its defaults",
}
ROUNDS = 3


def http_lanes(quick: bool) -> dict[str, Load]:
    """Each server ``ROUNDS`` times in turn, the least CPU of each kept: noise only ever adds."""
    kinds = [kind for kind in CALLS if kind != "fastmcp" or importlib.util.find_spec("fastmcp")]
    best: dict[str, Load] = {}
    for _ in range(1 if quick else ROUNDS):
        for kind in kinds:
            load = measure(kind, CALLS[kind] // (40 if quick else 1))
            if kind not in best or load.cpu_microseconds < best[kind].cpu_microseconds:
                best[kind] = load
    return best


async def step_in_process(quick: bool) -> dict[str, float]:
    """CPU microseconds of one tool call in process: the trivial tool, and tic-tac-toe's with the opponent's reply."""
    from mcpgym.control import Call, LocalControl
    from mcpgym.episodes import Episodes

    calls = 1_000 if quick else 50_000
    counter = Episodes({"counter": Counter()})
    control = LocalControl(counter)
    made: dict[str, float] = {}

    async def add() -> None:
        opened = [await control.open("counter", split="train", index=i) for i in range(16)]
        batches = calls // 16
        started = time.process_time()
        for _ in range(batches):
            await control.step([Call(episode.token, "add", {"number": 1}) for episode in opened])
        made["step, trivial tool"] = (time.process_time() - started) / (batches * 16) * 1e6

    async def play() -> None:
        games = Episodes.of("tic-tac-toe")
        spent, played = 0.0, 0
        for index in range(calls // 20):
            episode = await games.open("tic-tac-toe", split="train", index=index % 1000, seed=index)
            started = time.process_time()
            for cell in (4, 0, 8, 2, 6, 1, 7, 3):
                if episode.done:
                    break
                await episode.call("play", {"position": cell})
                played += 1
            spent += time.process_time() - started
            await games.close(episode.token)
        made["step, tic-tac-toe move and reply"] = spent / played * 1e6

    await add()
    await play()
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


def report(console: Console, loads: dict[str, Load], steps: dict[str, float], rates: dict[str, float]) -> None:
    """The tables, and what bounds each figure."""
    bare = loads["bare"].cpu_microseconds
    table = Table(title="One tool call over HTTP, 64 episodes at once", title_justify="left")
    for heading in ("server", "CPU µs a call", "× bare", "calls in all"):
        table.add_column(heading, justify="left" if heading == "server" else "right")
    for kind, load in loads.items():
        table.add_row(
            NAMES[kind], f"{load.cpu_microseconds:.0f}", f"{load.cpu_microseconds / bare:.2f}", f"{load.calls:,}"
        )
    console.print(table)
    if "fastmcp" in loads:
        console.print(
            f"FastMCP / fast lane: {loads['fastmcp'].cpu_microseconds / loads['fast'].cpu_microseconds:.1f} ×"
        )
    else:
        console.print("FastMCP is not installed here (pip install 'mcpgym[fastmcp]'); its row is left out.")
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
    loads = http_lanes(options.quick)
    steps = asyncio.run(step_in_process(options.quick))
    rates = asyncio.run(episodes_per_second(options.quick))
    report(console, loads, steps, rates)
    if options.json:
        figures = {
            "cpu_microseconds_per_call": {kind: load.cpu_microseconds for kind, load in loads.items()},
            "in_process_microseconds": steps,
            "episodes_per_cpu_second": rates,
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

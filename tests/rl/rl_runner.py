"""A run of many rollouts in a process of its own, to be interrupted: one word a trace on stdout, then what was left."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import rl_toys

from mcpgym.control_client import HttpControl
from mcpgym.serving import serving
from mcpgym_rl.lanes import ControlLane, Lane, McpLane
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.run import EpisodeSpec, run

TURNS = ScriptedPolicy(
    [{"name": "wait", "arguments": {"seconds": 0.005}}] * 4 + [{"name": "add", "arguments": {"amount": 3}}]
)
SPECS = [EpisodeSpec("counter", split="train", index=i % 50, seed=i) for i in range(3000)]


async def main() -> None:
    async with serving(rl_toys.episodes()) as server:
        lanes: dict[str, Lane] = {
            "local": ControlLane(server.control),
            "thin": McpLane(HttpControl(server.control_url, server.secret)),
            "official": McpLane(HttpControl(server.control_url, server.secret), client="official"),
        }
        lane = lanes[sys.argv[1]]
        ends: Counter[str] = Counter()
        places: set[int] = set()

        def on_trace(trace: object) -> None:
            ends[trace.stop_reason] += 1  # type: ignore[attr-defined]
            places.add(trace.place)  # type: ignore[attr-defined]
            if len(places) == 1:
                print("begun", flush=True)

        try:
            await run(TURNS, lane, SPECS, concurrency=16, on_trace=on_trace)
        finally:
            print(dict(ends), flush=True)
            whole = sum(ends.values()) == len(places) and places == set(range(len(places)))
            what = "every one that began has a trace" if whole else f"{len(places)} places, {sum(ends.values())} traces"
            print("episodes", len(server.episodes), what, flush=True)
            for other in lanes.values():
                await other.aclose()


print("up", flush=True)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)

"""``python -m tests.bench.telemetry``: what telemetry costs a call, absent, off and on: ratios of CPU time in one run.

``absent``: the same code with every look at the telemetry switch cut out of it before it is compiled. ``off``: as it
comes. ``on``: every call is a span, encoded and sent to an OTLP receiver in another process; what the sending thread
spends is counted. All take turns, round after round, so that what disturbs one disturbs all; each ratio is the median
over rounds. Rounds differ by more than a look costs, so the looks of a call are also timed by themselves (``looking``):
``looks`` is their share of a whole call. ``--quick`` makes few calls, to see that it runs; ``--json FILE`` keeps the
figures.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import contextlib
import gc
import inspect
import itertools
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.bench.load import drive
from tests.bench.servers import EPISODES, Counter, say, serve_asgi

STATES = ("absent", "off", "on")
ORDERS = list(itertools.permutations(STATES))
"""Whoever comes after another finds other caches: all take all places."""


class _Cut(ast.NodeTransformer):
    """Cuts ``if switch.…`` and ``if self.watch …`` out of a function, of which what stands behind ``else`` is left.

    ``cuts`` are the conditions, as written.
    """

    def __init__(self) -> None:
        self.cuts: list[str] = []

    def visit_If(self, node: ast.If) -> Any:
        if any(word in ast.unparse(node.test) for word in ("switch.", "self.watch")):
            self.cuts.append(ast.unparse(node.test))
            return node.orelse
        return self.generic_visit(node)


def _cut(function: Callable[..., Any]) -> tuple[ast.AST, list[str]]:
    cut = _Cut()
    made = ast.fix_missing_locations(cut.visit(ast.parse(textwrap.dedent(inspect.getsource(function)))))
    if not cut.cuts:
        raise RuntimeError(f"{function.__qualname__} never looks at the switch; what is measured here?")
    return made, cut.cuts


def without_looks(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as it would be if there were no telemetry."""
    made, _ = _cut(function)
    found: dict[str, Any] = {}
    exec(compile(made, inspect.getsourcefile(function) or "", "exec"), function.__globals__, found)
    return found[function.__name__]  # type: ignore[no-any-return]


def looking(function: Callable[..., Any], owner: Any, times: int) -> float:
    """CPU microseconds of all looks in ``function``, a method of ``owner``, with telemetry off: the least of ten tries.

    The conditions themselves are compiled into a loop, and the loop without them is taken off.
    """
    _, conditions = _cut(function)
    looks = "".join(f"        if {condition}: raise AssertionError\n" for condition in conditions)
    spent = {}
    for name, body in (("with", looks), ("without", "        pass\n")):
        found: dict[str, Any] = {}
        exec(f"def loop(self):\n    for _ in range({times}):\n{body}", function.__globals__, found)
        tries = []
        for _ in range(10):
            before = time.process_time()
            found["loop"](owner)
            tries.append(time.process_time() - before)
        spent[name] = min(tries) / times * 1e6
    return spent["with"] - spent["without"]


async def looks(times: int) -> dict[str, float]:
    """CPU microseconds that a call looks at the switch: in process, and over MCP by the fast lane, with it off."""
    from mcpgym.episode import Episode
    from mcpgym.episodes import Episodes
    from mcpgym.wire.app import PlayerApp

    episodes = Episodes({"counter": Counter()})
    episode = await episodes.open("counter", split="train", index=0)
    in_episode = looking(Episode._record, episode, times)
    in_app = looking(PlayerApp._answer, None, times)
    await episodes.aclose()
    return {"in process": in_episode, "MCP over HTTP": in_episode + in_app}


@contextlib.contextmanager
def in_state(state: str) -> Iterator[None]:
    """Telemetry absent, off or on, in this process."""
    from mcpgym.episode import Episode
    from mcpgym.telemetry import settings
    from mcpgym.wire.app import PlayerApp

    before = Episode._record, PlayerApp._answer
    if state == "absent":
        Episode._record, PlayerApp._answer = map(without_looks, before)  # type: ignore[method-assign]
    on = settings.telemetry("bench") if state == "on" else contextlib.nullcontext()
    try:
        with on:
            yield
    finally:
        Episode._record, PlayerApp._answer = before  # type: ignore[method-assign]


async def serve(lane: str, calls: int) -> None:
    """A server in its own process, as in :mod:`tests.bench.servers`, that changes its state every ``calls`` calls.

    Asked by a line, it answers with what each state has cost, slice by slice.
    """
    from mcpgym.episode import Episode
    from mcpgym.episodes import Episodes
    from mcpgym.serving import serving
    from mcpgym.telemetry import switch
    from mcpgym.wire.app import PlayerApp

    with in_state("on"):
        recorder = switch.recorder
        assert recorder is not None
        episodes = Episodes({"counter": Counter()})
        opened = [await episodes.open("counter", split="train", index=i) for i in range(EPISODES)]
        watches = [one.watch for one in opened]
        whole = Episode._record, PlayerApp._answer
        cut = tuple(map(without_looks, whole))
        spent: dict[str, list[float]] = {state: [] for state in STATES}
        coming = itertools.chain.from_iterable(itertools.cycle(ORDERS))
        state, seen, since = next(coming), 0, time.process_time()

        def change() -> None:
            """What a slice leaves to be sent is sent, and counted, before it ends."""
            nonlocal state, since
            recorder.flush()
            spent[state].append((time.process_time() - since) / calls * 1e6)
            state = next(coming)
            switch.recorder = recorder if state == "on" else None
            for one, watch in zip(opened, watches, strict=True):
                one.watch = watch if state == "on" else None
            Episode._record, PlayerApp._answer = cut if state == "absent" else whole  # type: ignore[assignment]
            since = time.process_time()

        async def counting(self: PlayerApp, scope: Any, receive: Any, send: Any) -> None:
            nonlocal seen
            seen += 1
            if not seen % calls:
                change()
            await answer(self, scope, receive, send)

        def tell() -> None:
            for _ in sys.stdin:
                say(spent)

        answer = PlayerApp.__call__
        PlayerApp.__call__ = counting  # type: ignore[method-assign]
        async with serving(episodes, fast_lane=lane == "fast") as server:
            say([f"{server.url}/e/{one.token}/mcp" for one in opened])
            await asyncio.to_thread(tell)


async def receive() -> None:
    """A backend that reads what comes and says that it is well."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    await serve_asgi(app, lambda port: [f"http://127.0.0.1:{port}"])


def started(*what: str, **variables: str) -> tuple[subprocess.Popen[str], list[str]]:
    """A process of this module, and the URLs it prints."""
    command = [sys.executable, "-m", "tests.bench.telemetry", *what]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | variables
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{' '.join(what)} did not start")
    return process, json.loads(line)


def over_http(lane: str, endpoint: str, rounds: int, calls: int) -> dict[str, list[float]]:
    """CPU microseconds of a server a call, of each round, by state: all its threads, on what it sends too.

    All states are one process's, over the same connections: two processes never cost alike. In a round each state
    answers ``calls`` calls.
    """
    process, urls = started("--serve", "--lane", lane, "--calls", str(calls), OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        asyncio.run(drive(urls, calls * (len(STATES) * (rounds + 1) + 1)))
        process.stdin.write("\n")
        process.stdin.flush()
        spent: dict[str, list[float]] = json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait(10)
    return {state: figures[1 : rounds + 1] for state, figures in spent.items()}  # the first warms up


def in_process(rounds: int, calls: int, endpoint: str) -> dict[str, list[float]]:
    """CPU microseconds a call of ``step`` in process, by state. A round of ``on`` ends when all has been sent."""
    from mcpgym.control import Call, LocalControl
    from mcpgym.episodes import Episodes

    async def once() -> float:
        control = LocalControl(Episodes({"counter": Counter()}))
        opened = [await control.open("counter", split="train", index=i) for i in range(16)]
        batch = [Call(episode.token, "add", {"number": 1}) for episode in opened]
        before = time.process_time()
        for _ in range(calls // 16):
            await control.step(batch)
        _flush()
        spent = time.process_time() - before
        await control.aclose()
        return spent / (calls // 16 * 16) * 1e6

    return _in_turns(rounds, once, endpoint)


def rollouts(rounds: int, games: int, endpoint: str) -> dict[str, list[float]]:
    """CPU microseconds a turn of whole rollouts in process by a policy that costs next to nothing, by state."""
    from mcpgym import load_environment
    from mcpgym.control import LocalControl
    from mcpgym.episodes import Episodes
    from mcpgym_rl.lanes import ControlLane
    from mcpgym_rl.policies import make_policy
    from mcpgym_rl.run import EpisodeSpec, run

    policy = make_policy("random", load_environment("tic-tac-toe"))
    specs = [EpisodeSpec("tic-tac-toe", split="train", index=index) for index in range(games)]

    async def once() -> float:
        control = LocalControl(Episodes.of("tic-tac-toe"))
        before = time.process_time()
        result = await run(policy, ControlLane(control), specs)
        _flush()
        spent = time.process_time() - before
        await control.aclose()
        return spent / sum(trace.turns for trace in result.traces) * 1e6

    return _in_turns(rounds, once, endpoint)


def _in_turns(rounds: int, once: Callable[[], Any], endpoint: str) -> dict[str, list[float]]:
    from mcpgym.telemetry import switch

    spent: dict[str, list[float]] = {state: [] for state in STATES}
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    with in_state("on"):  # once and for all: what it takes to begin is no call's
        recorder = switch.recorder
        for turn in range(rounds + 1):
            for state in ORDERS[turn % len(ORDERS)]:
                switch.recorder = recorder if state == "on" else None
                gc.collect()
                with in_state(state) if state == "absent" else contextlib.nullcontext():
                    figure = asyncio.run(once())
                if turn:  # the first warms up
                    spent[state].append(figure)
        switch.recorder = recorder
    del os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
    return spent


def _flush() -> None:
    from mcpgym.telemetry import switch

    if switch.recorder is not None:
        switch.recorder.flush()


def ratios(spent: dict[str, list[float]]) -> dict[str, float]:
    """Medians: microseconds by state, and what ``off`` costs over ``absent``, ``on`` over ``off``."""
    made = {state: median(figures) for state, figures in spent.items()}
    for name, below in (("off", "absent"), ("on", "off")):
        made[f"{name} / {below}"] = median(mine / other for mine, other in zip(spent[name], spent[below], strict=True))
    return made


def main() -> None:
    """Measure, print, and keep the figures if asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.telemetry", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few calls, to see that it runs; the figures mean little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--lane", choices=("fast", "sdk"), default="fast", help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        import uvloop

        return uvloop.run(serve(options.lane, options.calls))
    if options.receive:
        return asyncio.run(receive())
    quick = options.quick
    backend, (endpoint,) = started("--receive")
    try:
        made = {
            "MCP over HTTP, fast lane: a call": over_http(
                "fast", endpoint, 2 if quick else 80, 256 if quick else 2_048
            ),
            "MCP over HTTP, SDK lane: a call": over_http("sdk", endpoint, 2 if quick else 60, 64 if quick else 320),
            "in process: a call": in_process(3 if quick else 60, 1_600 if quick else 16_000, endpoint),
            "a rollout in process: a turn": rollouts(2 if quick else 20, 5 if quick else 100, endpoint),
        }
    finally:
        backend.terminate()
        backend.wait(10)
    figures = {what: ratios(spent) for what, spent in made.items()}
    for lane, micro in asyncio.run(looks(20_000 if quick else 1_000_000)).items():
        for what in (name for name in figures if name.startswith(lane)):
            figures[what] |= {"looks": micro, "looks / absent": micro / figures[what]["absent"]}
    table = Table(title="CPU time with telemetry absent, off and on", title_justify="left")
    for heading in ("what", "absent µs", "off µs", "on µs", "off / absent", "on / off", "looks"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for what, row in figures.items():
        cells = [f"{row[state]:.2f}" for state in STATES]
        cells += [f"{row['off / absent']:.3f}", f"{row['on / off']:.3f}"]
        table.add_row(what, *cells, f"{row['looks / absent']:.2%}" if "looks" in row else "")
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

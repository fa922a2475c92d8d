"""Runs abuse cases against one back-end with real decoys and a neighbour, and says what was wrong: a program for cells.

``python sandbox_abuse.py BACKEND [CASE …]`` prints one JSON object: the back-end's facts and, for each case, how long
it took and its faults. Run it by ``sandbox_cells.run_cell`` and never bare: the cases do what they say.

Every case must also meet these: no secret (of the server's environment and memory, of hidden files, of a neighbour's
variable and file) in any output or header; no decoy touched; the neighbour answers within three seconds; memory stays
within bounds; each step ends within its limit and three seconds; output is capped; ``1+1`` answers 2 afterwards; and no
process of the session is left a second after its end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent))
from sandbox_case import Answer, Case, Evaluate, Export, ListFiles, Read, Reopen, Reset, Run, Sleep, Step, Write
from sandbox_cases import CASES
from sandbox_decoys import Decoys
from sandbox_memory import Most
from sandbox_pools import make_pool

LANES = 6
SPARE = 3.0
"""Seconds that a step may take beyond its own limit."""
MOST_MEMORY = 4 * 2**30
MOST_OUTPUT = 2**20
MOST_EXPORT = 2**30


@dataclass
class Abuse:
    """All that one run of the cases shares."""

    pool: Any
    decoys: Decoys
    neighbour: Any = None
    strange: list[str] = field(default_factory=list)
    """What happened outside any case: belongs to all that ran then."""
    memory: Most = field(default_factory=Most)
    running: dict[str, Case] = field(default_factory=dict)
    heavy: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    slowest: float = 0.0

    async def settle(self) -> None:
        """Open the neighbour and give it its secrets."""
        self.neighbour = await self.pool.open(7)
        await self.neighbour.run(f"kept = {self.decoys.in_neighbour!r}\nimport os, threading", 5)
        await self.neighbour.write("kept.txt", self.decoys.in_neighbours_file.encode())

    async def watch(self) -> None:
        """The neighbour answers, and decoys stay as they are, however busy the others."""
        while True:
            started = time.monotonic()
            try:
                outcome = await asyncio.wait_for(self.neighbour.run("6 * 7", 5), 10)
                took = time.monotonic() - started
                self.slowest = max(self.slowest, took)
                if outcome.output.strip() != b"42" or outcome.fresh:
                    self.blame(f"the neighbour answered {outcome.status} {outcome.output[:80]!r}")
                elif took > 3:
                    self.blame(f"the neighbour took {took:.1f} s")
            except Exception as error:
                self.blame(f"the neighbour is lost: {error!r}")
                await self.settle()
            for harm in await asyncio.to_thread(self.decoys.harm):
                self.blame(harm)
            await asyncio.sleep(0.4)

    async def measure(self) -> None:
        """Look at the memory all the time."""
        while True:
            self.memory.look(self.running)
            await asyncio.sleep(0.05)

    def blame(self, what: str) -> None:
        """Something happened to the neighbour or to a decoy."""
        if len(self.strange) < 50:
            self.strange.append(f"{what} (while {', '.join(self.running) or 'nothing'} ran)")

    async def case(self, case: Case) -> dict[str, Any]:
        """Run one case; seconds are without the wait for its turn."""
        async with self.heavy if case.heavy else contextlib.AsyncExitStack():
            started = time.monotonic()
            self.running[case.name] = case
            try:
                faults = await CaseRun(self, case).faults()
            finally:
                del self.running[case.name]
        return {"case": case.name, "seconds": round(time.monotonic() - started, 2), "faults": faults}


class CaseRun:
    """One case in a session of its own."""

    def __init__(self, abuse: Abuse, case: Case) -> None:
        self.abuse, self.case = abuse, case
        self.answers: list[Answer] = []
        self.found: list[str] = []
        self.session: Any = None

    async def faults(self) -> list[str]:
        """Everything that is wrong."""
        self.session = await self.abuse.pool.open(1)
        try:
            for number, step in enumerate(self.case.steps):
                self.answers.append(await self.timed(f"step {number}", step))
            last = await self.timed("1+1", Run("1+1", 5))
            if last.fresh and self.case.again:
                last = await self.timed("1+1 again", Run("1+1", 5))
            if last.status != "ok" or b"2" not in last.output:
                self.found.append(f"1+1 answers {last.status} {last.why} {last.output[:200]!r}")
            if self.case.proves is not None and not self.case.proves(self.answers):
                told = [(answer.status, answer.why, answer.output[:300]) for answer in self.answers]
                self.found.append(f"not what must hold: {told}")
        except Exception as error:
            self.found.append(f"{type(error).__name__}: {error}")
        await self.end()
        return self.found

    async def timed(self, name: str, step: Step) -> Answer:
        """Take one step, and hold it to the bounds that hold for all."""
        started = time.monotonic()
        answer = await self.take(step)
        took = time.monotonic() - started
        limit = getattr(step, "seconds", 5.0)
        if took > limit + SPARE and not isinstance(step, Export | Reopen):
            self.found.append(f"{name} took {took:.1f} s, not {limit}")
        most = MOST_EXPORT if isinstance(step, Export) else MOST_OUTPUT + 4096
        if len(answer.output) > most:
            self.found.append(f"{name} gave {len(answer.output)} bytes")
        told = repr((dict(answer.header), answer.why, answer.value))[: 2**20].encode("utf-8", "backslashreplace")
        if self.abuse.decoys.told(answer.output + told):
            self.found.append(f"{name} told a secret")
        return Answer(answer.status, answer.why, answer.output, answer.fresh, answer.header, answer.value, took)

    async def take(self, step: Step) -> Answer:
        """Take one step."""
        from mcpgym.errors import ToolError

        session = self.session
        try:
            match step:
                case Run():
                    one = self.abuse.neighbour if step.neighbour else session
                    return said(await one.run(self.put(step.code), step.seconds))
                case Evaluate():
                    evaluation = await session.evaluate(step.function, list(step.arguments), step.seconds)
                    answer = said(evaluation.outcome)
                    value = evaluation.value if answer.status == "ok" else None
                    return Answer(answer.status, answer.why, answer.output, answer.fresh, answer.header, value)
                case Read():
                    return Answer("ok", output=await session.read(self.put(step.path), step.offset))
                case Write():
                    await session.write(self.put(step.path), step.data)
                case ListFiles():
                    entries = "\n".join(map(str, await session.list(step.path)))
                    return Answer("ok", output=entries.encode("utf-8", "backslashreplace"))
                case Export():
                    return Answer("ok", output=await session.export())
                case Reset():
                    await session.reset()
                case Reopen():
                    await self.end()
                    self.session = await self.abuse.pool.open(1)
                case Sleep():
                    await asyncio.sleep(step.seconds)
        except (ToolError, ValueError) as fault:
            return Answer("error", str(fault))
        return Answer("ok")

    def put(self, text: str) -> str:
        """Code or a path with the decoys put in."""
        decoys = self.abuse.decoys.as_json()
        if "DECOYS" in text:
            return f"DECOYS = {decoys!r}\n{text}"
        return str(decoys["paths"][0]) if text == "{0}" else text

    async def end(self) -> None:
        """Close the session, and see that a second later nothing is left of it."""
        pid: int | None = self.session.stream.process
        family = members(pid) if pid else []
        self.session.kill()
        deadline = time.monotonic() + 1
        while left := [process for process in family if process.is_running()]:
            if time.monotonic() > deadline:
                self.found.append(f"{len(left)} processes are left: {left[:3]}")
                return
            await asyncio.sleep(0.02)


def said(outcome: Any) -> Answer:
    """An outcome of the session, as the cases see it."""
    return Answer(outcome.status, outcome.why, outcome.output, outcome.fresh, dict(outcome.header))


def members(pid: int) -> list[psutil.Process]:
    """A process and all that come from it."""
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


async def abuse(backend: str, names: list[str], lanes: int, packages: tuple[str, ...]) -> dict[str, Any]:
    """Run the cases, a few at once."""
    decoys = Decoys(Path(os.environ["TMPDIR"]))
    before = {process.pid for process in psutil.process_iter()}
    pool = make_pool(backend, executing=lanes + 2, packages=packages)
    run = Abuse(pool, decoys)
    await run.settle()
    watching = [asyncio.create_task(run.watch()), asyncio.create_task(run.measure())]
    level = pool.backend.level
    wanted = [case for case in CASES if case.name in names or (not names and (case.landlock or level != "landlock"))]
    heavy, light = iter([case for case in wanted if case.heavy]), iter([case for case in wanted if not case.heavy])
    made: list[dict[str, Any]] = []

    async def lane(first: bool) -> None:
        for queue in (heavy, light) if first else (light, heavy):
            for case in queue:
                made.append(await run.case(case))

    await asyncio.gather(*(lane(not number) for number in range(lanes)))
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    kept = await run.neighbour.run("print(kept, open('kept.txt').read())", 5)
    if kept.output.decode().split() != [decoys.in_neighbour, decoys.in_neighbours_file]:
        run.strange.append(f"the neighbour lost its variable or file: {kept}")
    run.strange += decoys.harm()
    if run.memory.bytes > MOST_MEMORY:
        run.strange.append(f"memory rose to {run.memory.bytes} bytes during {run.memory.during}")
    await pool.close()
    deadline = time.monotonic() + 1
    while left := [process for process in psutil.process_iter(["name", "status"]) if process.pid not in before]:
        if time.monotonic() > deadline:
            run.strange.append(f"after the pool was closed there are still {left}")
            break
        await asyncio.sleep(0.02)
    decoys.close()
    return {
        "level": level,
        "cases": made,
        "strange": run.strange,
        "memory": run.memory.bytes,
        "memory_during": run.memory.during,
        "neighbour_slowest": round(run.slowest, 3),
    }


def main() -> None:
    """Read the command line and print the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("backend")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--lanes", type=int, default=LANES)
    parser.add_argument("--packages", default="")
    given = parser.parse_args()
    if given.backend == "unsafe-local" or "mcpgym-cell-" not in os.environ.get("TMPDIR", ""):
        raise SystemExit("the cases run in a cell, and never where nothing keeps them in")
    started = time.monotonic()
    packages = tuple(given.packages.split(",")) if given.packages else ()
    report = asyncio.run(abuse(given.backend, given.cases, given.lanes, packages))
    print(json.dumps({**report, "seconds": round(time.monotonic() - started, 1)}))


if __name__ == "__main__":
    main()

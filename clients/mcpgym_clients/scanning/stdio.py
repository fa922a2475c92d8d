"""The same environment over stdio: a process that is one episode, and one that is a person's own server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from random import Random
from typing import Any

from mcpgym.asking import settle
from mcpgym.environment import Environment
from mcpgym.errors import ServerUnavailable
from mcpgym_clients.doctor.processes import Stopwatch
from mcpgym_clients.scanning.canaries import Canaries, Kind, Value
from mcpgym_clients.scanning.playing import at_random, nonsense
from mcpgym_clients.scanning.record import Exchange, Recording
from mcpgym_clients.scanning.report import ScanReport
from mcpgym_clients.scanning.wires import LEGACY, MODERN, StdioWire, call, survey, text_of

OUTPUT, ERRORS = "stdio", "stdio, standard error"
TURNS = 8
LEAVE_SECONDS = 5.0
LINE_LIMIT = 16 * 1024 * 1024

Place = tuple[str, int]


def importable(environment: Environment[Any, Any, Any]) -> bool:
    """Whether another process can import its class."""
    cls = type(environment)
    return "<" not in cls.__qualname__ and cls.__module__ != "__main__"


async def scan_stdio(
    environment: Environment[Any, Any, Any],
    place: Place,
    canaries: Canaries,
    recording: Recording,
    report: ScanReport,
    *,
    kept: set[str],
    bits: int,
    variables: Mapping[str, str],
    allowed: Collection[str] = (),
) -> None:
    """Serve ``environment`` (not planted yet) over stdio, play it, and record both of its streams.

    Bound to a task and bare, in each protocol era, and with everything in it failing.
    """
    if not importable(environment):
        name = type(environment).__qualname__
        report.note(f"stdio: not scanned, {name} cannot be imported from another process")
        return
    cls = type(environment)
    work: dict[str, Any] = {
        "module": cls.__module__,
        "class": cls.__qualname__,
        "config": environment.config.model_dump(mode="json", exclude_unset=True),
        "seed": canaries.seed,
        "kept": sorted(kept),
        "allowed": sorted(allowed),
        "split": place[0],
        "index": place[1],
        "episode_seed": canaries.integer("stdio", bits=bits),
        "failing": False,
        "paths": [path for path in sys.path if path],
    }
    runs = [
        (work, MODERN, "stdio, bound"),
        (work, LEGACY, "stdio, bound, handshake era"),
        ({**work, "split": None}, MODERN, "stdio, bare"),
        ({**work, "split": None}, LEGACY, "stdio, bare, handshake era"),
        ({**work, "failing": True}, LEGACY, "stdio, failing"),
    ]
    with tempfile.TemporaryDirectory(prefix="mcpgym-scan-") as folder:
        files = [Path(folder) / f"{number}.json" for number in range(len(runs))]
        for file, (spec, _, _) in zip(files, runs, strict=True):
            _put(file, spec)
        await asyncio.gather(
            *(
                _run(spec, era, owner, file, environment, canaries, recording, report, variables)
                for file, (spec, era, owner) in zip(files, runs, strict=True)
            )
        )


async def _run(
    work: Mapping[str, Any],
    era: str,
    owner: str,
    file: Path,
    environment: Environment[Any, Any, Any],
    canaries: Canaries,
    recording: Recording,
    report: ScanReport,
    variables: Mapping[str, str],
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mcpgym_clients.scanning.stdio_child", os.fspath(file),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(work["paths"])},
        limit=LINE_LIMIT,
    )  # fmt: skip
    assert process.stderr is not None
    errors = asyncio.ensure_future(process.stderr.read())
    wire = StdioWire(recording, OUTPUT, process, era, owner=owner)
    try:
        await _play(wire, environment, work["split"] is None, canaries)
    except ServerUnavailable as error:
        report.note(f"{owner}: {error}")
    finally:
        await _leave(process, wire, recording)
        text = await errors
        recording.add(Exchange(ERRORS, "standard error", text, owner))
    if process.returncode not in (0, None):
        last = text.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit {process.returncode}"]
        report.note(f"{owner}: the server ended badly: {last[0][:200]}")
    _learn(file.with_suffix(".found"), canaries, owner)


async def _play(wire: StdioWire, environment: Environment[Any, Any, Any], bare: bool, canaries: Canaries) -> None:
    """Look at all there is, and play at random, then with nonsense."""
    task = environment.task_at(environment.splits[-1], 0)
    listed = await survey(wire, [f"env://{environment.name}/task/{task.id}"])
    extra = {}
    if bare:
        started = text_of(await call(wire, "start_episode", {}))
        extra = {"episode": started.partition("episode: ")[2].partition("\n")[0].strip()}
    tools = [(tool["name"], tool.get("inputSchema", {})) for tool in listed if tool.get("name") != "start_episode"]
    random = Random(canaries.seed)
    policy = at_random(tools) if tools else None
    turns = [await settle(policy([], random)) for _ in range(TURNS)] if policy is not None else []
    for turn in [*turns, *nonsense(tools, random)]:
        for item in turn.get("tool_calls", ()):
            arguments = json.loads(item["function"]["arguments"])
            if isinstance(arguments, dict):
                arguments |= extra
            await call(wire, item["function"]["name"], arguments)
    await asyncio.sleep(0.1)  # it is scored meanwhile, and what that lets slip comes with the next answer
    await call(wire, tools[0][0] if tools else "nothing", dict(extra))


async def _leave(process: asyncio.subprocess.Process, wire: StdioWire, recording: Recording) -> None:
    """Close its input, read what it still says, and see that it ends."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    reading = asyncio.ensure_future(process.stdout.read())
    watch = Stopwatch([process.pid])
    if not await watch.until(lambda: reading.done() and process.returncode is not None, LEAVE_SECONDS):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    recording.add(Exchange(OUTPUT, "the end", await reading, wire.owner))
    await process.wait()


def _put(file: Path, work: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(work), encoding="utf-8")


def _learn(file: Path, canaries: Canaries, owner: str) -> None:
    """Look for what the process made up, too."""
    if not file.exists():
        return
    for kind, label, form, shown in json.loads(file.read_text(encoding="utf-8")):
        canaries.watch(Kind(kind), label, _value(form, shown))


def _value(form: str, shown: str) -> Value:
    match form:
        case "int":
            return int(shown)
        case "float":
            return float(shown)
        case "bytes":
            return bytes.fromhex(shown)
        case _:
            return shown

"""The same plays in another process, with another hash seed: ``python -m mcpgym.check.second_process``."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from mcpgym.check.plays import Act, Place, Plan, Play, play
from mcpgym.check.report import Report
from mcpgym.environment import Environment
from mcpgym.registry import configure
from mcpgym.schema import content_hash

SECONDS = 120


def check_process(
    environment: Environment[Any, Any, Any],
    planned: Sequence[tuple[Place, Plan]],
    first: Sequence[Play],
    report: Report,
) -> None:
    """Play every plan again in a new interpreter, where the class can be imported there."""
    cls = type(environment)
    if not environment.reproducible:
        report.notes.append(f"process: not checked, {environment.name} says that it is not reproducible")
        return
    if "<" in cls.__qualname__ or cls.__module__ == "__main__":
        report.notes.append(f"process: not checked, {cls.__qualname__} cannot be imported from another process")
        return
    work = {
        "module": cls.__module__,
        "class": cls.__qualname__,
        "config": environment.config.model_dump(mode="json", exclude_unset=True),
        "plays": [
            [one.split, one.index, one.seed, [[act.name, act.arguments, act.text] for act in plan]]
            for one, plan in planned
        ],
    }
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    paths = os.pathsep.join(path for path in sys.path if path)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mcpgym.check.second_process"],
            input=json.dumps(work),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths, "PYTHONUTF8": "1"},
            check=False,
        )
        lines = done.stdout.splitlines()
        theirs = json.loads(lines[-1]) if done.returncode == 0 and lines else None
    except (OSError, ValueError, TypeError, subprocess.TimeoutExpired) as error:
        report.notes.append(f"process: not checked: {type(error).__name__}: {error}")
        return
    if theirs is None:
        tail = done.stderr.strip().splitlines()
        report.notes.append(f"process: not checked, the other process failed: {tail[-1] if tail else done.returncode}")
        return
    report.episodes += len(first)
    for one, digests in zip(first, theirs, strict=True):
        mine = digest(one)
        if mine != digests:
            number = next((n for n, (a, b) in enumerate(zip(mine, digests, strict=False)) if a != b), len(digests) - 1)
            problem = f"{one.lines[min(number, len(one.lines) - 1)].label} is another text in another process"
            fix = "do not depend on hash() or the order of a set (sort it); no clock, no process id"
            report.add("process", problem, str(one.place), fix)
            return


def digest(one: Play) -> list[str]:
    """A hash of every line of a play."""
    return [content_hash([line.label, line.seen, line.hidden])[:16] for line in one.lines]


async def _play_all(work: dict[str, Any]) -> list[list[str]]:
    from mcpgym.episodes import Episodes

    cls: Any = importlib.import_module(work["module"])
    for part in work["class"].split("."):
        cls = getattr(cls, part)
    environment = configure(cls, work["config"])
    digests = []
    for split, index, seed, acts in work["plays"]:
        episodes = Episodes({environment.name: environment})
        digests.append(digest(await play(episodes, Place(split, index, seed), [Act(*act) for act in acts])))
    return digests


def main() -> None:
    """Read the work from standard input, and write one line of digests to standard output."""
    digests = asyncio.run(_play_all(json.loads(sys.stdin.read())))
    sys.stdout.write("\n" + json.dumps(digests) + "\n")


if __name__ == "__main__":
    main()

"""A planted environment over stdio, in a process of its own: ``python -m mcpgym_clients.scanning.stdio_child FILE``.

The file says what to serve; it is removed at once, and what this process made up meanwhile (its episode's token, the
rewards it gave) is written beside it, for the scan to look for. An episode is scored now and then while it is played,
as a harness may.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import logging
import sys
from pathlib import Path
from typing import Any

from mcpgym.control_plane.secret import forget_secret
from mcpgym.episodes import Episodes
from mcpgym.errors import McpgymError
from mcpgym.registry import configure
from mcpgym.wire.stdio import Wire, serve_stdio
from mcpgym_clients.scanning.canaries import Canaries, Kind
from mcpgym_clients.scanning.planting import Plan, planted
from mcpgym_clients.scanning.watching import WatchedEpisodes

_PAUSE = 0.05


async def serve(work: dict[str, Any], wire: Wire, found: Path) -> None:
    """Serve what ``work`` says until the client leaves."""
    cls: Any = importlib.import_module(work["module"])
    for part in work["class"].split("."):
        cls = getattr(cls, part)
    plan = Plan(Canaries(work["seed"]))
    plan.tasks.kept, plan.tasks.allowed = set(work["kept"]), set(work["allowed"])
    environment = planted(configure(cls, work["config"]), plan)
    episodes = WatchedEpisodes({environment.name: environment}, plan.canaries)
    bound = None
    if work["split"] is not None:
        bound = await episodes.open(
            environment.name, split=work["split"], index=work["index"], seed=work["episode_seed"]
        )
    plan.failing = work["failing"]
    keeping = asyncio.ensure_future(_keep(plan, episodes, None if bound is None else bound.token, found))
    try:
        await serve_stdio(episodes, bound, wire=wire)
    finally:
        keeping.cancel()
        _write(plan, found)
        await episodes.aclose()


async def _keep(plan: Plan, episodes: Episodes, token: str | None, found: Path) -> None:
    """Score the episode and write down what came of it, again and again."""
    known = -1
    while True:
        if token is not None:
            with contextlib.suppress(McpgymError):
                score = await episodes.get(token).score(None)
                if score.total is not None:
                    plan.canaries.watch(Kind.REWARD, "the total reward", score.total)
        if len(plan.canaries) != known:
            known = len(plan.canaries)
            _write(plan, found)
        await asyncio.sleep(_PAUSE)


def _write(plan: Plan, found: Path) -> None:
    rows = [
        [canary.kind.value, canary.label, type(canary.value).__name__, canary.shown]
        for canary in plan.canaries
        if canary.kind is not Kind.FAULT
    ]
    draft = found.with_suffix(".draft")
    draft.write_text(json.dumps(rows), encoding="utf-8")
    draft.replace(found)


def main() -> None:
    """Take the streams, read the file, serve."""
    wire = Wire()
    forget_secret()
    logging.basicConfig(level=logging.WARNING)
    file = Path(sys.argv[1])
    work = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    sys.path[:0] = work["paths"]
    asyncio.run(serve(work, wire, file.with_suffix(".found")))
    gc.freeze()  # as for every command: see mcpgym_clients.__main__


if __name__ == "__main__":
    main()

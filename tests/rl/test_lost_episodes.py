"""Episodes whose server dies in the middle of a run: played again elsewhere, and scored once."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from mcpgym import load_environment
from mcpgym.control import LocalControl
from mcpgym.control_client import HttpControl
from mcpgym.episodes import Episodes
from mcpgym.errors import EpisodeLost
from mcpgym.fleet.pool import Pool
from mcpgym.serving import serving
from mcpgym_rl.lanes import ControlLane, McpLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.run import LOST_AT_MOST, EpisodeSpec, RunResult, run
from mcpgym_rl.traces import Trace

SECRET = "a-secret-of-the-tests-0123456789"
SPECS = [EpisodeSpec("tic-tac-toe", split="test", index=i % 4, seed=i // 4, repeat=i // 4) for i in range(40)]


def games() -> Episodes:
    return Episodes.of("tic-tac-toe")


def bones(trace: Trace) -> Any:
    """What must not depend on where a rollout was made."""
    assert trace.score is not None, trace.error
    calls = [(call.name, call.arguments, call.result, call.is_error) for call in trace.calls]
    return trace.task, trace.seed, trace.messages, calls, trace.score.total, dict(trace.score.components)


async def played(lane: Any, **options: Any) -> RunResult:
    policy = make_policy("random", load_environment("tic-tac-toe"))
    return await run(policy, lane, SPECS, concurrency=8, **options)


@pytest.mark.parametrize("kind", ["mcp", "control"])
def test_a_server_that_dies_costs_no_episode_of_a_run_over_several(kind: str) -> None:
    async def over_two() -> tuple[RunResult, list[Trace], list[Trace]]:
        ended: list[Trace] = []
        lost: list[Trace] = []
        async with serving(games(), secret=SECRET) as stays, contextlib.AsyncExitStack() as dying:
            dies = await dying.enter_async_context(serving(games(), secret=SECRET))
            pool = await Pool.of([HttpControl(server.control_url, SECRET) for server in (stays, dies)])
            lane = McpLane(pool) if kind == "mcp" else ControlLane(pool)
            killed: list[asyncio.Future[Any]] = []

            def on_trace(trace: Trace) -> None:
                ended.append(trace)
                if len(ended) == 10:
                    assert len(dies.episodes) > 0
                    killed.append(asyncio.ensure_future(dying.aclose()))

            result = await played(lane, on_trace=on_trace, on_lost=lost.append)
            await asyncio.gather(*killed)
            assert killed, "the server was to die in the middle"
            await lane.aclose()
        return result, ended, lost

    result, ended, lost = asyncio.run(over_two())
    assert result.failure is None
    assert sorted(trace.place for trace in ended) == list(range(len(SPECS))), "each once"
    assert lost
    assert all(trace.score is None for trace in lost)
    alone = asyncio.run(played(ControlLane(LocalControl(games()))))
    assert [bones(trace) for trace in result.traces] == [bones(trace) for trace in alone.traces]


class Lossy(LocalControl):
    """Loses every episode of one task."""

    lost = 0

    async def score(self, token: str, *arguments: Any, **options: Any) -> Any:
        if self.episodes.get(token).task.id == "test-1":
            self.lost += 1
            raise EpisodeLost("this episode has ended: lost")
        return await super().score(token, *arguments, **options)


def test_a_task_that_always_loses_its_episode_is_recorded_as_failed() -> None:
    control = Lossy(games())
    lost: list[Trace] = []
    specs = [EpisodeSpec("tic-tac-toe", split="test", index=index) for index in range(3)]
    policy = make_policy("random", load_environment("tic-tac-toe"))
    result = asyncio.run(run(policy, ControlLane(control), specs, on_lost=lost.append))
    assert [trace.score is None for trace in result.traces] == [False, True, False]
    error = result.traces[1].error
    assert error is not None
    assert error.kind == "EpisodeLost"
    assert control.lost == LOST_AT_MOST == len(lost) + 1
    assert [trace.place for trace in lost] == [1] * (LOST_AT_MOST - 1)

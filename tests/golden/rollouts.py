"""Golden traces: rollouts of several policies, without what no two runs have alike (times, versions of a machine)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.golden.scripts import CONFIGURATIONS, Part, scripts

from mcpgym import Environment
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.rollout import Limits, rollout
from mcpgym_rl.traces import Trace


def golden_traces(environment: Environment[Any, Any, Any]) -> list[Trace]:
    """The traces of ``environment``, each in its place."""
    return asyncio.run(_play(environment))


async def _play(environment: Environment[Any, Any, Any]) -> list[Trace]:
    lane = ControlLane(LocalControl(Episodes({environment.name: environment})))
    traces = []
    for place, part in enumerate(_parts(environment)):
        trace = await rollout(
            part.policy,
            lane,
            environment=environment.name,
            split=part.split,
            index=part.index,
            seed=part.seed,
            config=part.config,
            limits=part.limits,
            place=place,
        )
        calls = [replace(call, milliseconds=0.0) for call in trace.calls]
        traces.append(replace(trace, calls=calls, seconds=0.0, conditions={}))
    return traces


def _parts(environment: Environment[Any, Any, Any]) -> Iterator[Part]:
    names = sorted(environment.reference_policies())
    names += ["teacher:skill=0.5"] if environment.teacher(0.5) is not None else []
    policies = [make_policy(name, environment) for name in names]
    for policy in policies:
        yield Part(policy)
        yield Part(policy, index=5, split=environment.splits[0], seed=3)
    for config in CONFIGURATIONS.get(environment.name, ()):
        yield Part(policies[0] if policies else ScriptedPolicy(["Well."]), config=config)
    for name, turns in scripts(environment).items():
        half = max(len(turns) // 2, 1)
        yield Part(ScriptedPolicy(turns, name), limits=Limits(max_turns=len(turns)))
        yield Part(ScriptedPolicy(turns[:half], f"{name}, cut"), index=1, limits=Limits(max_calls=half))
        if len(turns) > 1:
            yield Part(ScriptedPolicy(turns[:1], f"{name}, breaks off"), index=2)
        cut = [*turns[:half], replace(turns[-1], finish="length")]
        yield Part(ScriptedPolicy(cut, f"{name}, out of tokens"), index=3)

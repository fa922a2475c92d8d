"""What an environment's own policies are paid, and one of their rollouts as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpgym.control import LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.messages import Message
from mcpgym_clients.statistics.estimates import Estimate, mean
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace

CONCURRENCY = 8


async def rollouts(environment: Environment[Any, Any, Any], policy_name: str, count: int) -> Sequence[Trace]:
    """Rollouts of one of its policies on the first tasks of its last split, with seed 0."""
    split = environment.splits[-1]
    lane = ControlLane(LocalControl(Episodes({environment.name: environment})))
    policy = make_policy(policy_name, environment)
    specs = [EpisodeSpec(environment.name, split=split, index=index) for index in range(count)]
    try:
        return (await run(policy, lane, specs, concurrency=CONCURRENCY)).traces
    finally:
        await policy.aclose()
        await lane.aclose()


def reward_of(traces: Sequence[Trace]) -> Estimate | None:
    """The mean reward with its interval; None where nothing was scored."""
    scored = [(trace.score.total, trace.task) for trace in traces if trace.score and trace.score.total is not None]
    return mean([total for total, _ in scored], [task for _, task in scored]) if scored else None


def as_text(messages: Sequence[Message]) -> str:
    """A rollout as it would be read."""
    parts = []
    for message in messages:
        if message["content"] or not message.get("tool_calls"):
            parts.append(f"[{message['role']}]\n{message['content']}")
        parts += [
            f"[call] {call['function']['name']} {call['function']['arguments']}"
            for call in message.get("tool_calls", ())
        ]
    return "\n\n".join(parts)

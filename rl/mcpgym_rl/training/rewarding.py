"""What a rollout is worth to the trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcpgym.rewards import Reward
from mcpgym_rl.traces import Trace
from mcpgym_rl.training.sections import Rewards


def reward_of(trace: Trace, rewards: Rewards) -> float | None:
    """The worth of a rollout; None for one that is not scored, which must not be trained on.

    Without a shape of its own this is the environment's total. A component that is null makes the worth unknown too.
    """
    if not trace.scored or trace.score is None:
        return None
    if not rewards.game_outcome and not rewards.components:
        return trace.score.total
    worth = rewards.game_outcome.get(trace.score.game_outcome or "unfinished", 0.0) if rewards.game_outcome else 0.0  # type: ignore[call-overload]
    for name, weight in rewards.components.items():
        value = trace.score.components.get(name)
        if value is None:
            return None
        worth += weight * value
    return worth


def all_perfect(worths: Sequence[float | None], own: Mapping[str, Reward], rewards: Rewards) -> bool:
    """Whether none of these rollouts could be worth more, with the environment's ``own`` rewards in their ranges.

    Where all rollouts are worth the same whatever they do, none is perfect.
    """
    weights = rewards.components
    if not rewards.game_outcome and not weights:
        weights = {name: item.weight for name, item in own.items()}
    least, most = min(rewards.game_outcome.values(), default=0.0), max(rewards.game_outcome.values(), default=0.0)
    for name, weight in weights.items():
        if name not in own:
            return False
        ends = (weight * own[name].low, weight * own[name].high)
        least, most = least + min(ends), most + max(ends)
    return most > least and all(worth is not None and worth >= most - 1e-9 for worth in worths)

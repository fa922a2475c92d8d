"""Advantages: how much better a rollout, or one of its turns, did than others that began in the same place.

A group is the rollouts of one task with one seed (and the same given turns), so that only the policy's own choices
differ. A rollout without a reward takes no part: its advantage is None, never that of a reward of 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Literal

from mcpgym_rl.traces import Trace

Scale = Literal["none", "std"]


def group_advantages(
    rewards: Sequence[float | None], groups: Sequence[Hashable], *, scale: Scale = "none"
) -> list[float | None]:
    """Each reward less the mean of its group's, and with ``scale="std"`` over their standard deviation.

    GRPO (arXiv 2402.03300, section 4.1.2) divides; Dr. GRPO (arXiv 2503.20783) shows why one may not want to. A group
    whose rewards are all equal, or that has only one, gives exactly 0.
    """
    members: dict[Hashable, list[float]] = defaultdict(list)
    for reward, group in zip(rewards, groups, strict=True):
        if reward is not None:
            members[group].append(reward)
    made: list[float | None] = []
    for reward, group in zip(rewards, groups, strict=True):
        made.append(None if reward is None else _relative(reward, members[group], scale))
    return made


def turn_advantages(
    traces: Sequence[Trace],
    rewards: Sequence[float | None],
    groups: Sequence[Hashable],
    *,
    prior: float = 1.0,
    least: int = 0,
) -> list[list[float] | None]:
    """For each rollout, the advantage of each turn that it sampled: its reward less the value of where the turn began.

    That value is estimated from the group's other rollouts that came to the same turn with the same calls and answers
    behind them (their thoughts may differ), n of them with the mean m. The further into a rollout, the fewer there are,
    so the estimate leans on that of the turn before: v_t = (n m + prior v_{t-1}) / (n + prior). At the first turn it
    is the mean of all others (leave-one-out: RLOO, arXiv 2402.14740). VinePPO (arXiv 2410.01679) samples such
    estimates on purpose; a group that plays one task has them already. A group whose rewards are equal gives 0, and so
    does a turn to which fewer than ``least`` others came: what is left of it is mostly noise.
    """
    histories = [_histories(trace) for trace in traces]
    seen: dict[Hashable, list[float]] = defaultdict(list)
    in_group: dict[Hashable, set[float]] = defaultdict(set)
    for history, reward, group in zip(histories, rewards, groups, strict=True):
        if reward is not None:
            in_group[group].add(reward)
            for state in history:
                seen[group, state].append(reward)
    made: list[list[float] | None] = []
    for history, reward, group in zip(histories, rewards, groups, strict=True):
        if reward is None:
            made.append(None)
        elif len(in_group[group]) == 1:
            made.append([0.0] * len(history))
        else:
            made.append(_along(reward, [seen[group, state] for state in history], prior, least))
    return made


def _along(reward: float, seen: Sequence[Sequence[float]], prior: float, least: int) -> list[float]:
    """The advantages of one rollout's turns; ``seen`` are the rewards of all that came to each of them, itself too."""
    turns: list[float] = []
    value: float | None = None
    for rewards in seen:
        others = len(rewards) - 1
        total = math.fsum(rewards) - reward
        if value is not None:
            value = (total + prior * value) / (others + prior) if others + prior else value
        elif others:
            value = total / others
        turns.append(0.0 if value is None or others < least else reward - value)
    return turns


def _relative(reward: float, rewards: Sequence[float], scale: Scale) -> float:
    if max(rewards) == min(rewards):
        return 0.0  # exactly, where a mean in floating point would leave a rest
    mean = math.fsum(rewards) / len(rewards)
    if scale == "none":
        return reward - mean
    variance = math.fsum((other - mean) ** 2 for other in rewards) / len(rewards)
    return (reward - mean) / math.sqrt(variance)


def _histories(trace: Trace) -> list[Hashable]:
    """What stood before each sampled turn: the calls made and everything that was answered."""
    histories: list[Hashable] = []
    behind: list[Hashable] = []
    turns = 0
    for message in trace.messages[trace.prompt_messages :]:
        if message["role"] != "assistant":
            behind.append(message["content"])
            continue
        if turns >= trace.given_turns:
            histories.append(tuple(behind))
        turns += 1
        calls = message.get("tool_calls", ())
        behind.append(tuple((call["function"]["name"], call["function"]["arguments"]) for call in calls))
    return histories

"""The server as an environment: tasks and a reward beside its tools, and policies to compare with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from mcpgym import LazyTasks, Message, ReferencePolicy, Task, derive_seed, reward, task_id
from mcpgym.messages import assistant, tool_call, user
from mcpgym.own_server import FastMCPEnvironment, ServerEpisode
from mcpgym_environments.teaching import mixed

from my_env.server import make_server

PROMPT = "Look at both accounts, then move money so that they hold the same. Say done when they do."


class MyEnv(FastMCPEnvironment):
    """Share money out evenly."""

    name = "my-env"
    description = "DESCRIPTION"
    max_turns = 10
    reproducible = True  # the same seed and calls give the same answers

    def factory(self, task: Task, seed: int) -> tuple[Any, dict[str, int]]:
        """A server for one episode."""
        return make_server(derive_seed(task.info["seed"], seed))

    def tasks(self, split: str) -> Sequence[Task]:
        """A thousand banks in each split; the splits share no seed."""
        rows = [user(PROMPT)]
        return LazyTasks(
            1000, lambda index: Task(task_id(split, index), split, rows, {"seed": derive_seed(split, index)})
        )

    @reward
    def even(self, episode: ServerEpisode) -> float:
        """1 if both accounts hold the same."""
        return float(len(set(episode.state.values())) == 1)

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """What to compare with; they see what any policy sees."""
        return {"expert": _share, "random": _any}

    def teacher(self, skill: float) -> ReferencePolicy:
        """What a model imitates before it learns by itself: the expert, with slips that are not learnt."""
        return mixed(_share, _any, skill)


def _share(messages: Sequence[Message], random: Random) -> Message:
    told = [message["content"] for message in messages if message["role"] == "tool"]
    if len(told) < 2:
        return _call("balance", account=("savings", "spending")[len(told)])
    savings, spending = (int(text.split()[-1]) for text in told[:2])
    if len(told) > 2 or savings == spending:
        return assistant("done")
    return _call(
        "transfer", source="savings" if savings > spending else "spending", amount=abs(savings - spending) // 2
    )


def _any(messages: Sequence[Message], random: Random) -> Message:
    if random.random() < 0.3:
        return assistant("done")
    return _call("transfer", source=random.choice(["savings", "spending"]), amount=random.randint(1, 100))


def _call(name: str, **arguments: object) -> Message:
    return assistant("", [tool_call("call_0", name, json.dumps(arguments))])

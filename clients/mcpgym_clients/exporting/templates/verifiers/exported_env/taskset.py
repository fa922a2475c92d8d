"""The tasks, as the server lists them: ids and prompts. What they hide (answers, seeds, rewards) stays there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import verifiers.v1 as vf
from pydantic import SerializeAsAny
from verifiers.v1.dialects import parse_message

from exported_env.control import Control
from exported_env.exported import EXPORTED
from exported_env.playing import Seat


class EpisodeTools(vf.Toolset[vf.ToolsetConfig, vf.State]):
    """The tools of one episode: those that the server lists at its URL, under their own names."""

    TOOL_PREFIX = None


class EpisodeTaskData(vf.TaskData):
    """One task: what the policy may know of it."""

    split: str = ""


class EpisodeTaskConfig(vf.TaskConfig):
    """``tools.url`` is the URL of the rollout's own episode; nobody sets it by hand."""

    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class EpisodeTask(vf.Task[EpisodeTaskData, vf.State, EpisodeTaskConfig]):
    """A task, and once :meth:`seated` the episode in which one rollout plays it."""

    seat: Seat | None = None

    @property
    def key(self) -> str:
        """The task's id, which is its own within the environment."""
        return self.data.id or super().key

    @classmethod
    def toolsets(cls, config: EpisodeTaskConfig) -> list[vf.Toolset]:
        """The tools at the episode's URL; none before there is an episode, or where its environment has none."""
        return [EpisodeTools(config.tools)] if config.tools.url else []

    async def seated(self, seat: Seat) -> EpisodeTask:
        """This task for one rollout: tasks are shared by all rollouts of a group, and episodes are not.

        Its prompt is the episode's: a game that the opponent opens shows the opponent's move.
        """
        system, prompt = _prompt(await seat.open())
        clone = self.with_data(system_prompt=self.data.system_prompt if system is None else system, prompt=prompt)
        clone.seat = seat
        return clone

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Open an episode: another one for each attempt, so that no rollout begins in the middle of one."""
        if self.seat is None:
            raise RuntimeError(f"{EXPORTED['environment']} is played in episodes: run it with the Env of its package")
        url = await self.seat.take_url()
        tools = self.config.tools.model_copy(update={"url": url if EXPORTED["tools"] else None})
        self.config = self.config.model_copy(update={"tools": tools})

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Have the server score the episode; one without a score fails here, and is played again by --resume."""
        if self.seat is not None:
            score = await self.seat.score(trace)
            trace.info["mcpgym"] = {name: score[name] for name in ("game_outcome", "receipt") if score.get(name)}

    @vf.reward
    async def reward(self) -> float:
        """The server's total, with the weights that the environment gives its rewards."""
        return float(self._score["total"])

    @vf.metric
    async def components(self) -> dict[str, float]:
        """Each reward by itself, before its weight; those that could not be told are left out."""
        found: Mapping[str, float | None] = self._score["components"]
        return {name: float(value) for name, value in found.items() if value is not None}

    @property
    def _score(self) -> Mapping[str, Any]:
        if self.seat is None or self.seat.scored is None:
            raise RuntimeError("an episode is scored once, while it lives: its score stands in the trace")
        return self.seat.scored


class EpisodeTasksetConfig(vf.TasksetConfig):
    """``--env.taskset.*``."""

    split: str = EXPORTED["split"]
    """Which tasks."""
    seed: int = EXPORTED["seed"]
    """The seed of every episode; the same task with the same seed meets the same opponents, texts and numbers."""
    fresh_seeds: bool = False
    """Draw a seed for each episode, in the place of ``seed``."""
    server: str = ""
    """The server, or its control plane: ``http://host:port`` or ``unix:/path``. Empty: the variable MCPGYM_SERVER,
    else where it was when this was exported."""
    players: str | None = None
    """Where players reach the server (``https://games.example.org``), if that is not where it itself says."""
    task: SerializeAsAny[EpisodeTaskConfig] = EpisodeTaskConfig()
    options: dict[str, Any] = EXPORTED["config"]
    """Fields of the environment's configuration."""


class EpisodeTaskset(vf.Taskset[EpisodeTask, EpisodeTasksetConfig]):
    """The tasks of a split."""

    def load(self) -> Iterator[EpisodeTask]:
        """Every task, in the server's order."""
        if self.config.split not in EXPORTED["splits"]:
            raise ValueError(f"there is no split {self.config.split!r}; there is: {', '.join(EXPORTED['splits'])}")
        for found in self.control().tasks(self.config.split):
            system, prompt = _prompt(found["messages"])
            data = EpisodeTaskData(id=found["id"], split=found["split"], prompt=prompt, system_prompt=system)
            yield EpisodeTask(data, self.config.task)

    def control(self) -> Control:
        """The control plane that these tasks come from."""
        return Control(EXPORTED, self.config.server, self.config.players, self.config.options)


def _prompt(messages: list[dict[str, Any]]) -> tuple[str | None, Any]:
    """System prompt and prompt: texts where the messages are one of each at most, as every harness can take them."""
    match [message["role"] for message in messages]:
        case ["user"]:
            return None, messages[0]["content"]
        case ["system", "user"]:
            return messages[0]["content"], messages[1]["content"]
    return None, [parse_message(message) for message in messages]

"""How one task becomes one rollout: it gets an episode of its own, and nothing of the server but that episode's URL."""

from __future__ import annotations

import asyncio

import verifiers.v1 as vf

from exported_env.exported import EXPORTED
from exported_env.playing import Seat
from exported_env.taskset import EpisodeTask


class EpisodeEnvConfig(vf.EnvConfig):
    """``--env.*``: the policy is ``agent``, in this process, for as many turns as the environment allows."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig(), max_turns=EXPORTED["max_turns"])


class EpisodeEnv(vf.Env[EpisodeEnvConfig]):
    """Gives every rollout its own episode, however many run at once."""

    async def start(self) -> None:
        """Refuse at once a server that is not there, or is not the one that was exported."""
        async with self.taskset.control().session() as session:
            await session.check()

    async def run(self, task: EpisodeTask, agents: vf.Agents) -> None:
        """Play one episode; it is closed however the rollout ends."""
        config = self.taskset.config
        async with self.taskset.control().session() as session:
            seat = Seat(session, task.data.id or "", None if config.fresh_seeds else config.seed)
            try:
                seated = await task.seated(seat)
                if EXPORTED["answers"]:
                    await self._converse(seated, agents, seat)
                else:
                    await agents.agent.run(seated)
            finally:
                await asyncio.shield(seat.close())

    async def _converse(self, task: EpisodeTask, agents: vf.Agents, seat: Seat) -> None:
        """Play where the environment answers as the user, until it has nothing more to say."""
        async with agents.agent.interaction(task) as rollout:
            segment = await rollout.turn()
            while not segment.terminated and (said := await seat.respond(rollout.trace)) is not None:
                segment = await rollout.turn(said)

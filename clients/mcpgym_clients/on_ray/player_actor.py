"""A part of an evaluation as a Ray actor: it plays what it is given, and each trace goes back as it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from mcpgym_clients.arena import Arena, open_arena
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.on_ray.cluster import SECRETS
from mcpgym_clients.signing import claims
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policy import Policy
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace


@dataclass(frozen=True, slots=True)
class Ended:
    """A rollout that ended: which of those that were given, its trace, and whether it only lost its episode."""

    place: int
    trace: Trace
    lost: bool = False


class PlayerActor:
    """Plays episodes as the process that asked would, with an arena and a policy of its own.

    Args:
        options: the evaluation's.
        variables: what its policy and its servers want of the environment (keys, the control secret).
    """

    def __init__(self, options: EvalOptions, variables: Mapping[str, str]) -> None:
        os.environ.update(variables)
        self._options = options
        self._stack = contextlib.AsyncExitStack()
        self._made: tuple[Arena, Policy] | None = None

    async def ready(self) -> None:
        """It has its place, and its arena and policy are made."""
        await self._begun()

    async def play(self, specs: Sequence[EpisodeSpec], limits: Limits) -> AsyncIterator[Ended | str]:
        """Each rollout as it ends; a text says why they ended early, and is the last.

        Raises:
            ConfigurationError: an episode cannot be opened as asked.
        """
        arena, policy = await self._begun()
        ended: asyncio.Queue[Ended | None] = asyncio.Queue()

        async def work() -> str | None:
            try:
                result = await run(
                    policy,
                    arena.lane,
                    specs,
                    concurrency=self._options.at_once,
                    limits=limits,
                    on_trace=lambda trace: ended.put_nowait(Ended(trace.place, trace)),
                    on_lost=lambda trace: ended.put_nowait(Ended(trace.place, trace, lost=True)),
                    keep_traces=False,
                )
                return result.failure
            finally:
                ended.put_nowait(None)

        working = asyncio.ensure_future(work())
        try:
            while (one := await ended.get()) is not None:
                yield one
            if (failure := await working) is not None:
                yield failure
        finally:
            working.cancel()

    async def _begun(self) -> tuple[Arena, Policy]:
        if self._made is None:
            options = self._options
            arena = await self._stack.enter_async_context(open_arena(options, signed=True))
            policy = make_policy(options.policy, arena.environment, **options.policy_options)
            arena.lane.claims = claims(policy.name, {**options.policy_options, "max_turns": options.max_turns})
            self._made = arena, policy
        return self._made


def passed_on() -> dict[str, str]:
    """The variables of this process that players elsewhere need; they travel as an argument, which no log shows."""
    names = (*SECRETS, "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
    return {name: os.environ[name] for name in names if name in os.environ}

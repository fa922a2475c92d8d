"""Transcripts of an environment, for the training of a tokenizer: what is said there, and what is said of mistakes."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from mcpgym.control import LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import EpisodeError
from mcpgym.messages import Message, assistant, tool_call
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies.random_calls import RandomCalls, sample
from mcpgym_rl.policies.reference import Reference
from mcpgym_rl.policy import EpisodeContext, Policy, PolicySession, Turn
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace

T = TypeVar("T")

STUMBLES = 0.1
"""How often a turn is replaced by a mistake."""
SKILL = 0.7
"""Of the teacher: weak enough that games take many courses."""
LIMITS = Limits(max_turns=30, seconds=60.0)
BLOCK = 60
"""How many rollouts are made before the clock is looked at."""
PATIENCE_SECONDS = 60.0
"""After this long no more of them are begun: an environment whose tools are slow has fewer transcripts."""


def make_transcripts(environment: Environment[Any, Any, Any], count: int, seed: int) -> list[Trace]:
    """Rollouts over the train split (else the first split there is), at most ``count``, some mistakes in them.

    They are played by the environment's teacher, where it has one, else by its reference policies in turn, else by
    random calls that its tools accept.

    Raises:
        EpisodeError: the environment broke in every one of them.
    """
    policies: list[Policy] = []
    if (teacher := environment.teacher(SKILL)) is not None:
        policies = [Reference("teacher", teacher)]
    policies = policies or [Reference(name, act) for name, act in environment.reference_policies().items()]
    policy = _Stumbling(policies or [RandomCalls()])
    split = "train" if "train" in environment.splits else environment.splits[0]
    if not (size := environment.size(split)):
        raise EpisodeError(f"{environment.name}: no transcript can be made: the split {split} has no task")
    specs = [
        EpisodeSpec(environment.name, split=split, index=place % size, seed=seed, repeat=place)
        for place in range(count)
    ]

    async def play() -> list[Trace]:
        lane = ControlLane(LocalControl(Episodes({environment.name: environment})))
        made: list[Trace] = []
        end = time.monotonic() + PATIENCE_SECONDS
        while len(made) < count and time.monotonic() < end:
            block = specs[len(made) : len(made) + BLOCK]
            made += (await run(policy, lane, block, concurrency=BLOCK, limits=LIMITS)).traces
        return made

    traces = in_own_loop(play)
    if not any(trace.scored for trace in traces):
        why = next((trace.error.message for trace in traces if trace.error is not None), "no episode was scored")
        raise EpisodeError(f"{environment.name}: no transcript could be made: {why}")
    return [trace for trace in traces if trace.turns]


def in_own_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of ``work`` on an event loop of its own, also where one is running already."""
    if not _is_running():
        return asyncio.run(work())
    made: list[T] = []
    failed: list[BaseException] = []

    def elsewhere() -> None:
        try:
            made.append(asyncio.run(work()))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=elsewhere, name="own loop")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


def _is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Stumbling:
    """Plays as the policies do, one a rollout, and now and then makes a mistake instead of its turn."""

    name = "stumbling"

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies

    def begin(self, context: EpisodeContext) -> PolicySession:
        random = Random(context.seed)
        return _StumblingSession(random.choice(self._policies).begin(context), context.tools, random)

    async def aclose(self) -> None:
        """Nothing is held."""


class _StumblingSession:
    def __init__(self, session: PolicySession, tools: Sequence[Mapping[str, Any]], random: Random) -> None:
        self._session, self._tools, self._random = session, tools, random

    async def act(self, messages: Sequence[Message]) -> Turn:
        if self._tools and self._random.random() < STUMBLES:
            return Turn(_mistake(self._tools, self._random))
        return await self._session.act(messages)

    async def aclose(self) -> None:
        await self._session.aclose()


def _mistake(tools: Sequence[Mapping[str, Any]], random: Random) -> Message:
    """A call that the environment may well refuse: any arguments, missing or mistyped ones, no JSON, no such tool."""
    tool = random.choice(tools)
    name, arguments = tool["name"], json.dumps(sample(tool["inputSchema"], random))
    match random.randrange(6):
        case 0 | 1 | 2:
            pass
        case 3:
            arguments = random.choice(("{}", json.dumps(dict.fromkeys(json.loads(arguments), "?"))))
        case 4:
            arguments = arguments[: random.randrange(len(arguments))]
        case _:
            name = f"{name[:-1]}_"
    return assistant("", [tool_call("call_0", name, arguments)])

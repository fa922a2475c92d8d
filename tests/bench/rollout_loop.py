"""What a rollout costs without its policy: the loop, the control plane in process, the environment, the trace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tests.bench.warmed_up import NAME

from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.messages import Message
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policy import EpisodeContext, Policy, PolicySession, Turn
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace


@dataclass(frozen=True)
class Loop:
    """CPU milliseconds a game and microseconds a turn."""

    games: int
    turns: int
    milliseconds_a_game: float
    microseconds_a_turn: float


class Recording:
    """Another policy, whose turns are kept by the seed of the rollout."""

    def __init__(self, policy: Policy) -> None:
        self.name = policy.name
        self.turns: dict[int, list[Turn]] = {}
        self._policy = policy

    def begin(self, context: EpisodeContext) -> PolicySession:
        """A session that keeps what the other's says."""
        kept = self.turns.setdefault(context.seed, [])
        inner = self._policy.begin(context)

        class Session:
            async def act(self, messages: Sequence[Message]) -> Turn:
                kept.append(await inner.act(messages))
                return kept[-1]

            async def aclose(self) -> None:
                await inner.aclose()

        return Session()

    async def aclose(self) -> None:
        """Nothing to close."""


class Replay:
    """Says what was recorded, at no cost."""

    name = "replay"

    def __init__(self, turns: dict[int, list[Turn]]) -> None:
        self._turns = turns

    def begin(self, context: EpisodeContext) -> PolicySession:
        """A session of turns that are there already."""
        turns = iter(self._turns[context.seed])

        class Session:
            async def act(self, messages: Sequence[Message]) -> Turn:
                return next(turns)

            async def aclose(self) -> None: ...

        return Session()

    async def aclose(self) -> None:
        """Nothing to close."""


def measure(policy: Policy, specs: Sequence[EpisodeSpec], rounds: int) -> tuple[Loop, list[Trace]]:
    """The games of ``specs`` as ``policy`` plays them, played again at no cost of its own; and those games."""
    lane = ControlLane(LocalControl(Episodes.of(NAME)))
    recording = Recording(policy)
    first = asyncio.run(run(recording, lane, specs, concurrency=len(specs)))
    spent = []
    for _ in range(rounds):
        started = time.process_time()
        again = asyncio.run(run(Replay(recording.turns), lane, specs, concurrency=len(specs)))
        spent.append(time.process_time() - started)
        if [trace.messages for trace in again.traces] != [trace.messages for trace in first.traces]:
            raise AssertionError("the same turns must make the same games")
    turns = sum(trace.turns for trace in first.traces)
    made = Loop(len(specs), turns, median(spent) / len(specs) * 1e3, median(spent) / turns * 1e6)
    return made, first.traces

"""Rollouts that are resumed mid-line: given turns are played, not asked for, and nothing of them counts as sampled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import rl_toys

from mcpgym.messages import Message, assistant
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies.script import ScriptedPolicy, ScriptedSession
from mcpgym_rl.policy import EpisodeContext, Tokens, Turn, Usage
from mcpgym_rl.rollout import Limits, rollout
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace

ADD = {"name": "add", "arguments": {"amount": 1}}
(GIVEN,) = (
    Turn(turn.message, usage=Usage(100, 10), tokens=Tokens([1, 2], [False, True], [0.0, -1.0]))
    for turn in ScriptedPolicy([ADD]).turns
)


class Watching(ScriptedPolicy):
    """A script that keeps what its sessions were told and shown."""

    def __init__(self, turns: Sequence[Any]) -> None:
        super().__init__(turns)
        self.contexts: list[EpisodeContext] = []
        self.shown: list[list[str]] = []

    def begin(self, context: EpisodeContext) -> ScriptedSession:
        self.contexts.append(context)
        watching = self

        class Session(ScriptedSession):
            async def act(self, messages: Sequence[Message]) -> Turn:
                watching.shown.append([message["role"] for message in messages])
                return await super().act(messages)

        return Session(self)


def play(policy: ScriptedPolicy, **options: Any) -> Trace:
    control = rl_toys.control()
    trace = asyncio.run(rollout(policy, ControlLane(control), environment="counter", split="train", **options))
    assert len(control.episodes) == 0
    assert Trace.from_dict(json.loads(trace.to_json())) == trace
    return trace


def test_given_turns_are_played_and_the_policy_takes_over_after_them() -> None:
    policy = Watching([ADD])
    trace = play(policy, given=[GIVEN, GIVEN])
    assert [call.result for call in trace.calls] == ["count 1", "count 2", "count 3"]
    assert (trace.stop_reason, trace.turns, trace.given_turns) == (StopReason.DONE, 3, 2)
    assert policy.shown == [["user", "assistant", "tool", "assistant", "tool"]]


def test_what_given_turns_cost_and_their_tokens_are_not_this_rollouts() -> None:
    trace = play(Watching([ADD]), given=[GIVEN, GIVEN])
    assert trace.tokens is None
    assert trace.usage.completion_tokens == 0
    sampled = Tokens([1, 2, 3, 4], [False, False, False, True], [0.0, 0.0, 0.0, -0.5], [0.0, 0.0, 0.0, 1.3])
    own = Turn(GIVEN.message, usage=Usage(4, 1), tokens=sampled)
    trace = play(Watching([own]), given=[GIVEN, GIVEN])
    assert trace.tokens is not None
    assert list(trace.tokens.ids) == [1, 2, 3, 4]
    assert list(trace.tokens.temperatures or ()) == [0.0, 0.0, 0.0, 1.3]
    assert (trace.usage.prompt_tokens, trace.usage.completion_tokens) == (4, 1)


def test_an_episode_that_ends_within_the_given_turns_asks_the_policy_nothing() -> None:
    policy = Watching([])
    trace = play(policy, given=[GIVEN] * 5)
    assert (trace.stop_reason, trace.turns, trace.given_turns) == (StopReason.DONE, 3, 3)
    assert policy.shown == []


def test_limits_hold_for_given_turns_too() -> None:
    trace = play(Watching([ADD]), given=[GIVEN] * 2, limits=Limits(max_turns=1))
    assert (trace.stop_reason, trace.turns, trace.given_turns) == (StopReason.MAX_TURNS, 1, 1)


def test_the_policy_is_told_what_is_given_and_the_temperatures() -> None:
    policy = Watching([ADD, ADD, ADD])
    specs = [
        EpisodeSpec("counter", split="train", index=0, given=[GIVEN], temperatures=[1.3]),
        EpisodeSpec("counter", split="train", index=1),
    ]
    result = asyncio.run(run(policy, ControlLane(rl_toys.control()), specs, concurrency=1))
    assert [(list(context.given), list(context.temperatures)) for context in policy.contexts] == [
        ([GIVEN], [1.3]),
        ([], []),
    ]
    assert [trace.given_turns for trace in result.traces] == [1, 0]


def test_a_given_turn_that_is_none_is_said_to_be_none() -> None:
    trace = play(Watching([ADD]), given=[assistant("no Turn")])
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.error is not None
    assert "must be a Turn" in trace.error.message

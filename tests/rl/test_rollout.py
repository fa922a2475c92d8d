"""The loop: what ends it, what each end means, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import rl_toys

from mcpgym.calls import CallResult
from mcpgym.control import Call, LocalControl
from mcpgym.errors import ConfigurationError, ServerUnavailable
from mcpgym.messages import Message, assistant, tool_call
from mcpgym_rl.failures import explain, uninterrupted
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.policy import ContextFull, EpisodeContext, PolicyError, Tokens, Turn, Usage
from mcpgym_rl.rollout import Limits, rollout
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace

ADD = {"name": "add", "arguments": {"amount": 1}}


def play(turns: Sequence[Any], environment: str = "counter", **options: Any) -> Trace:
    control = rl_toys.control()
    lane = ControlLane(control)
    policy = options.pop("policy", None) or ScriptedPolicy(turns)
    trace = asyncio.run(rollout(policy, lane, environment=environment, split="train", **options))
    assert len(control.episodes) == 0, "an episode was left open"
    json.loads(trace.to_json())
    return trace


def answers(trace: Trace) -> list[tuple[str, bool]]:
    return [(m["content"], m.get("is_error", False)) for m in trace.messages if m["role"] == "tool"]


def test_an_episode_that_its_rules_end_is_done_and_scored() -> None:
    trace = play([ADD, ADD, ADD], index=3, seed=9)
    assert trace.stop_reason == StopReason.DONE
    assert (trace.task, trace.split, trace.seed, trace.environment_version) == ("train-3", "train", 9, "7")
    assert trace.score is not None
    assert trace.score.components == {"reached": 1.0, "spoke": 0.0}
    assert trace.score.total == 1.0
    assert trace.error is None
    assert [(call.name, call.arguments, call.result) for call in trace.calls] == [
        ("add", {"amount": 1}, f"count {n}") for n in (1, 2, 3)
    ]
    assert [message["role"] for message in trace.messages] == ["user"] + ["assistant", "tool"] * 3
    assert trace.turns == 3


def test_an_answer_without_a_call_ends_the_rollout_where_the_environment_is_silent() -> None:
    trace = play(["I give up"])
    assert trace.stop_reason == StopReason.ANSWERED
    assert trace.score is not None
    assert trace.score.components == {"reached": 0.0, "spoke": 1.0}


def test_an_environment_may_answer_as_the_user() -> None:
    trace = play(["no", "yes"], "chat")
    assert [m["content"] for m in trace.messages] == ["Well?", "no", "Are you sure?", "yes"]
    assert (trace.stop_reason, trace.turns) == (StopReason.ANSWERED, 2)
    assert trace.score is not None
    assert trace.score.total == 1.0


def test_case_18_two_calls_in_one_turn_run_in_order_and_are_both_answered() -> None:
    trace = play([{"text": "both", "calls": [ADD, {"name": "add", "arguments": {"amount": 2}}]}])
    assert answers(trace) == [("count 1", False), ("count 3", False)]
    assert [m["tool_call_id"] for m in trace.messages if m["role"] == "tool"] == ["call_0", "call_1"]
    assert trace.stop_reason == StopReason.DONE


def test_case_18_a_call_without_a_name_is_an_error_that_the_policy_reads() -> None:
    trace = play([assistant("", [{}]), ADD, ADD, ADD])  # type: ignore[list-item]
    assert answers(trace)[0] == ('this tool call names no tool; expected {"name": "<tool>", "arguments": {…}}', True)
    assert trace.stop_reason == StopReason.DONE
    assert len(trace.calls) == 3, "what was malformed never crossed"


@pytest.mark.parametrize("arguments", ['{"amount": ', '{"amount": 1}{"amount": 1}', "[1]", '"1"', '{"amount": NaN}'])
def test_case_16_malformed_arguments_are_an_error_that_the_policy_reads_and_it_goes_on(arguments: str) -> None:
    trace = play([{"name": "add", "arguments": arguments}, ADD, ADD, ADD])
    text, flagged = answers(trace)[0]
    assert flagged
    assert text.startswith("the JSON of add's arguments ")
    assert trace.stop_reason == StopReason.DONE
    assert trace.messages[1]["tool_calls"][0]["function"]["arguments"] == arguments, "kept as it was written"


def test_a_second_call_with_the_same_id_is_answered_but_not_run() -> None:
    doubled = [tool_call("x", "add", '{"amount": 1}')] * 2
    trace = play([assistant("", doubled), ADD, ADD])
    assert answers(trace)[:2] == [
        ("count 1", False),
        ("another call of this turn has the id 'x' too; only the first was run", True),
    ]
    assert trace.stop_reason == StopReason.DONE


def test_calls_after_the_end_within_one_turn_are_answered_too() -> None:
    trace = play([{"calls": [{"name": "add", "arguments": {"amount": 5}}, ADD, ADD]}])
    assert answers(trace) == [("count 5", False), *[("this episode has ended (done); no more calls", True)] * 2]
    assert trace.stop_reason == StopReason.DONE


def test_case_24_a_tools_error_stays_an_error_in_the_trace() -> None:
    trace = play([{"name": "add", "arguments": {"amount": -1}}, {"name": "nope"}, "stop"])
    assert [call.is_error for call in trace.calls] == [True, True]
    assert answers(trace) == [
        ("amount must not be negative", True),
        ("there is no tool 'nope'; there is: add, wait, peek, explode", True),
    ]
    assert [call["is_error"] for call in json.loads(trace.to_json())["calls"]] == [True, True]


class Endless:
    """Calls ``peek`` for ever, ``calls`` times a turn."""

    name = "endless"

    def __init__(self, calls: int = 1, usage: Usage | None = None) -> None:
        self.calls = calls
        self.usage = usage or Usage()

    def begin(self, context: EpisodeContext) -> Endless:
        return self

    async def act(self, messages: Sequence[Message]) -> Turn:
        calls = [tool_call(f"c{i}", "peek", "{}") for i in range(self.calls)]
        return Turn(assistant("", calls), usage=self.usage)

    async def aclose(self) -> None:
        pass


def test_case_23_an_endless_tool_loop_ends_at_the_environments_own_limit() -> None:
    trace = play([], policy=Endless())
    assert (trace.stop_reason, len(trace.calls)) == (StopReason.MAX_TURNS, 12)
    assert trace.score is not None
    assert trace.score.total == 0.0


def test_case_23_the_limit_on_turns_counts_malformed_ones_too() -> None:
    trace = play([{"name": "add", "arguments": "{"}] * 50)
    assert (trace.stop_reason, trace.turns) == (StopReason.MAX_TURNS, 12)
    assert trace.calls == []


def test_case_23_limits_of_the_user_are_kept() -> None:
    assert play([], policy=Endless(), limits=Limits(max_turns=3)).turns == 3
    by_calls = play([], policy=Endless(calls=4), limits=Limits(max_calls=6))
    assert by_calls.stop_reason == StopReason.MAX_CALLS
    assert len(by_calls.calls) == 6
    assert answers(by_calls)[-2:] == [("not run: a rollout may have 6 tool calls", True)] * 2
    by_tokens = play([], policy=Endless(usage=Usage(100, 10)), limits=Limits(max_tokens=25))
    assert (by_tokens.stop_reason, by_tokens.turns) == (StopReason.TRUNCATED, 3)
    assert by_tokens.usage.completion_tokens == 30
    assert by_tokens.usage.prompt_tokens == 300


@pytest.mark.parametrize("wrong", [{"max_turns": 0}, {"seconds": -1.0}, {"max_tokens": float("nan")}])
def test_a_limit_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        Limits(**wrong)


def test_a_truncated_turn_ends_the_rollout_and_what_it_called_is_not_run() -> None:
    message = assistant("I will", [tool_call("a", "add", '{"amount": 3}')])
    trace = play([Turn(message, finish="length"), ADD])
    assert trace.stop_reason == StopReason.TRUNCATED
    assert trace.calls == []
    assert trace.messages[-1]["tool_calls"] == message["tool_calls"]
    assert trace.score is not None
    assert trace.score.components == {"reached": 0.0, "spoke": 1.0}


class Failing:
    """Fails in its second turn."""

    name = "failing"

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.closed = 0
        self.turn = 0

    def begin(self, context: EpisodeContext) -> Failing:
        return self

    async def act(self, messages: Sequence[Message]) -> Turn:
        self.turn += 1
        if self.turn == 2:
            raise self.error
        return Turn(assistant("", [tool_call("a", "peek", "{}")]))

    async def aclose(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PolicyError("the endpoint answered 500"), "the endpoint answered 500"),
        (IndexError("a bug of the policy"), "IndexError: a bug of the policy"),
        (TimeoutError(), "TimeoutError: TimeoutError"),
    ],
)
def test_case_29_a_policys_failure_is_unscored_with_its_reason_not_zero(error: Exception, text: str) -> None:
    policy = Failing(error)
    trace = play([], policy=policy)
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.score is None
    assert json.loads(trace.to_json())["score"] is None
    assert trace.error is not None
    assert trace.error.message == text
    assert policy.closed == 1
    assert trace.turns == 1, "what happened before is kept"


def test_a_full_context_is_the_policys_own_end() -> None:
    trace = play([], policy=Failing(ContextFull("8192 tokens at most")))
    assert trace.stop_reason == StopReason.TRUNCATED
    assert trace.score is not None


def test_a_script_that_runs_out_is_unscored_and_says_so() -> None:
    trace = play([ADD])
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.error is not None
    assert trace.error.message == "script has 1 turns, and the episode goes on after them"


@pytest.mark.parametrize("turn", [Turn({"role": "user", "content": "hm"}), Turn("x"), assistant("x"), None])  # type: ignore[arg-type]
def test_a_turn_that_is_no_assistant_message_is_the_policys_failure(turn: Any) -> None:
    class Odd(Endless):
        async def act(self, messages: Sequence[Message]) -> Turn:
            return turn  # type: ignore[no-any-return]

    trace = play([], policy=Odd())
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.error is not None
    assert "a turn must be a Turn with an assistant message" in trace.error.message


def test_what_fails_once_the_episode_is_open_is_recorded_whatever_its_kind() -> None:
    class Refusing(LocalControl):
        async def score(self, token: str, messages: Sequence[Message] | None = None) -> Any:
            raise ConfigurationError("messages[3]: needs a role")

    lane = ControlLane(Refusing(rl_toys.episodes()))
    trace = asyncio.run(rollout(ScriptedPolicy(["x"]), lane, environment="counter", split="train"))
    assert trace.stop_reason == StopReason.ENVIRONMENT_FAILED
    assert trace.error is not None
    assert trace.error.kind == "ConfigurationError"


@pytest.mark.parametrize(
    ("environment", "turns", "text"),
    [
        ("broken-reward", ["no", "yes"], "reward 'agreed' failed: ZeroDivisionError: no"),
        ("broken-reset", ["x"], "the board is missing"),
        ("counter", [{"name": "explode"}, "stop"], "explode failed: KeyError"),
    ],
)
def test_case_29_an_environments_failure_is_unscored_with_its_reason(environment: str, turns: Any, text: str) -> None:
    trace = play(turns, environment)
    assert trace.stop_reason == StopReason.ENVIRONMENT_FAILED
    assert trace.score is None
    assert trace.error is not None
    assert text in trace.error.message


class Severed(LocalControl):
    """Its server is gone after the first call."""

    async def step(self, calls: Sequence[Call]) -> list[CallResult]:
        made = await super().step(calls)
        self.step = self.gone  # type: ignore[method-assign]
        return made

    async def gone(self, calls: Sequence[Call]) -> list[CallResult]:
        raise ExceptionGroup("unhandled errors", [ExceptionGroup("more", [ServerUnavailable("connection refused")])])


def test_case_9_an_exception_group_becomes_a_sentence() -> None:
    trace = asyncio.run(
        rollout(
            ScriptedPolicy([ADD] * 3), ControlLane(Severed(rl_toys.episodes())), environment="counter", split="train"
        )
    )
    assert trace.error is not None
    assert (trace.error.kind, trace.error.message) == ("ServerUnavailable", "connection refused")
    assert trace.score is None
    assert (
        explain(ExceptionGroup("g", [ValueError("a"), ValueError("a"), ExceptionGroup("h", [OSError("b")])])) == "a; b"
    )


def test_an_episode_that_expires_under_its_policy_is_unscored() -> None:
    control = rl_toys.control()

    class Slow(Endless):
        async def act(self, messages: Sequence[Message]) -> Turn:
            (token,) = control.episodes._live
            await control.episodes.close(token, "expired after 1 s without a call")
            return await super().act(messages)

    trace = asyncio.run(rollout(Slow(), ControlLane(control), environment="counter", split="train"))
    assert trace.stop_reason == StopReason.ENVIRONMENT_FAILED
    assert trace.error is not None
    assert "expired after 1 s" in trace.error.message


def test_a_rollout_has_a_deadline() -> None:
    trace = play([{"name": "wait", "arguments": {"seconds": 20}}], limits=Limits(seconds=0.1))
    assert trace.stop_reason == StopReason.TIMED_OUT
    assert trace.score is None
    assert trace.error is not None
    assert trace.error.message == "the rollout took longer than 0.1 s; it was in turn 2"


@pytest.mark.parametrize(
    "wrong", [{"environment": "countre"}, {"split": "trian"}, {"index": 99}, {"config": {"goal": "x"}}]
)
def test_an_episode_that_cannot_be_is_the_users_error_and_names_the_fix(wrong: dict[str, Any]) -> None:
    asked = {"environment": "counter", "split": "train"} | wrong
    ended: list[Trace] = []
    with pytest.raises(ConfigurationError):
        asyncio.run(rollout(ScriptedPolicy([ADD]), ControlLane(rl_toys.control()), on_end=ended.append, **asked))
    assert ended == []


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.1])
def test_case_11_a_cancelled_rollout_closes_its_episode_and_is_recorded(delay: float) -> None:
    control = rl_toys.control()
    ended: list[Trace] = []
    policy = Failing(RuntimeError())
    waiting = ScriptedPolicy([{"name": "wait", "arguments": {"seconds": 30}}])

    async def main() -> None:
        task = asyncio.create_task(
            rollout(waiting, ControlLane(control), environment="counter", split="train", on_end=ended.append)
        )
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # an impatient user
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(control.episodes) == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert policy.closed == 0
    if delay:
        (trace,) = ended
        assert trace.stop_reason == StopReason.CANCELLED
        assert trace.score is None


def test_a_rollout_cancelled_while_it_is_only_being_closed_keeps_its_score() -> None:
    class SlowToClose(LocalControl):
        async def close(self, token: str) -> None:
            await asyncio.sleep(0.1)
            await super().close(token)

    control = SlowToClose(rl_toys.episodes())
    ended: list[Trace] = []

    async def main() -> None:
        lane = ControlLane(control)
        task = asyncio.create_task(
            rollout(ScriptedPolicy(["x"]), lane, environment="counter", split="train", on_end=ended.append)
        )
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert len(control.episodes) == 0
    assert ended[0].stop_reason == StopReason.ANSWERED
    assert ended[0].score is not None


def test_what_cleans_up_is_not_interrupted_by_a_second_cancellation() -> None:
    steps: list[str] = []

    async def cleaning() -> None:
        await asyncio.sleep(0.05)
        steps.append("cleaned")

    async def main() -> None:
        task = asyncio.create_task(uninterrupted(cleaning()))
        for _ in range(3):
            await asyncio.sleep(0.01)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert steps == ["cleaned"]


def test_tokens_and_usage_of_a_local_policy_are_in_the_trace() -> None:
    first = Turn(
        assistant("", [tool_call("a", "peek", "{}")]),
        usage=Usage(3, 2),
        tokens=Tokens([1, 2], [False, True], [0.0, -1.0]),
    )
    last = Turn(assistant("done"), usage=Usage(7, 1), tokens=Tokens([1, 2, 3], [False, True, True], [0.0, -1.0, -0.5]))
    trace = play([first, last])
    assert json.loads(trace.to_json())["tokens"] == {
        "ids": [1, 2, 3],
        "mask": [False, True, True],
        "logprobs": [0.0, -1.0, -0.5],
    }
    assert (trace.usage.prompt_tokens, trace.usage.completion_tokens) == (10, 3)
    assert "tokens" not in json.loads(play(["x"]).to_json())


def test_a_policy_sees_no_seed_of_the_episode_and_nothing_of_the_control_plane() -> None:
    seen: list[EpisodeContext] = []

    class Curious(ScriptedPolicy):
        def begin(self, context: EpisodeContext) -> Any:
            seen.append(context)
            return super().begin(context)

    play([], policy=Curious(["x"]), seed=41, repeat=0)
    play([], policy=Curious(["x"]), seed=41, repeat=1)
    play([], policy=Curious(["x"]), seed=41, repeat=1)
    assert all(context.seed != 41 for context in seen)
    assert seen[0].seed != seen[1].seed
    assert seen[1].seed == seen[2].seed
    assert {"environment", "tools", "seed", "given", "temperatures"} == set(type(seen[0]).__slots__)


def test_case_28_the_fingerprint_tells_equal_games_from_different_ones() -> None:
    thinking = {"text": "hm", **ADD}
    same = [play([ADD, ADD, ADD], seed=1), play([ADD, thinking, ADD], seed=1, repeat=1)]
    other = [play([ADD, {"name": "add", "arguments": {"amount": 2}}], seed=1), play([ADD, ADD, ADD], index=1)]
    assert same[0].fingerprint == same[1].fingerprint
    assert len({trace.fingerprint for trace in [*same, *other]}) == 3
    said = [play([text], "chat", limits=Limits(max_turns=1)) for text in ("yes", "no", "yes")]
    assert len({trace.fingerprint for trace in said}) == 2


def test_a_policy_that_changes_the_messages_it_is_given_does_not_change_the_transcript() -> None:
    class Vandal(Endless):
        async def act(self, messages: Sequence[Message]) -> Turn:
            assert isinstance(messages, list)
            messages.clear()
            return Turn(assistant("done"))

    assert len(play([], policy=Vandal()).messages) == 2


def test_arguments_reach_the_environment_as_they_were_written() -> None:
    control = rl_toys.control()
    arrived: list[Mapping[str, Any]] = []

    class Recording(LocalControl):
        async def step(self, calls: Sequence[Call]) -> list[CallResult]:
            arrived.extend(call.arguments for call in calls)
            return await control.step(calls)

        def __getattribute__(self, name: str) -> Any:
            return object.__getattribute__(self, name) if name in ("step", "__class__") else getattr(control, name)

    trace = asyncio.run(
        rollout(
            ScriptedPolicy([{"name": "add", "arguments": '{"amount": 1.0, "é": [true, null]}'}, "x"]),
            ControlLane(Recording(control.episodes)),
            environment="counter",
            split="train",
        )
    )
    assert arrived == [{"amount": 1.0, "é": [True, None]}]
    assert trace.calls[0].is_error

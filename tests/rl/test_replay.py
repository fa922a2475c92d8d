"""Replay: whatever a rollout was, the same turns on a fresh episode give it again, and what has changed is found."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rl_toys
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym import Environment, LazyTasks, Message, Task, load_environment, task_id
from mcpgym.control import LocalControl
from mcpgym.control_client import HttpControl
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError, EpisodeError, ServerUnavailable
from mcpgym.messages import assistant, tool_call, user
from mcpgym.serving import serving
from mcpgym_rl.lanes import ControlLane, Lane, McpLane
from mcpgym_rl.parse import parse
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.policy import ContextFull, EpisodeContext, Turn
from mcpgym_rl.replay import DifferenceKind, Replayed, Same, byte_for_byte, replay, replay_trace, rule_of
from mcpgym_rl.rollout import Limits, rollout
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceWriter, read_traces

CORPUS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "malformed_calls.json").read_text("utf-8"))
PEEK = {"name": "peek", "arguments": {}}
ADD = {"name": "add", "arguments": {"amount": 1}}


def through_a_file(trace: Trace) -> Trace:
    return Trace.from_dict(json.loads(trace.to_json()))


def toy_lane() -> ControlLane:
    return ControlLane(rl_toys.control())


def lane_over(*environments: Environment[Any, Any, Any]) -> ControlLane:
    return ControlLane(LocalControl(Episodes({environment.name: environment for environment in environments})))


def recorded(policy: Any, environment: str = "counter", lane: Lane | None = None, **options: Any) -> Trace:
    options = {"split": "train", **options}
    return through_a_file(asyncio.run(rollout(policy, lane or toy_lane(), environment=environment, **options)))


def replayed(trace: Trace, lane: Lane | None = None, same: Same = byte_for_byte, **options: Any) -> Replayed:
    return asyncio.run(replay_trace(trace, lane or toy_lane(), same=same, **options))


async def replay_all(traces: Sequence[Trace], lane: Lane, **options: Any) -> list[Replayed]:
    return [one async for one in replay(traces, lane, **options)]


# Equal.


def test_500_traces_of_three_environments_replay_equal(tmp_path: Path) -> None:
    names = {"tic-tac-toe": 300, "reverse-text": 100, "double-check": 100}
    environments = [load_environment(name) for name in names]

    async def play() -> None:
        lane = lane_over(*environments)
        with TraceWriter(tmp_path / "traces.jsonl") as writer:
            for environment in environments:
                for policy in ("random", "teacher:skill=0.6"):
                    half = names[environment.name] // 2
                    specs = [
                        EpisodeSpec(environment.name, split="train", index=index, seed=index % 7)
                        for index in range(half)
                    ]
                    await run(make_policy(policy, environment), lane, specs, on_trace=writer.write)

    asyncio.run(play())
    traces = read_traces(tmp_path / "traces.jsonl")
    assert len(traces) == 500
    assert all(trace.scored for trace in traces)
    found = asyncio.run(replay_all(traces, lane_over(*map(load_environment, names)), concurrency=7))
    assert [one.number for one in found] == list(range(500))
    assert [one.difference for one in found if not one.equal] == []
    assert [one.recorded for one in found] == traces
    assert all(one.replayed is not None and one.replayed.fingerprint == one.recorded.fingerprint for one in found)
    assert sum(one.observations for one in found) == sum(
        sum(message["role"] != "assistant" for message in trace.messages) for trace in traces
    )
    assert not any(one.notes for one in found)


DEEP: Any = "bottom"
for _ in range(70):
    DEEP = [DEEP]

SCRIPTS: dict[str, list[Any]] = {
    "arguments that are null": [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "peek", "arguments": None}}]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add"}}]},
    ],
    "arguments that are an object": [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add", "arguments": {"amount": 2}}}]}
    ],
    "tools that are not there": [{"name": "nothing", "arguments": {}}, {"name": "x" * 500}, PEEK],
    "arguments that are too deep": [{"name": "add", "arguments": {"amount": DEEP}}, PEEK],
    "wrong arguments": [{"name": "add", "arguments": {"amount": amount}} for amount in ("1", None, 1.5, True, 10**40)],
    "errors of a tool": [{"name": "add", "arguments": {"amount": -1}}, PEEK],
    "several calls": [{"text": "All at once.", "calls": [PEEK, ADD, PEEK, ADD, ADD, PEEK, PEEK]}],
    "an answer": ["That was all."],
    "thoughts and weights": [
        {**assistant("Hm.", [tool_call("c", "peek", "{}")]), "reasoning_content": "Let me see.", "weight": 0},
        ADD,
    ],
    "half characters": [assistant("\ud83d", [tool_call("\ud83d", "peek", "{}")])],
    "turns until the limit": [PEEK] * 12,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_any_turn_is_replayed_as_it_was(name: str) -> None:
    turns = SCRIPTS[name]
    trace = recorded(ScriptedPolicy(turns), seed=5, limits=Limits(max_turns=len(turns)))
    assert trace.scored, trace.error
    again = replayed(trace)
    assert again.equal, str(again.difference)
    assert again.replayed is not None
    assert [(call.name, call.arguments, call.result) for call in again.replayed.calls] == [
        (call.name, call.arguments, call.result) for call in trace.calls
    ]
    assert again.replayed.policy == trace.policy


@pytest.mark.parametrize("entry", CORPUS, ids=[entry["why"] for entry in CORPUS])
def test_malformed_calls_are_replayed_as_they_were(entry: dict[str, Any]) -> None:
    message = {"role": "assistant", "content": entry.get("text", ""), "tool_calls": entry.get("calls")}
    trace = recorded(ScriptedPolicy([message, PEEK]), limits=Limits(max_turns=2))
    assert replayed(trace).equal, str(replayed(trace).difference)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
CALL = ANYTHING | st.fixed_dictionaries(
    {"function": ANYTHING | st.fixed_dictionaries({"name": ANYTHING | st.just("add"), "arguments": ANYTHING})},
    optional={"id": ANYTHING | st.sampled_from(["c", "call_1"])},
)


@given(st.fixed_dictionaries({"content": ANYTHING, "tool_calls": ANYTHING | st.lists(CALL, max_size=4)}))
def test_what_is_tidied_once_is_read_alike_ever_after(message: Any) -> None:
    tidy, calls = parse(message)
    again, same_calls = parse(json.loads(json.dumps(tidy)))
    assert again == tidy
    assert same_calls == calls


ODD_CALL = st.builds(tool_call, st.just("c"), st.text(max_size=3), st.text(max_size=5))
TURN = (
    st.sampled_from([PEEK, ADD, {"name": "add", "arguments": {"amount": 0}}, {"name": "add", "arguments": {}}, "Well."])
    | st.builds(lambda calls: assistant("", calls), st.lists(ODD_CALL, max_size=3))
    | st.builds(lambda calls: {"calls": calls}, st.lists(st.sampled_from([PEEK, ADD]), min_size=1, max_size=4))
)
LIMITS = st.builds(Limits, max_turns=st.none() | st.integers(1, 6), max_calls=st.integers(1, 8))


@settings(deadline=None, max_examples=50)
@given(st.lists(TURN, max_size=8), LIMITS, st.sampled_from(["counter", "chat"]), st.integers(0, 3), st.data())
def test_any_rollout_replays_and_any_other_text_in_it_is_found(
    turns: list[Any], limits: Limits, environment: str, seed: int, data: st.DataObject
) -> None:
    trace = recorded(ScriptedPolicy(turns), environment, limits=limits, seed=seed)
    again = replayed(trace)
    assert again.equal, str(again.difference)
    own = [at for at, message in enumerate(trace.messages) if message["role"] != "assistant"]
    changed = data.draw(st.sampled_from(own))
    messages = list(trace.messages)
    messages[changed] = {**messages[changed], "content": messages[changed]["content"] + "."}
    found = replayed(replace(trace, messages=messages)).difference
    assert found is not None
    assert found.message == changed
    assert found.recorded.endswith(messages[changed]["content"])


# Every way to end.


def test_replies_of_the_environment_are_replayed() -> None:
    trace = recorded(ScriptedPolicy(["no", "yes"]), "chat")
    assert trace.stop_reason == StopReason.ANSWERED
    assert replayed(trace).equal


def test_given_turns_are_replayed_like_others() -> None:
    turns = ScriptedPolicy([PEEK, ADD]).turns
    trace = recorded(ScriptedPolicy([ADD, ADD]), given=turns)
    assert (trace.given_turns, trace.stop_reason) == (2, StopReason.DONE)
    assert replayed(trace).equal


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
def test_the_limit_on_calls_is_inferred_from_the_trace(most: int) -> None:
    turns = [{"text": "", "calls": [PEEK, {"name": "", "arguments": "x"}, PEEK, PEEK]}] * 2
    trace = recorded(ScriptedPolicy(turns), limits=Limits(max_calls=most))
    assert trace.stop_reason == StopReason.MAX_CALLS
    assert replayed(trace).equal, str(replayed(trace).difference)


def test_calls_beyond_the_limit_of_a_game_that_is_over_are_not_run_either() -> None:
    turns = [{"text": "", "calls": [{"name": "add", "arguments": {"amount": 3}}, PEEK]}]
    trace = recorded(ScriptedPolicy(turns), limits=Limits(max_calls=1))
    assert trace.stop_reason == StopReason.DONE
    assert replayed(trace).equal


@pytest.mark.parametrize("most", [1, 2, 12, 50])
def test_the_limit_on_turns_is_inferred_from_the_trace(most: int) -> None:
    trace = recorded(ScriptedPolicy([PEEK] * 60), limits=Limits(max_turns=most))
    assert trace.stop_reason == StopReason.MAX_TURNS
    assert trace.turns == min(most, 12)
    assert replayed(trace).equal


def test_a_turn_that_was_cut_off_is_not_acted_on_in_the_replay_either() -> None:
    (cut,) = ScriptedPolicy([ADD]).turns
    trace = recorded(ScriptedPolicy([*ScriptedPolicy([PEEK]).turns, replace(cut, finish="length")]))
    assert trace.stop_reason == StopReason.TRUNCATED
    again = replayed(trace)
    assert again.equal
    assert again.replayed is not None
    assert len(again.replayed.calls) == 1


class Full(ScriptedPolicy):
    """A script after which the context is full."""

    def begin(self, context: EpisodeContext) -> Any:
        session = super().begin(context)
        turns = iter(self.turns)

        async def act(messages: Sequence[Message]) -> Turn:
            if (turn := next(turns, None)) is None:
                raise ContextFull("no room")
            return turn

        session.act = act  # type: ignore[method-assign]
        return session


def test_a_context_that_was_full_is_full_again() -> None:
    trace = recorded(Full([PEEK, PEEK]))
    assert (trace.stop_reason, trace.turns) == (StopReason.TRUNCATED, 2)
    assert replayed(trace).equal


FOREVER = {"name": "wait", "arguments": {"seconds": 3_600.0}}
UNSCORED: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "cancelled in its first call": ([FOREVER], {}),
    "cancelled in the first call of a turn": ([PEEK, {"calls": [FOREVER, PEEK]}], {}),
    "cancelled in the second call of a turn": ([PEEK, {"calls": [PEEK, FOREVER, PEEK]}], {}),
    "timed out": ([PEEK, FOREVER], {"limits": Limits(seconds=0.1)}),
    "the policy failed": ([PEEK, PEEK], {}),
    "the environment broke": ([PEEK, {"name": "explode", "arguments": {}}, PEEK], {}),
    "the environment broke in the midst of a turn": ([{"calls": [{"name": "explode"}, {"name": "explode"}, PEEK]}], {}),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", UNSCORED)
def test_a_rollout_without_a_score_is_compared_as_far_as_it_goes(name: str) -> None:
    turns, options = UNSCORED[name]
    made: list[Trace] = []

    async def play() -> None:
        policy = ScriptedPolicy(turns)
        work = rollout(policy, toy_lane(), environment="counter", split="train", on_end=made.append, **options)
        task = asyncio.create_task(work)
        if name.startswith("cancelled"):
            await asyncio.sleep(0.1)
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(play())
    trace = through_a_file(made[0])
    assert not trace.scored
    again = replayed(trace)
    assert again.equal, str(again.difference)
    own = [at for at, message in enumerate(trace.messages) if message["role"] != "assistant"]
    assert again.observations == len(own)
    assert "it has no score" in again.notes[0]
    for at in own:
        messages = list(trace.messages)
        messages[at] = {**messages[at], "content": "another"}
        found = replayed(replace(trace, messages=messages)).difference
        assert found is not None
        assert found.message == at


def test_a_score_beside_an_error_is_compared_all_the_same() -> None:
    data = golden().to_dict() | {"error": {"kind": "Cancelled", "message": "by hand"}}
    assert replayed(Trace.from_dict(data)).equal
    found = replayed(Trace.from_dict(change(data, ("score", "total"), 9.0))).difference
    assert found is not None
    assert found.kind == DifferenceKind.SCORE


def test_a_rollout_whose_episode_never_opened_has_nothing_to_replay() -> None:
    trace = recorded(ScriptedPolicy([]), "broken-reset")
    again = replayed(trace)
    assert (again.equal, again.replayed, again.observations) == (True, None, 0)
    assert "never opened" in again.notes[0]


# Changes are found.


def golden(turns: Sequence[Any] = (PEEK, "Well.")) -> Trace:
    trace = recorded(ScriptedPolicy(list(turns)), limits=Limits(max_turns=len(turns)))
    assert trace.scored
    return trace


def change(data: dict[str, Any], path: Sequence[Any], value: Any) -> dict[str, Any]:
    data = json.loads(json.dumps(data))
    at: Any = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        (("schema_hash",), "0" * 64, DifferenceKind.TOOLS),
        (("messages", 0, "content"), "Count to the goal. Task 8.", DifferenceKind.PROMPT),
        (("messages", 0, "role"), "system", DifferenceKind.PROMPT),
        (("messages", 2, "content"), "count 0, drawn 1", DifferenceKind.OBSERVATION),
        (("messages", 2, "is_error"), True, DifferenceKind.OBSERVATION),
        (("messages", 2, "name"), "look", DifferenceKind.OBSERVATION),
        (("messages", 1, "tool_calls", 0, "function", "arguments"), '{"a": 1}', DifferenceKind.OBSERVATION),
        (("messages", 1, "tool_calls", 0, "function", "name"), "add", DifferenceKind.OBSERVATION),
        (("messages", 2, "role"), "user", DifferenceKind.OBSERVATION),
        (("seed",), 1, DifferenceKind.OBSERVATION),
        (("task",), "train-1", DifferenceKind.PROMPT),
        (("task",), "train-100000", DifferenceKind.OPENING),
        (("environment",), "nothing", DifferenceKind.OPENING),
        (("config", "goal"), -5, DifferenceKind.OBSERVATION),
        (("config", "goal"), [], DifferenceKind.OPENING),
        (("config", "other"), 1, DifferenceKind.OPENING),
        (("calls", 0, "result"), "count 0, drawn 1", DifferenceKind.CALLS),
        (("calls", 0, "is_error"), True, DifferenceKind.CALLS),
        (("messages", 2, "is_error"), 1, DifferenceKind.OBSERVATION),
        (("calls", 0, "arguments"), {"a": 1}, DifferenceKind.CALLS),
        (("calls", 0, "name"), "look", DifferenceKind.CALLS),
        (("calls",), [], DifferenceKind.CALLS),
        (("stop_reason",), "max_turns", DifferenceKind.END),
        (("stop_reason",), "done", DifferenceKind.END),
        (("score", "total"), 0.75, DifferenceKind.SCORE),
        (("score", "total"), None, DifferenceKind.SCORE),
        (("score", "components", "spoke"), 0.5, DifferenceKind.SCORE),
        (("score", "components"), {"spoke": 1.0}, DifferenceKind.SCORE),
        (("score", "components", "other"), 1.0, DifferenceKind.SCORE),
        (("score", "game_outcome"), "win", DifferenceKind.SCORE),
    ],
)
def test_any_single_change_of_what_a_trace_claims_is_found(
    path: Sequence[Any], value: Any, kind: DifferenceKind
) -> None:
    trace = golden()
    assert replayed(trace).equal
    found = replayed(Trace.from_dict(change(trace.to_dict(), path, value))).difference
    assert found is not None
    assert found.kind == kind, str(found)


def test_messages_that_are_missing_or_too_many_are_found() -> None:
    trace = golden([PEEK, PEEK, "Well."])
    assert replayed(trace).equal
    for at in range(len(trace.messages)):
        less = [*trace.messages[:at], *trace.messages[at + 1 :]]
        found = replayed(replace(trace, messages=less, prompt_messages=min(1, len(less)))).difference
        assert found is not None, f"without message {at}"
        more = [*trace.messages[:at], user("Ahem."), *trace.messages[at:]]
        found = replayed(replace(trace, messages=more)).difference
        assert found is not None, f"one more at {at}"
        assert found.message == at
    ended = replayed(replace(trace, messages=trace.messages[:-1])).difference
    assert ended is not None
    assert (ended.kind, ended.replayed) == (DifferenceKind.END, "the episode goes on")


def test_a_score_may_be_allowed_to_differ_a_little() -> None:
    trace = Trace.from_dict(change(golden().to_dict(), ("score", "components", "spoke"), 0.999))
    assert replayed(trace, score_tolerance=0.01).equal
    assert not replayed(trace, score_tolerance=0.0001).equal


def test_another_version_is_no_difference_but_is_said() -> None:
    again = replayed(replace(golden(), environment_version="6"))
    assert again.equal
    assert again.notes == ("it was recorded with version 6 of counter; this is version 7",)


def test_a_trace_that_no_rollout_leaves_is_refused() -> None:
    trace = golden()
    for messages, what in ((["x"], "str"), ([{"role": "user"}], "content"), ([{"role": "x", "content": ""}], "role")):
        with pytest.raises(ConfigurationError, match=rf"trace 3 cannot be replayed: messages\[0\].*{what}"):
            replayed(replace(trace, messages=messages), number=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="prompt_messages is 9, of 4 messages"):
        replayed(replace(trace, prompt_messages=9))


def test_another_statement_of_the_configuration_is_said() -> None:
    trace = golden()
    again = replayed(replace(trace, config={}))
    assert again.equal
    assert again.notes == ("the configuration is not stated as it was: goal",)


def test_the_document_names_every_kind_of_difference() -> None:
    document = (Path(__file__).parents[2] / "docs" / "replay.md").read_text("utf-8")
    rows = [line.split("`")[1] for line in document.split("| kind |")[1].splitlines() if line.startswith("| `")]
    assert rows == list(DifferenceKind)


# Environments that are not reproducible.


class Clock(Environment[Task, list[int]]):
    """Every text of it has a number that no two episodes share, and a word that all do."""

    name = "clock"
    reproducible = False
    ticks = 0

    def tasks(self, split: str) -> LazyTasks:
        return LazyTasks(5, lambda i: Task(task_id(split, i), split, (user("Well?"),)))

    def tell(self, word: str) -> str:
        Clock.ticks += 1
        return f"{word} {Clock.ticks}"

    def reset(self, task: Task, seed: int) -> list[int]:
        return []

    def messages(self, task: Task, state: list[int]) -> Sequence[Message]:
        return [user(self.tell("prompt"))]

    def respond(self, state: list[int], transcript: Any) -> Sequence[Message] | None:
        state.append(1)
        return [user(self.tell("reply"))] if len(state) < 3 else None

    def same_observation(self, recorded: str, replayed: str) -> bool:
        return recorded.split()[0] == replayed.split()[0]


def test_what_is_not_reproducible_is_compared_by_its_own_rule() -> None:
    clock = Clock()
    trace = recorded(ScriptedPolicy(["a", "b", "c"]), "clock", lane_over(clock))
    assert not replayed(trace, lane_over(clock)).equal
    again = replayed(trace, lane_over(clock), rule_of(clock))
    assert again.equal, str(again.difference)
    messages = [*trace.messages[:-2], user("other 5"), trace.messages[-1]]
    found = replayed(replace(trace, messages=messages), lane_over(clock), rule_of(clock)).difference
    assert found is not None
    assert (found.kind, found.message) == (DifferenceKind.REPLY, len(messages) - 2)


def test_nobody_asks_the_rule_of_a_reproducible_environment() -> None:
    class Sloppy(rl_toys.Counter):
        def same_observation(self, recorded: str, replayed: str) -> bool:
            return True

    assert rule_of(Sloppy()) is byte_for_byte


def test_a_rule_that_fails_is_the_environments_fault() -> None:
    class Failing(Clock):
        def same_observation(self, recorded: str, replayed: str) -> bool:
            raise KeyError("no")

    trace = recorded(ScriptedPolicy(["a"]), "clock", lane_over(Clock()), limits=Limits(max_turns=1))
    with pytest.raises(EpisodeError, match="clock: same_observation failed: KeyError"):
        replayed(trace, lane_over(Clock()), rule_of(Failing()))


# Many, and elsewhere.


def test_results_come_in_the_order_of_the_traces_however_long_each_takes() -> None:
    waits = [0.2, 0.0, 0.1, 0.0, 0.05]
    traces = [golden([{"name": "wait", "arguments": {"seconds": seconds}}]) for seconds in waits]
    found = asyncio.run(replay_all(traces, toy_lane(), concurrency=5))
    assert [one.number for one in found] == [0, 1, 2, 3, 4]
    assert all(one.equal for one in found)
    assert [one.recorded.calls[0].arguments["seconds"] for one in found] == waits


@pytest.mark.parametrize("client", ["thin", "official"])
def test_what_was_recorded_in_process_replays_over_mcp(client: Any) -> None:
    traces = [
        recorded(ScriptedPolicy(turns), seed=seed, limits=Limits(max_turns=len(turns)))
        for seed, turns in enumerate(SCRIPTS.values())
    ]

    async def over_mcp() -> list[Replayed]:
        async with serving(rl_toys.episodes()) as server:
            lane = McpLane(HttpControl(server.control_url, server.secret), client=client)
            try:
                return await replay_all(traces, lane)
            finally:
                await lane.aclose()

    found = asyncio.run(over_mcp())
    assert len(found) == len(SCRIPTS)
    assert [str(one.difference) for one in found if not one.equal] == []


def test_a_server_that_is_gone_ends_the_replay(tmp_path: Path) -> None:
    lane = ControlLane(HttpControl(f"unix:{tmp_path / 'nobody.sock'}", "s" * 32))
    with pytest.raises(ServerUnavailable, match=r"nobody\.sock"):
        asyncio.run(replay_all([golden()] * 3, lane))


def test_no_episode_is_left_open_when_the_replay_is_left_early() -> None:
    control = rl_toys.control()
    traces = [golden([{"name": "wait", "arguments": {"seconds": 0.05}}])] * 20

    async def first() -> None:
        replays = replay(traces, ControlLane(control), concurrency=8)
        async with contextlib.aclosing(replays):
            async for one in replays:
                assert one.number == 0
                break

    asyncio.run(first())
    assert len(control.episodes) == 0

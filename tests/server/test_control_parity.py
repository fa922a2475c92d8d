"""The control plane in process and over HTTP: the same results and the same errors, method by method."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from control_toys import Desk, desk, served
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym.control import Call, ControlPlane, LocalControl
from mcpgym.control_plane.codec import encode
from mcpgym.errors import McpgymError, UnknownNameError

ASK = [{"role": "user", "content": "Count."}]
TALK = [*ASK, {"role": "assistant", "content": "2, please \ud83d \U0001f600"}]
ODD_CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"arguments": "{'"}}, None]}

Script = Callable[[ControlPlane], Awaitable[Any]]


async def both(script: Script, **limits: Any) -> tuple[Any, Any]:
    """What ``script`` gives in process and over HTTP: a value, or the error's type and words."""

    async def outcome(control: ControlPlane) -> Any:
        try:
            return json.loads(encode(await script(control)))
        except McpgymError as error:
            names = (error.kind, error.name) if isinstance(error, UnknownNameError) else ()
            return type(error), str(error), names

    local = await outcome(LocalControl(desk(**limits)))
    async with served(desk(**limits)) as (_, control):
        return local, await outcome(control)


async def opened(control: ControlPlane, **more: Any) -> str:
    return (await control.open("desk", **{"split": "train", "index": 2, "seed": 5, **more})).token


def with_episode(act: Callable[[ControlPlane, str], Awaitable[Any]]) -> Script:
    async def script(control: ControlPlane) -> Any:
        return await act(control, await opened(control))

    return script


async def everything_opened(control: ControlPlane) -> Any:
    found = await control.open("desk", task="test-3", seed=-(2**70), config={"size": 4, "ceiling": 3})
    return {**json.loads(encode(found)), "token": "", "url": ""}


async def a_limit_and_the_log(control: ControlPlane) -> Any:
    token = await opened(control, max_turns=2)
    await control.step([Call(token, "add", {"number": 2}), Call(token, "ad", {"number": 2}), Call(token, "add", {})])
    logged = await control.calls(token)
    return [record[:4] for record in logged], await control.status(token)


async def every_kind_of_call(control: ControlPlane) -> Any:
    token, other = await opened(control), await opened(control)
    await control.close(other)
    return await control.step(
        [
            Call(token, "add", {"number": 2}),
            Call(token, "add", {"number": 2.0}, "key-1"),
            Call(token, "add", {"number": 2}, "key-1"),
            Call(token, "add", {"number": 3}, "key-1"),
            Call(token, "add", {"number": True}),
            Call(token, "add", {"number": -1}),
            Call(token, "add", {"nummer": 1}),
            Call(token, "add", ["no", "object"]),  # type: ignore[arg-type]
            Call(token, "ad", {}),
            Call(token, "wait", {"seconds": 0.01}),
            Call(token, "log", {}),
            Call(other, "add", {"number": 1}),
            Call("0" * 32, "add", {"number": 1}),
            Call("../../health", "add", {"number": 1}),
            Call(token, "add", {"number": 10**30}),
            Call(token, "add", {"number": 1}),
            Call(token, "\ud800", {"\ud800": "\ud800"}),
        ]
    )


async def a_broken_episode(control: ControlPlane) -> Any:
    token = await opened(control)
    results = await control.step([Call(token, "crash", {})])
    return [results, await control.status(token)]


async def life(control: ControlPlane) -> Any:
    token = await opened(control)
    seen = [await control.status(token), await control.step([Call(token, "add", {"number": 2})])]
    seen += [await control.respond(token, TALK), await control.respond(token, TALK), await control.status(token)]
    seen += [
        await control.score(token),
        await control.score(token, TALK),
        await control.score(token, [*TALK, ODD_CALL]),
    ]
    await control.close(token)
    await control.close(token)
    return [*seen, await control.status(token)]


def failing(name: str, *arguments: Any, **more: Any) -> Script:
    async def script(control: ControlPlane) -> Any:
        return await getattr(control, name)(*arguments, **more)

    return script


async def score_after(control: ControlPlane, *calls: tuple[str, dict[str, Any]], messages: Any = None) -> Any:
    token = await opened(control)
    await control.step([Call(token, name, arguments) for name, arguments in calls])
    return await control.score(token, messages)


async def ended(control: ControlPlane, act: Callable[[str], Awaitable[Any]]) -> Any:
    token = await opened(control)
    await control.close(token)
    return await act(token)


SAME: dict[str, Script] = {
    "environments": lambda c: c.environments(),
    "tasks": lambda c: c.tasks("desk", "train"),
    "tasks, a page": lambda c: c.tasks("desk", "test", offset=3, limit=4),
    "tasks, past the end": lambda c: c.tasks("desk", "test", offset=30, limit=4),
    "tasks, none": lambda c: c.tasks("desk", "test", limit=0),
    "tasks, over a client's page": lambda c: c.tasks("desk", "test", limit=2_345, config={"size": 2_500}),
    "tasks, all of several pages": lambda c: c.tasks("desk", "test", offset=1, limit=9_000, config={"size": 2_000}),
    "open": everything_opened,
    "a limit, and the log": a_limit_and_the_log,
    "step": every_kind_of_call,
    "step, nothing": lambda c: c.step([]),
    "a broken episode": a_broken_episode,
    "a whole life": life,
}
FAILS: dict[str, Script] = {
    "tasks, no environment": failing("tasks", "desc", "train"),
    "tasks, an environment like a path": failing("tasks", "../x/é?&#%2F", "train"),
    "tasks, no split": failing("tasks", "desk", "valid"),
    "tasks, below 0": failing("tasks", "desk", "train", offset=-1),
    "tasks, too many": failing("tasks", "desk", "train", limit=10_001),
    "tasks, negative limit": failing("tasks", "desk", "train", limit=-1),
    "tasks, no such field": failing("tasks", "desk", "train", config={"sise": 1}),
    "open, no environment": failing("open", "desks", split="train"),
    "open, no task": failing("open", "desk", task="train-10"),
    "open, nothing said": failing("open", "desk"),
    "open, said twice": failing("open", "desk", task="train-1", split="train"),
    "open, no index": failing("open", "desk", split="train", index=10),
    "open, below 0": failing("open", "desk", split="train", index=-1),
    "open, no such field": failing("open", "desk", split="train", config={"colour": "red"}),
    "open, no such value": failing("open", "desk", split="train", config={"size": "many"}),
    "open, no turns": failing("open", "desk", split="train", max_turns=0),
    "open, a broken reset": failing("open", "desk", split="train", seed=666),
    "status, no episode": failing("status", "0" * 32),
    "status, no token at all": failing("status", "../health"),
    "score, no episode": failing("score", "0" * 32),
    "respond, no episode": failing("respond", "0" * 32, ASK),
    "calls, no episode": failing("calls", "0" * 32),
    "calls, ended": lambda c: ended(c, c.calls),
    "close, no episode": failing("close", "0" * 32),
    "close, an empty token": failing("close", ""),
    "score, ended": lambda c: ended(c, c.score),
    "respond, ended": lambda c: ended(c, lambda token: c.respond(token, ASK)),
    "score, broke": lambda c: score_after(c, ("crash", {})),
    "score, a reward that is not finite": lambda c: score_after(c, ("add", {"number": 99})),
    "score, a role that is none": lambda c: score_after(c, messages=[{"role": "robot", "content": ""}]),
    "score, no text": lambda c: score_after(c, messages=[*ASK, {"role": "assistant", "content": None}]),
    "score, no message": lambda c: score_after(c, messages=["hello"]),
    "respond, broke": with_episode(lambda c, t: c.respond(t, [{"role": "assistant", "content": "break"}])),
}


@pytest.mark.parametrize("case", SAME)
def test_both_lanes_give_the_same(case: str) -> None:
    local, remote = asyncio.run(both(SAME[case]))
    assert not isinstance(local, tuple), local
    assert remote == local


def test_an_episode_opened_with_a_limit_ends_there_and_its_log_is_told() -> None:
    logged, status = asyncio.run(a_limit_and_the_log(LocalControl(desk())))
    assert [record[0] for record in logged] == ["add", "ad"]
    assert (status.stop_reason, status.turns) == ("max_turns", 2)


@pytest.mark.parametrize("case", FAILS)
def test_both_lanes_raise_the_same(case: str) -> None:
    local, remote = asyncio.run(both(FAILS[case]))
    assert isinstance(local, tuple), f"nothing was raised: {local}"
    assert remote == local


def test_both_lanes_refuse_alike_what_is_over_the_cap() -> None:
    async def two(control: ControlPlane) -> Any:
        await opened(control)
        return await opened(control)

    local, remote = asyncio.run(both(two, live=1))
    assert local[0].__name__ == "TooManyEpisodes"
    assert remote == local


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["add", "log", "", "é"]), json_values), max_size=24))
def test_whatever_a_policy_sends_is_answered_alike(sent: list[tuple[str, Any]]) -> None:
    async def script(control: ControlPlane) -> Any:
        token = await opened(control)
        return await control.step([Call(token, name, value) for name, value in sent])

    local, remote = asyncio.run(both(script))
    assert remote == local


def test_a_batch_larger_than_one_request_is_answered_in_order() -> None:
    async def script(control: ControlPlane) -> Any:
        tokens = [await opened(control) for _ in range(3)]
        calls = [Call(tokens[n % 3], "add", {"number": n % 2}) for n in range(9_000)]
        return [await control.step(calls), [await control.status(token) for token in tokens]]

    local, remote = asyncio.run(both(script))
    assert len(local[0]) == 9_000
    assert remote == local


def test_arguments_that_no_json_can_carry_fail_one_call_and_not_its_batch() -> None:
    async def script() -> None:
        async with served() as (_, control):
            token = await opened(control)
            circle: dict[str, Any] = {}
            circle["self"] = circle
            bad = [{"number": float("nan")}, {"number": {1, 2}}, circle, {"number": float("inf")}]
            results = await control.step(
                [*(Call(token, "add", arguments) for arguments in bad), Call(token, "add", {"number": 1})]
            )
            assert [result.is_error for result in results] == [True] * 4 + [False]
            assert all("not JSON" in result.text for result in results[:4])
            assert results[-1].text == "1"

    asyncio.run(script())


def test_what_is_hidden_in_a_task_never_crosses() -> None:
    async def script() -> str:
        async with served() as (_, control):
            found = [await control.tasks("desk", "train"), await control.open("desk", split="train", index=3)]
            return encode(found).decode()

    assert "hidden" not in asyncio.run(script())
    assert Desk().task("train-3").info == {"hidden": 3}

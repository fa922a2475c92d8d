"""Calls of one episode: one at a time, in order, once for each wish, bounded in time, and never an exception."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest
from episode_toys import Lab, opened

from mcpgym import ToolError
from mcpgym.calls import CallResult
from mcpgym.episode import MAX_CALLS
from mcpgym.errors import EpisodeEnded, EpisodeError, RewardError
from mcpgym.messages import assistant, user
from mcpgym.twins import MAX_KEYS


def test_calls_run_one_at_a_time_in_order_of_arrival():
    async def main():
        _, episode = await opened()
        episode.state.gate.set()
        calls = [
            episode.call("block", {"what": "a"}),
            episode.call("now", {"what": "b"}),
            episode.call("wait", {"seconds": 0.01}),
            episode.call("block", {"what": "c"}),
            episode.call("now", {"what": "d"}),
        ]
        await asyncio.gather(*calls)
        return episode

    episode = asyncio.run(main())
    order = ["begin a", "end a", "now b", "begin wait", "end wait", "begin c", "end c", "now d"]
    assert episode.state.log == order
    assert episode.state.most_inside == 1
    assert [record.name for record in episode.calls] == ["block", "now", "wait", "block", "now"]
    assert episode.turns == 5


def test_an_equal_call_in_flight_gets_its_twins_answer_and_runs_once():
    async def main():
        _, episode = await opened()
        results = await asyncio.gather(*(episode.call("wait", {"seconds": 0.02}) for _ in range(6)))
        return episode, results

    episode, results = asyncio.run(main())
    assert episode.state.log == ["begin wait", "end wait"]
    assert set(results) == {CallResult("waited")}
    assert len(episode.calls) == 1


def test_equal_calls_one_after_another_both_run():
    async def main():
        _, episode = await opened()
        return [(await episode.call("now", {"what": "a"})).text for _ in range(3)]

    assert asyncio.run(main()) == ["1", "2", "3"]


def test_equal_calls_with_two_keys_are_two_calls():
    async def main():
        _, episode = await opened()
        await asyncio.gather(*(episode.call("wait", {"seconds": 0.01}, key=key) for key in ("k1", "k2", "k1")))
        return episode.state.log

    assert asyncio.run(main()) == ["begin wait", "end wait"] * 2


@pytest.mark.parametrize("name", ["now", "wait"])
def test_a_repeated_key_gets_the_first_answer_and_another_call_with_it_is_refused(name):
    async def main():
        _, episode = await opened()
        arguments = {"what": "a"} if name == "now" else {"seconds": 0.0}
        first = await episode.call(name, arguments, key="k")
        again = await episode.call(name, dict(arguments), key="k")
        assert first == again
        assert len(episode.calls) == 1
        other = await episode.call("now", {"what": "b"}, key="k")
        assert other.is_error
        assert "belongs to another call" in other.text
        assert len(episode.calls) == 1

    asyncio.run(main())


def test_a_key_that_joined_a_call_in_flight_is_remembered_too():
    async def main():
        _, episode = await opened()
        one = asyncio.create_task(episode.call("wait", {"seconds": 0.02}))
        await asyncio.sleep(0)
        joined = await episode.call("wait", {"seconds": 0.02}, key="k")
        assert await one == joined
        assert await episode.call("wait", {"seconds": 0.02}, key="k") == joined
        return episode.state.log

    assert asyncio.run(main()) == ["begin wait", "end wait"]


def test_a_key_in_flight_is_refused_to_another_call():
    async def main():
        _, episode = await opened()
        one = asyncio.create_task(episode.call("wait", {"seconds": 0.02}, key="k"))
        await asyncio.sleep(0)
        other = await episode.call("now", {"what": "x"}, key="k")
        assert other.is_error
        assert not (await one).is_error
        return episode.state.log

    assert asyncio.run(main()) == ["begin wait", "end wait"]


def test_keys_are_bounded():
    async def main():
        _, episode = await opened()
        for number in range(MAX_KEYS + 5):
            await episode.call("now", {}, key=f"k{number}")
        assert len(episode._twins._answers) == MAX_KEYS
        assert (await episode.call("now", {}, key=f"k{MAX_KEYS + 4}")).text == f"{MAX_KEYS + 5}"

    asyncio.run(main())


@pytest.mark.flaky(reruns=1)  # it measures time
def test_case_12_a_call_on_the_loop_ends_at_its_time_limit():
    async def main():
        _, episode = await opened()
        started = time.monotonic()
        result = await episode.call("forever", {})
        assert time.monotonic() - started < 30
        assert result == CallResult("forever did not finish within 0.1 s and was stopped", is_error=True)
        assert (await episode.call("now", {})).text == "1"
        assert episode.failure is None

    asyncio.run(main())


def test_case_12_a_call_in_a_thread_ends_at_its_time_limit_and_later_ones_wait_for_the_thread():
    async def main():
        _, episode = await opened()
        state = episode.state
        late = await episode.call("overrun", {})
        assert late.is_error
        assert "did not finish within 0.15 s" in late.text
        assert state.looked_while_busy == 0, "nobody looks at a state that a thread is changing"
        waiting = [asyncio.create_task(episode.call("now", {"what": "after"}))]
        waiting.append(asyncio.create_task(episode.call("now", {"what": 4})))
        await asyncio.sleep(0.1)
        assert state.log == ["begin overrun"]
        state.gate.set()
        results = await asyncio.gather(*waiting)
        assert [result.is_error for result in results] == [False, True]
        assert state.log == ["begin overrun", "end overrun", "now after", "invalid now, 0 inside"]
        assert state.most_inside == 1
        assert state.looked_while_busy == 0

    asyncio.run(main())


def test_a_call_behind_a_stuck_thread_ends_at_its_own_time_limit():
    async def main():
        _, episode = await opened()
        await episode.call("overrun", {})
        result = await episode.call("forever", {})
        assert result.is_error
        assert "an earlier call is still running" in result.text
        assert episode.state.log == ["begin overrun"]
        with pytest.raises(EpisodeError, match="still running"):
            await episode.score(None)
        episode.state.gate.set()
        assert (await episode.score(None)).total == 1.0

    asyncio.run(main())


def test_what_a_late_thread_did_ends_the_episode_as_soon_as_it_is_over():
    async def main():
        _, episode = await opened()
        await episode.call("overrun", {})
        episode.state.done = True
        waiting = asyncio.create_task(episode.call("now", {}))
        await asyncio.sleep(0.02)
        assert episode.stop_reason is None
        episode.state.gate.set()
        result = await waiting
        assert result.is_error
        assert result.done
        assert episode.stop_reason == "done"
        assert episode.state.log == ["begin overrun", "end overrun"]

    asyncio.run(main())


def test_a_stuck_thread_does_not_keep_the_process_alive():
    before = {thread.ident for thread in threading.enumerate()}

    async def main():
        _, episode = await opened()
        await episode.call("overrun", {})
        return episode.state

    state = asyncio.run(main())
    assert all(thread.daemon for thread in threading.enumerate() if thread.ident not in before)
    state.gate.set()


def test_case_11_a_call_whose_caller_has_gone_is_cancelled_and_lets_go():
    async def main():
        _, episode = await opened()
        caller = asyncio.create_task(episode.call("wait", {"seconds": 30}))
        await asyncio.sleep(0.02)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        result = await episode.call("now", {"what": "next"})
        assert not result.is_error
        assert episode.state.log == ["begin wait", "let go", "now next"]
        assert [record.is_error for record in episode.calls] == [True, False]
        assert not episode.busy

    asyncio.run(main())


def test_a_call_goes_on_while_one_of_its_callers_is_there():
    async def main():
        _, episode = await opened()
        callers = [asyncio.create_task(episode.call("wait", {"seconds": 0.05})) for _ in range(3)]
        await asyncio.sleep(0.01)
        callers[0].cancel()
        callers[1].cancel()
        assert await callers[2] == CallResult("waited")
        assert episode.state.log == ["begin wait", "end wait"]

    asyncio.run(main())


def test_a_retry_right_after_a_cancelled_call_runs_anew():
    async def main():
        _, episode = await opened()
        caller = asyncio.create_task(episode.call("wait", {"seconds": 0.05}))
        await asyncio.sleep(0.01)
        caller.cancel()
        await asyncio.sleep(0)
        assert await episode.call("wait", {"seconds": 0.05}) == CallResult("waited")
        assert episode.state.log == ["begin wait", "let go", "begin wait", "end wait"]

    asyncio.run(main())


def test_a_call_that_waits_for_its_turn_and_is_given_up_never_begins():
    async def main():
        _, episode = await opened()
        first = asyncio.create_task(episode.call("wait", {"seconds": 0.03}))
        second = asyncio.create_task(episode.call("block", {"what": "b"}))
        await asyncio.sleep(0.01)
        second.cancel()
        await first
        await asyncio.sleep(0.01)
        assert episode.state.log == ["begin wait", "end wait"]
        assert not episode.busy

    asyncio.run(main())


@pytest.mark.parametrize("tool", ["crash", "crash_async", "crash_thread"])
@pytest.mark.parametrize("how", ["error", "exit", "timeout", "stop", "cancelled", "object"])
def test_case_29_a_crashing_tool_leaves_the_episode_unscored_and_tells_the_policy_nothing(tool, how):
    async def main():
        _, episode = await opened()
        result = await episode.call(tool, {"how": how})
        assert result.is_error
        assert result.text == f"{tool} failed inside the environment"
        assert episode.failure
        assert tool in episode.failure
        with pytest.raises(EpisodeError, match="no score, the environment broke"):
            await episode.score([assistant("x")])
        first = episode.failure
        await episode.call(tool, {"how": "error"})
        assert episode.failure == first, "the first failure is the one to look for"

    asyncio.run(main())


@pytest.mark.parametrize("tool", ["crash", "crash_async", "crash_thread"])
def test_a_tool_error_is_read_by_the_policy_and_breaks_nothing(tool):
    async def main():
        _, episode = await opened()
        assert await episode.call(tool, {"how": "tool error"}) == CallResult("cell 4 is taken", is_error=True)
        assert episode.failure is None
        assert (await episode.score(None)).total == 1.0
        assert episode.calls[0].is_error

    asyncio.run(main())


@pytest.mark.parametrize(
    ("how", "text"), [("nothing", ""), ("number", "7"), ("é", '["é"]'), ("surrogate", "file \\udcff")]
)
def test_an_answer_is_text_that_can_be_sent(how, text):
    async def main():
        _, episode = await opened()
        result = await episode.call("crash", {"how": how})
        assert result == CallResult(text)
        result.text.encode()

    asyncio.run(main())


class Silent(Lab):
    def invalid_arguments(self, bench, tool, problem):
        bench.log.append("noted")  # and forgets to return the problem


def test_invalid_arguments_that_give_no_text_are_the_environments_failure():
    async def main():
        episodes, _ = await opened()
        episodes.environments["lab"] = Silent()
        episode = await episodes.open("lab", split="train")
        result = await episode.call("now", {"what": 1})
        assert result.text == "now failed inside the environment"
        assert "invalid_arguments gave NoneType" in episode.failure

    asyncio.run(main())


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


HOSTILE = [
    None, [], "text", 4, [1], {"what": deep(50)}, {"what": deep(500)}, {"what": deep(90_000)}, {"what": float("nan")},
    {"what": "\ud800"}, {"\ud800": 1}, {"what": "x" * 10**6}, {"what": 10**400},
    {"what": {"a": [None]}},    {"": ""}, {"what": b"bytes"}, {"what": object()}, {1: 2}, {None: None, "what": "x"},
]  # fmt: skip


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize(
    "name", ["now", "block", "wait", "no_such", "", "\ud800", "x" * 10**5, "__init__", "is_done", "reset"]
)
def test_case_16_and_26_no_call_raises_whatever_is_sent_and_guessing_gains_nothing(name, key):
    async def main():
        _, episode = await opened()
        episode.state.gate.set()
        for number, arguments in enumerate(HOSTILE):
            result = await episode.call(name, arguments, key and f"{key}{number}")
            assert isinstance(result.text, str)
            assert len(result.text.encode()) < 5_000 or not result.is_error
            assert result.is_error or name in Lab.tools
        assert episode.failure is None
        assert all(len(record.name) <= 100 for record in episode.calls)

    asyncio.run(main())


def test_calls_after_the_end_are_refused_and_not_counted():
    async def main():
        episodes, episode = await opened()
        assert (await episode.call("finish", {})).done
        for name in ("now", "block", "no_such"):
            result = await episode.call(name, {})
            assert (result.is_error, result.done) == (True, True)
            assert "this episode has ended (done)" in result.text
        assert len(episode.calls) == episode.turns == 1
        assert (await episode.score(None)).total == 1.0
        await episodes.close(episode.token)
        for name in ("now", "block", "no_such"):
            assert await episode.call(name, {}) == CallResult(
                "this episode has ended: closed", is_error=True, done=True
            )
        with pytest.raises(EpisodeEnded):
            await episode.score(None)
        with pytest.raises(EpisodeEnded):
            await episode.respond([])

    asyncio.run(main())


def test_case_23_turns_are_limited_by_the_environment():
    async def main():
        _, episode = await opened(turns=3)
        results = [await episode.call("now", {}) for _ in range(2)]
        assert [result.done for result in results] == [False, False]
        assert (await episode.respond([assistant("hm")])) == [user("go on")]
        assert episode.stop_reason == "max_turns"
        assert (await episode.call("now", {})).done
        assert await episode.respond([assistant("hm")]) is None

    asyncio.run(main())


def test_case_23_an_endless_loop_of_calls_ends_at_a_limit_of_ours():
    async def main():
        _, episode = await opened()
        for number in range(MAX_CALLS + 50):
            result = await episode.call("no_such" if number % 2 else "now", {})
        assert result.done
        assert episode.stop_reason == "max_turns"
        assert len(episode.calls) == MAX_CALLS

    asyncio.run(main())


def test_a_turn_that_ends_the_episode_at_the_limit_is_done_not_cut_off():
    async def main():
        _, episode = await opened(turns=1)
        await episode.call("finish", {})
        return episode.stop_reason

    assert asyncio.run(main()) == "done"


def test_an_episode_that_is_over_from_the_start_answers_nothing():
    async def main():
        _, episode = await opened(seed=99)
        assert episode.done
        assert (await episode.call("now", {})).done
        assert episode.state.log == []

    asyncio.run(main())


@pytest.mark.flaky(reruns=1)  # it measures time
def test_the_log_has_every_call_as_it_was_answered():
    async def main():
        _, episode = await opened()
        await episode.call("now", {"what": "a"})
        await episode.call("now", {"wat": 1})
        await episode.call("nope", None)
        return episode

    episode = asyncio.run(main())
    rows = [(record.name, dict(record.arguments), record.is_error) for record in episode.calls]
    assert rows == [("now", {"what": "a"}, False), ("now", {"wat": 1}, True), ("nope", {}, True)]
    assert all(0 <= record.milliseconds < 1000 for record in episode.calls)
    assert "there is no tool 'nope'; there is: now, block" in episode.calls[2].text
    json.dumps([record.text for record in episode.calls])


def test_respond_ends_goes_on_or_fails_loudly():
    async def main():
        _, episode = await opened()
        assert await episode.respond([assistant("hello")]) == [user("go on")]
        assert await episode.respond([assistant("bye")]) is None
        assert episode.stop_reason == "answered"
        assert (await episode.call("now", {})).done
        for word in ("crash", "text"):
            _, broken = await opened()
            with pytest.raises(EpisodeError, match="respond failed"):
                await broken.respond([assistant(word)])
            with pytest.raises(EpisodeError, match="the environment broke"):
                await broken.score(None)

    asyncio.run(main())


class Judged(Lab):
    verdict: object = "win"

    def game_outcome(self, bench):
        if self.verdict == "crash":
            raise KeyError("x")
        return self.verdict


@pytest.mark.parametrize("verdict", ["win", "draw", "loss", None, "won", 1, "crash"])
def test_a_games_outcome_is_one_of_three_or_none(verdict):
    async def main():
        episodes, _ = await opened()
        made = Judged()
        made.verdict = verdict
        episodes.environments["lab"] = made
        episode = await episodes.open("lab", split="train")
        if verdict in ("win", "draw", "loss", None):
            assert (await episode.score(None)).game_outcome == verdict
        else:
            with pytest.raises(RewardError, match="game_outcome"):
                await episode.score(None)

    asyncio.run(main())


class Unsure(Lab):
    def is_done(self, bench):
        if bench.log:
            raise ZeroDivisionError("secret-inside")
        return False


def test_is_done_that_fails_ends_the_episode_unscored():
    async def main():
        episodes, _ = await opened()
        episodes.environments["lab"] = Unsure()
        episode = await episodes.open("lab", split="train")
        result = await episode.call("now", {})
        assert result.done
        assert "secret" not in result.text
        assert episode.failure.startswith("is_done failed: ZeroDivisionError")
        with pytest.raises(EpisodeError):
            await episode.score(None)

    asyncio.run(main())


def test_tool_errors_are_for_policies_only():
    assert not issubclass(ToolError, EpisodeError)


def test_the_log_of_an_episode_is_bounded_in_size():
    async def main():
        _, episode = await opened()
        sent = 0
        while not episode.done:
            sent += 1
            assert sent < 100, "a policy can fill the server's memory"
            await episode.call("now", {"what": f"{sent}" * 1_000_000}, key=str(sent))
        assert episode.stop_reason == "max_turns"
        return await episode.call("now", {"what": "more"})

    assert "ended" in asyncio.run(main()).text

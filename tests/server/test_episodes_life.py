"""The life of episodes on one server: opened, found, expired, capped, closed, and forgotten but for a tombstone."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref

import pytest
from episode_toys import Lab, LabConfig, lab, opened, until

from mcpgym import episodes as module
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes, Limits
from mcpgym.errors import (
    ConfigurationError,
    EpisodeEnded,
    EpisodeError,
    TooManyEpisodes,
    UnknownEpisodeError,
    UnknownNameError,
)


def test_an_episode_is_named_by_an_unguessable_token():
    async def main():
        episodes = lab()
        return [(await episodes.open("lab", split="train")).token for _ in range(200)]

    tokens = asyncio.run(main())
    assert len(set(tokens)) == 200
    assert all(len(bytes.fromhex(token)) >= 16 for token in tokens)


def test_a_task_is_named_by_id_or_by_split_and_index():
    async def main():
        episodes = lab()
        assert (await episodes.open("lab", task="test-2")).task.id == "test-2"
        assert (await episodes.open("lab", split="test", index=1)).task.id == "test-1"
        assert (await episodes.open("lab", split="train")).task.id == "train-0"
        for wanted, error, match in [
            ({"task": "test-2", "split": "test"}, ConfigurationError, "not by both"),
            ({"task": "test-2", "index": 2}, ConfigurationError, "not by both"),
            ({}, ConfigurationError, r"which task\? Give its id, or a split \(train, test\)"),
            ({"index": 1}, ConfigurationError, "which task"),
            ({"task": "test-3"}, UnknownNameError, "no task 'test-3'"),
            ({"split": "tset"}, UnknownNameError, "did you mean 'test'"),
            ({"split": "test", "index": 3}, ConfigurationError, "test has tasks 0 to 2; there is no 3"),
            ({"split": "test", "index": -1}, ConfigurationError, "there is no -1"),
        ]:
            with pytest.raises(error, match=match):
                await episodes.open("lab", **wanted)
        with pytest.raises(UnknownNameError, match="did you mean 'lab'"):
            await episodes.open("labb", split="train")
        assert len(episodes) == 3

    asyncio.run(main())


def test_case_7_the_cap_holds_and_closing_makes_room():
    async def main():
        episodes = lab(Limits(live=3))
        made = [await episodes.open("lab", split="train") for _ in range(3)]
        with pytest.raises(TooManyEpisodes, match=r"3 episodes are live.*close some"):
            await episodes.open("lab", split="train")
        await episodes.close(made[0].token)
        await episodes.open("lab", split="train")

    asyncio.run(main())


class Slow(Lab):
    async def reset(self, task, seed):
        await asyncio.sleep(0.01)
        return super().reset(task, seed)


def test_the_cap_counts_episodes_that_are_still_opening():
    async def main():
        episodes = Episodes({"lab": Slow()}, Limits(live=3))
        results = await asyncio.gather(
            *(episodes.open("lab", split="train") for _ in range(10)), return_exceptions=True
        )
        assert len(episodes) == 3
        assert sum(isinstance(result, TooManyEpisodes) for result in results) == 7
        assert sum(isinstance(result, Episode) for result in results) == 3

    asyncio.run(main())


def test_an_episode_that_opens_while_the_server_closes_is_closed_too():
    async def main():
        states = []

        class Watched(Slow):
            async def reset(self, task, seed):
                states.append(await super().reset(task, seed))
                return states[-1]

        episodes = Episodes({"lab": Watched()})
        opening = asyncio.create_task(episodes.open("lab", split="train"))
        await asyncio.sleep(0)
        await episodes.aclose()
        with pytest.raises(EpisodeEnded):
            await opening
        assert len(episodes) == 0
        assert [state.closed for state in states] == [1]

    asyncio.run(main())


def test_case_7_abandoned_episodes_leave_nothing_but_a_tombstone():
    async def main():
        episodes = lab(Limits(idle_seconds=0.01))
        states, tokens = [], []
        for _ in range(1000):
            episode = await episodes.open("lab", split="train")
            await episode.call("now", {})
            states.append(weakref.ref(episode.state))
            tokens.append(episode.token)
        del episode
        await asyncio.sleep(0.03)
        assert await episodes.expire() == 1000
        gc.collect()
        assert len(episodes) == 0
        assert [ref for ref in states if ref() is not None] == []
        with pytest.raises(EpisodeEnded, match=r"this episode has ended: expired after 0\.01 s without a call"):
            episodes.get(tokens[0])
        assert episodes.counters.ended == {"expired": 1000}

    asyncio.run(main())


def test_only_idle_episodes_expire():
    async def main():
        episodes = lab(Limits(idle_seconds=60))
        idle, used, busy = three = [await episodes.open("lab", split="train") for _ in range(3)]
        call = asyncio.create_task(busy.call("wait", {"seconds": 0.25}))
        await asyncio.sleep(0.01)
        for episode in three:
            episode.last_used -= 61
        await used.call("now", {})
        assert await episodes.expire() == 1
        assert (idle.ended is not None, used.ended, busy.ended) == (True, None, None)
        assert not (await call).is_error
        used.last_used -= 61
        assert await episodes.expire() == 1, "the used one; the busy one has just answered"
        assert busy.ended is None

    asyncio.run(main())


def test_case_7_a_close_that_hangs_keeps_no_other_episode_from_expiring_and_is_given_up(monkeypatch, caplog):
    monkeypatch.setattr("mcpgym.episode.CLOSE_SECONDS", 0.2)

    async def main():
        episodes = lab(Limits(idle_seconds=0.02))
        first, second = [await episodes.open("lab", split="train") for _ in range(2)]

        async def hang(state):
            await asyncio.sleep(3600 if state is first.state else 0)

        first.environment.close = hang
        await asyncio.sleep(0.04)
        async with asyncio.timeout(20):
            assert await episodes.expire() == 2
        assert second.ended == first.ended == "expired after 0.02 s without a call"
        assert len(episodes) == 0

    asyncio.run(main())
    assert "close failed" in caplog.text


def test_tombstones_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MAX_TOMBSTONES", 10)

    async def main():
        episodes = lab()
        tokens = []
        for _ in range(15):
            tokens.append((await episodes.open("lab", split="train")).token)
            await episodes.close(tokens[-1])
        for token in tokens[:5]:
            with pytest.raises(UnknownEpisodeError):
                episodes.get(token)
        for token in tokens[5:]:
            with pytest.raises(EpisodeEnded, match="closed"):
                episodes.get(token)

    asyncio.run(main())


def test_closing_is_once_and_an_unknown_token_is_an_error():
    async def main():
        episodes, episode = await opened()
        await asyncio.gather(*(episodes.close(episode.token) for _ in range(3)))
        await episodes.close(episode.token)
        assert episode.state.closed == 1
        for token in ("", "0" * 32, "../x"):
            with pytest.raises(UnknownEpisodeError):
                await episodes.close(token)
            with pytest.raises(UnknownEpisodeError):
                episodes.get(token)

    asyncio.run(main())


@pytest.mark.flaky(reruns=1)  # it measures time
def test_case_11_closing_cancels_what_runs_before_the_state_is_released():
    async def main():
        episodes, episode = await opened()
        calls = [asyncio.create_task(episode.call("wait", {"seconds": 30}))]
        calls.append(asyncio.create_task(episode.call("now", {})))
        await asyncio.sleep(0.02)
        started = time.monotonic()
        await episodes.close(episode.token)
        assert time.monotonic() - started < 15
        results = await asyncio.gather(*calls)
        assert all(result.is_error and "this episode has ended: closed" in result.text for result in results)
        assert episode.state.log == ["begin wait", "let go", "closed, 0 inside"]

    asyncio.run(main())


def test_closing_with_a_thread_at_work_releases_the_state_and_frees_the_thread():
    async def main():
        episodes, episode = await opened()
        call = asyncio.create_task(episode.call("block", {"what": "x"}))
        await until(lambda: episode.state.log == ["begin x"])
        await episodes.close(episode.token)
        assert (await call).is_error
        assert episode.state.closed == 1
        await until(lambda: episode.state.log[-1] == "end x")

    asyncio.run(main())


class Broken(Lab):
    def messages(self, task, state):
        self.state = state
        raise ValueError("no prompt")


def test_a_state_whose_episode_cannot_begin_is_released():
    async def main():
        environment = Broken()
        episodes = Episodes({"lab": environment})
        with pytest.raises(EpisodeError, match="lab could not begin task train-0: no prompt"):
            await episodes.open("lab", split="train")
        assert environment.state.closed == 1
        assert len(episodes) == 0
        with pytest.raises(EpisodeError):
            await episodes.open("lab", split="train")

    asyncio.run(main())


def test_a_close_that_fails_does_not_stop_others():
    async def main():
        episodes = lab()
        for _ in range(3):
            await episodes.open("lab", split="train")

        async def failing(state):
            raise OSError("gone")

        episodes.environments["lab"].close = failing  # type: ignore[method-assign]
        await episodes.aclose()
        assert len(episodes) == 0
        assert episodes.environments["lab"].shut_down == 1

    asyncio.run(main())


def test_configurations_are_merged_with_what_is_served_and_made_once():
    episodes = Episodes({"lab": Lab(LabConfig(turns=5))})
    made = episodes.environment("lab", {"tags": ["a"]})
    assert (made.config.turns, made.config.tags) == (5, ["a"])
    assert made is not episodes.environments["lab"]
    assert episodes.environment("lab", {"tags": ["a"]}) is made
    assert episodes.environment("lab") is episodes.environments["lab"] is episodes.environment("lab", {})
    assert episodes.environment("lab", {"turns": "7"}).config.turns == 7
    with pytest.raises(UnknownNameError, match="did you mean 'turns'"):
        episodes.environment("lab", {"turn": 1})
    with pytest.raises(ConfigurationError, match="lab: turns"):
        episodes.environment("lab", {"turns": float("nan")})
    with pytest.raises(ConfigurationError, match="tags"):
        episodes.environment("lab", {"tags": "['a']"})


def test_configurations_are_bounded_and_none_in_use_is_dropped(monkeypatch):
    monkeypatch.setattr(module, "MAX_CONFIGURATIONS", 4)

    async def main():
        episodes = lab()
        used = await episodes.open("lab", split="train", config={"turns": 1})
        dropped = episodes.environment("lab", {"turns": 2})
        for turns in range(3, 20):
            episodes.environment("lab", {"turns": turns})
        assert len(episodes._configured) == 4
        assert episodes.environment("lab", {"turns": 1}) is used.environment
        assert episodes.environment("lab", {"turns": 2}) is not dropped
        await episodes.expire()
        assert dropped.shut_down == 1
        assert used.environment.shut_down == 0
        await episodes.aclose()
        assert used.environment.shut_down == 1

    asyncio.run(main())


def test_case_1_episodes_of_one_task_share_nothing():
    async def main():
        episodes = lab()
        made = [await episodes.open("lab", task="train-1", seed=1) for _ in range(64)]
        for turn in range(5):
            for number, episode in enumerate(made):
                await episode.call("now", {"what": f"{number}-{turn}"})
        for number, episode in enumerate(made):
            assert episode.state.log == [f"now {number}-{turn}" for turn in range(5)]

    asyncio.run(main())


def test_case_7_guests_fill_a_server_and_keep_nobody_out_who_opens_an_episode_to_score_it():
    async def main():
        episodes = lab(limits=Limits(live=3))
        scored = await episodes.open("lab", split="train")
        guests = [await episodes.open("lab", split="train", guest=True) for _ in range(2)]
        with pytest.raises(TooManyEpisodes):
            await episodes.open("lab", split="train", guest=True)
        guests[0].last_used += 1  # the second has been idle for longer
        await episodes.open("lab", split="train")
        assert not guests[0].done
        assert guests[1].ended == "evicted to make room for another episode"
        await episodes.open("lab", split="train")
        assert guests[0].ended is not None
        with pytest.raises(TooManyEpisodes):
            await episodes.open("lab", split="train")
        assert len(episodes) == 3
        assert not scored.done
        assert episodes.counters.ended == {"evicted": 2}

    asyncio.run(main())


def test_a_guest_that_is_over_or_left_alone_makes_room_for_another_and_one_at_work_does_not():
    async def main():
        episodes = lab(limits=Limits(live=1))
        for seed, idle, makes_room in ((0, 0, False), (99, 0, True), (0, 61, True)):
            guest = await episodes.open("lab", split="train", seed=seed, guest=True)
            guest.last_used -= idle
            if makes_room:
                await asyncio.gather(episodes.open("lab", split="train", seed=99, guest=True))
                assert guest.ended is not None
                assert len(episodes) == 1
            else:
                working = asyncio.ensure_future(guest.call("block", {}))
                await asyncio.sleep(0.02)
                guest.last_used -= 100
                with pytest.raises(TooManyEpisodes):
                    await episodes.open("lab", split="train", guest=True)
                guest.state.gate.set()
                await working
                await episodes.close(guest.token)

    asyncio.run(main())


def test_a_process_that_was_stopped_for_longer_than_episodes_may_idle_goes_on_with_them(monkeypatch):
    monkeypatch.setattr(module, "STOOD_STILL_SECONDS", 0.2)

    async def main():
        episodes = lab(limits=Limits(idle_seconds=0.5))
        episode = await episodes.open("lab", split="train")
        expiring = asyncio.ensure_future(episodes.expire_forever())
        await asyncio.sleep(0.01)
        before = episode.last_used
        time.sleep(1.0)  # as SIGSTOP would, or a frozen container
        async with asyncio.timeout(10):
            while episode.last_used == before:
                await asyncio.sleep(0.01)
            assert episode.last_used > before + 0.5
            assert episode.ended is None
            while episode.ended is None:
                await asyncio.sleep(0.01)
        expiring.cancel()

    asyncio.run(main())

"""The engine: many conversations over few rows, the same result whoever else is there, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import local_toys
import model_toys
import numpy as np
import pytest
import torch
from local_toys import TOOLS, chat, play, spoken, untrained
from transformers import AutoModelForCausalLM

from mcpgym import load_environment
from mcpgym.messages import Message
from mcpgym_rl.local.line import Line, Request
from mcpgym_rl.local.policy import LocalPolicy, LocalSession
from mcpgym_rl.policy import ContextFull, EpisodeContext, PolicyError
from mcpgym_rl.rollout import Limits
from mcpgym_rl.traces import Trace

LIMITS = Limits(max_turns=4)


def bare(trace: Trace) -> dict[str, Any]:
    """A trace without the times it took."""
    made: dict[str, Any] = json.loads(trace.to_json())
    del made["seconds"]
    for call in made["calls"]:
        del call["milliseconds"]
    return made


def prompt() -> list[Message]:
    environment = load_environment(local_toys.GAME)
    task = environment.tasks("train")[0]
    return list(environment.messages(task, environment.reset(task, 0)))


def context(seed: int = 0) -> EpisodeContext:
    return EpisodeContext(local_toys.GAME, TOOLS, seed)


# Numbers.


@pytest.mark.parametrize("temperature", [1.0, 0.7, 0.0])
def test_log_probabilities_are_those_of_the_model_itself(temperature: float) -> None:
    traces = play(untrained(temperature=temperature), 12, limits=LIMITS)
    model = AutoModelForCausalLM.from_pretrained(model_toys.model_of(local_toys.GAME), dtype=torch.float32)
    seen = 0
    for trace in traces:
        assert trace.tokens is not None
        ids, mask = torch.tensor(list(trace.tokens.ids)), np.array(trace.tokens.mask)
        with torch.no_grad():
            logits = model(ids[None]).logits[0, :-1]
        logs = torch.log_softmax(logits / (temperature or 1.0), -1)
        expected = logs.gather(1, ids[1:, None])[:, 0].numpy()[mask[1:]]
        given = np.array(trace.tokens.logprobs)
        assert np.abs(given[mask] - expected).max() < 1e-4
        assert not given[~mask].any()
        if temperature == 0.0:
            assert (logits.argmax(-1)[mask[1:]] == ids[1:][mask[1:]]).all()
        seen += int(mask.sum())
    assert seen > 100


# Batches.


def test_the_same_run_gives_the_same_bytes() -> None:
    first, second = (play(untrained(), 60, concurrency=20, limits=LIMITS) for _ in range(2))
    assert [bare(trace) for trace in first] == [bare(trace) for trace in second]


@pytest.mark.parametrize(("concurrency", "rows"), [(1, 64), (7, 64), (40, 3), (40, 1)])
def test_who_else_plays_changes_nothing(concurrency: int, rows: int) -> None:
    together = play(untrained(), 40, concurrency=40, limits=LIMITS)
    apart = play(untrained(rows=rows), 40, concurrency=concurrency, limits=LIMITS)
    for one, other in zip(together, apart, strict=True):
        assert one.tokens is not None
        assert other.tokens is not None
        assert list(one.tokens.ids) == list(other.tokens.ids)
        np.testing.assert_allclose(one.tokens.logprobs, other.tokens.logprobs, atol=1e-4)


def test_waiting_conversations_enter_when_others_leave() -> None:
    policy, backend = spoken(rows=8)
    traces = play(policy, 64, concurrency=64)
    assert all(trace.stop_reason == "done" for trace in traces)
    assert max(backend.widths) == 8
    assert len(backend.rows) == 8
    assert np.mean(backend.widths) > 6, "rows should not stand idle while others wait"


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("budget", [1, 1_000])
def test_memory_is_bounded_and_turns_that_lose_their_row_go_on(budget: int, small: bool) -> None:
    """The rows of this backend take a byte a token: conversations of 150 tokens fit 1 or 6 at once."""
    free, _ = spoken(strange=0.3)
    policy, backend = spoken(strange=0.3)
    policy.engine.rows.cache_bytes, backend.small = budget, small
    traces = play(policy, 16, concurrency=16)
    assert [trace.messages for trace in traces] == [trace.messages for trace in play(free, 16, concurrency=16)]
    assert len(backend.rows) * backend.tokens <= max(budget, backend.tokens)
    assert not policy.engine.rows.owners


def test_a_turn_interrupted_for_want_of_memory_is_the_turn_it_would_have_been() -> None:
    limits = Limits(max_turns=3)
    expected = play(untrained(max_new_tokens=100), 20, concurrency=20, limits=limits)
    policy = untrained(max_new_tokens=100)
    policy.engine.rows.cache_bytes = policy.engine.backend.row_bytes(64) * 10
    interrupted: list[int] = []
    interrupt = policy.engine.turns.interrupt

    def counting(row: int) -> Request:
        interrupted.append(row)
        return interrupt(row)

    policy.engine.turns.interrupt = counting  # type: ignore[method-assign]
    for one, other in zip(expected, play(policy, 20, concurrency=20, limits=limits), strict=True):
        assert one.tokens is not None
        assert other.tokens is not None
        assert list(one.tokens.ids) == list(other.tokens.ids)
        np.testing.assert_allclose(one.tokens.logprobs, other.tokens.logprobs, atol=1e-4)
    assert interrupted, "this test should take rows from turns under way"


def test_all_rows_are_free_when_the_rollouts_are_over() -> None:
    policy, _ = spoken(strange=0.3)
    play(policy, 30)
    engine = policy.engine
    assert not engine.rows.owners
    assert not engine.turns.running
    assert not engine.expected
    assert sorted(engine.rows.free) == list(range(engine.rows.count))


def test_a_batch_is_as_wide_as_the_games_that_go_on() -> None:
    policy, backend = spoken()
    traces = play(policy, 32, concurrency=32)
    turns = [trace.turns for trace in traces]
    assert max(backend.widths) == 32
    assert len(backend.widths) < 2.5 * max(turns) * 10, "games that begin together should be decoded together"


# Ends.


def test_a_turn_that_is_too_long_is_cut_off_and_ends_the_rollout() -> None:
    (trace,) = play(untrained(max_new_tokens=3), 1)
    assert trace.stop_reason == "truncated"
    assert trace.tokens is not None
    assert sum(trace.tokens.mask) == 3


def test_a_conversation_that_no_longer_fits_is_truncated() -> None:
    policy, backend = spoken()
    backend.positions = policy.engine.positions = 85
    traces = play(policy, 10)
    assert {trace.stop_reason for trace in traces} == {"truncated"}
    assert all(trace.error is None for trace in traces)
    for trace in traces:
        assert trace.tokens is not None
        assert len(trace.tokens.ids) <= 85


def test_a_prompt_that_does_not_fit_is_a_full_context() -> None:
    policy, backend = spoken()
    backend.positions = policy.engine.positions = 20

    async def act() -> None:
        with pytest.raises(ContextFull, match="the model takes 20"):
            await policy.begin(context()).act(prompt())

    asyncio.run(act())


@pytest.mark.parametrize("small", [True, False])
def test_a_turn_that_nobody_waits_for_any_more_gives_its_row_back(small: bool) -> None:
    policy, backend = spoken()
    backend.small = small

    async def acts() -> None:
        sessions = [policy.begin(context(seed)) for seed in range(4)]
        tasks = [asyncio.create_task(session.act(prompt())) for session in sessions]
        while not policy.engine.turns.running:
            await asyncio.sleep(0)
        tasks[1].cancel()
        turns = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(turns[1], asyncio.CancelledError)
        assert all(not isinstance(turn, BaseException) for place, turn in enumerate(turns) if place != 1)
        for session in sessions:
            await session.aclose()
        assert not policy.engine.rows.owners
        assert not policy.engine._waiting

    asyncio.run(acts())


def test_a_backend_that_breaks_fails_the_rollouts_under_way_and_not_the_next() -> None:
    policy, backend = spoken()
    real, calls = backend.step, [0]

    def step(*given: Any) -> Any:
        calls[0] += 1
        if calls[0] == 5:
            raise RuntimeError("out of memory")
        return real(*given)

    backend.step = step  # type: ignore[method-assign]
    traces = play(policy, 8, concurrency=4)
    failed = [trace for trace in traces if trace.stop_reason == "policy_failed"]
    assert len(failed) == 4
    assert failed[0].error is not None
    assert "out of memory" in failed[0].error.message
    assert [trace.stop_reason for trace in traces[4:]] == ["done"] * 4


# Forks.


async def answered(session: LocalSession, messages: list[Message], text: str) -> list[int]:
    """The whole context after one more turn, the user having said ``text``."""
    turn = await session.act([*messages, {"role": "user", "content": text}])
    assert turn.tokens is not None
    return list(turn.tokens.ids)


def begun(policy: LocalPolicy) -> Any:
    async def begin() -> tuple[LocalSession, list[Message]]:
        session = policy.begin(context(3))
        messages = prompt()
        turn = await session.act(messages)
        return session, [*messages, turn.message]

    return begin()


def ended(policy: LocalPolicy) -> LocalPolicy:
    """``policy``, every turn of which ends."""
    policy.engine.turns.ends[:] = True
    return policy


def test_forks_stand_where_their_original_stands_and_copy_what_it_computed() -> None:
    async def branch(close_first: bool) -> tuple[list[list[int]], int]:
        policy = ended(untrained(temperature=0.0))
        session, messages = await begun(policy)
        forks = [session.fork() for _ in range(5)]
        if close_first:
            await session.aclose()
        before = policy.engine.appended
        answers = [answered(fork, messages, f"Reply {place}.") for place, fork in enumerate(forks)]
        ids = await asyncio.gather(*answers)
        appended = policy.engine.appended - before
        for fork in forks:
            await fork.aclose()
        await session.aclose()
        assert not policy.engine.rows.owners
        return ids, appended

    async def alone(place: int) -> list[int]:
        policy = ended(untrained(temperature=0.0))
        session, messages = await begun(policy)
        return await answered(session, messages, f"Reply {place}.")

    expected = [asyncio.run(alone(place)) for place in range(5)]
    for close_first in (False, True):
        ids, appended = asyncio.run(branch(close_first))
        assert ids == expected
        assert appended < 5 * 25, "what the original computed should be copied, not computed again"


def test_a_fork_whose_original_is_gone_and_forgotten_is_computed_anew() -> None:
    async def branch() -> tuple[list[int], list[int]]:
        policy = ended(untrained(temperature=0.0))
        session, messages = await begun(policy)
        fork = session.fork()
        expected = await answered(session.fork(), messages, "Well?")
        policy.engine.forget()
        await session.aclose()
        return await answered(fork, messages, "Well?"), expected

    got, expected = asyncio.run(branch())
    assert got == expected


def test_forks_draw_random_numbers_of_their_own() -> None:
    async def branch() -> list[list[int]]:
        policy = ended(untrained(temperature=1.0))
        session, messages = await begun(policy)
        sessions = [session, *(session.fork() for _ in range(7))]
        return [await answered(one, messages, "Well?") for one in sessions]

    ids = asyncio.run(branch())
    assert len({tuple(one) for one in ids}) > 4
    assert ids == asyncio.run(branch()), "and the same ones each time"


def test_a_conversation_cannot_be_continued_twice_at_once() -> None:
    policy, _ = spoken()

    async def twice() -> None:
        line: Line = policy.engine.open(1)
        ids = chat().opening(prompt(), TOOLS)
        first = asyncio.create_task(line.generate(ids, limit=5, temperature=0.0))
        await asyncio.sleep(0)
        with pytest.raises(PolicyError, match="already"):
            await line.generate([5], limit=5, temperature=0.0)
        await first

    asyncio.run(twice())


# Live weights.


def live() -> tuple[LocalPolicy, Any]:
    model = AutoModelForCausalLM.from_pretrained(model_toys.model_of(local_toys.GAME), dtype=torch.float32)
    return LocalPolicy.from_torch(model, chat(), temperature=0.0, max_new_tokens=6), model


def test_live_weights_are_taken_when_a_run_begins() -> None:
    policy, model = live()
    fixed = untrained(temperature=0.0, max_new_tokens=6)
    before = play(policy, 6, limits=LIMITS)
    assert [list(trace.tokens.ids) for trace in before if trace.tokens] == [
        list(trace.tokens.ids) for trace in play(fixed, 6, limits=LIMITS) if trace.tokens
    ]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)) * 0.3
    after = play(policy, 6, limits=LIMITS)
    assert [trace.messages for trace in after] != [trace.messages for trace in before]
    for trace in after:
        assert trace.tokens is not None
        ids, mask = torch.tensor(list(trace.tokens.ids)), np.array(trace.tokens.mask)
        with torch.no_grad():
            logs = torch.log_softmax(model(ids[None]).logits[0, :-1], -1).gather(1, ids[1:, None])[:, 0].numpy()
        assert np.abs(np.array(trace.tokens.logprobs)[mask] - logs[mask[1:]]).max() < 1e-4


def test_broken_weights_fail_the_run_and_leave_nothing_in_the_cache() -> None:
    policy, model = live()
    before = [bare(trace) for trace in play(policy, 4, limits=LIMITS)]
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight.fill_(torch.nan)
    broken = play(policy, 4, limits=LIMITS)
    assert all(trace.error is not None and "not a number" in trace.error.message for trace in broken)
    model.load_state_dict(kept)
    assert [bare(trace) for trace in play(policy, 4, limits=LIMITS)] == before


def test_large_models_compute_in_a_thread_and_the_loop_goes_on() -> None:
    policy = untrained(temperature=0.0)
    expected = [trace.messages for trace in play(untrained(temperature=0.0), 12, limits=LIMITS)]
    policy.engine.backend.small = False
    assert [trace.messages for trace in play(policy, 12, limits=LIMITS)] == expected

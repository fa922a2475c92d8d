"""Token in, token out: what was sampled is what stands in the conversation, and nothing is tokenised twice."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import local_toys
import pytest
from local_toys import TOOLS, chat, play, spoken

from mcpgym.messages import assistant, tool_call
from mcpgym_rl.local.policy import given_ids
from mcpgym_rl.policy import Tokens, Turn
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.traces import Trace

GAMES = 220


def turns_of(trace: Trace) -> list[list[int]]:
    """The ids of each turn that was sampled: the runs of the mask."""
    assert trace.tokens is not None
    turns: list[list[int]] = []
    before = False
    for token, sampled in zip(trace.tokens.ids, trace.tokens.mask, strict=True):
        if sampled:
            turns = turns if before else [*turns, []]
            turns[-1].append(token)
        before = sampled
    return turns


def assembled_text(trace: Trace) -> str:
    """What the conversation must read as, from the messages and the turns as they were written."""
    messages, turns = trace.messages, turns_of(trace)
    text = chat().text(messages[: trace.prompt_messages], TOOLS, prompt=True)
    places = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    for number, (place, turn) in enumerate(zip(places, turns, strict=True)):
        text += chat().decode(turn)
        if number + 1 < len(turns):
            new = messages[place + 1 : places[number + 1]]
            text += chat().decode(chat().continuation(messages[: place + 1], new))
    return text


def test_rendered_whole_is_what_was_assembled_over_many_games() -> None:
    policy, _ = spoken()
    traces = play(policy, GAMES)
    assert len({trace.fingerprint for trace in traces}) > GAMES // 2
    for trace in traces:
        assert trace.tokens is not None
        assert trace.stop_reason == "done"
        last = max(place for place, message in enumerate(trace.messages) if message["role"] == "assistant")
        rendered = chat().text(trace.messages[: last + 1], TOOLS)
        ids = list(trace.tokens.ids)
        assert rendered.removesuffix("\n") == chat().decode(ids)
        assert chat().whole(trace.messages[: last + 1], TOOLS)[: len(ids)] == ids


def test_turns_that_nobody_would_write_so_stay_as_they_were_sampled() -> None:
    policy, _ = spoken(strange=0.6)
    traces = play(policy, GAMES)
    canonical = other = 0
    for trace in traces:
        assert trace.tokens is not None
        assert chat().decode(trace.tokens.ids) == assembled_text(trace)
        messages = [message for message in trace.messages if message["role"] == "assistant"]
        for message, turn in zip(messages, turns_of(trace), strict=True):
            assert turn[-1] == chat().end_id
            same = chat().turn_ids(message) == turn
            canonical, other = canonical + same, other + (not same)
    assert canonical > 200, "these games should have ordinary turns"
    assert other > 200, "these games should have strange turns"


def test_the_same_text_in_other_tokens_is_kept_token_for_token() -> None:
    policy, backend = spoken()
    letters = [token for char in "<think>hm</think>" for token in chat().tokenizer.encode(char).ids]
    assert letters != chat().tokenizer.encode("<think>hm</think>").ids
    backend.plan = lambda ids: [*letters, chat().end_id]  # type: ignore[method-assign]
    (trace,) = play(policy, 1)
    assert turns_of(trace) == [[*letters, chat().end_id]]
    assert trace.messages[-1]["content"] == "<think>hm</think>"


def test_each_turn_appends_only_what_is_new() -> None:
    policy, backend = spoken()
    appended: list[tuple[int, int]] = []
    real = backend.append

    def append(rows: Sequence[int], starts: Sequence[int], chunks: Sequence[Sequence[int]]) -> Any:
        appended.extend((start, len(chunk)) for start, chunk in zip(starts, chunks, strict=True))
        return real(rows, starts, chunks)

    backend.append = append  # type: ignore[method-assign]
    traces = play(policy, 32)
    turns = sum(trace.turns for trace in traces)
    openings = [size for start, size in appended if start == 0]
    assert len(openings) <= 10, "prompts that are alike are computed once"
    assert len(appended) == len(openings) + turns - len(traces)
    assert max(size for start, size in appended if start) < 40


def test_the_context_of_a_turn_begins_with_that_of_the_turn_before() -> None:
    policy, _ = spoken(strange=0.3)
    seen: list[Tokens] = []
    begin = policy.begin

    def watched(context: Any) -> Any:
        session = begin(context)
        act = session.act

        async def acting(messages: Any) -> Turn:
            turn = await act(messages)
            assert turn.tokens is not None
            seen.append(turn.tokens)
            return turn

        session.act = acting  # type: ignore[method-assign]
        return session

    policy.begin = watched  # type: ignore[method-assign]
    play(policy, 8, concurrency=1)
    grown = 0
    for before, after in itertools.pairwise(seen):
        if len(after.ids) > len(before.ids) and list(after.ids[: len(before.ids)]) == list(before.ids):
            grown += 1
            assert list(after.mask[: len(before.mask)]) == list(before.mask)
            assert list(after.logprobs[: len(before.logprobs)]) == list(before.logprobs)
    assert grown >= 8


# Given turns, temperatures.


def moves(trace: Trace) -> list[Any]:
    return [call.arguments["position"] for call in trace.calls]


def given_of(trace: Trace, count: int) -> list[Turn]:
    """The first turns of a trace with the tokens they had."""
    assert trace.tokens is not None
    ids, mask = list(trace.tokens.ids), list(trace.tokens.mask)
    ends = [place + 1 for place, on in enumerate(mask) if on and (place + 1 == len(mask) or not mask[place + 1])]
    messages = [message for message in trace.messages if message["role"] == "assistant"]
    return [
        Turn(messages[number], tokens=Tokens(ids[:end], mask[:end], [0.0] * end))
        for number, end in enumerate(ends[:count])
    ]


def test_a_rollout_resumed_with_the_turns_of_another_has_the_same_context() -> None:
    policy, _ = spoken(strange=0.4)
    spec = EpisodeSpec(local_toys.GAME, split="train", index=3)
    (whole,) = play(policy, [spec])
    assert whole.turns >= 3
    policy, _ = spoken(strange=0.4)
    (resumed,) = play(policy, [replace(spec, given=given_of(whole, 2))])
    assert whole.tokens is not None
    assert resumed.tokens is not None
    assert list(resumed.tokens.ids) == list(whole.tokens.ids)
    assert moves(resumed) == moves(whole)
    assert resumed.given_turns == 2
    assert turns_of(resumed) == turns_of(whole)[2:], "given turns are context, not sampled"


def test_given_turns_without_tokens_stand_in_their_canonical_form() -> None:
    policy, _ = spoken()
    message = assistant("", [tool_call("x", "play", '{"position": 4}')])
    spec = EpisodeSpec(local_toys.GAME, split="train", index=0, given=[Turn(message)])
    (trace,) = play(policy, [spec])
    assert trace.tokens is not None
    assert chat().decode(chat().turn_ids(message)) in chat().decode(trace.tokens.ids)
    assert len(turns_of(trace)) == trace.turns - 1


@pytest.mark.parametrize("tokens", [None, Tokens([], [], []), Tokens([7, 8], [False, True], [0, 0])])
def test_tokens_that_are_no_whole_turn_are_not_believed(tokens: Tokens | None) -> None:
    message = assistant("Yes.")
    assert given_ids(Turn(message, tokens=tokens), chat()) == chat().turn_ids(message)


def test_the_first_turns_may_be_sampled_hotter_and_say_so() -> None:
    policy = local_toys.untrained(temperature=0.5, max_new_tokens=4)
    spec = EpisodeSpec(local_toys.GAME, split="train", index=0)
    hot, plain = play(policy, [replace(spec, temperatures=[1.3]), spec], limits=Limits(max_turns=2))
    assert hot.tokens is not None
    assert plain.tokens is not None
    assert plain.tokens.temperatures is None
    heats = hot.tokens.temperatures
    assert heats is not None
    assert {heat for heat, on in zip(heats, hot.tokens.mask, strict=True) if on} == {1.3}
    assert {heat for heat, on in zip(heats, hot.tokens.mask, strict=True) if not on} == {0.0}

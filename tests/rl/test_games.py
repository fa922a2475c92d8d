"""Games as ids: put together by pieces they are what other programs render whole, and only turns are learnt."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

import model_toys
import pytest
import rl_toys

from mcpgym import load_environment
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.errors import EpisodeError
from mcpgym_rl.games import PlayedGames, game_of
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace


def traces_of(environment: str, policy: str, count: int) -> list[Trace]:
    made = load_environment(environment)

    async def play() -> list[Trace]:
        lane = ControlLane(LocalControl(Episodes({environment: made})))
        specs = [EpisodeSpec(environment, split="train", index=index) for index in range(count)]
        return (await run(make_policy(policy, made), lane, specs)).traces

    return asyncio.run(play())


@pytest.mark.parametrize(("environment", "count"), [("tic-tac-toe", 240), ("double-check", 60), ("reverse-text", 60)])
def test_a_game_put_together_is_the_game_rendered_whole(environment: str, count: int) -> None:
    chat, tools = model_toys.chat_of(environment), model_toys.tools_of(environment)
    for trace in traces_of(environment, "teacher:skill=0.7", count):
        ids, mask = game_of(chat, trace.messages, trace.prompt_messages, tools)
        turns = [place for place, message in enumerate(trace.messages) if message["role"] == "assistant"]
        whole = chat.whole(trace.messages[: turns[-1] + 1], tools)
        assert whole[: len(ids)] == ids
        assert chat.decode(whole[len(ids) :]) == "\n"
        assert len(mask) == len(ids)


def test_exactly_the_turns_that_are_no_slips_are_learnt() -> None:
    chat, tools = model_toys.chat_of("tic-tac-toe"), model_toys.tools_of("tic-tac-toe")
    slips = 0
    for trace in traces_of("tic-tac-toe", "teacher:skill=0.3", 60):
        ids, mask = game_of(chat, trace.messages, trace.prompt_messages, tools)
        learnt = chat.decode([token for token, own in zip(ids, mask, strict=True) if own])
        turns = [message for message in trace.messages if message["role"] == "assistant"]
        expected = [chat.turn_text(message) + "<|im_end|>" for message in turns if message.get("weight") != 0]
        assert learnt == "".join(expected)
        slips += len(turns) - len(expected)
    assert slips > 10


def stream(**options: Any) -> PlayedGames:
    environment = load_environment("tic-tac-toe")
    teacher = make_policy("teacher:skill=0.9", environment)
    return PlayedGames(environment, teacher, model_toys.chat_of("tic-tac-toe"), **options)


def test_a_stream_begins_anew_with_the_same_games_and_another_seed_has_others() -> None:
    games = stream(seed=4)
    first = list(islice(games, 300))
    assert list(islice(games, 300)) == first
    assert list(islice(stream(seed=4, concurrency=3), 300)) == first
    assert list(islice(stream(seed=5), 300)) != first
    assert len({tuple(ids) for ids, _ in first}) > 280


def test_a_stream_has_only_what_is_to_be_kept() -> None:
    def lost(trace: Trace) -> bool:
        return trace.score is not None and trace.score.game_outcome == "loss"

    chat = model_toys.chat_of("tic-tac-toe")
    kept = list(islice(stream(keep=lost), 30))
    everything = list(islice(stream(), 512))
    assert all(game in everything for game in kept)
    assert all(chat.decode(ids).count("assistant") <= 5 for ids, _ in kept)
    with pytest.raises(EpisodeError, match="none of those that were scored was to be kept"):
        next(iter(stream(keep=lambda trace: False)))


def test_a_stream_of_an_environment_that_breaks_says_why() -> None:
    broken = rl_toys.BrokenReset()
    games = PlayedGames(broken, make_policy("random", broken), model_toys.chat_of("double-check"))
    with pytest.raises(EpisodeError, match=r"gave no game: .*the board is missing"):
        next(iter(games))

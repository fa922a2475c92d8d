"""TextArena's games: each episode's chance is its own, opponents play by the rules, and nobody breaks their way out."""

from __future__ import annotations

import asyncio
import json
import os
import random as global_random
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
import textarena_plays
from episode_driver import drive, open_episode
from textarena_plays import GAMES, digests, texts

from mcpgym import ConfigurationError, check_environment, load_environment
from mcpgym.messages import assistant
from mcpgym_clients.scanning import scan
from mcpgym_clients.scanning.scan import scan_environment
from mcpgym_environments.imported.textarena import TextArena, TextArenaConfig, chance
from mcpgym_environments.imported.textarena.chance import take_over
from mcpgym_environments.imported.textarena.games import AGAINST, ALONE, ASKING, WORDS
from mcpgym_environments.imported.textarena.moves import candidates
from mcpgym_environments.imported.textarena.package import EXTRA
from mcpgym_environments.imported.textarena.table import Table


def made(game: str, **fields: Any) -> TextArena:
    return TextArena(TextArenaConfig(game=f"{game}-v0", **fields))


def test_all_games_interleaved_are_what_they_are_one_after_the_other_and_were_byte_for_byte() -> None:
    read = asyncio.run(texts(GAMES, True))
    assert asyncio.run(texts(GAMES, False)) == read
    twice = asyncio.run(texts([game for game in GAMES for _ in range(2)][:16], True))
    assert len({str(game) for game in twice}) >= 14  # other seeds, other games
    recorded = json.loads(Path(textarena_plays.__file__).with_suffix(".json").read_text("utf-8"))
    if recorded["textarena"] != EXTRA.version:
        pytest.skip(f"what was recorded is of TextArena {recorded['textarena']}, and {EXTRA.version} is here")
    assert digests(read) == recorded


def test_they_are_the_same_in_another_process() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", textarena_plays.__file__],
        capture_output=True, text=True, timeout=110, cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONHASHSEED": "11"},
    )  # fmt: skip
    assert json.loads(done.stdout) == digests(asyncio.run(texts(GAMES, True))), done.stderr


def test_nothing_that_is_shared_is_drawn_from_and_nobody_else_matters() -> None:
    global_random.seed(9)
    state = global_random.getstate()
    quiet = asyncio.run(texts(GAMES[:12], True))
    assert global_random.getstate() == state
    table = Table("Minesweeper-v0", 0, 5)
    global_random.seed(1)
    again = Table("Minesweeper-v0", 0, 5)
    global_random.random()
    for action in ("[0 0]", "[3 4]"):
        table.act(action)
        global_random.random()
        again.act(action)
    assert table.seen() == again.seen()
    assert asyncio.run(texts(GAMES[:12], True)) == quiet


@pytest.mark.parametrize("game", AGAINST)
def test_the_opponent_never_breaks_the_rules(game: str) -> None:
    for seed in range(2):
        table = Table(f"{game}-v0", 1, seed)
        for _ in range(30):
            if table.over:
                break
            table.act(table._legal_for_test())  # type: ignore[attr-defined]
        assert not table.crashed
        assert not table.state.game_info[0]["invalid_move"], game
        assert not table.state.game_info[1]["invalid_move"], game


def test_a_large_process_makes_no_game_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules of the process are looked through once for a game, not for each move that is tried."""
    looks = 0

    def counted() -> None:
        nonlocal looks
        looks += 1
        take_over()

    monkeypatch.setattr(chance, "take_over", counted)
    table = Table("Othello-v0", 1, 0)
    for _ in range(3):
        table.act(table._legal_for_test())  # type: ignore[attr-defined]
    assert looks <= 2


@pytest.fixture(autouse=True)
def _legal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy's legal moves are found as the opponent's are: by trying."""

    def legal(self: Table) -> str:
        self.seat = 1 - self.seat
        try:
            return self._legal()
        finally:
            self.seat = 1 - self.seat

    monkeypatch.setattr(Table, "_legal_for_test", legal, raising=False)


def test_two_seats_two_ends_and_what_they_are_worth() -> None:
    environment = made("TicTacToe")

    async def run(index: int) -> tuple[int, str | None, float | None]:
        episode = await open_episode(environment, "test", index)
        while not episode.done:
            await episode.call("act", {"action": episode.state._legal_for_test()})
        score = await episode.score([])
        return episode.state.seat, score.game_outcome, score.total

    ends = [asyncio.run(run(index)) for index in range(40)]
    assert {seat for seat, _, _ in ends} == {0, 1}
    assert {(outcome, total) for _, outcome, total in ends} == {("win", 1.0), ("loss", -1.0), ("draw", 0.0)}


def test_invalid_moves_are_treated_as_the_game_treats_them() -> None:
    async def run() -> tuple[list[str], float | None, str | None]:
        episode = await open_episode(made("TicTacToe"), "test", 0)
        answers = [(await episode.call("act", {"action": text})).text for text in ("four", "[9]", "[0]")]
        score = await episode.score([])
        return answers, score.total, score.game_outcome

    (first, second, third), total, outcome = asyncio.run(run())
    assert "attempted an invalid move" in first
    assert "The game is over." in second
    assert third == "this episode has ended (done); no more calls"
    assert (total, outcome) == (-1.0, "loss")


@pytest.mark.parametrize("game", ["TicTacToe", "2048", "Countdown", "Slitherlink"])
def test_whoever_leaves_a_game_loses_it(game: str) -> None:
    async def run() -> tuple[float | None, list[str]]:
        episode = await open_episode(made(game), "test", 0)
        messages = await drive(episode, lambda messages, random: assistant("I resign."), Random(0))
        return (await episode.score(messages)).total, [m["content"] for m in messages if m["role"] == "user"][1:]

    assert asyncio.run(run()) == (-1.0, ["The game is not over. Call act with your action."] * 2)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_no_action_breaks_a_game_without_losing_it(game: str) -> None:
    started = time.process_time()
    hostile = [
        "[",
        "[]" * 500,
        f"[{10**400} {10**400}]",
        "[-1 -1 -1]",
        "[1e9 1e9 +]",
        "[\x00]",
        "[²]",
        "[A B C D]",
        "[0 0 /]",
        "\N{BLACK SQUARE}" * 3_000,
    ]

    async def run(text: str) -> None:
        episode = await open_episode(made(game), "test", 0)
        for _ in range(4):
            await episode.call("act", {"action": text})
        assert episode.failure is None
        total = (await episode.score([])).total
        assert total is not None
        assert -1.0 <= total <= 1.0
        assert total < 1.0 or not episode.state.crashed

    for text in hostile[: 3 if game == "RushHour" else None : 2]:  # it takes long to make its puzzle
        asyncio.run(run(text))
    assert time.process_time() - started < 30


def test_a_game_that_fails_on_an_action_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("TowerOfHanoi-v0", 0, 1)
    monkeypatch.setattr(table.made, "step", lambda action: 1 // 0)
    table.act("[A B]")
    assert (table.over, table.outcome, table.seen()) == (True, -1.0, "The game could not take that action. It is over.")


def test_the_output_of_the_process_is_nobody_elses_while_games_are_played_in_threads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = Table("FrozenLake-v0", 0, 1), sys.stdout
    step, left_alone = table.made.step, []
    monkeypatch.setattr(table.made, "step", lambda action: left_alone.append(sys.stdout is out) or step(action))
    table.act("[down]")
    assert left_alone == [True]
    game = vars(sys.modules["textarena.envs.FrozenLake.env"])
    with chance.drawing_from(Random(0)):
        game["print"]("a warning of the game's")
    assert capsys.readouterr() == ("", "")
    game["print"]("outside of a game")
    assert capsys.readouterr().out == "outside of a game\n"


def test_a_puzzle_that_takes_long_to_make_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made_in = []
    begin = Table._begin
    monkeypatch.setattr(Table, "_begin", lambda *given: made_in.append(threading.current_thread()) or begin(*given))
    asyncio.run(open_episode(made("Nim"), "test", 0))
    assert threading.main_thread() not in made_in


@pytest.mark.parametrize(("board", "cells"), [("tiny", 16), ("big", 100), ("huge", 196)])
def test_an_opponent_at_othello_tries_the_whole_board(board: str, cells: int) -> None:
    assert len(candidates("Othello", Table(f"Othello-v0-{board}", 0, 2).state, Random(0))) == cells


@pytest.mark.parametrize("game", ["Countdown", "Cryptarithm", "Slitherlink"])
def test_an_invalid_move_is_told_its_reason(game: str) -> None:
    table = Table(f"{game}-v0", 0, 1)
    table.act("nothing")
    assert "action format. Use" in table.seen()
    table.act("nothing")
    assert "action format. Use" in table.seen()
    assert (table.over, table.outcome) == (True, -1.0)


def test_limits_of_actions_end_it() -> None:
    async def run() -> tuple[str | None, float | None, int]:
        episode = await open_episode(made("2048", max_actions=6), "test", 0)
        while not episode.done:
            await episode.call("act", {"action": episode.state._legal_for_test()})
        return episode.stop_reason, (await episode.score([])).total, episode.state.actions

    assert asyncio.run(run()) == ("done", -1.0, 6)


def test_no_seed_is_in_both_splits() -> None:
    environment = made("Nim")
    seeds = {split: {environment.task_at(split, i).info["seed"] for i in range(500)} for split in ("train", "test")}
    assert {seed % 2 for seed in seeds["train"]} == {0}
    assert {seed % 2 for seed in seeds["test"]} == {1}


@pytest.mark.parametrize(
    ("game", "says"),
    [
        *((f"{name}-v0", "fetches a list of words") for name in WORDS),
        *((f"{name}-v0", "asks a paid model") for name in ASKING),
        ("Diplomacy-v0", "no game of textarena that can be played here 'Diplomacy-v0'"),
        ("TicTacTo-v0", "did you mean 'TicTacToe-v0'"),
        ("TicTacToe-v0-raw", "a game is played raw here"),
    ],
)
def test_a_game_that_cannot_be_played_is_told_at_once(game: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load_environment(f"textarena:{game}")


def test_a_variant_that_is_not_there_is_told_when_it_begins() -> None:
    with pytest.raises(ConfigurationError, match="ConnectFour-v0-gigantic cannot be played here"):
        asyncio.run(open_episode(load_environment("textarena:ConnectFour-v0-gigantic"), "test", 0))


def test_its_description_counts_the_games() -> None:
    assert f"{len(ALONE) + len(AGAINST)} games" in TextArena.description
    assert len({*ALONE, *AGAINST}) == len(GAMES)


@pytest.mark.parametrize("game", ["Mastermind-v0-hard", "Breakthrough-v0-small"])
def test_the_checker_finds_nothing(game: str) -> None:
    check_environment("textarena", config={"game": game}, episodes=1, second_process=False).raise_for_findings()


def test_nothing_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = "HTTP, 2026-07-28"
    monkeypatch.setattr(scan, "LANES", {lane: scan.LANES[lane]})
    report = scan_environment(made("Mastermind"), parts=["play"])
    assert report.ok, report.as_json()

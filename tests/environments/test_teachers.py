"""The teachers that environments ship: how strong they are, and that what they say is true."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from random import Random
from typing import Any

import pytest
from episode_driver import drive, open_episode

from mcpgym import load_environment
from mcpgym.errors import ConfigurationError
from mcpgym.messages import user
from mcpgym_environments.thinking import thinks_first
from mcpgym_environments.tic_tac_toe import TicTacToe
from mcpgym_environments.tic_tac_toe.engine import Board
from mcpgym_environments.tic_tac_toe.observation import show
from mcpgym_rl.policies import make_policy

LINES = ("012", "345", "678", "036", "147", "258", "048", "246")


def completing(cells: str, mark: str) -> set[int]:
    """The free cells that give ``mark`` a line; worked out here, without the engine."""
    found = set()
    for line in LINES:
        held = [cells[int(cell)] for cell in line]
        if held.count(mark) == 2 and "." in held:
            found.add(int(line[held.index(".")]))
    return found


def boards(random: Random, count: int) -> list[str]:
    """Boards with X to move and nobody having won, reached by random play."""
    made = []
    while len(made) < count:
        cells = ["."] * 9
        first = random.choice([0, 1])
        for ply, cell in enumerate(random.sample(range(9), random.choice([0, 2, 4, 6]) + first)):
            cells[cell] = "XO"[(ply + first) % 2]
        text = "".join(cells)
        if not any(text[int(a)] == text[int(b)] == text[int(c)] != "." for a, b, c in LINES):
            made.append(text)
    return made


def ask(teacher: Any, cells: str, random: Random) -> tuple[int, str]:
    message = teacher((user(show(Board(cells, "X"))),), random)
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "play"
    assert thinks_first(message)
    return json.loads(call["function"]["arguments"])["position"], message["content"]


def test_the_teacher_of_tic_tac_toe_wins_else_blocks_else_plays_anywhere() -> None:
    teacher, random = TicTacToe().teacher(1.0), Random(1)
    free_moves: Counter[int] = Counter()
    for cells in boards(random, 400):
        cell, _ = ask(teacher, cells, random)
        free = {place for place in range(9) if cells[place] == "."}
        assert cell in (completing(cells, "X") or completing(cells, "O") or free)
        free_moves[cell] += cells == "." * 9
    everywhere = {ask(teacher, "." * 9, random)[0] for _ in range(200)}
    assert everywhere == set(range(9))


def test_without_skill_it_plays_any_free_cell() -> None:
    teacher, random = TicTacToe().teacher(0.0), Random(2)
    counts = Counter(ask(teacher, "XX.OO....", random)[0] for _ in range(1000))
    assert set(counts) == {2, 5, 6, 7, 8}
    assert min(counts.values()) > 140  # 200 expected of each


def test_skill_is_the_probability_to_look_ahead() -> None:
    teacher, random = TicTacToe().teacher(0.6), Random(3)
    wins = sum(ask(teacher, "XX.OO....", random)[0] == 2 for _ in range(4000))
    assert abs(wins / 4000 - (0.6 + 0.4 / 5)) < 0.03


def test_every_thought_is_true_of_the_board_and_names_the_cell_that_is_played() -> None:
    random = Random(4)
    seen: Counter[str] = Counter()
    for cells in boards(random, 600):
        cell, said = ask(TicTacToe().teacher(0.5), cells, random)
        *told, verdict = re.fullmatch(
            r"<think>(?:(Lines)\n((?:[XO.] [XO.] [XO.] \d ){8}))?([^\d]* \d)\.</think>\n?", said
        ).groups()  # type: ignore[union-attr]
        expected = (
            "Win with" if cell in completing(cells, "X") else "Block" if cell in completing(cells, "O") else "Take"
        )
        assert verdict == f"{expected} {cell}"
        seen[verdict.split()[0]] += 1
        assert (told[0] is not None) == (max(cells.count("X"), cells.count("O")) > 1)
        if told[0] is not None:
            lines = [part.split() for part in re.findall(r". . . \d", told[1])]
            assert sorted("".join(marks) for *marks, _ in lines) == sorted(
                "".join(cells[int(c)] for c in line) for line in LINES
            )
            named = {int(cell) for *marks, cell in lines}
            assert named - {9} == completing(cells, "X") | completing(cells, "O")
            assert all((cell == "9") == (marks.count(".") != 1 or len(set(marks)) == 3) for *marks, cell in lines)
    assert min(seen[kind] for kind in ("Win", "Block", "Take")) > 20


def test_slips_and_they_alone_are_not_to_be_learnt_from() -> None:
    random, slips = Random(5), 0
    for cells in boards(random, 400):
        message = TicTacToe().teacher(0.5)((user(show(Board(cells, "X"))),), random)
        cell = json.loads(message["tool_calls"][0]["function"]["arguments"])["position"]
        good = completing(cells, "X") or completing(cells, "O") or set(range(9))
        assert (message.get("weight") == 0) == (cell not in good)
        slips += cell not in good
    assert slips > 30
    for name in ("reverse-text", "double-check"):
        environment = load_environment(name)
        prompt = environment.tasks("train")[0].messages
        right = environment.reference_policies()["expert"](prompt, random)
        for _ in range(50):
            message = environment.teacher(0.5)(prompt, random)
            assert (message.get("weight") == 0) == (message["content"] != right["content"])


@pytest.mark.parametrize(
    "name", ["tic-tac-toe", "reverse-text", "double-check", "wiki-search", "python-sandbox", "long-context"]
)
def test_full_skill_is_rewarded_well_and_none_is_not(name: str) -> None:
    environment = load_environment(name)

    def mean(skill: float) -> float:
        async def all_games() -> float:
            total = 0.0
            for index in range(48):
                episode = await open_episode(environment, "train", index)
                teacher = environment.teacher(skill)
                assert teacher is not None
                messages = await drive(episode, teacher, Random(index))
                total += (await episode.score(messages)).total or 0.0
            return total / 48

        return asyncio.run(all_games())

    strong, middling, weak = mean(1.0), mean(0.5), mean(0.0)
    assert strong > middling > weak


def test_the_policy_spec_names_the_strength() -> None:
    environment = TicTacToe()
    assert make_policy("teacher:skill=0.5", environment).name == "teacher:skill=0.5"
    assert make_policy("teacher", environment).name == "teacher:skill=0.95"
    assert make_policy("teacher:skill=1", environment).name == "teacher:skill=1"


@pytest.mark.parametrize(
    "spec", ["teacher:skill=1.5", "teacher:skill=", "teacher:skill=.", "teacher:0.5", "teacher:skill=-1"]
)
def test_a_strength_that_is_none_is_an_error_that_shows_one(spec: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write teacher:skill=S with S from 0 to 1"):
        make_policy(spec, TicTacToe())

"""Batches are made of whole groups, of the episodes they should be of, and are the same ones again after a resume."""

from __future__ import annotations

import asyncio
import json
import math
import zlib
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym.messages import Message, assistant, tool_call
from mcpgym.registry import load_environment
from mcpgym_environments.tic_tac_toe.observation import last_board
from mcpgym_rl.certificate import certify
from mcpgym_rl.policy import EpisodeContext, Tokens, Turn
from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.training.curriculum import KnownLine, Lines, Plan, groups_for, last_turn, plan_batch
from mcpgym_rl.training.sections import Curriculum, LineGroups, Rl


def line(name: str, turns: int = 4, survived: int = 0) -> KnownLine:
    made = [Turn(assistant(f"{name} {number}")) for number in range(turns)]
    return KnownLine("first", (name, "1"), made, 0.5, survived=survived)


LINES = Lines([line("lost-a"), line("lost-b", 1), line("lost-c", survived=2)], [line("weak-a"), line("weak-b")])
SHARES = Curriculum(open_share=0.5, weak_share=0.25, groups_per_open_line=2)


def line_task(seat: str, acts: Sequence[str], strength: float, others: Sequence[Sequence[str]]) -> str:
    return f"{seat} {' '.join(acts)} {'+'.join(other[0] for other in others)} {strength:g}"


def plan(rl: Rl, size: int = 1_000, seed: int = 0, step: int = 0, lines: Lines = LINES) -> Plan:
    return plan_batch(rl, "game", {"a": 1}, size, seed, step, lines, line_task)


@given(st.integers(2, 40), st.integers(2, 9), st.integers(0, 500), st.integers(0, 99))
def test_groups_are_whole_and_share_all_but_the_repeat(groups: int, size: int, step: int, seed: int) -> None:
    rl = Rl(groups=groups, group_size=size, curriculum=SHARES)
    made = plan(rl, seed=seed, step=step)
    assert Counter(made.groups) == Counter(dict.fromkeys(range(groups), size))
    for group in range(groups):
        members = [spec for spec, number in zip(made.specs, made.groups, strict=True) if number == group]
        assert len({(m.task, m.split, m.index, m.seed, m.temperatures, tuple(map(id, m.given))) for m in members}) == 1
        assert [member.repeat for member in members] == list(range(size))
    assert sum(made.kinds.values()) == groups
    assert made == plan(rl, seed=seed, step=step)


def test_ordinary_groups_walk_through_the_split_and_begin_again_at_its_end() -> None:
    indices = []
    for step in range(3):
        made = plan(Rl(groups=4, group_size=2), size=10, step=step, lines=Lines())
        assert made.kinds == {"open": 0, "weak": 0, "unsure": 0, "ordinary": 4}
        indices += [spec.index for spec in made.specs if spec.repeat == 0]
    assert indices == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


def test_batches_grow_as_fewer_groups_have_a_signal_and_no_further_than_they_may() -> None:
    rl = Rl(groups=16, signal_groups=8, max_groups=40)
    assert [groups_for(rl, signal) for signal in (1.0, 0.5, 0.25, 0.2, 0.0)] == [16, 16, 32, 40, 40]
    assert groups_for(Rl(groups=16), 0.0) == 16
    made = plan_batch(rl, "game", {}, 100, 0, 3, LINES, line_task, groups=32, first_task=95)
    assert sum(made.kinds.values()) == 32
    ordinary = [spec.index for spec in made.specs if spec.split and spec.repeat == 0]
    assert ordinary[:8] == [95, 96, 97, 98, 99, 0, 1, 2]


def test_seeds_differ_between_groups_steps_and_runs() -> None:
    rl = Rl(groups=16, group_size=2)
    made = [plan(rl, seed=seed, step=step, lines=Lines()) for seed in (0, 1) for step in (0, 1)]
    assert len({spec.seed for one in made for spec in one.specs}) == 64


def test_a_game_without_a_tree_has_ordinary_groups_alone() -> None:
    made = plan_batch(Rl(groups=8, group_size=2, curriculum=SHARES), "game", {}, 100, 0, 0, LINES)
    assert made.kinds == {"open": 0, "weak": 0, "unsure": 0, "ordinary": 8}


def test_lines_get_the_shares_the_recipe_gives_them_each_as_often_as_another() -> None:
    made = plan(Rl(groups=20, group_size=2, curriculum=SHARES))
    # no more than two groups for each open line
    assert made.kinds == {"open": 6, "weak": 5, "unsure": 0, "ordinary": 9}
    tasks = Counter((spec.task or "- -").split()[1] for spec in made.specs if spec.repeat == 0)
    assert tasks["lost-a"] == tasks["lost-b"] == tasks["lost-c"] == 2
    assert tasks["weak-a"] + tasks["weak-b"] == 5


def test_a_resumed_line_keeps_a_turn_to_choose_and_is_hotter_the_longer_it_survived() -> None:
    how = LineGroups(turns_back=(1, 1, 1), temperature=1.2, temperature_step=0.3, max_temperature=1.7)
    rl = Rl(
        groups=30, group_size=2, curriculum=Curriculum(open_share=1, weak_share=0, groups_per_open_line=20, open=how)
    )
    made = plan(rl, step=3)
    by_line: dict[str, list[EpisodeSpec]] = {}
    for spec in made.specs:
        by_line.setdefault((spec.task or "").split()[1], []).append(spec)
    assert {len(spec.given) for spec in by_line["lost-a"]} == {1, 2, 3}
    assert {len(spec.given) for spec in by_line["lost-b"]} == {0}  # its only turn is the one to choose
    assert {spec.temperatures for spec in by_line["lost-a"]} == {(1.2,)}
    assert by_line["lost-c"][0].temperatures == pytest.approx((1.7,))


def test_where_an_open_line_is_left_its_opponent_steers_into_the_others() -> None:
    made = plan(Rl(groups=20, group_size=2, curriculum=SHARES))
    tasks = {
        (spec.task or "- - -").split(" ")[1]: (spec.task or "- - -").split(" ")[3] for spec in made.specs if spec.task
    }
    assert set(tasks["lost-a"].split("+")) == {"lost-a", "lost-b", "lost-c"}
    assert tasks["weak-a"] == ""


def test_opponents_off_the_line_are_as_strong_as_the_recipe_says() -> None:
    how = LineGroups(perfect_share=0.5, random_moves=(0.4, 0.6))
    rl = Rl(
        groups=60, group_size=2, curriculum=Curriculum(open_share=1, weak_share=0, groups_per_open_line=20, open=how)
    )
    strengths = [float((spec.task or "").split()[-1]) for spec in plan(rl).specs]
    assert 0.2 < strengths.count(0.0) / len(strengths) < 0.8
    assert all(0.4 <= strength <= 0.6 for strength in strengths if strength)


def test_at_a_missed_win_the_opponent_is_perfect_and_the_missing_turn_is_chosen_anew() -> None:
    missed = KnownLine("first", ("m", "1"), line("m").turns, 0.5, missed_win=True)
    rl = Rl(groups=40, group_size=2, curriculum=Curriculum(open_share=0, weak_share=1, missed_win_weight=3))
    made = plan(rl, lines=Lines([], [missed, line("soft")]))
    by_name: dict[str, list[EpisodeSpec]] = {"m": [], "soft": []}
    for spec in made.specs:
        by_name[(spec.task or "").split()[1]].append(spec)
    assert {(spec.task or "").split()[-1] for spec in by_name["m"]} == {"0"}
    assert {len(spec.given) for spec in by_name["m"]} == {3}
    assert all(float((spec.task or "").split()[-1]) >= 0.6 for spec in by_name["soft"])
    assert len(by_name["m"]) > len(by_name["soft"])


def test_the_ids_of_a_given_turn_are_its_own_alone() -> None:
    tokens = Tokens([5, 6, 7, 1, 9, 9, 2, 3], [False, False, True, True, False, False, True, True], [0.0] * 8)
    assert list(last_turn(tokens).ids) == [2, 3]


def test_what_the_policy_is_not_sure_of_comes_the_more_often_and_begins_at_that_turn() -> None:
    sure, unsure = (KnownLine("first", (name, "1"), line(name).turns, doubt=x) for name, x in (("s", 0.1), ("u", 0.9)))
    rl = Rl(groups=400, group_size=2, curriculum=Curriculum(open_share=0, weak_share=0, unsure_share=0.5))
    made = plan(rl, lines=Lines([], [], [sure, unsure]))
    assert made.kinds == {"open": 0, "weak": 0, "unsure": 200, "ordinary": 200}
    begun = [spec for spec in made.specs if spec.task and not spec.repeat]
    names = Counter((spec.task or "").split()[1] for spec in begun)
    assert 0 < names["s"] < names["u"] / 5
    assert {len(spec.given) for spec in begun} == {3}
    assert {spec.temperatures for spec in begun} == {()}
    certain = KnownLine("first", ("s", "1"), line("s").turns, doubt=0.0)
    assert plan(rl, lines=Lines([], [], [certain])).kinds["ordinary"] == 400


class Clumsy:
    """It plays the first free cell, and in some positions, the same ones each time, a cell that is taken first."""

    name = "clumsy"
    deterministic = True

    def begin(self, context: EpisodeContext) -> Clumsy:
        return self

    def fork(self) -> Clumsy:
        return self

    async def act(self, messages: Sequence[Message]) -> Turn:
        board = last_board(messages)
        refused = messages[-1]["role"] == "tool" and bool(messages[-1].get("is_error"))
        taken = next((cell for cell in range(9) if board.cells[cell] != "."), None)
        wrong = taken is not None and not refused and zlib.crc32(board.cells.encode()) % 5 == 0
        cell = taken if wrong else board.cells.index(".")
        call = tool_call(f"call_{len(messages)}", "play", json.dumps({"position": cell}))
        tokens = Tokens([1, 2, 3], [False, True, True], [0.0, -0.25, -0.5 if wrong else 0.0])
        return Turn(assistant("", [call]), tokens=tokens)

    async def aclose(self) -> None: ...


def test_a_certificate_tells_where_games_were_given_away_and_calls_refused() -> None:
    environment = load_environment("tic-tac-toe")
    found = asyncio.run(certify(Clumsy(), environment))
    lines, without = Lines(), Lines()
    lines.learn(found, unsure=True)
    without.learn(found)
    assert without == Lines(lines.open, lines.weak)
    faults = {(point.seat, point.acts) for point in found.faults}
    lost = [each for each in found.lines if each.outcome == "loss"]
    assert len(lost) > len({(each.seat, each.acts) for each in lines.open}) > 20
    for each in lost:  # tic-tac-toe is a draw: every lost line has a decision that gave it away, or was refused
        assert any((each.seat, each.acts[:count]) in faults for count in range(len(each.acts) + 1))
    assert [(each.seat, each.acts) for each in lines.open] == [(point.seat, point.acts) for point in found.faults]
    refused = [each for each in lines.open if _refused(each)]
    assert len(refused) > 10
    every = [(each.seat, each.acts, len(each.turns)) for each in lines.unsure]
    assert len(set(every)) == len(every) == found.certificate["decisions"]
    assert {round(each.doubt, 9) for each in lines.unsure} == {round(-math.expm1(x), 9) for x in (-0.25, -0.75)}
    again = Lines(lines.open[:3])
    again.learn(found)
    assert [each.survived for each in again.open[:4]] == [1, 1, 1, 0]


@given(st.integers(1, 40), st.lists(st.integers(0, 10), min_size=3, max_size=3).filter(lambda x: 0 < sum(x) <= 10))
def test_a_batch_never_has_more_groups_than_the_recipe_says(groups: int, tenths: list[int]) -> None:
    opened, weak, unsure = (each / 10 for each in tenths)
    shares = Curriculum(open_share=opened, weak_share=weak, unsure_share=unsure, groups_per_open_line=40)
    made = plan(Rl(groups=groups, group_size=2, curriculum=shares), lines=Lines(LINES.open, LINES.weak, LINES.weak))
    assert sum(made.kinds.values()) == groups == len(made.specs) / 2
    assert min(made.kinds.values()) >= 0


def _refused(known: KnownLine) -> bool:
    """Whether the last turn of a line of Clumsy's named a taken cell: it says so by its chances."""
    tokens = known.turns[-1].tokens
    return tokens is not None and tokens.logprobs[-1] == -0.5

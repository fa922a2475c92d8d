"""Certificates of tic-tac-toe: known policies get their known values, planted faults are found, OpenSpiel agrees."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from certificate_checker import problems
from certificate_policies import FunctionPolicy, but, call, play, reference
from certificate_replay import replay_problems

from mcpgym import load_environment
from mcpgym.messages import assistant, tool_call
from mcpgym_environments.tic_tac_toe import TicTacToe
from mcpgym_rl.certificate import Certification, certify
from mcpgym_rl.policies import make_policy

LIMIT = 0.6
"""CPU-seconds that a certificate of 691 decisions may take beside its policy: 0.11 on a quiet machine. It is
made every few steps of a training, so more would be felt."""


def made(**config: Any) -> TicTacToe:
    environment = load_environment("tic-tac-toe", config)
    assert isinstance(environment, TicTacToe)
    return environment


ENVIRONMENT = made()


def certified(policy: Any, environment: TicTacToe = ENVIRONMENT, **options: Any) -> Certification:
    return asyncio.run(certify(policy, environment, **options))


def sound(found: Certification) -> dict[str, Any]:
    """The certificate, after OpenSpiel has looked at it."""
    written = json.loads(json.dumps(found.certificate, allow_nan=False))
    assert problems(written) == []
    return found.certificate


def test_the_expert_is_certified_with_the_exact_optimum() -> None:
    made = sound(certified(reference("expert")))
    assert made["certified"]
    assert (made["lost_lines"], made["unfinished_lines"], made["invalid_moves"]) == (0, 0, 0)
    assert made["versus_random"]["exact"] == made["optimum"]["exact"]
    assert Fraction(made["versus_random"]["exact"]["win"]) == Fraction(115589, 120960)  # .95560
    assert round(made["by_seat"]["first"]["versus_random"]["win"], 5) == 0.99479
    assert round(made["by_seat"]["second"]["versus_random"]["win"], 5) == 0.91640
    assert made["versus_perfect"]["draw"] == 1
    assert (made["distance"], made["suboptimal"], made["blunders"], made["regrets"]) == (0, 0, 0, [])
    assert made["shortest_loss"] is made["shortest_unfinished"] is None


def test_minimax_that_takes_the_first_best_move_never_loses_and_wins_less() -> None:
    made = sound(certified(reference("minimax")))
    assert made["certified"]
    assert made["blunders"] == 0
    assert made["suboptimal"] > 0
    assert 0.85 < made["versus_random"]["win"] < 0.95
    assert made["distance"] == pytest.approx(made["optimum"]["win"] - made["versus_random"]["win"])


def test_one_planted_mistake_is_one_lost_line_drawn_board_by_board() -> None:
    """The expert, second, but after O 0, X 4, O 2, X 1, O 7, X 3, O 5 it does not block 8; it does in any other order
    that comes to that board."""
    expert = reference("expert")

    def once(messages: Any) -> Any:
        told = "\n".join(message["content"] for message in messages if message["role"] != "system")
        order = [told.find(f"O played {cell}.") for cell in (2, 7, 5)]
        line = "played 0. Your turn." in told and -1 not in order and order == sorted(order)
        return call(6) if line and "free 6 8" in messages[-1]["content"] else expert.function(messages)

    found = certified(FunctionPolicy(once))
    made = sound(found)
    assert not made["certified"]
    assert made["lost_lines"] == made["blunders"] == 1
    lost = made["shortest_loss"]
    assert lost["task"] == "line-second-042173568"
    assert lost["moves"][-2:] == ["policy 6", "opponent 8"]
    assert len(lost["positions"]) == 10
    assert lost["positions"][-1].startswith("O X O\nX X O\nX O O")
    (worst, *_) = made["regrets"]
    assert (worst["acts"], worst["played"], worst["best"]) == (list("0421735"), "6", "8")
    assert worst["guaranteed"] == ["draw", "loss"]
    (line,) = [line for line in found.lines if line.outcome == "loss"]
    assert line.task == lost["task"]
    trace = asyncio.run(play(ENVIRONMENT, FunctionPolicy(once), task=line.task))
    assert trace.score is not None
    assert trace.score.game_outcome == "loss"


def test_a_policy_that_answers_without_a_call_leaves_its_lines_unfinished() -> None:
    made = sound(certified(FunctionPolicy(lambda messages: assistant("I resign."))))
    assert (made["lines"], made["unfinished_lines"], made["decisions"]) == (10, 10, 10)
    assert not made["certified"]
    assert made["versus_random"]["unfinished"] == 1
    assert made["shortest_unfinished"]["stop_reason"] == "answered"
    assert made["shortest_unfinished"]["task"] == "line-first"
    assert made["by_seat"]["first"]["guaranteed"] == "unfinished"
    late = but(reference("expert"), {"free 1": assistant("I know.")})
    made = sound(certified(late))
    assert made["unfinished_lines"] > 0
    assert not made["certified"]


def test_illegal_moves_are_counted_once_and_cost_no_game_by_default() -> None:
    """On the first turn it plays 9, which is no cell, and then goes on as the expert: 10 decisions are invalid."""
    policy = but(reference("expert"), {"A new game begins": call(9)})
    made = sound(certified(policy))
    assert (made["lost_lines"], made["invalid_moves"]) == (0, 10)
    assert made["certified"]
    assert made["lines"] == certified(reference("expert")).certificate["lines"]
    assert made["versus_random"] == made["optimum"]
    losing = sound(certified(policy, load("illegal_move_loses")))
    assert (losing["lines"], losing["lost_lines"], losing["invalid_moves"]) == (10, 10, 10)
    assert losing["versus_random"]["loss"] == 1


def load(flag: str) -> TicTacToe:
    return made(**{flag: True})


def test_malformed_and_misnamed_calls_are_invalid_too() -> None:
    broken = assistant("", [tool_call("c", "play", '{"position": 4')])
    for turn in (broken, call(4, "pley"), call("4"), call(None)):
        made = sound(certified(but(reference("expert"), {"A new game begins": turn})))
        assert made["invalid_moves"] == 10
        assert made["certified"]


def test_an_invalid_call_after_a_move_counts_once_whatever_the_reply() -> None:
    expert = reference("expert")

    def function(messages: Any) -> Any:
        turn = expert.function(messages)
        if "A new game begins" in messages[-1]["content"]:
            turn["tool_calls"] = [*turn["tool_calls"], tool_call("more", "play", "{")]
        return turn

    made = sound(certified(FunctionPolicy(function)))
    assert (made["invalid_moves"], made["lost_lines"], made["decisions"]) == (10, 0, 691)


def test_one_illegal_move_after_another_ends_with_the_turns_there_are() -> None:
    made = sound(certified(FunctionPolicy(lambda messages: call(9))))
    assert (made["lines"], made["unfinished_lines"], made["invalid_moves"]) == (10, 10, 80)
    assert made["shortest_unfinished"]["stop_reason"] == "max_turns"
    broken = FunctionPolicy(lambda messages: assistant("", [tool_call("c", "play", "{")]))
    assert sound(certified(broken))["invalid_moves"] == 80


def scattered(seed: int, mistakes: float) -> FunctionPolicy:
    """A fixed policy that does odd things: other cells, two calls in a turn, nothing, malformed calls."""
    expert = reference("expert")

    def function(messages: Any) -> Any:
        random = Random(f"{seed}{[message['content'] for message in messages]}")
        if random.random() > mistakes:
            return expert.function(messages)
        cells = random.sample(range(9), 3)
        several = assistant("two", [tool_call(f"c{cell}", "play", json.dumps({"position": cell})) for cell in cells])
        malformed = assistant("", [tool_call("c", "play", random.choice(["{", '{"position": "4"}', "[4]"]))])
        odd = [call(cells[0]), call(cells[1]), call(cells[2]), call(9), several, malformed, assistant("enough")]
        return random.choice(odd)

    return FunctionPolicy(function)


@pytest.mark.parametrize(("seed", "mistakes"), [(0, 0.1), (1, 0.3), (2, 0.7), (3, 1.0)])
def test_every_line_is_the_real_episode_of_its_task(seed: int, mistakes: float) -> None:
    """What the certificate says of a line is what happens when the policy plays it, to the byte."""
    policy = scattered(seed, mistakes)
    found = certified(policy)
    sound(found)
    assert len({line.task for line in found.lines}) == len(found.lines)
    for line in Random(0).sample(found.lines, min(len(found.lines), 60)):
        trace = asyncio.run(play(ENVIRONMENT, policy, task=line.task, seed=5))
        assert trace.error is None, trace.error
        assert trace.score is not None
        assert trace.score.game_outcome == line.outcome
        assert list(trace.messages) == list(line.messages)
        assert trace.stop_reason == line.stop_reason


@pytest.mark.parametrize(("seed", "mistakes"), [(4, 0.1), (5, 0.4), (6, 1.0)])
def test_the_regrets_of_all_decisions_add_up_to_the_distance(
    seed: int, mistakes: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpgym_rl.certificate.report.WORST_DECISIONS", 10_000)
    made = certified(scattered(seed, mistakes)).certificate
    assert len(made["regrets"]) == made["suboptimal"] > 0
    lost = sum(row["regret"] * row["reached"] for row in made["regrets"])
    assert lost == pytest.approx(made["distance"], abs=1e-12)


def test_the_chances_of_all_lines_add_up_to_one_in_each_seat() -> None:
    found = certified(scattered(7, 0.5))
    for seat in ("first", "second"):
        assert sum(line.chance for line in found.lines if line.seat == seat) == 1
        assert sum(line.chances.perfect for line in found.lines if line.seat == seat) == 1


def test_the_turns_of_a_line_resume_it() -> None:
    """A trainer gives the first turns of a lost line, and the policy goes on from there."""
    policy = reference("random")
    found = certified(policy)
    line = next(line for line in found.lines if line.outcome == "loss" and len(line.turns) == 3)
    again = FunctionPolicy(policy.function)
    trace = asyncio.run(play(ENVIRONMENT, again, task=line.task, given=line.turns[:2]))
    assert again.asked == 1
    assert list(trace.messages) == list(line.messages)


@pytest.mark.parametrize("moves", ["first", "second"])
def test_the_seats_are_those_of_the_configuration(moves: str) -> None:
    made_here = sound(certified(reference("expert"), made(policy_moves=moves)))
    assert list(made_here["by_seat"]) == [moves]
    assert made_here["versus_random"] == made_here["by_seat"][moves]["versus_random"]


def test_too_few_turns_leave_games_unfinished_and_the_optimum_knows() -> None:
    short = sound_but_for_the_optimum(certified(reference("expert"), made(max_turns=3, policy_moves="first")))
    assert short["unfinished_lines"] > 0
    assert not short["certified"]
    assert short["versus_random"]["win"] < short["optimum"]["win"] + 1e-12 < 1


def sound_but_for_the_optimum(found: Certification) -> dict[str, Any]:
    """OpenSpiel knows no limit on turns."""
    assert all("optimum" in problem or "distance" in problem for problem in problems(found.certificate))
    return found.certificate


def test_the_same_policy_gives_the_same_bytes_and_another_one_other_answers() -> None:
    one, two = (json.dumps(certified(scattered(8, 0.3)).certificate) for _ in range(2))
    assert one == two
    other = certified(scattered(9, 0.3)).certificate
    assert other["answers_hash"] != json.loads(one)["answers_hash"]


def test_a_certificate_is_made_in_no_time() -> None:
    policy = FunctionPolicy(TABLED.function)
    certified(policy)  # the values of the game are worked out once, and the policy's thoughts are remembered
    taken = []
    for _ in range(3):
        started = time.process_time()
        assert certified(policy).certificate["decisions"] == 691
        taken.append(time.process_time() - started)
    assert min(taken) < LIMIT


def tabled(policy: FunctionPolicy) -> FunctionPolicy:
    table: dict[str, Any] = {}

    def function(messages: Any) -> Any:
        key = messages[-1]["content"]
        return table[key] if key in table else table.setdefault(key, policy.function(messages))

    return FunctionPolicy(function)


TABLED = tabled(reference("expert"))


# The checker itself: it agrees with right certificates of strange policies, and with no wrong one.


@pytest.mark.parametrize("name", ["random", "minimax", "expert"])
def test_the_checker_plays_the_policy_anew_and_agrees(name: str) -> None:
    policy = reference(name)
    made = certified(policy).certificate
    tools = [tool.listing for tool in ENVIRONMENT.tools.values()]
    assert asyncio.run(replay_problems(made, policy, tools)) == []
    other = but(policy, {"free 1 2 3 5 6 7 8": call(8)})
    assert len(asyncio.run(replay_problems(made, other, tools))) > 10


@pytest.mark.parametrize("loses", [False, True])
def test_the_checker_follows_illegal_moves_in_its_own_words(loses: bool) -> None:
    def some(messages: Any) -> Any:
        random = Random(messages[-1]["content"])
        return call(random.choice([*range(9), 9, -1, 10**9]))

    environment = made(illegal_move_loses=loses)
    found = certified(FunctionPolicy(some), environment).certificate
    assert found["invalid_moves"] > 20
    assert problems(found) == []
    tools = [tool.listing for tool in environment.tools.values()]
    assert asyncio.run(replay_problems(found, FunctionPolicy(some), tools)) == []


def drop(made: dict[str, Any]) -> None:
    made["games"].pop(len(made["games"]) // 2)


def flatter(made: dict[str, Any]) -> None:
    place = next(n for n, game in enumerate(made["games"]) if game.endswith("loss"))
    made["games"][place] = made["games"][place].replace("loss", "draw")


def count_less(made: dict[str, Any]) -> None:
    made["lost_lines"] -= 1


def round_up(made: dict[str, Any]) -> None:
    made["versus_random"]["exact"]["win"] = "24/25"


def invent(made: dict[str, Any]) -> None:
    made["games"].append("first: 8 0 7 1 6 = win")


def hide(made: dict[str, Any]) -> None:
    made["shortest_loss"] = None


def claim(made: dict[str, Any]) -> None:
    made["certified"] = True


def easier(made: dict[str, Any]) -> None:
    made["by_seat"]["second"]["optimum"]["win"] = 0.9


def repaint(made: dict[str, Any]) -> None:
    made["shortest_loss"]["positions"][-1] = made["shortest_loss"]["positions"][0]


def without_a_seat(made: dict[str, Any]) -> None:
    del made["by_seat"]["second"]
    made["games"] = [game for game in made["games"] if game.startswith("first")]


LOST = certified(reference("random")).certificate


@pytest.mark.parametrize(
    "change", [drop, flatter, count_less, round_up, invent, hide, claim, easier, repaint, without_a_seat]
)
def test_the_checker_finds_what_is_wrong(change: Callable[[dict[str, Any]], None]) -> None:
    wrong = deepcopy(LOST)
    assert problems(wrong) == []
    change(wrong)
    assert problems(wrong) != []


@pytest.mark.slow
def test_the_checker_is_a_program(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    policy = make_policy("random", ENVIRONMENT)
    file.write_text(json.dumps(certified(policy, seed=3).certificate))
    program = [sys.executable, str(Path(__file__).with_name("certificate_checker.py")), str(file)]
    right = subprocess.run([*program, "--policy", "random"], capture_output=True, text=True, timeout=100)
    assert (right.returncode, right.stderr) == (0, ""), right.stdout
    assert right.stdout.startswith("all is as it should be")
    wrong = subprocess.run([*program, "--policy", "minimax"], capture_output=True, text=True, timeout=100)
    assert wrong.returncode == 1
    assert "stands there as" in wrong.stdout

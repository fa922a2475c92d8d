"""What policies are worth on given tasks, exactly: OpenSpiel agrees for every opponent, and real games come near."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import lcm
from random import Random
from typing import Any

import pytest
import tic_tac_toe_oracle as oracle
from certificate_policies import FunctionPolicy, call, reference

from mcpgym import load_environment
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.game_tree import opponent_of
from mcpgym_environments.tic_tac_toe import TicTacToe
from mcpgym_environments.tic_tac_toe.engine import Board, best_moves, legal_moves
from mcpgym_environments.tic_tac_toe.observation import opening_prompt
from mcpgym_environments.tic_tac_toe.reference import POLICIES, expert_moves
from mcpgym_environments.tic_tac_toe.teacher import one_ply_moves
from mcpgym_rl.exact import Exact, NoExactValue, exact_outcomes, states_its_chances
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.run import EpisodeSpec, run

MOVES: dict[str, Callable[[Board], tuple[int, ...]]] = {
    "random": legal_moves,
    "minimax": best_moves,
    "expert": expert_moves,
    "teacher:skill=1": one_ply_moves,
}


def made(**config: Any) -> TicTacToe:
    environment = load_environment("tic-tac-toe", config)
    assert isinstance(environment, TicTacToe)
    return environment


def exact(policy: Any, environment: TicTacToe, tasks: dict[str, int], **options: Any) -> Exact:
    who = make_policy(policy, environment) if isinstance(policy, str) else policy
    return asyncio.run(exact_outcomes(who, environment, tasks, **options))


def shares(found: Exact) -> tuple[float, ...]:
    assert sum(found.outcomes.values()) == 1
    return tuple(float(found.outcomes[end]) for end in ("win", "draw", "loss"))


def mixed(share: Fraction) -> oracle.Moves:
    """OpenSpiel's opponent that moves at random with this chance: every move as often as it is likely."""

    def moves(shown: str) -> tuple[int, ...]:
        legal, best = oracle.legal(shown), oracle.optimal(shown)
        whole = lcm(len(legal), len(best)) * share.denominator
        often = {cell: share * whole / len(legal) + (1 - share) * whole / len(best) * (cell in best) for cell in legal}
        return tuple(cell for cell, times in often.items() for _ in range(int(times)))

    return moves


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 4), Fraction(1)])
@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("seat", ["first", "second"])
def test_openspiel_agrees(name: str, seat: str, share: Fraction) -> None:
    environment = made(
        min_random_move_prob=float(share), max_random_move_prob=float(share), policy_moves=seat, test_tasks=3
    )
    found = exact(name, environment, {"test-0": 2, "test-2": 1})
    assert (found.episodes, found.tasks) == (3, 2)
    assert shares(found) == pytest.approx(
        oracle.exact_results(MOVES[name], mixed(share), first=seat == "first"), abs=1e-12
    )


def test_random_against_random_is_the_known_437_in_a_thousand() -> None:
    environment = made(min_random_move_prob=1)
    first = [environment.task_at("test", index).info["policy_first"] for index in range(100)]
    tasks = [f"test-{first.index(True)}", f"test-{first.index(False)}"]
    found = exact("random", environment, dict.fromkeys(tasks, 1))
    assert shares(found) == pytest.approx((0.4365, 0.1270, 0.4365), abs=1e-4)
    assert found.by_seat["first"] is not None
    assert float(found.by_seat["first"]["win"]) == pytest.approx(0.58492, abs=1e-5)
    lone = exact("random", environment, {tasks[0]: 1})
    assert lone.by_seat["second"] is None
    assert lone.outcomes == found.by_seat["first"]


def test_tasks_of_different_opponents_are_mixed_as_often_as_they_are_played() -> None:
    environment = made(policy_moves="first")
    one, other = (exact("minimax", environment, {task: 1}).outcomes["win"] for task in ("test-0", "test-1"))
    assert one != other
    assert exact("minimax", environment, {"test-0": 3, "test-1": 1}).outcomes["win"] == (3 * one + other) / 4


@pytest.mark.parametrize("best_move", ["any", "first"])
def test_a_deterministic_policy_is_walked_through_every_line(best_move: str) -> None:
    """Beside it stands a policy that states the same moves, and so is worked out by positions and not by lines."""

    class Stated:
        name = "stated"

        def choices(self, state: Any) -> Any:
            return [(Fraction(1), environment.game_tree().legal(state)[0])]

    environment = made(best_move=best_move, policy_moves="second")
    walker = reference("random")  # always the first free cell
    assert not states_its_chances(walker)
    if best_move == "first":  # with the other, positions of one key are alike and this policy is not
        tasks = {f"test-{index}": 1 for index in range(5)}
        assert exact(walker, environment, tasks).outcomes == exact(Stated(), environment, tasks).outcomes
    environment = made(best_move="any", policy_moves="second", min_random_move_prob=0.25, max_random_move_prob=0.25)
    result = oracle.exact_results(lambda board: legal_moves(board)[:1], mixed(Fraction(1, 4)), first=False)
    assert shares(exact(walker, environment, {"test-0": 1})) == pytest.approx(result, abs=1e-12)


def test_illegal_moves_and_silence_leave_games_unfinished() -> None:
    environment = made()
    found = exact(FunctionPolicy(lambda messages: call(9)), environment, {"test-0": 1})
    assert found.outcomes["unfinished"] == 1


def test_a_policy_that_draws_has_none_unless_it_states_its_chances() -> None:
    class Drawing(FunctionPolicy):
        deterministic = False

    with pytest.raises(NoExactValue, match="draws its answers"):
        exact(Drawing(lambda messages: call(4), deterministic=False), made(), {"test-0": 1})


def test_an_opponent_that_is_steered_has_none() -> None:
    environment = made()
    line = environment.game_tree().line_task("first", ["4", "0"])
    assert opponent_of(environment.game_tree(), environment.task(line)) is None
    with pytest.raises(NoExactValue, match=line):
        exact("random", environment, {"test-0": 1, line: 1})


def test_few_turns_leave_games_unfinished() -> None:
    environment = made(policy_moves="first")
    found = exact("random", environment, {"test-0": 1}, max_turns=2)
    assert found.outcomes["unfinished"] == 1
    with pytest.raises(NoExactValue, match="2 turns"):
        exact(reference("expert"), environment, {"test-0": 1}, max_turns=2)


@pytest.mark.parametrize("name", [*POLICIES, "teacher:skill=0.7"])
def test_what_is_stated_is_what_is_played(name: str) -> None:
    """On boards of random games: the cells that it plays are those that it states, about as often."""
    environment = made(policy_moves="first")
    policy: Any = make_policy(name, environment)
    tree, random = environment.game_tree(), Random(5)
    for _ in range(12):
        state = tree.starts("first")[0].state
        for _ in range(random.randrange(4)):
            after = random.choice(tree.answers(state, *random.choice(tree.legal(state)))).state
            state = after if after.outcome is None else state
        stated: Counter[int] = Counter()
        for chance, made_call in policy.function.choices(state):
            stated[made_call.arguments["position"]] += chance
        messages = opening_prompt(state.board, None, illegal_loses=False)
        draws = 400
        played = Counter(_cell(policy.function(messages, random)) for _ in range(draws))
        for cell in range(9):
            chance = float(stated[cell])
            assert abs(played[cell] / draws - chance) <= 5 * (chance * (1 - chance) / draws) ** 0.5


def _cell(message: Any) -> int:
    return int(message["tool_calls"][0]["function"]["arguments"].rpartition(" ")[2].rstrip("}"))


def test_real_games_come_near() -> None:
    """Over many seeds of a few tasks, random play ends as it should on them."""
    environment = made()
    specs = [EpisodeSpec("tic-tac-toe", split="test", index=index % 3, seed=index) for index in range(1_200)]

    async def play() -> Any:
        lane = ControlLane(LocalControl(Episodes({"tic-tac-toe": environment})))
        return (await run(make_policy("random", environment), lane, specs, concurrency=64)).traces

    traces = asyncio.run(play())
    found = exact("random", environment, dict(Counter(trace.task for trace in traces)))
    assert found.episodes == 1_200
    for end in ("win", "draw", "loss"):
        chance = float(found.outcomes[end])
        often = sum(trace.score.game_outcome == end for trace in traces) / len(traces)
        assert abs(often - chance) < 3 * (chance * (1 - chance) / 1_200) ** 0.5

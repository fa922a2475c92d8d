"""The tree says what real episodes say, byte for byte, whatever the policy does."""

from __future__ import annotations

import asyncio
import json
from fractions import Fraction
from random import Random
from typing import Any

import pytest
import tic_tac_toe_oracle as oracle
from certificate_policies import play
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym import ConfigurationError, load_environment
from mcpgym.messages import assistant, tool_call
from mcpgym_environments.tic_tac_toe import TicTacToe, engine
from mcpgym_environments.tic_tac_toe.tree import Position, TicTacToeTree
from mcpgym_rl.certificate.lines import Rules, starting_points
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.policy import Turn
from mcpgym_rl.stop_reason import StopReason


def made(**config: Any) -> TicTacToe:
    environment = load_environment("tic-tac-toe", config)
    assert isinstance(environment, TicTacToe)
    return environment


def deep(levels: int) -> Any:
    return [] if not levels else [deep(levels - 1)]


ARGUMENTS = st.one_of(
    st.integers(0, 8).map(lambda cell: {"position": cell}),
    st.sampled_from([{"position": 9}, {"position": -1}, {"position": 10**30}, {"position": "4"}, {"position": 4.0}]),
    st.sampled_from([{}, {"cell": 4}, {"position": True}, {"position": None}, {"position": 4, "why": "é\n"}]),
    st.sampled_from([{"position": deep(61)}, {"position": deep(63)}, {"position": 2.5}]),
).map(json.dumps)
CALLS = st.one_of(
    st.integers(0, 8).map(lambda cell: ("play", json.dumps({"position": cell}))),
    st.integers(0, 8).map(lambda cell: ("play", json.dumps({"position": cell}))),
    st.tuples(st.just("play"), ARGUMENTS),
    st.tuples(st.sampled_from(["pley", "", "x" * 200, "\ud800"]), ARGUMENTS),
    st.tuples(st.just("play"), st.sampled_from(['{"position": 4', "[]", "4", "", '{"position": NaN}'])),
)
TURNS = st.lists(CALLS, min_size=1, max_size=3).map(
    lambda calls: assistant("", [tool_call(f"c{place}", *one) for place, one in enumerate(calls)])
)
GAMES = st.lists(TURNS, min_size=1, max_size=9)


@settings(max_examples=120, deadline=None)
@given(
    turns=GAMES,
    index=st.integers(0, 199),
    seed=st.integers(0, 5),
    loses=st.booleans(),
    max_turns=st.sampled_from([1, 3, 8]),
    cut=st.sampled_from([0, 0, 0, 1]),
    words=st.booleans(),
)
def test_every_real_episode_is_a_line_of_the_tree(
    turns: list[Any], index: int, seed: int, loses: bool, max_turns: int, cut: int, words: bool
) -> None:
    said = [Turn(turn) for turn in turns]
    if cut:
        said[-1] = Turn(said[-1].message, finish="length")
    if words:
        said.append(Turn(assistant("I am done.")))
    else:
        said += [Turn(assistant("", [tool_call("c", "play", f'{{"position": {cell}}}')])) for cell in range(9)]
    environment = made(illegal_move_loses=loses, max_turns=max_turns)
    is_a_line_of_the_tree(environment, said, index, seed)


@pytest.mark.slow
def test_thousands_of_random_games_are_lines_of_the_tree() -> None:
    random = Random(0)
    environments = [made(), made(illegal_move_loses=True), made(max_turns=4), made(policy_moves="second")]
    for number in range(2_000):
        cells = random.sample(range(9), 9)
        for _ in range(random.randrange(3)):
            cells.insert(random.randrange(6), random.choice([*range(9), 9, "4", None]))  # type: ignore[arg-type]
        said = [Turn(assistant("", [tool_call("c", "play", json.dumps({"position": cell}))])) for cell in cells]
        is_a_line_of_the_tree(environments[number % 4], said, index=number, seed=number)


def is_a_line_of_the_tree(environment: TicTacToe, said: list[Turn], index: int, seed: int) -> None:
    trace = asyncio.run(play(environment, ScriptedPolicy(said), split="train", index=index, seed=seed))
    assert trace.error is None, trace.error

    tree = environment.game_tree()
    rules = Rules(tree, environment.max_turns)
    points = starting_points(tree, tree.seats)
    for number in range(trace.turns):
        shown = trace.messages
        (point,) = {id(p): p for p in points if list(p.messages) == shown[: len(p.messages)]}.values()
        assert point.end is None
        points = rules.after(point, said[number])
        together = sum(p.chances.random for p in points)
        assert together == point.chances.random
    (last,) = [p for p in points if list(p.messages) == list(trace.messages)]
    assert last.end == trace.stop_reason
    assert trace.score is not None
    assert rules.line(last).outcome == trace.score.game_outcome
    assert last.invalid_moves == sum(bool(message.get("is_error")) for message in trace.messages)


def test_the_replies_are_those_that_opponents_give_and_no_others() -> None:
    environment = made()
    tree = environment.game_tree()
    for board, state, _ in oracle.both_ways():
        if state.is_terminal() or board.turn != "X":
            continue
        for cell in oracle.legal(oracle.cells(state)):
            after = engine.play(board, cell)
            answers = tree.answers(Position(board), "play", {"position": cell})
            assert {answer.act for answer in answers} == {str(cell)}
            if engine.result(after) is not None:
                assert [(answer.reply, answer.chances) for answer in answers] == [(None, (1, 1))]
                continue
            replies = {answer.reply: answer for answer in answers}
            assert set(replies) == {str(reply) for reply in engine.legal_moves(after)}
            assert {answer.chances.random for answer in answers} == {Fraction(1, len(answers))}
            strongest = {reply for reply, answer in replies.items() if answer.chances.perfect}
            assert strongest == {str(reply) for reply in engine.best_moves(after)}
            assert sum(answer.chances.perfect for answer in answers) == 1


def test_the_second_seat_begins_with_every_opening() -> None:
    tree = made().game_tree()
    assert [start.act for start in tree.starts("first")] == [None]
    assert [start.act for start in tree.starts("second")] == [str(cell) for cell in range(9)]
    assert sum(start.chances.random for start in tree.starts("second")) == 1
    assert len({start.messages[1]["content"] for start in tree.starts("second")}) == 9


@pytest.mark.parametrize("moves", ["first", "second"])
def test_the_seats_are_those_of_the_configuration(moves: str) -> None:
    tree = made(policy_moves=moves).game_tree()
    assert list(tree.seats) == [moves]
    with pytest.raises(ConfigurationError, match=f"there is: {moves}"):
        tree.starts("second" if moves == "first" else "first")


def test_the_legal_calls_are_legal_and_all_there_are() -> None:
    tree = made().game_tree()
    for board, state, _ in oracle.both_ways():
        if board.turn != "X":
            continue
        outcome = None if not state.is_terminal() else "draw"
        calls = tree.legal(Position(board, outcome))  # type: ignore[arg-type]
        expected = () if state.is_terminal() else oracle.legal(oracle.cells(state))
        assert [call.arguments["position"] for call in calls] == list(expected)


def test_states_with_one_key_are_worth_the_same() -> None:
    environment = made()
    tree = TicTacToeTree(environment)
    values: dict[str, set[int]] = {}
    for board, _, _ in oracle.both_ways():
        if board.turn == "X" and engine.result(board) is None:
            values.setdefault(tree.key(Position(board)), set()).add(engine.value(board))
    assert all(len(worth) == 1 for worth in values.values())
    assert 600 < len(values) < 1000  # a key of its own for each of 2 × 2,423 boards would make certificates slow


def test_a_line_is_drawn_as_the_policy_is_shown_it() -> None:
    tree = made().game_tree()
    assert tree.draw("second", ["0", "4"]) == "O . .\n. X .\n. . .\nX 4 · O 0 · free 1 2 3 5 6 7 8"
    with pytest.raises(ConfigurationError, match="cell 4, which is taken"):
        tree.draw("first", ["4", "4"])


def test_the_longest_game_is_cut_off_by_the_turns_there_are() -> None:
    environment = made(max_turns=2)
    tree = environment.game_tree()
    rules = Rules(tree, 2)
    (point,) = starting_points(tree, ["first"])
    turn = Turn(assistant("", [tool_call("c", "play", '{"position": 4}')]))
    points = rules.after(point, turn)
    assert {p.end for p in points} == {None}
    again = [after for p in points for after in rules.after(p, turn)]
    assert {p.end for p in again} == {StopReason.MAX_TURNS}
    assert {p.invalid_moves for p in again} == {1}

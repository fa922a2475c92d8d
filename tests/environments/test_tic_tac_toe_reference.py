"""The reference policies: what they can see, and exactly how well they play, by walking every line in OpenSpiel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest
import tic_tac_toe_oracle as oracle
from episode_driver import drive, open_episode

from mcpgym import load_environment
from mcpgym.messages import user
from mcpgym_environments.tic_tac_toe import TicTacToe, engine
from mcpgym_environments.tic_tac_toe.engine import Board
from mcpgym_environments.tic_tac_toe.observation import show

POLICIES = TicTacToe().reference_policies()


class Chooser(Random):
    """Takes the option of a given number whenever a policy chooses, and tells how many there were."""

    def __init__(self, number: int) -> None:
        super().__init__(0)
        self.number, self.options = number, 0

    def choice(self, seq: Sequence[Any]) -> Any:
        self.options = len(seq)
        return seq[self.number]


def moves_of(name: str) -> Callable[[Board], tuple[int, ...]]:
    """What the policy may play on a board, learnt from outside: by asking it with every outcome of its one choice."""

    def act(board: Board, number: int) -> tuple[int, int]:
        chooser = Chooser(number)
        message = POLICIES[name]([user(show(board))], chooser)
        (call,) = message["tool_calls"]  # type: ignore[union-attr]
        assert call["function"]["name"] == "play"
        return json.loads(call["function"]["arguments"])["position"], chooser.options

    @cache
    def moves(board: Board) -> tuple[int, ...]:
        first, options = act(board, 0)
        played = (first, *(act(board, number)[0] for number in range(1, options)))
        assert len(set(played)) == options
        return played

    return moves


def average(name: str, opponent: oracle.Moves) -> list[float]:
    seats = [oracle.exact_results(moves_of(name), opponent, first=first) for first in (True, False)]
    return [sum(column) / 2 for column in zip(*seats, strict=True)]


def test_random_has_the_exact_results_of_uniform_play() -> None:
    assert average("random", oracle.legal) == pytest.approx([0.437, 0.127, 0.437], abs=5e-4)
    assert average("random", oracle.optimal) == pytest.approx([0, 0.127, 0.873], abs=5e-4)


def test_expert_never_loses_and_wins_most_of_all_that_never_lose() -> None:
    first = oracle.exact_results(moves_of("expert"), oracle.legal, first=True)
    second = oracle.exact_results(moves_of("expert"), oracle.legal, first=False)
    assert first == pytest.approx([0.99479, 0.00521, 0], abs=5e-6)
    assert second == pytest.approx([0.91640, 0.08360, 0], abs=5e-6)
    assert average("expert", oracle.legal) == pytest.approx([0.95560, 0.04440, 0], abs=5e-6)
    assert first[2] == second[2] == 0


@pytest.mark.parametrize("name", ["expert", "minimax"])
def test_the_policies_that_cannot_lose_draw_every_game_with_a_perfect_opponent(name: str) -> None:
    for first in (True, False):
        assert oracle.exact_results(moves_of(name), oracle.optimal, first=first) == (0, 1, 0)
        assert oracle.exact_results(moves_of(name), oracle.legal, first=first)[2] == 0


def test_expert_takes_a_win_at_once_and_thinks_what_is_true() -> None:
    for board, state, _ in oracle.both_ways():
        if board.turn == "O" or state.is_terminal():
            continue
        wins = [c for c in engine.legal_moves(board) if engine.result(engine.play(board, c)) == "X"]
        threats = [
            c for c in engine.legal_moves(board) if engine.result(engine.play(Board(board.cells, "O"), c)) == "O"
        ]
        for number in range(len(moves_of("expert")(board))):
            message = POLICIES["expert"]([user(show(board))], Chooser(number))
            cell = json.loads(message["tool_calls"][0]["function"]["arguments"])["position"]
            text = message["content"]
            assert text.startswith("<think>")
            assert text.endswith("</think>")
            assert ("and win" in text) == bool(wins) == (cell in wins)
            assert ("block it" in text) == (not wins and cell in threats)
            assert ("none to block" in text) == (not wins and not threats)


@pytest.mark.parametrize(("name", "form"), [("random", 0.0), ("minimax", 1.0), ("expert", 1.0)])
def test_a_whole_game_is_legal_and_has_the_form_it_should_have(name: str, form: float) -> None:
    async def run() -> None:
        environment = TicTacToe()
        for index in range(40):
            episode = await open_episode(environment, "test", index)
            messages = await drive(episode, POLICIES[name], Random(index))
            score = await episode.score(messages)
            assert episode.stop_reason == "done"
            assert score.components["invalid_move"] == 0
            assert score.components["format"] == form
            ids = [call["id"] for m in messages for call in m.get("tool_calls", ())]
            assert len(ids) == len(set(ids))

    asyncio.run(run())


def test_expert_draws_every_game_when_no_move_of_the_opponent_is_random() -> None:
    async def run() -> list[str | None]:
        environment = load_environment("tic-tac-toe", {"min_random_move_prob": "0", "max_random_move_prob": "0"})
        outcomes = []
        for index in range(100):
            episode = await open_episode(environment, "test", index)
            messages = await drive(episode, POLICIES["expert"], Random(index))
            outcomes.append((await episode.score(messages)).game_outcome)
        return outcomes

    assert asyncio.run(run()) == ["draw"] * 100


@pytest.mark.parametrize("first", [True, False])
def test_case_28_a_perfect_opponent_plays_nearly_every_line_it_may_against_a_fixed_policy(
    first: bool,
) -> None:
    def lowest_best(board: Board) -> int:
        return engine.best_moves(board)[0]

    def lines(state: Any) -> set[str]:
        """The final boards of all lines, in the order of play, that equally good replies allow."""
        shown = oracle.cells(state)
        if state.is_terminal():
            return {state.history_str()}
        if (state.current_player() == 0) == first:
            moves = (lowest_best(Board(shown if first else shown.translate(oracle.SWAP), "X")),)
        else:
            moves = oracle.optimal(shown)
        return {line for move in moves for line in lines(state.child(move))}

    environment = load_environment(
        "tic-tac-toe",
        {"min_random_move_prob": 0, "max_random_move_prob": 0, "policy_moves": "first" if first else "second"},
    )
    played = set()
    for task in environment.tasks("train")[:1500]:
        game = environment.reset(task, 0)
        moves = [] if game.opening is None else [game.opening]
        while game.outcome is None:
            cell = lowest_best(game.board)
            before = engine.play(game.board, cell).cells
            environment.play(game, cell)  # type: ignore[attr-defined]
            moves += [cell, *(c for c in range(9) if before[c] != game.board.cells[c])]
        played.add(", ".join(map(str, moves)))
    possible = lines(oracle.GAME.new_initial_state())
    assert played <= possible
    assert len(played) > 0.8 * len(possible)
    assert len(possible) > 1


def test_a_policy_that_sees_no_board_says_so() -> None:
    with pytest.raises(ValueError, match="no message shows"):
        POLICIES["expert"]([user("Hello.")], Random(0))

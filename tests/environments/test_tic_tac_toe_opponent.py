"""The opponent: what it plays, how often, and that nothing but its seeds and the board decides."""

from __future__ import annotations

import hashlib
import math
import os
import random
import subprocess
import sys

import pytest
import tic_tac_toe_oracle as oracle

from mcpgym import derive_seed
from mcpgym_environments.tic_tac_toe import TicTacToe, TicTacToeConfig, engine
from mcpgym_environments.tic_tac_toe.engine import Board
from mcpgym_environments.tic_tac_toe.opponent import make_opponent, reply

O_TO_MOVE = sorted(board for board, state, _ in oracle.both_ways() if board.turn == "O" and not state.is_terminal())


def seeds(name: str, count: int) -> list[int]:
    return [derive_seed(name, number) for number in range(count)]


def chi_square(counts: list[int]) -> float:
    expected = sum(counts) / len(counts)
    return sum((count - expected) ** 2 / expected for count in counts)


def assert_like_chance(statistic: float, degrees: int) -> None:
    """The statistic is within four standard deviations of its mean: neither unfair, nor more even than chance."""
    assert abs(statistic - degrees) < 4 * math.sqrt(2 * degrees)


@pytest.mark.parametrize("prob", [0.0, 1.0])
def test_it_chooses_uniformly_among_equally_good_moves_and_at_random_among_all(prob: float) -> None:
    opponents = [make_opponent(seed, prob) for seed in seeds("uniform", 600)]
    statistic, degrees = 0.0, 0
    for board in O_TO_MOVE[:: 40 if prob else 10]:
        moves = engine.legal_moves(board) if prob else oracle.optimal(_spiel_cells(board))
        played = [reply(opponent, board) for opponent in opponents]
        assert set(played) <= set(moves)
        if len(moves) > 1:
            statistic += chi_square([played.count(move) for move in moves])
            degrees += len(moves) - 1
    assert degrees > 200
    assert_like_chance(statistic, degrees)


def test_every_equally_good_move_is_played_on_every_board() -> None:
    opponents = [make_opponent(seed, 0.0) for seed in seeds("all", 120)]
    for board in O_TO_MOVE[::7]:
        assert {reply(opponent, board) for opponent in opponents} == set(oracle.optimal(_spiel_cells(board))), board


@pytest.mark.parametrize("prob", [0.01, 0.2, 0.5, 0.83, 0.99])
def test_its_share_of_random_moves_is_the_probability_it_was_given(prob: float) -> None:
    boards = [board for board in O_TO_MOVE if len(engine.legal_moves(board)) > len(engine.best_moves(board))]
    worse, expected, variance = 0, 0.0, 0.0
    for seed in seeds(f"share {prob}", 60):
        opponent = make_opponent(seed, prob)
        for board in boards[seed % 23 :: 23]:
            legal, best = engine.legal_moves(board), engine.best_moves(board)
            chance = prob * (len(legal) - len(best)) / len(legal)
            worse += reply(opponent, board) not in best
            expected += chance
            variance += chance * (1 - chance)
    assert abs(worse - expected) < 4 * math.sqrt(variance)


@pytest.mark.parametrize("prob", [0.3, 0.7])
def test_whether_a_move_is_random_and_which_move_it_is_are_independent(prob: float) -> None:
    opponents = [make_opponent(seed, prob) for seed in seeds(f"mixed {prob}", 3000)]
    statistic, degrees = 0.0, 0
    for board in O_TO_MOVE[::500]:
        legal, best = engine.legal_moves(board), engine.best_moves(board)
        played = [reply(opponent, board) for opponent in opponents]
        for move in legal:
            expected = len(played) * (prob / len(legal) + (move in best) * (1 - prob) / len(best))
            statistic += (played.count(move) - expected) ** 2 / expected
        degrees += len(legal) - 1
    assert_like_chance(statistic, degrees)


def test_replies_to_different_boards_are_independent() -> None:
    one, other = Board("X........", "O"), Board("....X....", "O")
    pairs = [
        (reply(opponent, one), reply(opponent, other))
        for opponent in (make_opponent(s, 1.0) for s in seeds("pair", 6400))
    ]
    cells = [(a, b) for a in engine.legal_moves(one) for b in engine.legal_moves(other)]
    assert_like_chance(chi_square([pairs.count(cell) for cell in cells]), len(cells) - 1)


def test_every_task_plays_at_random_as_often_as_its_info_says() -> None:
    environment = TicTacToe()
    boards = [board for board in O_TO_MOVE if len(engine.legal_moves(board)) > len(engine.best_moves(board))]
    worse, expected, variance = 0, 0.0, 0.0
    for task in environment.tasks("test")[:200]:
        opponent = environment.reset(task, 5).opponent
        for board in boards[task.info["seed"] % 61 :: 61]:
            legal, best = engine.legal_moves(board), engine.best_moves(board)
            chance = task.info["random_move_prob"] * (len(legal) - len(best)) / len(legal)
            worse += reply(opponent, board) not in best
            expected += chance
            variance += chance * (1 - chance)
    assert abs(worse - expected) < 4 * math.sqrt(variance)


def test_case_27_games_of_one_task_and_seed_that_reach_a_board_by_different_ways_get_the_same_reply() -> None:
    environment = TicTacToe()
    by_several_ways = 0
    for task in environment.tasks("train")[:6]:
        replies: dict[str, set[str]] = {}
        ways: dict[str, int] = {}
        waiting: list[tuple[int, ...]] = [()]
        while waiting:
            line = waiting.pop()
            game = environment.reset(task, seed=9)
            for cell in line[:-1]:
                environment.play(game, cell)
            if line:
                before = engine.play(game.board, line[-1]).cells
                environment.play(game, line[-1])
                replies.setdefault(before, set()).add(game.board.cells)
                ways[before] = ways.get(before, 0) + 1
            waiting += [(*line, cell) for cell in engine.legal_moves(game.board)]
        assert all(len(answers) == 1 for answers in replies.values())
        by_several_ways += sum(count > 1 for count in ways.values())
    assert by_several_ways > 100


def test_case_27_another_episode_seed_or_task_makes_another_opponent() -> None:
    environment = TicTacToe()
    task, other = environment.task_at("train", 0), environment.task_at("train", 1)
    keys = {environment.reset(t, seed).opponent.key for t in (task, other) for seed in (0, 1, -1, 2**70)}
    assert len(keys) == 8


REPLIES = """
import hashlib
from mcpgym_environments.tic_tac_toe import TicTacToe, TicTacToeConfig, engine
environment, digest = TicTacToe(), hashlib.sha256()
for task in environment.tasks("train")[:50] + environment.tasks("test")[:50]:
    game = environment.reset(task, 3)
    digest.update(str(environment.messages(task, game)).encode())
    while game.outcome is None:
        moves = engine.legal_moves(game.board)
        digest.update(environment.play(game, moves[len(moves) // 2]).encode())
print(digest.hexdigest())
"""
PINNED = "b160f7b12aadabe30821bc868f19f1e73c5ecc51e9e72fd9f869f7de49083947"
"""Of the games in REPLIES. If this changes, scores do: raise ``TicTacToe.version`` with it."""


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_case_27_games_are_the_same_bytes_in_every_process(hash_seed: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", REPLIES],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert TicTacToe.version == "1"
    assert ran.stdout.strip() == PINNED


def test_case_27_playing_leaves_the_global_generator_alone_and_does_not_depend_on_it() -> None:
    environment = TicTacToe()

    def games() -> str:
        texts = []
        for task in environment.tasks("train")[:20]:
            game = environment.reset(task, 0)
            while game.outcome is None:
                texts.append(environment.play(game, engine.legal_moves(game.board)[0]))
        return hashlib.sha256("".join(texts).encode()).hexdigest()

    random.seed(1)
    before = random.getstate()
    first = games()
    assert random.getstate() == before
    random.seed(2)
    assert games() == first


def _spiel_cells(board: Board) -> str:
    """The cells with the first player's marks as X, which is how OpenSpiel knows the state."""
    o_first = board.cells.count("O") == board.cells.count("X")
    return board.cells.translate(oracle.SWAP) if o_first else board.cells


def test_the_first_mover_always_takes_the_first_of_the_best_moves_and_its_random_share_stays_random() -> None:
    board = engine.new_board("O")
    first = [make_opponent(seed, 0.0, varied=False) for seed in seeds("first", 50)]
    assert {reply(opponent, board) for opponent in first} == {engine.best_moves(board)[0]}
    random = [make_opponent(seed, 1.0, varied=False) for seed in seeds("first", 200)]
    assert {reply(opponent, board) for opponent in random} == set(range(9))
    environment = TicTacToe(TicTacToeConfig(best_move="first", max_random_move_prob=0.0, policy_moves="second"))
    openings = {environment.reset(environment.task_at("train", index), 0).opening for index in range(40)}
    assert openings == {engine.best_moves(board)[0]}
    tree = environment.game_tree()
    assert tree is not None
    assert [start.chances.perfect for start in tree.starts("second")].count(0) == 8

"""Line tasks: the opponent steers into a line of play, and off the line plays as its strength says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import tic_tac_toe_oracle as oracle
from certificate_policies import play
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym import ConfigurationError, Task, load_environment
from mcpgym_environments.tic_tac_toe import TicTacToe, engine
from mcpgym_environments.tic_tac_toe.lines import line_id
from mcpgym_environments.tic_tac_toe.opponent import reply
from mcpgym_rl.policies.script import ScriptedPolicy

FROZEN = [8, 3, 7, 6, 1]


def made(**config: Any) -> TicTacToe:
    environment = load_environment("tic-tac-toe", config)
    assert isinstance(environment, TicTacToe)
    return environment


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A seat, and the moves of a game in OpenSpiel, perhaps not to its end."""
    state = oracle.GAME.new_initial_state()
    acts: list[str] = []
    for _ in range(draw(st.integers(0, 9))):
        if state.is_terminal():
            break
        acts.append(str(draw(st.sampled_from(state.legal_actions()))))
        state.apply_action(int(acts[-1]))
    return draw(st.sampled_from(["first", "second"])), acts


def moves_of(seat: str, acts: list[str], mine: bool) -> list[str]:
    return acts[(seat == "first") != mine :: 2]


@settings(max_examples=60, deadline=None)
@given(line=lines(), seed=st.integers(0, 100), percent=st.integers(0, 100))
def test_the_opponent_follows_the_line_while_the_game_does(
    line: tuple[str, list[str]], seed: int, percent: int
) -> None:
    seat, acts = line
    environment = made()
    task = environment.game_tree().line_task(seat, acts, percent / 100)
    cells = moves_of(seat, acts, mine=True)
    policy = ScriptedPolicy([*({"name": "play", "arguments": {"position": int(cell)}} for cell in cells), "enough"])
    trace = asyncio.run(play(environment, policy, task=task, seed=seed))
    assert trace.error is None, trace.error
    assert (trace.task, trace.split) == (task, "line")
    told = "\n".join(message["content"] for message in trace.messages[1:])
    for cell in moves_of(seat, acts, mine=False):
        assert f"O played {cell}." in told or f"played {cell}. Your turn." in told
    assert not any(call.is_error for call in trace.calls)
    state = oracle.GAME.new_initial_state()
    for act in acts:
        state.apply_action(int(act))
    if state.is_terminal():
        mine = state.returns()[0 if seat == "first" else 1]
        assert trace.score is not None
        assert trace.score.game_outcome == {1: "win", 0: "draw", -1: "loss"}[int(mine)]


def game(environment: TicTacToe, task: str, seed: int = 0) -> Any:
    return environment.reset(environment.task(task), seed)


def test_off_the_line_the_opponent_is_perfect_unless_the_id_says_otherwise() -> None:
    environment = made()
    line = {board.cells for board in engine_boards("40281")}
    off = 0
    for board, state, _ in oracle.both_ways():
        if board.turn != "O" or state.is_terminal() or board.cells in line:
            continue
        off += 1
        assert reply(game(environment, "line-first-40281").opponent, board) in engine.best_moves(board)
    assert off > 4000


def test_the_share_of_random_moves_off_the_line_is_that_of_the_id() -> None:
    """On a board where one reply of five is best, 30 % random moves play another in 24 %."""
    environment = made()
    after = engine.Board("X.XOO.X..", "O")
    assert engine.best_moves(after) == (5,)
    opponents = [game(environment, "line-first-4-r30", seed).opponent for seed in range(3000)]
    others = sum(reply(opponent, after) != 5 for opponent in opponents)
    expected = 0.3 * (len(engine.legal_moves(after)) - 1) / len(engine.legal_moves(after))
    assert abs(others / 3000 - expected) < 4 * (expected * (1 - expected) / 3000) ** 0.5


def engine_boards(cells: str) -> list[engine.Board]:
    boards = [engine.new_board("X")]
    for cell in cells:
        boards.append(engine.play(boards[-1], int(cell)))
    return boards


def test_a_game_that_comes_to_the_line_in_another_order_is_steered_too() -> None:
    """As with every opponent, the board alone decides: X 0, O ?, X 8 and X 8, O ?, X 0 get one answer."""
    opponent = game(made(), "line-first-04827").opponent
    board = engine_boards("048")[-1]
    assert reply(opponent, board) == 2
    assert reply(opponent, engine_boards("840")[-1]) == 2


def test_a_line_is_steered_into_though_its_moves_are_bad() -> None:
    opponent = game(made(), "line-first-403").opponent
    assert reply(opponent, engine_boards("4")[-1]) == 0
    bad = game(made(), "line-first-41").opponent
    assert 1 not in engine.best_moves(engine_boards("4")[-1])
    assert reply(bad, engine_boards("4")[-1]) == 1


def test_lines_are_in_no_split() -> None:
    environment = made(train_tasks=50, test_tasks=50)
    listed = [task.id for split in environment.splits for task in environment.tasks(split)]
    assert not [name for name in listed if name.startswith("line")]
    assert environment.splits == ("train", "test")


def test_a_line_shows_the_policy_nothing_of_itself() -> None:
    environment = made()
    line, ordinary = environment.task("line-second-0481"), environment.task("train-1")
    assert line.messages[0] == ordinary.messages[0]
    state = environment.reset(line, 0)
    said = " ".join(message["content"] for message in environment.messages(line, state))
    assert "line" not in said.replace("complete a line", "")
    assert "O moved first and played 0." in said


@given(line=lines(), percent=st.integers(0, 100))
def test_a_lines_id_says_all_of_it(line: tuple[str, list[str]], percent: int) -> None:
    seat, acts = line
    task: Task = made().task(line_id(seat, acts, percent / 100))
    assert task.info["policy_first"] == (seat == "first")
    assert task.info["random_move_prob"] == percent / 100
    theirs = moves_of(seat, acts, mine=False)
    assert sorted(task.info["line"].values()) == sorted((int(cell),) for cell in theirs)
    assert json.dumps(task.info["line"])


@pytest.mark.parametrize(
    ("task", "config", "message"),
    [
        ("line-first-0314256", {}, r"the game is over before move 6 \('5'\)"),
        ("line-second-031425", {}, r"the game is over before move 6"),
        ("line-first-44", {}, "move 2 plays cell 4, which is taken"),
        ("line-first-49", {}, "move 2 is '9', and cells are 0 to 8"),
        ("line-first-0123456789", {}, "the game is over before move 8"),
        ("line-first-4-r101", {}, "r101 is more than 100 %"),
        ("line-third-4", {}, "write line-first-CELLS or line-second-CELLS"),
        ("line-first-", {}, "write line-first-CELLS"),
        ("line-first-4x", {}, "write line-first-CELLS"),
        ("line-first-٤", {}, "write line-first-CELLS"),
        ("line-first-4\n", {}, "write line-first-CELLS"),
        ("line-" + "4" * 10_000, {}, "write line-first-CELLS"),
        ("line-first-4", {"policy_moves": "second"}, "policy_moves=second, so write line-second-…"),
        ("line-second-4", {"policy_moves": "first"}, "policy_moves=first, so write line-first-…"),
        ("lime-first-4", {}, "no task 'lime-first-4'"),
    ],
)
def test_a_line_that_cannot_be_is_refused(task: str, config: dict[str, Any], message: str) -> None:
    environment = made(**config)
    with pytest.raises(ConfigurationError, match=message) as refused:
        environment.task(task)
    assert len(str(refused.value)) < 500


def test_a_line_opens_through_the_control_plane_and_a_wrong_one_says_why() -> None:
    environment = made()
    trace = asyncio.run(play(environment, ScriptedPolicy(["no"]), task="line-second-8"))
    assert "O moved first and played 8." in trace.messages[1]["content"]
    with pytest.raises(ConfigurationError, match="cell 8, which is taken"):
        asyncio.run(play(environment, ScriptedPolicy(["no"]), task="line-second-88"))


def test_case_27_a_line_plays_alike_on_every_machine() -> None:
    """Off the line, a fixed game has fixed replies: what derives from the task's id must never change."""
    environment = made()
    boards = [engine.Board(cells, "O") for cells in ("X...O....", "X.X.O....", "OX......X", "O.X.X....", "O...X..X.")]
    opponent = game(environment, "line-second-0-r50", 7).opponent
    assert [reply(opponent, board) for board in boards] == FROZEN


def replies_to(task: str, cell: int) -> set[int]:
    """What O answers to ``cell`` in the first turn, over many seeds."""
    environment = TicTacToe()
    answers = set()
    for seed in range(40):
        game = environment.reset(environment.task(task), seed)
        environment.play(game, cell)
        answers.add(game.board.cells.index("O"))
    return answers


def test_off_the_first_line_the_opponent_steers_into_the_further_ones() -> None:
    assert replies_to("line-first-4082+4260+4213", 4) == {0}  # on the first line its own reply, whatever others have
    assert replies_to("line-first-0+4260+4213", 4) == {2}
    assert replies_to("line-first-0+42+46", 4) == {2, 6}  # lines that differ take turns, as the seed has it
    with pytest.raises(ConfigurationError, match="move 2 plays cell 4, which is taken"):
        TicTacToe().task("line-first-40+44")

"""Tic-tac-toe as a policy meets it: turns, illegal moves, ends, rewards, and nothing that should stay hidden."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
import tic_tac_toe_oracle as oracle
from episode_driver import drive, open_episode
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym import load_environment
from mcpgym.episode import Episode
from mcpgym.messages import Message, assistant
from mcpgym_environments.thinking import thinks_first
from mcpgym_environments.tic_tac_toe import TicTacToe
from mcpgym_environments.tic_tac_toe.engine import Board
from mcpgym_environments.tic_tac_toe.observation import last_board, read_board, show

HARSH = {"min_random_move_prob": 1, "policy_moves": "first", "illegal_move_loses": True}
ILLEGAL: list[Any] = [
    {"position": 9}, {"position": -1}, {"position": 10**30}, {"position": 10**5000}, {"position": "4"},
    {"position": True}, {"position": None}, {"position": 4.5}, {"position": float("nan")}, {"position": float("inf")},
    {"position": [4]}, {"position": {}}, {}, {"cell": 4}, {"position": 4, "cell": 4}, {"Position": 4}, {"": 4},
]  # fmt: skip


def opened(index: int = 0, **config: Any) -> Episode:
    return asyncio.run(open_episode(load_environment("tic-tac-toe", config), "train", index))


def called(episode: Episode, *arguments: Any, name: str = "play") -> Any:
    async def run() -> Any:
        return [await episode.call(name, given) for given in arguments][-1]

    return asyncio.run(run())


def scored(episode: Episode, messages: list[Message] | None = None) -> Any:
    return asyncio.run(episode.score(messages))


def test_the_board_is_shown_as_a_grid_and_as_lists_and_read_back_on_every_board() -> None:
    assert show(Board("XO.OX...O", "X")) == "X O .\nO X .\n. . O\nX 0 4 · O 1 3 8 · free 2 5 6 7"
    assert show(Board("." * 9, "X")).endswith("X none · O none · free 0 1 2 3 4 5 6 7 8")
    for board, _, _ in oracle.both_ways():
        assert read_board(show(board)) == Board(board.cells, "X")
    assert read_board("no board") is None


def test_the_prompt_shows_the_board_as_the_policy_finds_it() -> None:
    first, second = opened(policy_moves="first"), opened(policy_moves="second")
    assert "You move first." in first.messages[-1]["content"]
    assert last_board(first.messages) == Board("." * 9, "X")
    opening = second.state.opening
    assert f"O moved first and played {opening}." in second.messages[-1]["content"]
    assert last_board(second.messages).cells.count("O") == 1


def test_an_answer_names_both_moves_and_shows_the_new_board() -> None:
    episode = opened(policy_moves="first")
    result = called(episode, {"position": 4})
    (answer,) = (cell for cell in range(9) if episode.state.board.cells[cell] == "O")
    assert result.text == f"You played 4. O played {answer}. Your turn.\n{show(episode.state.board)}"
    assert not result.is_error
    assert not result.done


@pytest.mark.parametrize("arguments", ILLEGAL, ids=range(len(ILLEGAL)))
def test_an_illegal_call_changes_nothing_tells_what_is_free_and_costs_once(arguments: dict[str, Any]) -> None:
    episode = opened(policy_moves="second")
    board = episode.state.board
    for _ in range(2):
        result = called(episode, arguments)
        assert result.is_error
        assert not result.done
        assert "still your turn" in result.text
        assert read_board(result.text) == Board(board.cells, "X")
        assert len(result.text) < 500
    assert episode.state.board == board
    assert episode.failure is None
    assert scored(episode).components["invalid_move"] == -0.1


def test_a_taken_cell_is_illegal_whoever_holds_it() -> None:
    episode = opened(policy_moves="first")
    called(episode, {"position": 0})
    theirs = episode.state.board.cells.index("O")
    for cell, holder in ((0, "X"), (theirs, "O")):
        before = episode.state.board
        result = called(episode, {"position": cell})
        assert result.text.startswith(f"Cell {cell} is taken by {holder}. Nothing was played")
        assert result.is_error
        assert episode.state.board == before
    assert scored(episode).components["invalid_move"] == -0.1


def test_a_legal_call_costs_nothing_and_a_whole_float_is_the_integer_that_it_is() -> None:
    episode = opened(policy_moves="first")
    assert not called(episode, {"position": 4.0}).is_error
    assert episode.state.board.cells[4] == "X"
    assert scored(episode).components["invalid_move"] == 0


def test_case_26_guessed_tools_do_nothing_and_gain_nothing() -> None:
    episode = opened(policy_moves="first")
    before = (episode.state.board, scored(episode))
    names = ["reset", "undo", "score", "outcome", "_illegal", "reply", "close", "is_done", "state", "__init__", "tasks"]
    for name in names:
        assert called(episode, {}, name=name).is_error
        if episode.done:
            episode = opened(policy_moves="first")
    assert (episode.state.board, scored(episode)) == before


def test_case_26_nothing_hidden_is_in_what_the_policy_sees() -> None:
    environment = TicTacToe()
    policy = environment.reference_policies()["random"]

    async def run(index: int) -> tuple[Episode, str]:
        episode = await open_episode(environment, "train", index, seed=123454321)
        return episode, str(await drive(episode, policy, Random(1)))

    for index in range(30):
        episode, text = asyncio.run(run(index))
        for secret in (episode.task.info["seed"], episode.task.info["random_move_prob"], 123454321):
            assert str(secret) not in text
        assert episode.state.opponent.key.hex() not in text


def test_a_game_that_has_ended_takes_no_more_moves() -> None:
    episode = opened(policy_moves="first", min_random_move_prob=1)
    while not episode.done:
        called(episode, {"position": int(show(episode.state.board).split("free ")[1][0])})
    board, outcome = episode.state.board, episode.state.outcome
    for cell in range(9):
        assert called(episode, {"position": cell}).is_error
    assert (episode.state.board, episode.state.outcome) == (board, outcome)
    assert scored(episode).components["invalid_move"] == 0


def test_each_end_is_told_and_rewarded() -> None:
    seen: dict[Any, tuple[str, float]] = {}
    for index in range(60):
        episode = opened(index)
        chooser = Random(index)
        text = ""
        while not episode.done:
            free = [cell for cell in range(9) if episode.state.board.cells[cell] == "."]
            text = called(episode, {"position": chooser.choice(free)}).text
        score = scored(episode)
        seen[score.game_outcome] = (text, score.components["outcome"])
    assert {outcome: value for outcome, (_, value) in seen.items()} == {"win": 1.0, "draw": 0.5, "loss": 0.0}
    assert "Game over: you won with" in seen["win"][0]
    assert "Game over: the board is full, a draw." in seen["draw"][0]
    assert "Game over: O won with" in seen["loss"][0]


def test_an_unfinished_game_is_worth_nothing_and_has_no_outcome() -> None:
    episode = opened(policy_moves="first")
    called(episode, {"position": 4})
    score = scored(episode)
    assert score.components["outcome"] == 0
    assert score.game_outcome is None
    assert score.total is None  # no transcript was handed over, so the format is unknown
    assert score.components["format"] is None


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_case_23_a_policy_that_repeats_an_illegal_move_meets_the_limit_on_turns(limit: int) -> None:
    episode = opened(max_turns=limit)
    for turn in range(1, limit + 1):
        assert called(episode, {"position": 99}).done == (turn == limit)
    assert episode.stop_reason == "max_turns"
    score = scored(episode, [assistant("")])
    assert score.total == -0.1


def test_the_first_harsher_version_is_a_configuration() -> None:
    for index in range(20):
        episode = opened(index, **HARSH)
        assert episode.state.opening is None
        assert episode.task.info["random_move_prob"] == 1
        assert "loses the game" in episode.messages[0]["content"]
        called(episode, {"position": 4})
        board = episode.state.board
        result = called(episode, {"position": "5"} if index % 2 else {"position": 4})
        assert result.is_error
        assert result.done
        assert "O won" in result.text
        assert episode.state.board == board
        score = scored(episode)
        assert score.game_outcome == "loss"
        assert (score.components["outcome"], score.components["invalid_move"]) == (0, -0.1)
    assert "loses the game" not in opened().messages[0]["content"]


@pytest.mark.parametrize(
    ("message", "thinks"),
    [
        (assistant("<think>4 is free.</think>"), True),
        (assistant(" \n<think>a\nb</think> I play 4."), True),
        (assistant("<think></think>"), False),
        (assistant("<think> \n </think>4"), False),
        (assistant("<think><think></think>"), False),
        (assistant("<think>never closed"), False),
        (assistant("I play 4. <think>4</think>"), False),
        (assistant("</think>4<think>"), False),
        (assistant("<THINK>4</THINK>"), False),
        (assistant(""), False),
        ({"role": "assistant", "content": None}, False),
        ({"role": "assistant", "content": "", "reasoning_content": "4 is free."}, True),
        ({"role": "assistant", "content": "", "reasoning_content": "  "}, False),
    ],
)
def test_a_turn_thinks_when_it_begins_with_a_thought_in_tags(message: Message, thinks: bool) -> None:
    assert thinks_first(message) is thinks


def test_the_format_reward_is_the_share_of_turns_that_think() -> None:
    episode = opened(policy_moves="first")
    thought, silent = assistant("<think>4</think>"), assistant("")
    for turns, share in (([thought], 1), ([thought, silent], 0.5), ([silent] * 3 + [thought], 0.25), ([], 0)):
        assert scored(episode, [*episode.messages, *turns]).components["format"] == share
    assert scored(episode, [thought]).total == pytest.approx(0.2)


garbage = st.one_of(
    st.sampled_from(ILLEGAL), st.dictionaries(st.text(max_size=8), st.integers() | st.text() | st.none())
)
moves = st.integers(-2, 10).map(lambda cell: {"position": cell})


@settings(max_examples=150, deadline=None)
@given(calls=st.lists(moves | garbage, max_size=25), index=st.integers(0, 500), seed=st.integers())
def test_whatever_is_called_the_game_stays_one_that_openspiel_allows(calls: list[Any], index: int, seed: int) -> None:
    async def run() -> None:
        episode = await open_episode(TicTacToe(), "train", index, seed)
        first = episode.task.info["policy_first"]
        board, illegal, turns = episode.state.board.cells, False, 0
        for arguments in calls:
            over = _spiel(board, first).is_terminal() or turns == 8
            position = arguments.get("position")
            good = (
                set(arguments) == {"position"}
                and type(position) is int
                and 0 <= position <= 8
                and board[position] == "."
                and not over
            )
            result = await episode.call("play", arguments)
            turns += not over
            after = episode.state.board.cells
            assert result.is_error is not good
            if good:
                mine = board[:position] + "X" + board[position + 1 :]
                changed = [cell for cell in range(9) if mine[cell] != after[cell]]
                expected = 0 if _spiel(mine, first).is_terminal() else 1
                assert len(changed) == expected
                assert all(mine[cell] == "." and after[cell] == "O" for cell in changed)
                assert read_board(result.text) == Board(after, "X")
            else:
                assert after == board
                illegal = illegal or not over
            board = after
            assert result.done == (_spiel(board, first).is_terminal() or turns == 8)
        state = _spiel(board, first)
        mine_returns = state.returns()[0 if first else 1]
        score = await episode.score([])
        assert score.components["outcome"] == ((mine_returns + 1) / 2 if state.is_terminal() else 0)
        assert score.components["invalid_move"] == (-0.1 if illegal else 0)

    asyncio.run(run())


def _spiel(cells: str, policy_first: bool) -> Any:
    return oracle.states()[cells if policy_first else cells.translate(oracle.SWAP)]

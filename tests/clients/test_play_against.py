"""``mcpgym play ENV --against POLICY``: a person takes the opponent's part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

AGAINST = ["play", "tic-tac-toe", "--against", "expert", "--seed", "3"]


def test_a_person_loses_to_the_expert_when_it_is_let_win(process: Callable) -> None:
    done = process(*AGAINST, "--seat", "first", stdin="0\n1\n")
    assert done.returncode == 0, done.stderr
    assert "expert has the seat first" in done.stdout
    assert "It plays 2." in done.stdout
    assert "I complete a line with 5 and win." in done.stdout
    assert done.stdout.rstrip().splitlines()[-2] == "You lost."
    assert done.stdout.rstrip().endswith("mcpgym play tic-tac-toe --against expert --seat first --seed 3")


def test_what_cannot_be_played_is_asked_again_and_every_move_is_shown(process: Callable) -> None:
    done = process(*AGAINST, "--seat", "second", stdin="x\n4\n4\n8\n")
    assert done.returncode == 0, done.stderr
    assert "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, please" in done.stdout
    assert "one of 0, 1, 3, 5, 6, 7, 8, please" in done.stdout
    assert done.stdout.count("───┼───┼───") == 2 * 5, "the empty board, and one for each of four moves"
    assert "You left before the end." in done.stdout


def test_a_person_wins_against_a_script_that_plays_badly(process: Callable, tmp_path: Path) -> None:
    turns = '[{"name": "play", "arguments": {"position": %d}}, {"name": "play", "arguments": {"position": %d}}, "bye"]'
    (tmp_path / "bad.json").write_text(turns % (0, 0))
    done = process("play", "tic-tac-toe", "--against", "script:bad.json", "--seat", "first", stdin="4\n")
    assert "script:bad.json was told: Cell 0 is taken by X. Nothing was played" in done.stdout
    assert "The game has no outcome: it answered without making a move." in done.stdout
    loses = process(
        "play", "tic-tac-toe", "--against", "script:bad.json", "--seat", "first", "-c", "illegal_move_loses=true",
        stdin="4\n",
    )  # fmt: skip
    assert "You won." in loses.stdout
    assert loses.stdout.rstrip().endswith("--config illegal_move_loses=true")


def test_a_script_that_runs_out_fails_the_command(process: Callable, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('[{"name": "play", "arguments": {"position": 0}}]')
    done = process("play", "tic-tac-toe", "--against", "script:one.json", "--seat", "first", stdin="4\n8\n")
    assert done.returncode == 1
    assert done.stderr.startswith("error: script:one.json gave no turn")


def test_the_seat_is_drawn_by_the_seed_and_the_draw_is_told(process: Callable) -> None:
    games = [process("play", "tic-tac-toe", "--against", "expert", "--seed", seed).stdout for seed in ("0", "1", "0")]
    assert ["seat first" in game for game in games] == [False, True, False]
    assert games[0] == games[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tic-tac-toe", "--against", "expert", "--task", "test-1"], "--task does not go with --against"),
        (["tic-tac-toe", "--against", "expert", "--index", "0"], "--index does not go with --against"),
        (["tic-tac-toe", "--against", "expert", "--server", "x"], "--server does not go with --against"),
        (["tic-tac-toe", "--seat", "first"], "--seat goes with --against alone"),
        (["tic-tac-toe", "--against", "expert", "--seat", "third"], "no seat 'third'"),
        (["tic-tac-toe", "--against", "expert", "--seat", "first", "-c", "policy_moves=second"], "there is: second"),
        (["tic-tac-toe", "--against", "nobody"], "no policy of tic-tac-toe 'nobody'"),
        (["reverse-text", "--against", "expert"], "reverse-text has no game tree"),
    ],
)
def test_what_cannot_be_played_against_is_refused(
    command: Callable[..., tuple[int, str, str]], arguments: list[str], message: str
) -> None:
    code, said, told = command("play", *arguments)
    assert (code, said) == (2, "")
    assert message in told

"""``mcpgym certify``: what it writes, what it says, and its exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpgym_clients.certificate_report import render
from mcpgym_clients.console import out

FIELDS = {
    *("lines", "lost_lines", "unfinished_lines", "invalid_moves", "versus_random", "by_seat", "shortest_loss"),
    *("policy", "policy_hash", "environment", "environment_version", "schema_hash", "config"),
}


def test_a_policy_that_never_loses_is_certified(command: Callable[..., tuple[int, str, str]]) -> None:
    code, said, told = command("certify", "tic-tac-toe", "--policy", "expert", "--seed", "0", "--out", "c.json")
    assert (code, told) == (0, "")
    assert "certified: it never loses. All 530 lines of play were played, 691 decisions." in said
    assert re.search(r"both +530 +0 +0 +95\.56/4\.44/0\.00 +0\.00/100\.00/0\.00", said)
    assert re.search(r"optimum +0 +0 +95\.56/4\.44/0\.00", said)
    made = json.loads(Path("c.json").read_text("utf-8"))
    assert set(made) >= FIELDS
    assert (made["schema"], made["lost_lines"], made["policy_seed"]) == ("mcpgym.certificate/1", 0, 0)
    assert made["versus_random"]["exact"]["win"] == "115589/120960"


def test_a_policy_that_loses_is_not_and_its_shortest_lost_line_is_drawn(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    code, said, _ = command("certify", "tic-tac-toe", "-p", "random", "--seed", "1", "-c", "policy_moves=second")
    assert code == 1
    assert re.search(r"not certified\. Of all \d+ lines of play, \d+ are lost and 0 come to no end\.", said)
    assert "The shortest lost line (task line-second-" in said
    assert re.search(r"opponent \d +policy \d +opponent \d +policy \d +opponent \d", said)
    assert "───┼───┼───" in said
    assert "draw → loss" in said
    assert "first " not in said


def test_a_policy_that_draws_is_refused_with_the_way_out(command: Callable[..., tuple[int, str, str]]) -> None:
    code, said, told = command("certify", "tic-tac-toe", "-p", "random", "--out", "c.json")
    assert (code, said) == (2, "")
    assert "random answers the same conversation in two ways" in told
    assert "--seed 0" in told
    assert not Path("c.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reverse-text", "-p", "expert"], "reverse-text cannot be certified: it gives no game tree"),
        (["tic-tac-toe", "-p", "expart"], "did you mean 'expert'"),
        (["tic-tac-toe", "-p", "expert", "--out", "."], "--out . is a folder"),
        (["tic-tac-toe", "-p", "expert", "--out", "no/c.json"], "there is no folder no"),
        (["tic-tac-toe", "-p", "expert", "-c", "policy_move=first"], "did you mean 'policy_moves'"),
        (["tic-tac-toe"], "Missing option '--policy'"),
    ],
)
def test_what_cannot_be_certified_is_refused(
    command: Callable[..., tuple[int, str, str]], arguments: list[str], message: str
) -> None:
    code, said, told = command("certify", *arguments)
    assert (code, said) == (2, "")
    assert message in told
    assert told.count("\n") == 1


def test_a_script_that_ends_too_early_fails_the_command(command: Callable[..., tuple[int, str, str]]) -> None:
    Path("one.json").write_text('[{"name": "play", "arguments": {"position": 4}}]')
    code, _, told = command("certify", "tic-tac-toe", "-p", "script:one.json")
    assert code == 1
    assert told.startswith("error: script:one.json gave no turn: script:one.json has 1 turns")


def test_a_script_may_be_certified_to_lose(command: Callable[..., tuple[int, str, str]]) -> None:
    """It plays 4, then answers in words: nothing is lost, and nothing comes to its end."""
    Path("short.json").write_text('[{"name": "play", "arguments": {"position": 4}}, "I am tired"]')
    code, said, _ = command("certify", "tic-tac-toe", "-p", "script:short.json", "-c", "policy_moves=first")
    assert code == 1
    assert "8 come to no end" in said
    assert "The shortest unfinished line (task line-first-40): answered" in said
    assert "0.0/0.0/0.0/100.0" in said


def test_what_a_certificate_says_cannot_command_the_terminal(command: Callable[..., tuple[int, str, str]]) -> None:
    _ = command("certify", "tic-tac-toe", "-p", "random", "--seed", "1", "--out", "c.json")
    made = json.loads(Path("c.json").read_text("utf-8"))
    evil = "\x1b[2J\x07[bold]"
    made |= {"policy": evil, "environment": evil, "environment_version": evil}
    made["shortest_loss"]["task"] = made["shortest_loss"]["moves"][0] = evil
    made["regrets"][0] |= {"seat": evil, "played": evil, "best": evil, "acts": [evil]}
    made["by_seat"] = {evil: made["by_seat"]["first"]}
    with out().capture() as capture:
        out().print(render(made))
    shown = re.sub(r"\x1b\[[\d;]*m", "", capture.get())
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[bold]" in shown

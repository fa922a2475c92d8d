"""The exact value beside an evaluation's estimate: when it is there, and when not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def evaluated(command: Callable[..., Any], tmp_path: Path) -> Callable[..., tuple[int, dict[str, Any], str, str]]:
    def run(*words: str) -> tuple[int, dict[str, Any], str, str]:
        code, out, err = command("eval", "tic-tac-toe", *words, "--out", "run", "--overwrite")
        file = tmp_path / "run" / "summary.json"
        return code, json.loads(file.read_text()) if file.is_file() else {}, out, err

    return run


def test_random_play_has_its_exact_value_beside_the_estimate(evaluated: Callable[..., Any]) -> None:
    options = ("-p", "random", "-n", "60", "--config", "min_random_move_prob=1", "--config", "policy_moves=first")
    code, summary, out, _ = evaluated(*options)
    assert code == 0
    exact = summary["exact"]
    assert (exact["episodes"], exact["tasks"]) == (60, 60)
    assert exact["outcomes"]["win"] == pytest.approx(0.58492, abs=1e-5)
    assert exact["by_seat"] == {"first": exact["outcomes"]}
    low, high = summary["outcome_intervals"]["win"]
    assert low < exact["outcomes"]["win"] < high
    assert "58.49 %" in out


def test_a_deterministic_policy_is_asked_everywhere_only_when_that_is_wanted(
    evaluated: Callable[..., Any], tmp_path: Path
) -> None:
    """A script that tries the cells from 0 to 8 in every turn: it takes the first free one again and again."""
    script = tmp_path / "cells.jsonl"
    calls = [{"name": "play", "arguments": {"position": cell}} for cell in range(9)]
    script.write_text(json.dumps({"calls": calls}) + "\n")
    options = ("-p", f"script:{script}", "-n", "40", "--config", "max_turns=100")
    assert "exact" not in evaluated(*options)[1]
    code, summary, _, _ = evaluated(*options, "--exact")
    assert code == 0
    outcomes = summary["exact"]["outcomes"]
    assert sum(outcomes.values()) == pytest.approx(1)
    assert 0 < outcomes["win"] < 1
    for end, interval in summary["outcome_intervals"].items():
        assert interval[0] <= outcomes[end] <= interval[1]


def test_an_exact_value_may_be_unwanted(evaluated: Callable[..., Any]) -> None:
    code, summary, _, _ = evaluated("-p", "random", "-n", "3", "--no-exact")
    assert (code, "exact" in summary) == (0, False)


def test_a_value_that_cannot_be_found_fails_after_the_results_are_written(
    evaluated: Callable[..., Any], tmp_path: Path
) -> None:
    """A script that never tries the last cell has no turn to give where only that is left."""
    script = tmp_path / "cells.jsonl"
    calls = [{"name": "play", "arguments": {"position": cell}} for cell in range(8)]
    script.write_text(json.dumps({"calls": calls}) + "\n")
    options = ("-p", f"script:{script}", "-n", "5", "--config", "max_turns=100")
    code, summary, _, err = evaluated(*options, "--exact")
    assert (code, summary["complete"], "exact" in summary) == (1, True, False)
    assert "there is no exact value to show" in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("reverse-text", "-p", "random", "-n", "1"), "gives no game tree"),
        (("tic-tac-toe", "-p", "random", "-n", "1", "--max-cost", "1"), "no budget counts that"),
        (("tic-tac-toe", "-p", "teacher:skill=2", "-n", "1"), "from 0 to 1"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_played(
    command: Callable[..., Any], tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    code, _, err = command("eval", *words, "--exact", "--out", "run")
    assert code == 2
    assert why in err
    assert not (tmp_path / "run").exists()


def test_on_a_server_the_version_that_is_installed_here_is_asked(command: Callable[..., Any], tmp_path: Path) -> None:
    code, out, _ = command("eval", "tic-tac-toe", "-p", "expert", "-n", "8", "--lane", "mcp", "--out", "run")
    assert code == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["exact"]["outcomes"]["loss"] == 0
    assert "exact" in out

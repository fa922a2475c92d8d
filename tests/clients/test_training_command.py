"""What ``mcpgym train`` says when it cannot do what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpgym_clients.cli import main
from mcpgym_clients.training import _tell
from mcpgym_rl.training.pipeline import Outcome
from mcpgym_rl.training.recipe import make_recipe

CASES = [
    ([], "what is to be trained?"),
    (["nowhere"], "no environment 'nowhere'"),
    (["tic-tac-toe", "--set", "rl.stepz=3"], "there is no field rl.stepz"),
    (["tic-tac-toe", "--set", "rl"], "write a field of the recipe and its value"),
    (["tic-tac-toe", "--set", "rl.groups=0"], "rl.groups: input should be greater than 0"),
    (["--resume", "nowhere"], "no recipe.json in it"),
    (["tic-tac-toe", "--resume", "nowhere"], "--resume goes on with a run as it was begun"),
    (["none.toml"], "cannot read the recipe none.toml"),
]


@pytest.mark.parametrize(("arguments", "said"), CASES)
def test_a_mistake_is_told_in_one_line_with_the_code_of_a_usage_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not list(tmp_path.iterdir())


def test_a_folder_with_a_run_in_it_is_gone_on_with_not_overwritten(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "recipe.json").write_text("{}", "utf-8")
    assert main(["train", "tic-tac-toe", "--out", str(tmp_path)]) == 2
    assert f"--resume {tmp_path}" in capsys.readouterr().err


def test_at_its_end_a_run_says_why_it_ended_early_and_how_its_model_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = make_recipe({"environment": "tic-tac-toe", "config": {"max_random_move_prob": 0.5, "best_move": "first"}})
    _tell(Outcome(Path("my runs/model"), None, "each rollout was perfect", 12.3), recipe)
    said = capsys.readouterr().out
    assert "it ended for: each rollout was perfect" in said
    settings = "--config max_random_move_prob=0.5 --config best_move=first"
    assert f"mcpgym eval tic-tac-toe {settings} --policy 'local:my runs/model'" in said
    _tell(Outcome(Path("m"), None, "steps", 12.3), make_recipe({"environment": "tic-tac-toe"}))
    assert "it ended for" not in capsys.readouterr().out


def test_what_a_guard_advises_is_told_as_it_is_names_of_tables_included(capsys: pytest.CaptureFixture[str]) -> None:
    advice = "the policy made no tool call in the first batch; warm it up first (a [warm_up] table)"
    shares = {"win": 0.0, "draw": 0.0, "loss": 0.0}
    certificate = {"lines": 10, "lost_lines": 0, "unfinished_lines": 10, "versus_random": shares}
    recipe = make_recipe({"environment": "tic-tac-toe"})
    _tell(Outcome(Path("m"), certificate, advice, 5.0), recipe)
    _tell(Outcome(Path("m"), None, advice, 5.0), recipe)
    assert capsys.readouterr().out.count(f"it ended for: {advice}") == 2
    _tell(Outcome(Path("m"), certificate, "cpu_seconds", 5.0), recipe)
    assert "it ended for: cpu seconds)" in capsys.readouterr().out

"""That the environment keeps its contract, and pays for what it should."""

from __future__ import annotations

import json
from pathlib import Path

from mcpgym import check_environment
from mcpgym_clients.cli import main as mcpgym

from my_env import MyEnv

README = Path(__file__).parents[1] / "README.md"


def mean_reward(policy: str, folder: Path) -> float:
    """What a policy is paid on average over 15 tasks of the test split."""
    assert mcpgym(["eval", "my-env", "--policy", policy, "-n", "15", "--out", str(folder)]) == 0
    return json.loads((folder / "summary.json").read_text("utf-8"))["reward"]["mean"]


def test_it_keeps_the_contract() -> None:
    check_environment(MyEnv, episodes=2).raise_for_findings()  # mcpgym check plays more


def test_the_expert_is_paid_far_more_than_chance(tmp_path: Path) -> None:
    assert mean_reward("expert", tmp_path / "expert") > 0.9
    assert mean_reward("random", tmp_path / "random") < 0.6


def test_the_readme_describes_what_is_there() -> None:
    assert mcpgym(["env", "card", "my-env", "--check", str(README)]) == 0

"""The model that ships with tic-tac-toe: it is what its certificate says, and training goes on from it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.registry import load_environment
from mcpgym_rl.certificate import Certification, certify
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.packaged import MODELS, packaged_file
from mcpgym_rl.policies import make_policy
from mcpgym_rl.training.metrics import read_metrics
from mcpgym_rl.training.models import load_model
from mcpgym_rl.training.pipeline import Pipeline
from mcpgym_rl.training.recipe import make_recipe
from mcpgym_rl.training.sections import ModelSection
from mcpgym_rl.training.trainer import Setup, Trainer

ENVIRONMENT = load_environment("tic-tac-toe")
FOLDER = packaged_file(ENVIRONMENT, MODELS, "default")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def model_folder() -> Path:
    assert FOLDER is not None, "tic-tac-toe ships no models/default"
    return FOLDER


def test_it_is_small_and_comes_with_its_recipe_its_curves_and_its_certificate() -> None:
    files = {path.name: path.stat().st_size for path in model_folder().iterdir()}
    assert {"model.safetensors", "tokenizer.json", "recipe.json", "certificate.json", "curves.png"} <= files.keys()
    assert sum(files.values()) < 3_000_000


def test_the_documents_show_its_own_curves() -> None:
    shown = Path(__file__).parents[2] / "docs" / "images" / "training-curves.png"
    assert shown.read_bytes() == (model_folder() / "curves.png").read_bytes()


def test_it_plays_exactly_as_its_certificate_says() -> None:
    shipped = json.loads((model_folder() / "certificate.json").read_text("utf-8"))
    policy = make_policy("local:default", ENVIRONMENT)
    made = asyncio.run(certify(policy, ENVIRONMENT)).certificate
    assert made["lost_lines"] == made["unfinished_lines"] == 0
    assert made == shipped


def test_a_step_of_training_begins_in_its_lines_and_learns_only_its_own_turns(tmp_path: Path) -> None:
    recipe = make_recipe(
        {
            "environment": "tic-tac-toe",
            "rl": {
                "steps": 1, "groups": 8, "group_size": 4, "max_new_tokens": 32, "learning_rate": 1e-5,
                "curriculum": {"open_share": 0, "weak_share": 0.25, "unsure_share": 0.5},
                "certify": {"every": 1, "win": 1.0},
            },
        }
    )  # fmt: skip
    model, chat = load_model(model_folder(), ModelSection())
    lane = ControlLane(LocalControl(Episodes({ENVIRONMENT.name: ENVIRONMENT})))
    trainer = Trainer(Setup(recipe, model, chat, ENVIRONMENT, lane, tmp_path))
    seen: list[Any] = []
    learn = trainer._learn

    async def watched(traces: Any, *rest: Any) -> Any:
        seen.extend(traces)
        return await learn(traces, *rest)

    trainer._learn = watched  # type: ignore[method-assign]
    state = asyncio.run(trainer.train())
    assert state.finished == "steps"
    resumed = [trace for trace in seen if trace.given_turns]
    assert len(resumed) >= 8
    assert all(trace.task.startswith("line-") for trace in resumed)
    for trace in resumed:
        runs = [place for place, own in enumerate(trace.tokens.mask) if own and not trace.tokens.mask[place - 1]]
        assert len(runs) == trace.turns - trace.given_turns
        given = chat.opening(trace.messages[: trace.prompt_messages], [t.listing for t in ENVIRONMENT.tools.values()])
        assert trace.tokens.ids[: len(given)] == given
    first, last = read_metrics(tmp_path)
    assert first["log_ratio"] < 1e-3  # what is sampled mid-line is what is trained, given turns and all
    assert first["groups"] == {"open": 0, "weak": 2, "unsure": 4, "ordinary": 2}
    assert first["certificate"]["lost_lines"] == 0
    assert last["certificate"]["lines"] > 0


def run_with(
    certificates: list[tuple[int, float]], alike: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, list[int]]:
    """A run that is told of these lost lines and wins, one after the other: its state, and whose weights it kept."""
    section = {"every": 1, "win": 1.0, "slack": 1.0, "alike": alike}
    rl = {"steps": len(certificates) - 1, "groups": 2, "group_size": 4, "average": 0.5, "train_without_signal": True}
    recipe = make_recipe({"environment": "tic-tac-toe", "rl": {**rl, "certify": section}})
    model, chat = load_model(model_folder(), ModelSection())
    lane = ControlLane(LocalControl(Episodes({ENVIRONMENT.name: ENVIRONMENT})))
    trainer = Trainer(Setup(recipe, model, chat, ENVIRONMENT, lane, folder))
    told, weights = iter(certificates), []

    async def certified(*_: Any) -> Certification:
        lost, win = next(told)
        weights.append([value.clone() for value in trainer.averaged.parameters()])
        numbers = {"lines": 9, "lost_lines": lost, "unfinished_lines": 0, "invalid_moves": 0}
        made = {**numbers, "versus_random": {"win": win}, "optimum": {"win": 0.9556}}
        return Certification(made, [], [], [], [])

    monkeypatch.setattr("mcpgym_rl.training.trainer.certify", certified)
    return asyncio.run(trainer.train()), [
        place for place, values in enumerate(weights) if all(map(torch.equal, values, trainer.averaged.parameters()))
    ]


@pytest.mark.parametrize(
    ("certificates", "alike", "best"),
    [
        ([(3, 0.90), (0, 0.91), (1, 0.95)], 0.0, 1),  # no gain in wins makes up for a lost line
        ([(1, 0.95), (0, 0.90), (1, 0.95)], 0.0, 1),  # not even where the run would go back by its cost
        ([(2, 0.90), (1, 0.90), (1, 0.91)], 0.0, 2),  # while lines are lost, the cost decides
        ([(0, 0.90), (0, 0.90), (0, 0.89)], 0.0, 1),  # between two alike, the one that was trained longer
        ([(0, 0.94), (0, 0.939), (0, 0.937)], 0.25, 1),  # alike is what is so near to the least cost, not to the last
        ([(0, 0.94), (1, 0.96)], 9.0, 0),  # and loses nothing either
    ],
)
def test_the_best_state_is_the_one_that_loses_nothing_and_then_wins_most(
    certificates: list[tuple[int, float]], alike: float, best: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, kept = run_with(certificates, alike, tmp_path, monkeypatch)
    assert (state.certificate["lost_lines"], state.certificate["versus_random"]["win"]) == certificates[best]
    assert kept == [best]


def test_after_a_certificate_only_the_stages_that_go_beyond_it_come_and_it_stays_reached(tmp_path: Path) -> None:
    stage = {"steps": 2, "groups": 2, "group_size": 4, "learning_rate": 0.1, "train_without_signal": True}
    recipe = make_recipe(
        {
            "environment": "tic-tac-toe",
            "model": {"path": str(model_folder())},
            "rl": {**stage, "certify": {"win": 0.9}},
            "then": [stage, {**stage, "steps": 1, "further": True, "certify": {"win": 1.0, "every": 1, "slack": 1e9}}],
        }
    )
    outcome = Pipeline(recipe, tmp_path / "run").run()
    assert {path.name for path in (tmp_path / "run").glob("rl*")} == {"rl", "rl-3"}
    lost = [row["certificate"]["cost"] for row in read_metrics(tmp_path / "run" / "rl-3")]
    assert len(lost) == 2
    assert lost[-1] > 50 > lost[0], "such a rate breaks it, and what it began with is kept"
    assert outcome.finished == "certified"
    assert outcome.certificate is not None
    assert outcome.certificate["lost_lines"] == 0

"""A recipe for TRL: what it says and TRL cannot do is refused with the reason; what it does not say is fitted."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgym.errors import ConfigurationError
from mcpgym_rl.training.recipe import make_recipe
from mcpgym_rl.training.sections import Rl
from mcpgym_rl.trl.recipe import CANNOT, fitted, make_trl_recipe
from mcpgym_rl.trl.settings import INSTEAD, sizes

OTHER: dict[str, Any] = {
    "cpu_seconds": 60.0, "signal_groups": 4.0, "max_groups": 9, "advantage": "turn", "prior": 0.5, "least_others": 2,
    "hot_min_p": 0.1, "form": 0.1, "further": True,
    "entropy_target": [0.2, 0.1], "entropy_threshold": 0.1, "average": 0.9, "train_without_signal": False,
    "overlap": True, "micro_batch_tokens": 100, "curriculum": {"open_share": 0.1}, "certify": {"every": 3},
}  # fmt: skip
WITH = {"form": {"entropy_threshold": 0.1}}
"""What a field needs beside it in any recipe."""


def test_every_field_that_trl_cannot_do_has_a_case_here() -> None:
    assert CANNOT.keys() - {"vllm"} == OTHER.keys(), "vllm needs adapters too: its own tests have that case"


@pytest.mark.parametrize("name", OTHER)
def test_a_field_that_trl_cannot_do_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"says what TRL cannot do: rl\.{name}: \w+") as refused:
        make_trl_recipe({"environment": "tic-tac-toe", "rl": {name: OTHER[name], **WITH.get(name, {})}})
    assert CANNOT[name][1] in str(refused.value)


def test_what_a_recipe_does_not_say_gets_the_value_that_trl_can_do_and_fitting_again_changes_nothing() -> None:
    made = make_trl_recipe({"environment": "tic-tac-toe", "rl": {"steps": 3}, "then": [{}]})
    assert made.rl is not None
    for rl in (made.rl, *made.then):
        assert {name: getattr(rl, name) for name in CANNOT} == {name: value for name, (value, _) in CANNOT.items()}
    assert made.rl.steps == 3
    assert fitted(made) == made
    assert make_trl_recipe(made.model_dump(mode="json")) == made


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"rl": {"guards": {"max_roll_backs": 3}}}, "rl.guards.max_roll_backs: TRL has no best state"),
        ({"rl": {"loss": "reinforce", "updates": 2}}, "say updates = 1, or cispo"),
        ({"rl": {"loss": "cispo"}, "trl": {"loss_type": "dr_grpo"}}, "trl.loss_type: 'dr_grpo' stands in for"),
        ({"rl": {}, "model": {"device": "cuda:1"}}, "model.device: accelerate gives each process its GPU"),
        ({"rl": {"guards": {"max_log_ratio": 0.1}}, "trl": {"use_vllm": True}}, "rl.guards.max_log_ratio: vLLM's"),
        ({"rl": {}, "then": [{"overlap": True}]}, r"then\[0\].overlap: TRL samples a batch"),
    ],
)
def test_what_goes_together_in_our_trainer_alone_is_refused(data: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        make_trl_recipe({"environment": "tic-tac-toe", **data})


def test_our_own_trainer_says_whose_the_table_trl_is() -> None:
    with pytest.raises(ConfigurationError, match=r"\[trl\] is for --engine trl"):
        make_recipe({"environment": "tic-tac-toe", "trl": {"bf16": True}})


def test_a_batch_is_cut_into_equal_parts_or_refused() -> None:
    rl = Rl(groups=6, group_size=4, updates=2)
    cut = sizes(rl, {}, 2)
    assert (cut.part, cut.accumulated, cut.updates, cut.processes, cut.rollouts) == (6, 1, 2, 2, 24)
    assert sizes(rl, {"per_device_train_batch_size": 2}, 2).accumulated == 3
    assert sizes(Rl(groups=32, group_size=8), {}, 1).part == 16
    with pytest.raises(ConfigurationError, match="6 groups of 4 cannot be cut into 2 updates over 5 processes"):
        sizes(rl, {}, 5)
    with pytest.raises(ConfigurationError, match="each process has 6 rollouts an update, which 4 does not divide"):
        sizes(rl, {"per_device_train_batch_size": 4}, 2)


def test_what_stands_in_a_recipe_is_not_said_in_the_table_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpgym_rl.trl.settings import check_settings

    trl = pytest.importorskip("trl")
    known = set(trl.GRPOConfig.__dataclass_fields__)
    assert INSTEAD.keys() - known <= {"warmup_ratio"}, "names that TRL has no more"
    recipe = make_trl_recipe({"environment": "tic-tac-toe", "rl": {}})

    def given(**own: Any) -> None:
        check_settings(recipe.model_copy(update={"trl": own}))

    monkeypatch.setattr("transformers.integrations.integration_utils.is_wandb_available", lambda: False)
    for own, said in (
        ({"learning_rate": 1e-3}, r"trl.learning_rate is not for \[trl\]: say rl.learning_rate"),
        ({"lr": 1e-3}, "no field of TRL's GRPOConfig 'lr'"),
        ({"per_device_train_batch_siz": 1}, "did you mean 'per_device_train_batch_size'"),
        ({"bf16": "maybe"}, "trl.bf16: input should be a valid boolean, not 'maybe'"),
        ({"loss_type": "dapo"}, "say that"),
        ({"loss_type": "best"}, "no loss of TRL's"),
        ({"use_vllm": True}, "vLLM is not installed"),
        ({"report_to": "wandb"}, "trl.report_to: .*pip install wandb"),
        ({"report_to": "wand"}, "trl.report_to: wand is not supported"),
        ({"save_only_model": True}, "a run that is gone on with needs the optimizer"),
        ({"push_to_hub": True}, "push its model/ afterwards"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            given(**own)
    given(loss_type="dr_grpo", max_completion_length=128, save_total_limit=5)


def test_a_gpu_that_is_not_there_is_not_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpgym_rl.trl.settings import check_settings

    pytest.importorskip("trl")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    recipe = make_trl_recipe({"environment": "tic-tac-toe", "rl": {}, "model": {"device": "cuda"}})
    with pytest.raises(ConfigurationError, match="PyTorch finds no GPU here; say cpu"):
        check_settings(recipe)

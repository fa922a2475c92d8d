"""Supervised fine-tuning: what is learnt, what is not, and that it learns."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sft_toys import copies, tiny, weights
from transformers import LlamaConfig, LlamaForCausalLM

from mcpgym.errors import ConfigurationError
from mcpgym_rl.sft import Game, SftConfig, SftStep, fit
from mcpgym_rl.sft_batches import OVERHEAD, parts_of, shuffled, trimmed
from mcpgym_rl.sft_loop import learning_rate

torch.set_num_threads(1)


def test_it_learns_to_copy_and_nothing_that_is_masked() -> None:
    model = tiny()
    steps = fit(model, copies(400), SftConfig(steps=300, batch_size=16, learning_rate=1e-2, warm_up_steps=10))
    assert steps[0].loss > 2
    assert sum(step.loss for step in steps[-20:]) / 20 < 0.1
    right = 0
    for ids, mask in copies(50, seed=9):
        place = mask.index(True)
        with torch.no_grad():
            logits = model(torch.tensor([ids[:place]])).logits[0, -1]
        right += int(logits.argmax()) == ids[place]
    assert right >= 47
    with torch.no_grad():
        after = model(torch.tensor([[12, 25, 3, 12]])).logits[0, -1].log_softmax(-1)
    assert float(after[5]) < math.log(0.5)  # "5" always follows, and was masked


def test_the_loss_is_the_mean_over_learnt_tokens_of_the_whole_batch() -> None:
    games = [([1, 2, 3, 4], [False, True, False, True]), ([5, 6, 7], [True, True, True]), ([8, 9] * 9, [True] * 18)]
    model = tiny()
    with torch.no_grad():
        losses = []
        for ids, mask in games:
            logits = model(torch.tensor([ids])).logits[0].log_softmax(-1)
            losses += [-float(logits[place - 1, ids[place]]) for place in range(1, len(ids)) if mask[place]]
    (step,) = fit(model, games, SftConfig(steps=1, batch_size=3))
    assert step.tokens == len(losses) == 2 + 2 + 17
    assert step.loss == pytest.approx(sum(losses) / len(losses), abs=1e-5)


def test_cutting_a_batch_in_parts_changes_nothing_but_rounding() -> None:
    games = copies(32)
    one, many = tiny(), tiny()
    whole = fit(one, games, SftConfig(steps=3, batch_size=32, micro_batch_tokens=100_000))
    cut = fit(many, games, SftConfig(steps=3, batch_size=32, micro_batch_tokens=12))
    assert [step.loss for step in whole] == pytest.approx([step.loss for step in cut], abs=1e-5)
    assert [step.gradient for step in whole] == pytest.approx([step.gradient for step in cut], abs=1e-4)


@given(
    st.lists(st.integers(2, 60), min_size=1, max_size=9),
    st.integers(10, 200),
)
def test_parts_hold_every_game_once_and_are_the_cheapest_there_are(lengths: list[int], limit: int) -> None:
    games = [([place] * length, [False] + [True] * (length - 1)) for place, length in enumerate(lengths)]
    parts = parts_of(games, limit)
    assert sorted(int(row[0]) for part in parts for row in part.ids) == list(range(len(lengths)))
    assert sum(len(part.targets) for part in parts) == sum(length - 1 for length in lengths)
    for part in parts:
        assert len(part.ids) == 1 or part.ids.numel() + len(part.ids) <= limit
        assert part.ids.flatten()[part.places].tolist() == part.targets.tolist()  # each game repeats one token

    def cost(sizes: Sequence[int]) -> float:
        ordered, total, at = sorted(lengths), 0, 0
        for size in sizes:
            area = ordered[at + size - 1] * size
            if size > 1 and area > limit:
                return math.inf
            total, at = total + area + OVERHEAD, at + size
        return total

    def splits(count: int) -> list[list[int]]:
        return [[]] if not count else [[n, *rest] for n in range(1, count + 1) for rest in splits(count - n)]

    assert cost([len(part.ids) for part in parts]) == min(map(cost, splits(len(lengths))))


def test_a_list_is_gone_through_in_a_new_order_each_epoch_and_can_be_entered_anywhere() -> None:
    stream = shuffled(7, 3, 0)
    places = [next(stream) for _ in range(35)]
    for epoch in range(5):
        assert sorted(places[epoch * 7 : epoch * 7 + 7]) == list(range(7))
    assert len({tuple(places[epoch * 7 : epoch * 7 + 7]) for epoch in range(5)}) == 5
    later = shuffled(7, 3, 17)
    assert [next(later) for _ in range(18)] == places[17:]
    other = shuffled(7, 4, 0)
    assert [next(other) for _ in range(35)] != places


def test_the_rate_rises_and_falls_as_it_should() -> None:
    config = SftConfig(steps=100, warm_up_steps=10, learning_rate=1.0, final_rate=0.1)
    rates = [learning_rate(config, step) for step in range(100)]
    assert rates[0] == 0.1
    assert rates[9] == rates[10] == 1.0
    assert rates[99] == pytest.approx(0.1)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert (rates[54] + rates[55]) / 2 == pytest.approx(0.55)


def test_averaged_weights_are_the_result_when_asked_for() -> None:
    games = copies(64)
    config = SftConfig(steps=4, batch_size=8, average=0.5)
    seen = [weights(tiny())]
    for steps in range(1, 5):  # the plain weights after each step: the same schedule, cut short
        plain = tiny()
        seen.append(_after(plain, games, config.model_copy(update={"average": 0.0}), steps))
    model = tiny()
    fit(model, games, config)
    expected = seen[0]
    for after in seen[1:]:
        expected = {name: 0.5 * expected[name] + 0.5 * after[name] for name in expected}
    for name, value in weights(model).items():
        torch.testing.assert_close(value, expected[name], atol=1e-6, rtol=1e-5)


def _after(model: Any, games: list[Game], config: SftConfig, steps: int) -> dict[str, torch.Tensor]:
    class Enough(Exception):
        pass

    def stop(step: SftStep) -> None:
        if step.step == steps:
            raise Enough

    with pytest.raises(Enough):
        fit(model, games, config, on_step=stop)
    return weights(model)


def test_only_parameters_that_can_be_trained_change() -> None:
    model = tiny()
    for name, value in model.named_parameters():
        value.requires_grad_("mlp" in name)
    before = weights(model)
    fit(model, copies(16), SftConfig(steps=2, batch_size=4))
    for name, value in weights(model).items():
        assert bool((value == before[name]).all()) == ("mlp" not in name)


@pytest.mark.parametrize(
    ("games", "words"),
    [
        ([], "no games to learn from"),
        ([([1, 2], [False, False])], "no token to be learnt"),
        ([([1, 2], [True, False])], "no token to be learnt"),
        ([([1, 2, 3], [True, True])], "3 ids and a mask of 2"),
        ([([1, 99], [False, True])], "token 99, and the model knows 40"),
        (iter([([1, 2], [False, True])] * 5), "the games ended in step 2; 8 are needed"),
    ],
)
def test_games_that_will_not_do_are_refused(games: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        fit(tiny(), games, SftConfig(steps=2, batch_size=4))


def test_what_follows_the_last_learnt_token_is_not_computed() -> None:
    ids, mask = trimmed(([1, 2, 3, 4, 5], [True, False, True, False, False]), 10)
    assert (list(ids), list(mask)) == ([1, 2, 3], [False, False, True])


def test_a_loss_that_is_not_finite_stops_the_run() -> None:
    model = tiny()
    with torch.no_grad():
        model.model.norm.weight.fill_(float("inf"))
    with pytest.raises(FloatingPointError, match="step 1: the loss is nan"):
        fit(model, copies(16), SftConfig(steps=2, batch_size=4))


def test_the_metrics_have_a_line_for_each_step(tmp_path: Path) -> None:
    told: list[SftStep] = []
    steps = fit(tiny(), copies(32), SftConfig(steps=5, batch_size=4), tmp_path, on_step=told.append)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [SftStep(**line) for line in lines] == steps == told
    assert [step.step for step in steps] == [1, 2, 3, 4, 5]


def test_a_checkpoint_of_another_run_is_refused_and_a_damaged_one_too(tmp_path: Path) -> None:
    config = SftConfig(steps=4, batch_size=4)
    fit(tiny(), copies(32), config, tmp_path)
    with pytest.raises(ConfigurationError, match="a run with other settings"):
        fit(tiny(), copies(32), config.model_copy(update={"steps": 8}), tmp_path)
    other = LlamaForCausalLM(LlamaConfig(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=1,
                                         num_attention_heads=2))  # fmt: skip
    with pytest.raises(ConfigurationError, match="is of another model"):
        fit(other, copies(32), config, tmp_path)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"\x00" * 100)
    with pytest.raises(ConfigurationError, match="cannot be resumed from"):
        fit(tiny(), copies(32), config, tmp_path)


@pytest.mark.parametrize("stop", [1, 6, 7, 8, 13])
def test_a_run_that_broke_off_ends_with_the_same_weights(tmp_path: Path, stop: int) -> None:
    config = SftConfig(steps=14, batch_size=4, average=0.5, checkpoint_every=7)
    games = copies(30)
    whole, resumed = tiny(), tiny()
    steps = fit(whole, games, config)

    def broken_off(step: SftStep) -> None:
        if step.step == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(tiny(), games, config, tmp_path, on_step=broken_off)
    seen: list[SftStep] = []
    assert fit(resumed, games, config, tmp_path, on_step=seen.append) == steps
    assert [step.step for step in seen] == list(range(1 if stop < 7 else 8, 15))
    for name, value in weights(resumed).items():
        assert bool((value == weights(whole)[name]).all())


def test_a_finished_run_is_not_done_again(tmp_path: Path) -> None:
    config = SftConfig(steps=4, batch_size=4, average=0.5)
    first, second = tiny(), tiny()
    fit(first, copies(32), config, tmp_path)
    told: list[SftStep] = []
    assert len(fit(second, copies(32), config, tmp_path, on_step=told.append)) == 4
    assert not told
    for name, value in weights(second).items():
        assert bool((value == weights(first)[name]).all())

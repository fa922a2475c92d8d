"""A batch trains exactly the tokens that were sampled, whatever it is cut into."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from test_advantages import trace
from transformers import LlamaConfig, LlamaForCausalLM

from mcpgym_rl.traces import Trace, TraceTokens
from mcpgym_rl.training.batch import make_batch
from mcpgym_rl.training.guards import TrainingStopped, Watch
from mcpgym_rl.training.sections import Guards, Rl
from mcpgym_rl.training.updating import (
    average,
    entropy_weight,
    learning_rate,
    minibatches,
    sampled_logits,
    sampled_logprobs,
    update,
)


def with_tokens(ids: list[int], mask: list[bool], *, temperatures: list[float] | None = None, turns: int = 2) -> Trace:
    logprobs = [-0.5 * own for own in mask]
    made = trace(*[(cell, "x") for cell in range(turns)])
    return replace(made, tokens=TraceTokens(ids, mask, logprobs, temperatures))


TWO_TURNS = with_tokens([9, 8, 1, 2, 7, 3, 6], [False, False, True, True, False, True, False])
LONGER = with_tokens([9, 8, 7, 5, 5, 4, 1, 1, 2], [False] * 3 + [True, True, False, True, True, True])


def tiny() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=12, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64, tie_word_embeddings=True, initializer_range=0.25,
    )  # fmt: skip
    return LlamaForCausalLM(config).double()


def test_targets_are_the_sampled_ids_and_each_stands_behind_its_logits() -> None:
    batch = make_batch([TWO_TURNS, LONGER], [[1.0, -1.0], 0.5], temperature=0.7)
    assert batch.tokens == 3 + 5
    (part,) = batch.micro_batches(1_000)
    assert part.prefix.tolist() == [9]  # not 9 8: the logits after the 8 chose a token
    assert part.ids.tolist() == [[8, 1, 2, 7, 3, 0, 0, 0], [8, 7, 5, 5, 4, 1, 1, 2]]
    assert part.targets.tolist() == [1, 2, 3, 5, 5, 1, 1, 2]
    assert part.ids.flatten()[part.places + 1].tolist() == part.targets.tolist()
    assert part.advantages.tolist() == [1, 1, -1, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert part.logprobs.tolist() == [-0.5] * 8
    assert part.temperatures.tolist() == pytest.approx([0.7] * 8)


def test_turns_without_an_advantage_are_not_trained_but_count_in_the_normaliser() -> None:
    batch = make_batch([TWO_TURNS, LONGER], [[1.0, 0.0], 0.0], temperature=1.0)
    assert batch.tokens == 8
    (part,) = batch.micro_batches(1_000)
    assert part.prefix.tolist() + part.ids[0].tolist() == [
        9,
        8,
        1,
        2,
    ]  # what follows the last trained token is not even computed
    kept = make_batch([TWO_TURNS, LONGER], [[1.0, 0.0], 0.0], temperature=1.0, keep_without_signal=True)
    assert sum(len(part.targets) for part in kept.micro_batches(1_000)) == 8


def test_an_unscored_rollout_is_left_out_altogether() -> None:
    assert make_batch([TWO_TURNS, LONGER], [[1.0, 1.0], None], temperature=1.0).tokens == 3


def test_a_rollout_the_policy_was_never_asked_in_is_left_out() -> None:
    played = replace(trace((4, "a")), given_turns=1)
    assert make_batch([played], [[]], temperature=1.0).rollouts == []


def test_temperatures_of_a_trace_win_over_the_runs() -> None:
    hot = with_tokens([9, 1, 2], [False, True, True], temperatures=[0.0, 1.5, 1.5], turns=1)
    (part,) = make_batch([hot], [1.0], temperature=1.0).micro_batches(100)
    assert part.temperatures.tolist() == [1.5, 1.5]


def test_a_rollout_without_ids_or_with_other_turns_is_refused() -> None:
    with pytest.raises(ValueError, match="no token ids"):
        make_batch([trace((4, "a"))], [1.0], temperature=1.0)
    with pytest.raises(ValueError, match="2 sampled turns, and 3 advantages"):
        make_batch([TWO_TURNS], [[1.0, 2.0, 3.0]], temperature=1.0)


def test_padding_changes_no_log_probability() -> None:
    model = tiny()
    together = make_batch([TWO_TURNS, LONGER], [1.0, 1.0], temperature=0.8)
    (part,) = together.micro_batches(1_000)
    joined = sampled_logprobs(sampled_logits(model, part), part.targets)
    alone = []
    for one in (TWO_TURNS, LONGER):
        assert one.tokens is not None
        logits = model(torch.tensor([one.tokens.ids])).logits[0] / 0.8
        logprobs = torch.log_softmax(logits, -1)
        alone += [logprobs[at - 1, one.tokens.ids[at]].item() for at, own in enumerate(one.tokens.mask) if own]
    assert joined.tolist() == pytest.approx(alone, abs=1e-6)


def test_rollouts_that_are_another_or_its_beginning_share_its_row_and_keep_their_own_tokens() -> None:
    shorter = with_tokens([9, 8, 1, 2], [False, False, True, True], temperatures=[0, 0, 2.0, 2.0], turns=1)
    batch = make_batch([shorter, TWO_TURNS, LONGER, TWO_TURNS], [3.0, 1.0, 0.5, -1.0], temperature=1.0)
    (part,) = batch.micro_batches(1_000)
    assert len(part.ids) == 2
    assert sorted(part.advantages.tolist()) == [-1, -1, -1, 0.5, 0.5, 0.5, 0.5, 0.5, 1, 1, 1, 3, 3]
    model = tiny()
    logprobs = sampled_logprobs(sampled_logits(model, part), part.targets).tolist()
    got = dict(zip(zip(part.advantages.tolist(), part.targets.tolist(), strict=True), logprobs, strict=True))
    hot = torch.log_softmax(model(torch.tensor([[9, 8, 1, 2]])).logits[0] / 2.0, -1)
    assert got[3.0, 1] == pytest.approx(hot[1, 1].item(), abs=1e-6)
    assert got[1.0, 1] == got[-1.0, 1]


def test_micro_batches_give_the_gradient_of_the_whole_batch() -> None:
    rl = Rl(max_grad_norm=1e9, entropy=0.01, loss="cispo", micro_batch_tokens=1_000)
    batch = make_batch([TWO_TURNS, LONGER, TWO_TURNS], [[1.0, -2.0], 0.5, -0.3], temperature=1.0)
    gradients = []
    for size in (1_000, 8):
        model = tiny()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        done = update(model, None, optimizer, batch, rl.model_copy(update={"micro_batch_tokens": size}))
        gradients.append([value.grad.clone() for value in model.parameters() if value.grad is not None])
        assert done.tokens == 11
    assert len(list(batch.micro_batches(8))) == 2
    for whole, parts in zip(*gradients, strict=True):
        assert torch.allclose(whole, parts, atol=1e-6)


def test_an_update_raises_the_probability_of_what_was_better_and_lowers_the_other() -> None:
    model = tiny()
    batch = make_batch([TWO_TURNS, LONGER], [1.0, -1.0], temperature=1.0)
    (part,) = batch.micro_batches(1_000)

    def chance() -> tuple[float, float]:
        logprobs = sampled_logprobs(sampled_logits(model, part), part.targets)
        return logprobs[:3].sum().item(), logprobs[3:].sum().item()

    better, worse = chance()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    update(model, None, optimizer, batch, Rl(entropy=0.0, loss="reinforce"))
    after = chance()
    assert after[0] > better
    assert after[1] < worse


def test_a_batch_without_signal_moves_nothing_not_even_by_momentum() -> None:
    model = tiny()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    update(model, None, optimizer, make_batch([TWO_TURNS], [1.0], temperature=1.0), Rl())
    before = copy.deepcopy(model.state_dict())
    done = update(model, None, optimizer, make_batch([TWO_TURNS], [0.0], temperature=1.0), Rl())
    assert done.tokens == 0
    kept = make_batch([TWO_TURNS], [0.0], temperature=1.0, keep_without_signal=True)
    done = update(model, None, optimizer, kept, Rl(entropy=0.0))
    assert done.tokens > 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_sampler_that_is_not_the_trained_policy_stops_the_run_before_a_step_is_made() -> None:
    model = tiny()
    before = copy.deepcopy(model.state_dict())
    batch = make_batch([TWO_TURNS], [1.0], temperature=1.0)  # its log-probabilities are -.5, which the model's are not
    watch, guards = Watch(), Guards()
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.raises(TrainingStopped, match="sampler and trainer differ"):
        update(model, None, optimizer, batch, Rl(), None, lambda ratio: watch.agreement(ratio, guards))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_kl_term_holds_the_policy_to_its_reference() -> None:
    model, reference = tiny(), tiny()
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.05 * torch.randn(value.shape, generator=torch.Generator().manual_seed(3)).double())
    batch = make_batch([LONGER], [0.0], temperature=1.0, keep_without_signal=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    distances = [update(model, reference, optimizer, batch, Rl(kl=5.0, entropy=0.0)).kl for _ in range(30)]
    assert distances[-1] < distances[0] / 2


def test_minibatches_share_the_rollouts_out_and_the_normaliser_too() -> None:
    batch = make_batch([TWO_TURNS, LONGER, TWO_TURNS, LONGER], [1.0] * 4, temperature=1.0)
    parts = minibatches(batch, 2, [3, 0, 2, 1])
    assert [len(part.rollouts) for part in parts] == [2, 2]
    assert [part.tokens for part in parts] == [8, 8]
    assert sorted(map(id, parts[0].rollouts + parts[1].rollouts)) == sorted(map(id, batch.rollouts))  # type: ignore[operator]


def test_the_rate_rises_and_falls_as_the_recipe_says() -> None:
    rl = Rl(learning_rate=1.0, steps=110, warm_up_steps=10, final_rate=0.2)
    rates = [learning_rate(rl, step) for step in (0, 9, 10, 60, 110)]
    assert rates == pytest.approx([0.1, 1.0, 1.0, 0.6, 0.2])
    assert learning_rate(Rl(learning_rate=0.5, schedule="constant"), 70) == 0.5


def test_tokens_below_the_entropy_threshold_get_no_bonus() -> None:
    batch = make_batch([LONGER], [0.0], temperature=1.0, keep_without_signal=True)
    gradients = []
    for threshold in (0.0, 99.0):
        model = tiny()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        done = update(model, None, optimizer, batch, Rl(entropy=1.0, entropy_threshold=threshold))
        gradients.append(done.gradient)
    assert gradients[0] > 0
    assert gradients[1] == 0


def test_the_form_is_held_by_less_entropy_where_there_is_next_to_none_and_nowhere_else() -> None:
    batch = make_batch([LONGER], [0.0], temperature=1.0, keep_without_signal=True)
    before, after = [], []
    for form, threshold in ((1.0, 99.0), (1.0, 1e-9), (0.0, 99.0)):
        model = tiny()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        rl = Rl(entropy=0.0, form=form, entropy_threshold=threshold)
        before.append(update(model, None, optimizer, batch, rl).entropy)
        after.append(update(model, None, optimizer, batch, rl).entropy)
    assert after[0] < before[0]
    assert after[1:] == before[1:]


def test_the_entropy_bonus_answers_to_how_far_a_batch_is_below_its_target() -> None:
    rl = Rl(entropy=0.01, entropy_target=(0.2, 0.1), steps=101)
    weights = [entropy_weight(rl, 0, entropy) for entropy in (0.0, 0.1, 0.15, 0.2, 9.0)]
    assert weights == pytest.approx([0.01, 0.01, 0.005, 0.0, 0.0])
    assert entropy_weight(rl, 100, 0.075) == pytest.approx(0.005)
    assert entropy_weight(Rl(entropy=0.01), 0, 9.0) == 0.01


def test_the_average_follows_the_weights() -> None:
    model, averaged = tiny(), tiny()
    with torch.no_grad():
        for value in model.parameters():
            value.add_(1.0)
    before = [value.clone() for value in averaged.parameters()]
    average(averaged, model, 0.9)
    for value, old in zip(averaged.parameters(), before, strict=True):
        assert torch.allclose(value, old + 0.1)

"""Drawing tokens: the right distribution, random numbers that belong to a place, and honest log-probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym_rl.local.sampling import choose, derived, uniforms
from mcpgym_rl.policy import PolicyError

SIZES = st.sampled_from([1, 2, 7, 16, 97, 576, 952, 1024])


def softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    scaled = logits.astype(np.float64) / temperature
    shares = np.exp(scaled - scaled.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


@given(SIZES, st.integers(0, 2**32), st.floats(0.1, 3.0))
def test_the_token_is_where_the_running_sum_passes_the_number(size: int, seed: int, temperature: float) -> None:
    random = np.random.default_rng(seed)
    logits = random.normal(0, 3, (9, size)).astype(np.float32)
    numbers = random.random(9)
    tokens, logprobs = choose(logits.copy(), np.full(9, temperature), 0.0, numbers)
    shares = softmax(logits, temperature)
    running = shares.cumsum(1)
    for row, token in enumerate(tokens):
        assert running[row, token] >= numbers[row] - 1e-5
        assert (running[row, token] - shares[row, token]) <= numbers[row] + 1e-5
        assert logprobs[row] == pytest.approx(np.log(shares[row, token]), abs=1e-4)


def test_tokens_are_drawn_as_often_as_they_should_be() -> None:
    logits = np.random.default_rng(0).normal(0, 1.5, 50).astype(np.float32)
    count = 40_000
    numbers = uniforms(np.full(count, 7, np.uint64), np.arange(count))
    tokens, _ = choose(np.tile(logits, (count, 1)), np.full(count, 0.8), 0.0, numbers)
    expected = softmax(logits, 0.8) * count
    seen = np.bincount(tokens, minlength=50)
    assert ((seen - expected) ** 2 / expected).sum() < 95  # chi-squared, 49 degrees of freedom: p < 1e-4 beyond


@given(SIZES, st.integers(0, 2**32))
def test_a_token_that_cannot_be_is_never_drawn_at_the_edges(size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    logits = np.full((4, size), -np.inf, np.float32)
    possible = random.integers(0, size, 4)
    logits[np.arange(4), possible] = random.normal(0, 30, 4)
    numbers = np.array([0.0, 1 - 2**-53, 0.5, 2**-60])
    tokens, logprobs = choose(logits, np.ones(4), 0.0, numbers)
    assert (tokens == possible).all()
    assert (logprobs == 0.0).all()


@given(SIZES, st.integers(0, 2**32), st.floats(0.01, 1.0))
def test_min_p_takes_away_what_is_unlikely_and_leaves_the_log_probabilities(size: int, seed: int, min_p: float) -> None:
    random = np.random.default_rng(seed)
    logits = random.normal(0, 2, (8, size)).astype(np.float32)
    tokens, logprobs = choose(logits.copy(), np.ones(8), min_p, random.random(8))
    shares = softmax(logits, 1.0)
    for row, token in enumerate(tokens):
        assert shares[row, token] >= min_p * shares[row].max() * (1 - 1e-5)
        assert logprobs[row] == pytest.approx(np.log(shares[row, token]), abs=1e-4)


def test_temperature_0_takes_the_likeliest_and_rows_have_temperatures_of_their_own() -> None:
    logits = np.random.default_rng(1).normal(0, 1, (6, 30)).astype(np.float32)
    heats = np.array([0.0, 1.0, 0.0, 2.0, 0.0, 0.5])
    numbers = np.full(6, 0.9999)
    tokens, logprobs = choose(logits.copy(), heats, 0.0, numbers)
    for row, heat in enumerate(heats):
        alone, logprob = choose(logits[row : row + 1].copy(), heats[row : row + 1], 0.0, numbers[:1])
        assert alone[0] == tokens[row]
        assert logprob[0] == pytest.approx(logprobs[row], abs=1e-6)
        if heat == 0.0:
            assert tokens[row] == logits[row].argmax()
            assert logprobs[row] == pytest.approx(np.log(softmax(logits[row], 1.0).max()), abs=1e-5)


def test_numbers_belong_to_a_seed_and_a_position() -> None:
    seeds = np.repeat(np.arange(40, dtype=np.uint64), 50)
    places = np.tile(np.arange(50), 40)
    numbers = uniforms(seeds, places)
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert len(set(numbers.tolist())) == 2000
    order = np.random.default_rng(0).permutation(2000)
    assert (uniforms(seeds[order], places[order]) == numbers[order]).all()
    assert abs(numbers.mean() - 0.5) < 0.03
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.08
    assert abs(np.corrcoef(numbers[:-50], numbers[50:])[0, 1]) < 0.08
    assert len({derived(5, number) for number in range(100)} | {5}) == 101


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_model_that_gives_no_numbers_is_an_error(wrong: float) -> None:
    logits = np.zeros((2, 10), np.float32)
    logits[1] = wrong
    with pytest.raises(PolicyError, match="not a number"):
        choose(logits, np.ones(2), 0.0, np.zeros(2))

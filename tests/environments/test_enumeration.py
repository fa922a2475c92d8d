"""Made data: every place once, splits apart, and numbers in tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym_environments.enumeration import digits, place, stride
from mcpgym_environments.tags import last_tag


@given(size=st.integers(1, 3000), share=st.floats(0, 1))
def test_train_and_test_take_every_place_once(size: int, share: float) -> None:
    train = round(size * share)
    taken = [place("train", index, size) for index in range(train)]
    taken += [place("test", index, size) for index in range(size - train)]
    assert sorted(taken) == list(range(size))


@given(bases=st.lists(st.integers(1, 8), min_size=1, max_size=4))
def test_numbers_below_the_product_are_written_differently(bases: list[int]) -> None:
    product = 1
    for base in bases:
        product *= base
    written = [tuple(digits(number, bases)) for number in range(product)]
    assert len(set(written)) == product
    assert all(digit < base for row in written for digit, base in zip(row, bases, strict=True))


@given(size=st.integers(1, 5000))
def test_a_stride_visits_every_place_once(size: int) -> None:
    assert len({index * stride(size) % size for index in range(size)}) == size


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("<a>1</a>", "1"),
        ("x <a> 1\n</a> y", "1"),
        ("<a>1</a> no, <a>2</a>", "2"),
        ("<a>1</a> or <a>2", "1"),
        ("<a></a>", ""),
        ("<a>1", None),
        ("1</a>", None),
        ("</a>1<a>", None),
        ("<b>1</b>", None),
        ("<A>1</A>", None),
        ("", None),
        ("<a>1</a></a>", "1</a>"),
        ("<a><a>1</a>", "1"),
    ],
)
def test_the_last_complete_tag_counts(text: str, inside: str | None) -> None:
    assert last_tag(text, "a") == inside

"""The comparison of values that came back from a jail: to the type, in bounded time, whatever is given."""

from __future__ import annotations

import copy
import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym_environments.python_sandbox.problems.same import difference, same

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)


def exactly(a: Any, b: Any) -> bool:
    """Sameness by recursion, to check the walk against."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(exactly, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(exactly(a[key], b[key]) for key in a)
    return bool(a == b)


@given(VALUES)
def test_a_value_is_the_same_as_its_copy_through_json_and_with_its_keys_turned_round(value: Any) -> None:
    assert same(value, copy.deepcopy(value))
    assert same(value, json.loads(json.dumps(value)))
    if isinstance(value, dict):
        assert same(value, dict(reversed(value.items())))


@given(VALUES, VALUES)
def test_it_agrees_with_the_plain_recursion(a: Any, b: Any) -> None:
    assert same(a, b) == exactly(a, b) == (difference(a, b) is None)


@given(VALUES, st.data())
def test_one_changed_leaf_is_seen_and_its_place_is_said(value: Any, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, 3))
    ours = [value] * 4
    theirs = [*ours[:index], {"not": "this"}, *ours[index + 1 :]]
    if not exactly(value, {"not": "this"}):
        said = difference(ours, theirs)
        assert said is not None
        assert said.startswith(f"at [{index}]")


@pytest.mark.parametrize(
    ("expected", "given_value"),
    [
        (1, True), (True, 1), (0, False), (1, 1.0), (1.0, 1), ("1", 1), (None, False), (None, 0), ([], {}), ([], None),
        ([1, 2], [2, 1]), ([1], [1, 1]), ([1], (1,)), ({"a": 1}, {"a": 1, "b": 2}), ({"a": 1}, {"b": 1}),
        ({"a": [1]}, {"a": [True]}), ("é", "e\u0301"), (2**200, 2**200 + 1), (0.1 + 0.2, 0.3),
        (math.inf, -math.inf), (1.0, math.nan), ("a", b"a"), ([[]], [[[]]]),
    ],
)  # fmt: skip
def test_what_is_not_the_same(expected: Any, given_value: Any) -> None:
    assert not same(expected, given_value)


def test_nan_is_the_same_as_nothing_and_zero_has_one_sign() -> None:
    assert not same(math.nan, math.nan)
    assert same(0.0, -0.0)


@pytest.mark.parametrize("kind", [int, str, float, list, dict])
def test_a_subclass_is_never_its_base(kind: type) -> None:
    evil = type("Evil", (kind,), {"__eq__": lambda *_: True, "__ne__": lambda *_: False, "__hash__": lambda _: 0})
    assert not same(kind(), evil())
    assert not same([kind()], [evil()])
    assert not same(kind(), evil(), tolerance=1.0)


def test_an_object_that_claims_to_be_a_list_is_not_one() -> None:
    class Claims:
        __class__ = list  # type: ignore[assignment]

        def __len__(self) -> int:
            raise AssertionError("its code was run")

        __eq__ = __repr__ = __iter__ = __getitem__ = __hash__ = __len__  # type: ignore[assignment]

    assert difference([], Claims()) == "a Claims instead of a list"
    assert not same("x", Claims())


def test_tolerance_is_for_numbers_only_absolute_or_relative() -> None:
    assert same(1, 1.0, tolerance=1e-9)
    assert same([1e9], [1e9 + 0.5], tolerance=1e-9)
    assert same({"x": 0.0}, {"x": -1e-10}, tolerance=1e-9)
    assert not same(1.0, 1.0 + 1e-6, tolerance=1e-9)
    assert not same(1, True, tolerance=1e-9)
    assert not same(True, 1, tolerance=1e-9)
    assert not same("1", 1, tolerance=1.0)
    assert not same(1.0, math.nan, tolerance=1e9)
    assert not same(1.0, math.inf, tolerance=0.5)
    assert not same(1.0, 10**400, tolerance=0.5)
    assert same(10**400, 10**400, tolerance=0.5)


def test_what_json_cannot_say_is_a_fault_of_the_reference() -> None:
    for bad in ((1,), {1: 2}, {1}, b"x", object()):
        with pytest.raises(TypeError, match="expected"):
            difference(bad, bad)


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.flaky(reruns=1)  # it measures time
def test_hostile_values_cost_no_more_than_the_expected_one() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    started = time.process_time()
    assert not same([1], cyclic)
    assert not same(nested(3), cyclic)
    assert not same([1, 2], [0] * 5_000_000)
    assert not same(0, "9" * 50_000_000)
    assert not same(0, 10**100_000)
    assert not same({"a": 1}, dict.fromkeys(map(str, range(100_000))))
    assert time.process_time() - started < 3.0
    deep, other = nested(100_000), nested(100_000)
    assert same(deep, other)
    assert difference(0, 10**100_000) == "an int of 332193 bits instead of 0"
    for value in (deep, other):  # freed a level at a time: the interpreter's own recursion is not under test
        while value:
            value[:] = value.pop()
    cyclic.clear()


def test_the_words_are_short_whatever_is_given() -> None:
    path: Any = 0
    for _ in range(300):
        path = {"key" * 30: [path]}
    other = json.loads(json.dumps(path).replace("0", '"' + "x" * 10_000 + '"'))
    said = difference(path, other)
    assert said is not None
    assert len(said) < 300

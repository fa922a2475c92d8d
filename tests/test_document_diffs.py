"""Diffs in documents are applied where they fit, and nowhere else."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.document_diffs import apply_diff

TEXT = "one\ntwo\n\nthree\nfour\n"
DIFF = "--- a\n+++ a\n@@ -2,3 +2,3 @@\n two\n\n-three\n+3\n"
LINES = st.lists(st.sampled_from(["a", "b", "", " c", "+d", "-e", "@@"]), max_size=12)


def test_a_diff_that_fits_is_applied() -> None:
    assert apply_diff(TEXT, DIFF) == "one\ntwo\n\n3\nfour\n"


@pytest.mark.parametrize(
    ("diff", "said"),
    [
        (DIFF.replace("two", "Two"), "line 2 is 'two'"),
        (DIFF.replace("-2,3", "-1,3").replace("+2,3", "+1,3"), "line 1 is 'one'"),
        (DIFF.replace("+2,3", "+1,3"), "begins at line 2 of the new file"),
        (DIFF.replace("-2,3", "-2,4"), "has 3 old and 3 new lines"),
        (DIFF + "@@ -1,1 +1,1 @@\n-one\n+1\n", "before the end"),
        ("+3\n", "no hunk"),
        (DIFF + "!four\n", "begins with neither"),
        ("@@ -6,1 +6,1 @@\n-five\n+5\n", "line 6 is None"),
    ],
    ids=["another word", "another place", "another new place", "miscounted", "overlap", "no hunk", "no mark", "beyond"],
)
def test_a_diff_that_does_not_fit_is_refused(diff: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        apply_diff(TEXT, diff)


@given(LINES, LINES, st.integers(1, 3))
def test_what_difflib_writes_is_applied(old: list[str], new: list[str], context: int) -> None:
    diff = list(difflib.unified_diff(["x", *old, "y"], ["x", *new, "y"], lineterm="", n=context))
    if diff:
        text = "".join(f"{line}\n" for line in ["x", *old, "y"])
        assert apply_diff(text, "\n".join(diff)).splitlines() == ["x", *new, "y"]

"""The examples in the page about wiki search are what is asked and played now."""

from __future__ import annotations

from tests.wiki_examples import PAGE, page


def test_the_examples_are_current() -> None:
    shown = PAGE.read_text("utf-8")
    assert shown == page(shown), "run: python -m tests.wiki_examples"

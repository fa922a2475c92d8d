"""The page about the bundled environments says what they are."""

from __future__ import annotations

from tests.bundled_docs import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.bundled_docs"

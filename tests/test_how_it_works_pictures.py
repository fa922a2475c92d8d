"""The pictures of docs/how-it-works are those that their code draws."""

from __future__ import annotations

import pytest
from tests.website.how_it_works import DRAWINGS, IMAGES


@pytest.mark.parametrize("name", sorted(DRAWINGS))
def test_a_picture_is_current(name: str) -> None:
    drawn = DRAWINGS[name]().svg()
    assert (IMAGES / name).read_text("utf-8") == drawn, "run: python -m tests.website.how_it_works"

"""The benchmark of decoding runs, and says that the engine takes a fraction of what ``generate()`` does."""

from __future__ import annotations

import pytest
from tests.bench.decoding import decoding


@pytest.mark.slow
def test_decoding_takes_less_than_half_of_what_generate_takes() -> None:
    figures = decoding(quick=True)
    assert figures["generate() / engine"] > 2

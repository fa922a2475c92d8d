"""Every fault that users of neighbouring systems reported and that this ground touches is a test by its number."""

from __future__ import annotations

import re
from pathlib import Path

GROUND = {*range(1, 13), 16, *range(18, 21), 23, 24, *range(26, 30), 32}


def test_each_case_of_the_ground_has_a_test_of_its_number() -> None:
    named = {
        int(number)
        for file in Path(__file__).parent.rglob("test_*.py")
        for number in re.findall(r"def test_case_(\d+)_", file.read_text(encoding="utf-8"))
    }
    assert GROUND - named == set()

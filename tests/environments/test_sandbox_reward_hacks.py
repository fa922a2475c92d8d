"""Nothing is paid for what was not solved, and the honest are paid in full beside it.

Everything hostile runs on a real boundary (name spaces, or Landlock), and that in a cell whose files are read-only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sandbox_cells import run_cell, usable
from sandbox_hacks import EXAMPLES, SOLVING, SUBMISSIONS

PROGRAM = Path(__file__).with_name("sandbox_hacks.py")


def test_there_are_many() -> None:
    assert len(SUBMISSIONS) + len(SOLVING) >= 16


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "every"), [("namespaces", 1), ("landlock", 4)])
def test_attempts_are_paid_nothing_and_the_honest_beside_them_everything(backend: str, every: int) -> None:
    usable(0)
    done = run_cell(PROGRAM, backend, str(every), seconds=110)
    if "Unavailable" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["honest"] == 1
    assert [attempt["name"] for attempt in found["attempts"]] == [
        *[*SUBMISSIONS, EXAMPLES][::every],
        *[*SOLVING][::every],
    ]
    assert [attempt for attempt in found["attempts"] if attempt["paid"] != 0] == []
    assert [attempt for attempt in found["attempts"] if attempt["honest"] != 1] == []
    assert [attempt for attempt in found["attempts"] if attempt["seconds"] > 25] == []
    # A grading begins without anything of the session in which the solution was written, while that goes on.
    assert found["clean"] == {"score": 1.0, "why": "", "solving": "LEFT"}

"""No code exceeds what it may ask, or breaks more than itself by asking: attacks in closed cells, in both tiers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sandbox_cells
from sandbox_cells import NOBODY, usable


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "user"), [("namespaces", 0), ("landlock", NOBODY)])
def test_attacks_by_asking_harm_nobody_else(backend: str, user: int) -> None:
    usable(user)
    program = Path(__file__).with_name("sandbox_asking.py")
    done = sandbox_cells.run_cell(program, backend, user=user, seconds=100)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["attacks"] >= 25
    assert found["faults"] == []

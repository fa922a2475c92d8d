"""Whatever is killed, a server, its fork server or a session, nothing of it goes on, and the others do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sandbox_cells
from sandbox_cells import CELLS, usable


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize(("backend", "user"), CELLS)
def test_nothing_outlives_what_was_killed(backend: str, user: int) -> None:
    usable(user)
    done = sandbox_cells.run_cell(Path(__file__).with_name("sandbox_killing.py"), backend, user=user, seconds=80)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout) == []

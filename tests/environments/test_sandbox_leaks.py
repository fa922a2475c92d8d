"""Sessions that are opened and closed leave nothing: no descriptor, process, mount, file or memory.

``MCPGYM_TEST_SESSIONS=1000`` opens more of them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import sandbox_cells
from sandbox_cells import CELLS, usable

SESSIONS = os.environ.get("MCPGYM_TEST_SESSIONS", "60")


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("backend", "user"), CELLS)
def test_nothing_grows(backend: str, user: int) -> None:
    usable(user)
    program = Path(__file__).with_name("sandbox_leaking.py")
    done = sandbox_cells.run_cell(program, backend, SESSIONS, user=user, seconds=230)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout)["faults"] == []

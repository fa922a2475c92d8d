"""Very many episodes at once, hostile ones among them: the honest read and get the same as alone, and nothing is left.

``MCPGYM_TEST_EPISODES=1000`` plays more of them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import sandbox_cells

EPISODES = os.environ.get("MCPGYM_TEST_EPISODES", "150")
AT_ONCE = "128"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_honest_episodes_are_the_same_among_hostile_ones() -> None:
    user = 0 if os.geteuid() == 0 else os.geteuid()
    sandbox_cells.usable(user)
    program = Path(__file__).with_name("sandbox_episodes.py")
    done = sandbox_cells.run_cell(program, EPISODES, AT_ONCE, user=user, seconds=230)
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    assert report["faults"] == []
    assert report["episodes"] == int(EPISODES)

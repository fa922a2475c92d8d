"""The official conformance scenarios find in our server what docs/conformance.md says, in both protocol eras."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.conformance.__main__ import both
from tests.conformance.report import DOCUMENT, written
from tests.conformance.suite import reasons
from tests.node_tools import needs_node


@pytest.mark.slow
@needs_node()
def test_the_scenarios_that_are_said_to_pass_do_and_the_others_do_not(tmp_path: Path) -> None:
    outcomes = asyncio.run(both(tmp_path))
    assert [outcome.problem for outcome in outcomes] == ["", ""]
    assert [len(outcome.required) for outcome in outcomes] == [37, 30]
    unheard = set(reasons()) - {
        key
        for outcome in outcomes
        for scenario, found in outcome.required.items()
        for key in (scenario, *(f"{scenario}:{check}" for check in found.failed))
        if found.failed
    }
    assert unheard == set(), "expected to fail, and did not"
    assert written(outcomes) == DOCUMENT.read_text("utf-8"), "run python -m tests.conformance"

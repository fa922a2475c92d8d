"""The reports in the documents are what the doctor says today: each check's verdict is compared with a fresh one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.doctor.__main__ import IN_CI, REPORTS

UNSTEADY = {"waiting", "leaks", "shutdown"}
"""Checks that warn or not by time and load, and by how many sessions there were; only a failure is compared."""
ROW = re.compile(r"^\| ([\w-]+) \| (pass|warn|fail|skipped) \|", re.MULTILINE)


def verdicts(report: Path) -> dict[str, str]:
    return dict(ROW.findall(report.read_text(encoding="utf-8")))


@pytest.mark.slow
@pytest.mark.timeout(400)  # some thirty processes are started
@pytest.mark.parametrize("name", IN_CI)
def test_a_report_says_what_the_doctor_says(name: str) -> None:
    written = verdicts(REPORTS / f"{name}.md")
    made = IN_CI[name](True)
    fresh = {outcome.name: outcome.verdict.value for outcome in made.outcomes}
    assert set(written) == set(fresh)
    differ = {check for check in fresh if fresh[check] != written[check]}
    differ -= {check for check in UNSTEADY & set(fresh) if "fail" not in (fresh[check], written[check])}
    told = [
        f"{outcome.name} ({outcome.seconds:.1f} s; {written[outcome.name]} in the report): "
        f"{finding.verdict.value}: {finding.evidence}"
        for outcome in made.outcomes
        if outcome.name in differ
        for finding in outcome.findings
    ]
    assert not differ, "\n" + "\n".join(told)


def test_what_the_reports_must_show() -> None:
    """Ours fails nothing; a server keyed on session ids and a peer that keeps no order fail where they are known to."""
    ours = [verdicts(REPORTS / "ours-http.md"), verdicts(REPORTS / "ours-stdio.md")]
    assert {verdict for report in ours for verdict in report.values()} <= {"pass", "skipped"}
    assert verdicts(REPORTS / "fastmcp-sessions.md")["isolation"] == "fail"
    assert verdicts(REPORTS / "verifiers-toolset.md")["retries"] == "fail"
    assert all(len(report) >= 12 for report in ours)

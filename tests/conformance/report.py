"""The tables in docs/conformance.md, from what the scenarios found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.conformance.suite import Outcome, reasons, version

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
BEGIN, END = "<!-- made by: python -m tests.conformance -->", "<!-- end -->"


def tables(outcomes: Sequence[Outcome]) -> str:
    """Counts for each revision; then every scenario that does not pass whole, by reason."""
    rows = ["| protocol | scenarios | pass | pass but for a check | not offered | checks |", "| --- " * 6 + "|"]
    for outcome in outcomes:
        verdicts = [outcome.verdict(scenario) for scenario in outcome.required]
        good = sum(len(found.passed) for found in outcome.required.values())
        bad = sum(len(found.failed) for found in outcome.required.values())
        counts = [len(verdicts), *(verdicts.count(kind) for kind in ("pass", "partly", "expected"))]
        rows.append(f"| {outcome.revision} | {' | '.join(map(str, counts))} | {good} of {good + bad} |")
    rows += ["", "| not offered, because | scenarios |", "| --- | --- |"]
    for reason in dict.fromkeys(reasons().values()):
        found = [f"`{name}`" for name, why in reasons().items() if why == reason]
        rows.append(f"| {reason} | {', '.join(found)} |")
    uncounted = {
        name: bool(found.failed)
        for outcome in outcomes
        for name, found in sorted(outcome.others.items())
        if found.passed
    }
    passed = ", ".join(f"`{name}`" for name, failed in uncounted.items() if not failed)
    left = ", ".join(f"`{name}`" for name, failed in uncounted.items() if failed)
    rows += ["", f"Version {version()} of the suite. Of the scenarios that it does not count, these pass: {passed};"]
    rows += [f"these do not: {left}."]
    return "\n".join(rows)


def written(outcomes: Sequence[Outcome]) -> str:
    """The document with the tables of ``outcomes``."""
    before, _, rest = DOCUMENT.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(outcomes)}\n{END}{after}"

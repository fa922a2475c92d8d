"""What an examination finds: a verdict for each check, the evidence for it, and advice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mcpgym.calls import sendable

LONGEST_EVIDENCE = 600
"""Characters of one piece of evidence that are kept: what a server says may be a megabyte."""


class Verdict(StrEnum):
    """How a check went. ``skipped``: it could not be made here, and the evidence says why."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


_WORST_FIRST = (Verdict.FAIL, Verdict.WARN, Verdict.PASS, Verdict.SKIPPED)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; something that passed outweighs something skipped. ``skipped`` of none."""
    found = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in found), Verdict.SKIPPED)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check saw: how good it is, the evidence, and what to do about it ("" where nothing is)."""

    verdict: Verdict
    evidence: str
    advice: str = ""


@dataclass(slots=True)
class Outcome:
    """The result of one check. ``name`` is its stable name, ``question`` what it asks, in words."""

    name: str
    question: str
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The worst of its findings'."""
        return worst(finding.verdict for finding in self.findings)

    def passed(self, evidence: str) -> None:
        """Something is as it should be."""
        self._add(Verdict.PASS, evidence, "")

    def warn(self, evidence: str, advice: str) -> None:
        """Something will trouble some clients."""
        self._add(Verdict.WARN, evidence, advice)

    def fail(self, evidence: str, advice: str) -> None:
        """Something is broken."""
        self._add(Verdict.FAIL, evidence, advice)

    def skip(self, evidence: str, advice: str = "") -> None:
        """Something could not be looked at; ``advice`` says how it could be."""
        self._add(Verdict.SKIPPED, evidence, advice)

    def _add(self, verdict: Verdict, evidence: str, advice: str) -> None:
        finding = Finding(verdict, _shorten(sendable(evidence)), sendable(advice))
        if finding not in self.findings:
            self.findings.append(finding)

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            "check": self.name,
            "question": self.question,
            "verdict": self.verdict.value,
            "seconds": round(self.seconds, 3),
            "findings": [
                {"verdict": found.verdict.value, "evidence": found.evidence, "advice": found.advice}
                for found in self.findings
            ],
        }


@dataclass(slots=True)
class Examination:
    """A whole examination: what was examined (``subject``), when, with which versions, and every outcome."""

    subject: str
    transport: str
    date: str
    facts: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """The worst of all checks'."""
        return worst(outcome.verdict for outcome in self.outcomes)

    def counts(self) -> dict[str, int]:
        """How many checks ended in each verdict."""
        return {each.value: sum(outcome.verdict is each for outcome in self.outcomes) for each in Verdict}

    def as_json(self) -> dict[str, Any]:
        """For a file; ``schema`` names this format."""
        return {
            "schema": "mcpgym.doctor/1",
            "subject": self.subject,
            "transport": self.transport,
            "date": self.date,
            "facts": self.facts,
            "verdict": self.verdict.value,
            "counts": self.counts(),
            "checks": [outcome.as_json() for outcome in self.outcomes],
        }


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_EVIDENCE else text[: LONGEST_EVIDENCE - 1] + "…"

"""What a scan found, and what it looked at."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from mcpgym_clients.scanning.forms import ENCODINGS

SCHEMA = "mcpgym.scan/1"
MAX_OF_A_KIND = 25
"""Findings of one kind that are kept; the rest is counted."""


@dataclass(slots=True)
class Finding:
    """One leak.

    ``kind`` is its class ("reward", "route", …), ``what`` the thing that leaked, ``channel`` and ``where`` the way it
    took, ``excerpt`` the text around it, ``how`` the form it was in, ``fix`` what to do. ``times`` counts equal ones,
    ``also`` names the other channels they were in.
    """

    kind: str
    what: str
    channel: str
    where: str
    excerpt: str
    how: str
    fix: str
    times: int = 1
    also: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ScanReport:
    """The result of a scan; ``ok`` when nothing leaked.

    ``channels`` maps each channel to its exchanges and bytes, ``canaries`` each kind to how many were looked for,
    ``attacks`` each kind of attack to the requests it sent; ``notes`` say what could not be looked at, and why.
    """

    target: str
    version: str = ""
    seed: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    channels: dict[str, dict[str, int]] = field(default_factory=dict)
    canaries: dict[str, int] = field(default_factory=dict)
    attacks: dict[str, int] = field(default_factory=dict)
    episodes: int = 0
    compared: int = 0
    forms: int = 0
    seconds: float = 0.0
    left_out: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def requests(self) -> int:
        """Requests and messages that were answered."""
        return sum(row["exchanges"] for row in self.channels.values())

    @property
    def size(self) -> int:
        """Bytes that came back."""
        return sum(row["bytes"] for row in self.channels.values())

    def kinds(self) -> set[str]:
        """The kinds of what was found."""
        return {finding.kind for finding in self.findings}

    def add(self, kind: str, what: str, channel: str, where: str, excerpt: str, how: str, fix: str) -> None:
        """Add a finding; one that tells the same as another is counted, not told again."""
        for known in self.findings:
            if (known.kind, known.what) == (kind, what):
                known.times += 1
                if channel not in (known.channel, *known.also):
                    known.also.append(channel)
                return
        if sum(known.kind == kind for known in self.findings) >= MAX_OF_A_KIND:
            self.left_out += 1
            return
        self.findings.append(Finding(kind, what, channel, where, excerpt, how, fix))

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def as_json(self) -> dict[str, Any]:
        """The report for programs."""
        head = {"schema": SCHEMA, "ok": self.ok, "requests": self.requests, "bytes": self.size}
        return {**head, **asdict(self), "encodings": list(ENCODINGS)}

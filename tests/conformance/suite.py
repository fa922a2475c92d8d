"""Running the official suite (npm ``@modelcontextprotocol/conformance``) on a server, and reading what it found."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests import node_tools

PACKAGE = "@modelcontextprotocol/conformance"
REVISIONS = ("2026-07-28", "2025-11-25")
BASELINE = Path(__file__).with_name("expected-failures.yml")
SECONDS = 60

Verdict = Literal["pass", "partly", "expected"]


@dataclass(frozen=True)
class Found:
    """What one scenario found: the checks that passed and those that did not (the suite's warnings among them)."""

    passed: Sequence[str]
    failed: Sequence[str]


@dataclass(frozen=True)
class Outcome:
    """One run of a revision's scenarios.

    Attributes:
        revision: the protocol revision.
        required: what each scenario that the revision requires found, in the suite's order.
        others: the same for scenarios that the suite runs and does not count.
        problem: the end of the suite's output where it says that a result is not the expected one; else empty.
    """

    revision: str
    required: Mapping[str, Found]
    others: Mapping[str, Found]
    problem: str = ""
    reasons: Mapping[str, str] = field(default_factory=lambda: reasons())

    def verdict(self, scenario: str) -> Verdict:
        """Whether a required scenario passed, or as a whole or in single checks is expected not to."""
        if not self.required[scenario].failed:
            return "pass"
        return "expected" if scenario in self.reasons else "partly"

    def why(self, scenario: str) -> str:
        """The reason for what did not pass."""
        found = [
            self.reasons[key]
            for key in (scenario, *(f"{scenario}:{check}" for check in self.required[scenario].failed))
            if key in self.reasons
        ]
        return "; ".join(dict.fromkeys(found))


def reasons() -> dict[str, str]:
    """From the file of expected failures: the reason of each scenario, and of each ``scenario:check``."""
    return dict(re.findall(r"^  - (\S+) # (.+)$", BASELINE.read_text("utf-8"), re.MULTILINE))


def version() -> str:
    """The suite's version."""
    return str(json.loads((node_tools.package(PACKAGE) / "package.json").read_text("utf-8"))["version"])


async def required(revision: str) -> list[str]:
    """The server scenarios that ``revision`` requires."""
    text = await _run("list", "--server", "--requirements", revision)
    scored = text.partition("Run and reported, but never scored")[0].partition("Server scenarios")[2]
    return re.findall(r"^  - (\S+)$", scored.partition("Client scenarios")[0], re.MULTILINE)


async def run_suite(url: str, revision: str, folder: Path) -> Outcome:
    """Run the scenarios of ``revision`` against the MCP server at ``url``; ``folder`` is for the suite's files.

    Raises:
        AssertionError: the suite did not run to its end.
    """
    wanted = await required(revision)
    asked = ["--url", url, "--requirements", revision, "--expected-failures", str(BASELINE), "-o", str(folder)]
    said = await _run("server", *asked, may_fail=True)
    found: dict[str, Found] = {}
    for file in sorted(folder.glob("server-*/checks.json")):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", file.parent.name.removeprefix("server-"))
        checks = json.loads(file.read_text("utf-8"))
        good = [check["id"] for check in checks if check["status"] == "SUCCESS"]
        bad = [check["id"] for check in checks if check["status"] in ("FAILURE", "WARNING")]
        found[scenario] = Found(good, list(dict.fromkeys(bad)))
    assert "=== SUMMARY ===" in said, said[-2000:]
    assert set(wanted) <= set(found), (set(wanted) - set(found), said[-2000:])
    others = {name: checks for name, checks in found.items() if name not in wanted}
    problem = "" if "Baseline check passed" in said else said.partition("Total:")[2]
    return Outcome(revision, {name: found[name] for name in wanted}, others, problem)


async def _run(*words: str, may_fail: bool = False) -> str:
    process = await asyncio.create_subprocess_exec(
        *node_tools.command(PACKAGE),
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    text = out.decode("utf-8", "replace")
    assert may_fail or process.returncode == 0, text[-2000:]
    return text

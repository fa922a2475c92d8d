"""``python -m tests.conformance``: run the scenarios of both revisions and write what they found into the document."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.conformance.fixture import scenario_server
from tests.conformance.report import DOCUMENT, written
from tests.conformance.suite import REVISIONS, Outcome, run_suite


async def both(folder: Path) -> list[Outcome]:
    """The scenarios of both revisions, at one server at once."""
    async with scenario_server() as url:
        return await asyncio.gather(*(run_suite(url, revision, folder / revision) for revision in REVISIONS))


def main() -> int:
    """Write the document; 1 where a result is not the expected one."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = asyncio.run(both(Path(folder)))
    problems = [f"{outcome.revision}:{outcome.problem}" for outcome in outcomes if outcome.problem]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    DOCUMENT.write_text(written(outcomes), encoding="utf-8")
    print(f"{DOCUMENT} says what the scenarios found.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

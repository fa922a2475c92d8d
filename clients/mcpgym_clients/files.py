"""A run's folder and the files in it."""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path

from mcpgym_clients.failures import UsageProblem
from mcpgym_rl.locks import locked
from mcpgym_rl.resuming import ATTEMPTS

TRACES = "traces.jsonl"
SUMMARY = "summary.json"
RECEIPTS = "receipts.jsonl"
RUN = "run.json"


def run_folder(wanted: Path | None, *words: str, overwrite: bool = False) -> Path:
    """The folder of a new run: ``wanted``, or ``runs/WORDS-TIME``.

    Raises:
        UsageProblem: it holds something already and may not be overwritten, or is a file, or cannot be made.
    """
    if wanted is None:
        name = "-".join(re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-.")[:60] for word in words)
        wanted = Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
        attempt, first = 2, wanted
        while wanted.exists():
            wanted, attempt = first.with_name(f"{first.name}-{attempt}"), attempt + 1
    if wanted.exists() and not wanted.is_dir():
        raise UsageProblem(f"--out {wanted} is a file; name a folder")
    if wanted.is_dir() and any(not item.name.startswith(".") for item in wanted.iterdir()):
        if not overwrite:
            raise UsageProblem(_not_empty(wanted))
        with locked(wanted):
            for name in (SUMMARY, RECEIPTS, TRACES, ATTEMPTS, RUN):
                (wanted / name).unlink(missing_ok=True)
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageProblem(f"--out {wanted} cannot be made: {error.strerror}") from None
    return wanted


def _not_empty(folder: Path) -> str:
    from mcpgym_clients.run_file import is_unfinished

    if is_unfinished(folder):
        go_on = f"mcpgym eval --resume {shlex.quote(str(folder))}"
        return (
            f"--out {folder} has a run that has not come to its end; go on with it: {go_on}; or replace it: --overwrite"
        )
    return f"--out {folder} is not empty; name another folder, or replace its results: --overwrite"


def find_traces(path: Path) -> Path:
    """The trace file that ``path`` means: itself, or the one in it.

    Raises:
        UsageProblem: there is none.
    """
    if path.is_dir():
        if (path / TRACES).is_file():
            return path / TRACES
        runs = sorted(item.parent.name for item in path.glob(f"*/{TRACES}"))
        hint = f"; there are runs in it: {', '.join(runs[:5])}" if runs else ""
        raise UsageProblem(f"{path} has no {TRACES}{hint}")
    if not path.exists():
        raise UsageProblem(f"there is no {path}")
    return path


def require_place(option: str, path: Path, example: str) -> None:
    """Say before the work that its result could not be written to ``path``.

    Raises:
        UsageProblem: it is a folder (``example`` would be a file in it), or is in none that is there.
    """
    if path.is_dir():
        raise UsageProblem(f"{option} {path} is a folder; name a file in it: {option} {path / example}")
    if not path.parent.is_dir():
        raise UsageProblem(f"{option} {path}: there is no folder {path.parent}")

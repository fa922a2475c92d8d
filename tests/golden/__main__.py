"""``python -m tests.golden [NAME…]``: write the golden files anew. ``--check``: only say where they differ from it."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Collection, Iterator
from importlib.metadata import entry_points
from pathlib import Path

from tests.golden.playthroughs import playthrough
from tests.golden.rollouts import golden_traces

from mcpgym import load_environment
from mcpgym.registry import GROUP

HERE = Path(__file__).parent
COMBINED = ("reverse-text+tic-tac-toe",)
"""Several environments in one episode."""
NOT_FROZEN = {"reasoning-gym", "textarena"}
"""They take seconds of processor time to import in each process that plays or replays; their own tests compare."""


def files(chosen: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Every golden file and what must be in it: two for each environment that this project bundles,
    and for some of them together; or for those ``chosen`` alone."""
    names = sorted(entry.name for entry in entry_points(group=GROUP) if entry.value.startswith("mcpgym_environments."))
    assert names, "no environment is installed: pip install -e '.[dev]'"
    for name in (*(name for name in names if name not in NOT_FROZEN), *COMBINED):
        if chosen and name not in chosen:
            continue
        lines = [trace.to_json() + "\n" for trace in golden_traces(load_environment(name))]
        yield HERE / f"{name}.jsonl", "".join(lines)
        yield HERE / "playthroughs" / f"{name}.txt", playthrough(load_environment(name))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description="Golden traces and playthroughs.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where a file is not as it should be"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the files of this name alone; all by default")
    options = parser.parse_args()
    check, names = options.check, options.names
    wanted = dict(files(names))
    there = {path for kind in ("*.jsonl", "playthroughs/*.txt") for path in HERE.glob(kind)}
    there = {path for path in there if not names or path.stem in names}
    wrong = 0
    for path in sorted({*wanted, *there}):
        old = path.read_text("utf-8") if path in there else ""
        if old == (new := wanted.get(path, "")):
            continue
        wrong += 1
        name = str(path.relative_to(HERE.parents[1]))
        if check:
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, "as it is played now", lineterm="")
            print("\n".join([line[:300] for line in lines][:60]))
        elif path in wanted:
            path.parent.mkdir(exist_ok=True)
            path.write_text(new, "utf-8", newline="\n")
            print(f"wrote {name}")
        else:
            path.unlink()
            print(f"removed {name}")
    if check and wrong:
        print(f"{wrong} golden files differ. If that is what you wanted: python -m tests.golden", file=sys.stderr)
        return 1
    return 0


sys.exit(main())

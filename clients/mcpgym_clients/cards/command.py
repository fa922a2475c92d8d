"""``mcpgym env card``: print the page, put it into a file, or say whether the one there is current."""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from mcpgym.registry import load_environment
from mcpgym_clients.cards.card import card
from mcpgym_clients.failures import CommandFailed, UsageProblem
from mcpgym_clients.options import parse_config
from mcpgym_rl.files import replace_whole

MARKED = re.compile(r"(<!-- card\b[^>]*-->\n).*?(<!-- /card -->)", re.DOTALL)
"""Where the page stands in a file."""


def run(name: str, config: Sequence[str], episodes: int, write: Path | None, check: Path | None) -> None:
    """Make the page of an environment.

    Raises:
        UsageProblem: the file has no place for it.
        CommandFailed: the file's is another than this.
    """
    if write is not None and check is not None:
        raise UsageProblem("--write and --check do not go together")
    file = write or check
    old = None if file is None else _read(file)
    with contextlib.redirect_stdout(sys.stderr):  # what an environment prints is no part of its page
        page = card(load_environment(name, parse_config(config, [name])[name]), episodes)
    if file is None or old is None:
        print(page, end="")
        return
    new = MARKED.sub(lambda found: f"{found[1]}\n{page}\n{found[2]}", old, count=1)
    if write is not None:
        replace_whole(file, new.encode())
    elif new != old:
        changed = list(difflib.unified_diff(old.splitlines(), new.splitlines(), str(file), "as it is now", lineterm=""))
        print("\n".join(changed[:40]), file=sys.stderr)
        raise CommandFailed(
            f"{file} describes another environment than this; write it anew: mcpgym env card {name} --write {file}"
        )


def _read(file: Path) -> str:
    text = file.read_text("utf-8")
    if not MARKED.search(text):
        raise UsageProblem(
            f"{file} has no place for the card: put <!-- card --> and <!-- /card --> on lines of their own"
        )
    return text

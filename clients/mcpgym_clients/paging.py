"""Reading long output page by page, from the first page on: what follows is rendered while a person reads."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator

from rich.console import Console

from mcpgym_clients import plain
from mcpgym_clients.console import out


class _Reader(Console):
    """Writes to a pager; one that was left ends the writing, not the program."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@contextlib.contextmanager
def pager() -> Iterator[Console]:
    """A console whose output is paged where a person reads it on a terminal, and printed otherwise.

    The pager is ``PAGER``, or else ``less``, which leaves at once what fits on the screen. When it is quit before the
    end, the body of the ``with`` statement is left silently.
    """
    command = _command() if out().is_terminal and not out().is_dumb_terminal else None
    if command is None:
        yield out()
        return
    environment = {"LESS": "-FRX", **os.environ}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, text=True, encoding=out().encoding, errors=plain.NAME, env=environment
    )
    assert process.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError):
            yield _Reader(file=process.stdin, force_terminal=True, width=out().width, highlight=False)
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        while process.poll() is None:
            with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is the pager's while it runs
                process.wait()


def _command() -> list[str] | None:
    wanted = shlex.split(os.environ.get("PAGER", "")) or ["less"]
    return wanted if shutil.which(wanted[0]) else None

"""The two consoles of a command: results on standard output, talk on standard error."""

from __future__ import annotations

from functools import cache

from rich.console import Console


@cache
def _console(stderr: bool) -> Console:
    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def out() -> Console:
    """Where results go."""
    return _console(False)


def talk() -> Console:
    """Where progress, warnings and hints go, so that results can be piped."""
    return _console(True)


def warn(sentence: str) -> None:
    """Print a warning."""
    talk().print(f"[yellow]warning:[/yellow] {escaped(sentence)}", soft_wrap=True)


def escaped(text: object) -> str:
    """``text`` with nothing in it read as markup."""
    from rich.markup import escape

    return escape(str(text))

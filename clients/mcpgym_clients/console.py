"""The two consoles of a command: results on standard output, talk on standard error."""

from __future__ import annotations

import re
from functools import cache

from rich.console import Console
from rich.markup import escape

# C0 and C1 controls (the escape character among them), and what turns the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@cache
def _console(stderr: bool) -> Console:
    return Console(stderr=stderr, highlight=False, soft_wrap=False, emoji=False)  # fastmcp:notebook:make has none in it


def out() -> Console:
    """Where results go."""
    return _console(False)


def talk() -> Console:
    """Where progress, warnings and hints go, so that results can be piped."""
    return _console(True)


def warn(sentence: str) -> None:
    """Print a warning, on one line."""
    talk().print(f"[yellow]warning:[/yellow] {escaped(one_line(sentence))}", soft_wrap=True)


def escaped(text: object) -> str:
    """``text``, harmless to the terminal and with nothing in it read as markup."""
    return escape(clean(str(text)))


def clean(text: str) -> str:
    """``text`` without what could command a terminal: control characters are shown as ``�``, newlines and tabs stay.

    Whatever a policy or another package's environment wrote goes through here before a person sees it.
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """``text`` made harmless as :func:`clean` does, on one line: a name with line breaks could fake what follows it."""
    return " ".join(clean(text).split())

"""How a command fails: one line that names the fix for what a user can mend, a traceback for what only we can.

Exit codes: 0 it worked, 1 it did not, 2 it was asked for in a way that cannot work, 130 it was interrupted.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator

FAILURE = 1
USAGE = 2
INTERRUPTED = 130


class UsageProblem(Exception):
    """The command line asks for something that cannot be; the text names what would be right."""


class CommandFailed(Exception):
    """The command did its work and it came to nothing good; the text says why."""


def explain(error: BaseException) -> tuple[str, int] | None:
    """The sentence and exit code for an error that is not a bug of ours; None for one that is."""
    leaves = list(_leaves(error))
    known = [_explain_one(leaf) for leaf in leaves]
    if not known or any(item is None for item in known):
        return None
    sentences = dict.fromkeys(item[0] for item in known if item is not None)
    return "; ".join(sentences), max(item[1] for item in known if item is not None)


def fail(sentence: str) -> None:
    """Print ``error: …`` on standard error, on one line."""
    from mcpgym_clients.console import clean

    print("error: " + clean(" ".join(sentence.split())), file=sys.stderr, flush=True)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _explain_one(error: BaseException) -> tuple[str, int] | None:
    if isinstance(error, UsageProblem):
        return str(error), USAGE
    if isinstance(error, CommandFailed):
        return str(error), FAILURE
    errors = sys.modules.get("mcpgym.errors")  # never imported only to fail
    if errors is not None and isinstance(error, errors.McpgymError):
        return str(error), USAGE if isinstance(error, errors.ConfigurationError) else FAILURE
    if isinstance(error, OSError):
        return _explain_os(error)
    return None


def _explain_os(error: OSError) -> tuple[str, int] | None:
    reason = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        return f"{reason}: choose another --port, or 0 for a free one", FAILURE
    if error.filename is not None:
        return f"{error.filename}: {reason}", FAILURE
    return None

"""The agent's command line: where its files are, and how it is spoken to."""

from __future__ import annotations

import argparse
import fcntl
import importlib
import os
import shutil
import stat
import sys
import tempfile

from mcpgym_environments.python_sandbox.jail import mailbox
from mcpgym_environments.python_sandbox.jail.init import Place, serve


def main(arguments: list[str], again: list[str]) -> None:
    """Serve one session on standard input and output (one socket, or two pipes), and end.

    Args:
        arguments: the command line.
        again: the command that runs this program, without arguments.
    """
    parser = argparse.ArgumentParser(prog="agent", allow_abbrev=False)
    parser.add_argument("--work", default="/work", help="the workspace")
    parser.add_argument("--scratch", default="/tmp", help="temporary files")
    parser.add_argument("--packages", default="", help="what to import before the first worker, with commas")
    parser.add_argument("--remove", default="", help="a folder to remove at the end")
    parser.add_argument("--own-user", action="store_true", help="nothing else runs under this user id")
    parser.add_argument("--once", nargs=2, metavar=("REQUEST", "ANSWER"), help="answer one frame")
    parser.add_argument("--mailbox", default=mailbox.MAILBOX, help="where --once keeps the agent that stays")
    parser.add_argument("--stay", default="", help="be that agent, on this socket")
    options = parser.parse_args(arguments)
    if options.once:
        kept = [f"--{name}={getattr(options, name)}" for name in ("work", "scratch", "packages")]
        request, answer = options.once
        sys.exit(mailbox.once(request, answer, options.mailbox, [*again, *kept]))
    stream = mailbox.stay(options.stay) if options.stay else _take_stream()
    for name in filter(None, options.packages.split(",")):
        importlib.import_module(name)
    work = _made(options.work) or _made(os.path.join(tempfile.gettempdir(), "work"))
    scratch = _made(options.scratch) or tempfile.gettempdir()
    place = Place(
        work=work or scratch,
        writable=(work or scratch,) if options.stay else (work or scratch, scratch),
        scratch=scratch,
        namespace=os.getpid() == 1,
        own_user=options.own_user,
        capped=False,
    )
    try:
        serve(stream, place)
    finally:
        if options.remove:
            os.chdir("/")
            shutil.rmtree(options.remove, ignore_errors=True)
    os._exit(0)


def _made(path: str) -> str:
    """The folder at ``path``, made if need be; empty where that cannot be."""
    try:
        os.makedirs(path, 0o700, exist_ok=True)
    except OSError:
        return ""
    return os.path.realpath(path) if os.access(path, os.W_OK | os.X_OK) else ""


def _take_stream() -> tuple[int, int]:
    """Move standard input and output out of reach of whatever prints."""
    reader = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 100)
    writer = reader if stat.S_ISSOCK(os.fstat(0).st_mode) else fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 100)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return reader, writer

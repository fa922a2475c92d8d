"""The agent's command line: where its files are, and how it is spoken to."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import importlib
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Callable

from mcpgym_environments.python_sandbox.jail import emptying, mailbox
from mcpgym_environments.python_sandbox.jail.init import Place, serve
from mcpgym_environments.python_sandbox.jail.table import end_user


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
    parser.add_argument("--guard", action="store_true", help="as far as can be, do no harm outside of these folders")
    parser.add_argument("--user", type=int, default=0, help="with --guard, from root: the throw-away user to become")
    parser.add_argument("--reads", action="store_true", help="with --user: read what root can")
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
    scratch = _own(_made(options.scratch) or tempfile.gettempdir())
    _refuse_others(work or scratch, os.path.dirname(options.stay))
    if options.guard:
        _guard(options, stream, (work or scratch, scratch))
    place = Place(
        work=work or scratch,
        writable=(work or scratch,) if options.stay else (work or scratch, scratch),
        scratch=scratch,
        namespace=os.getpid() == 1,
        own_user=options.own_user or options.user > 0,
        capped=False,
        confine=_shield(),
    )
    serve(stream, place)
    os._exit(0)


def _guard(options: argparse.Namespace, stream: tuple[int, int], folders: tuple[str, str]) -> None:
    """Become two processes: this one stays as it is, waits for the other and clears up. Returns in the other one."""
    this = os.getpid()
    child = os.fork()
    if child:
        for descriptor in set(stream):
            os.close(descriptor)
        os.waitpid(child, 0)
        if options.user:
            end_user(options.user)
        emptying.remove(options.remove)
        os._exit(0)
    if sys.platform == "linux":
        from mcpgym_environments.python_sandbox.jail import guard, system_calls

        if options.user:
            for folder in folders:
                os.chown(folder, options.user, options.user)
            guard.become(options.user, reads=options.reads)
        system_calls.death_signal(signal.SIGKILL)
        if os.getppid() != this:
            os._exit(1)
        guard.keep_within(folders)


def _own(folder: str) -> str:
    """``folder``, which a session may empty; where there is something in it that is not ours, a new folder in it."""
    if all(name.startswith(".agent") for name in os.listdir(folder)):
        return folder
    return tempfile.mkdtemp(prefix="sandbox-", dir=folder)


def _refuse_others(work: str, kept: str) -> None:
    """End here if there is something in the workspace, unless an agent before this one put it there.

    Args:
        work: the workspace, which a session empties.
        kept: the folder in which one agent after another keeps its socket; empty where there is none.
    """
    note = os.path.join(kept, "work") if kept else ""
    before = ""
    if note:
        with contextlib.suppress(OSError), open(note, encoding="utf-8") as file:
            before = file.read()
    if os.listdir(work) and before != work:
        sys.exit(f"there is something in {work} already, and a sandbox empties its workspace: this is no place for one")
    if note:
        with open(note, "w", encoding="utf-8") as file:
            file.write(work)


def _shield() -> Callable[[], None] | None:
    """What keeps the worker from this process and from its parent, which may carry its frames."""
    if sys.platform != "linux":
        return None
    try:
        from mcpgym_environments.python_sandbox.jail import hardening
    except (ImportError, OSError):  # an interpreter without ctypes, or without a C library to load
        return None
    return hardening.shield([process for process in (os.getpid(), os.getppid()) if process > 0])


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

"""Folders of added environments: one at a time changes them, and what a killed command left is cleared away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from mcpgym.isolated.records import FOLDER, LOCK, Record, odd_files, records, venvs
from mcpgym_clients.console import talk
from mcpgym_clients.failures import CommandFailed, UsageProblem

CHANGING = ".lock"


def refuse_other_systems() -> None:
    """Refuse where none of this works.

    Raises:
        UsageProblem: this is Windows.
    """
    if sys.platform == "win32":
        raise UsageProblem("environments of their own work on Linux and macOS only; pip install the package instead")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[int]:
    """Be the only one that changes what is added; waits for another. The descriptor of the lock, which whoever inherits
    it holds on: an installer that outlives us is waited for too.

    Raises:
        CommandFailed: the folder cannot be made or written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        venvs(folder).mkdir(mode=0o700, exist_ok=True)
        handle = os.open(folder / CHANGING, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CommandFailed(f"no folder for environments: {error}; set MCPGYM_ENVIRONMENTS to another") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            talk().print("[dim]waiting for another mcpgym env command to finish …[/dim]")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def new_folder(folder: Path) -> Path:
    """The name of a virtual environment that is not there yet."""
    return venvs(folder) / secrets.token_hex(8)


def sweep(folder: Path) -> None:
    """Remove virtual environments that no record names and nobody plays in; only for who is :func:`alone`.

    With a file among the records that cannot be read, nothing is: it may name one of them.
    """
    if odd_files():
        return
    named = {record.folder.name for record in records()}
    for path in list(venvs(folder).iterdir()):
        if path.name not in named and FOLDER.fullmatch(path.name):
            with contextlib.suppress(CommandFailed):  # it is swept when it is not in use any more
                remove_venv(path)


def remove_venv(path: Path) -> None:
    """Remove one virtual environment.

    Raises:
        CommandFailed: processes play in it; the text says which.
    """
    if not FOLDER.fullmatch(path.name) or path.is_symlink():
        raise CommandFailed(f"{path} is no virtual environment of ours; it is left alone")
    with not_in_use(path):
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def not_in_use(path: Path) -> Iterator[None]:
    """Keep anybody from playing in a virtual environment.

    Raises:
        CommandFailed: somebody does; the text says who.
    """
    try:
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:  # it was never finished, or is gone
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandFailed(f"it is in use by {users(path)}; stop that first") from None
        yield
    finally:
        os.close(handle)


def users(path: Path) -> str:
    """Which processes have started one that plays in a virtual environment."""
    python = str(path / "bin" / "python")
    found: dict[int, str] = {}
    for process in psutil.process_iter(["cmdline", "ppid"]):
        if (process.info["cmdline"] or [""])[0] == python:
            with contextlib.suppress(psutil.Error):
                parent = psutil.Process(process.info["ppid"])
                if (words := parent.cmdline()) and words[0] != python:
                    found[parent.pid] = " ".join(Path(word).name if word == words[0] else word for word in words)[:80]
    said = [f"process {pid} ({words})" for pid, words in sorted(found.items())]
    return ", ".join(said) or "another process"


def chosen(name: str) -> Record:
    """The record of a package, or of an environment in one.

    Raises:
        UnknownNameError: there is none.
    """
    from mcpgym.errors import UnknownNameError

    known = records()
    for record in known:
        if name == record.package or name in record.environments:
            return record
    names = {word for record in known for word in (record.package, *record.environments)}
    raise UnknownNameError("environment that was added under the name", name, names)

"""``mcpgym eval`` in forks of this process, which are killed: begun without the second that Python takes to begin.

``kills SEED COUNT FOLDER``: a run of 300 episodes, killed with SIGKILL at COUNT random moments and gone on with each
time, then once more to its end. ``faults FOLDER``: the same, but each fork kills itself in the middle of something.
Each line it prints is one fork: how it ended, and how many lines were there then.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from mcpgym_clients.cli import main

NEW = ["eval", "tic-tac-toe", "-p", "random", "-n", "100", "-r", "3", "--out"]


def arguments(folder: Path) -> list[str]:
    return ["eval", "--resume", str(folder)] if (folder / "run.json").exists() else [*NEW, str(folder)]


def fork(folder: Path, prepare: Callable[[], None] = lambda: None) -> int:
    words = arguments(folder)
    child = os.fork()
    if child:
        return child
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    prepare()
    code = 70
    with contextlib.suppress(BaseException):
        code = main(words)
    os._exit(code)


def lines(folder: Path) -> int:
    try:
        return (folder / "traces.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def ended(child: int, folder: Path) -> None:
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), lines(folder), flush=True)


def kills(seed: int, count: int, folder: Path) -> None:
    choose = random.Random(seed)
    moments = sorted(choose.randrange(0, 300) for _ in range(count))
    for moment in moments:
        child = fork(folder)
        if choose.random() < 0.25:  # whatever it is doing just then: it may have only begun
            time.sleep(choose.uniform(0, 0.04))
        else:
            deadline = time.monotonic() + 10
            while lines(folder) < moment and time.monotonic() < deadline:
                time.sleep(0.0005)
            time.sleep(choose.uniform(0, 0.004))
        os.kill(child, signal.SIGKILL)
        ended(child, folder)
    ended(fork(folder), folder)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_mid_write(line: int, size: Callable[[int], int]) -> Callable[[], None]:
    """Write only a part of the ``line``-th trace, then die."""

    def prepare() -> None:
        real, count = os.write, 0

        def write(file: int, data: bytes) -> int:
            nonlocal count
            if data.startswith(b'{"schema":"mcpgym.trace'):
                count += 1
                if count == line:
                    real(file, data[: size(len(data))])
                    die()
            return real(file, data)

        os.write = write

    return prepare


def in_mid_replace(name: str) -> Callable[[], None]:
    """Die when a file is about to take the place of the one called ``name``."""

    def prepare() -> None:
        real = Path.replace

        def replace(self: Path, target: Path) -> Path:
            if Path(target).name == name:
                die()
            return real(self, target)

        Path.replace = replace  # type: ignore[method-assign, assignment]

    return prepare


def interrupted(after: int) -> Callable[[], None]:
    """Ctrl-C when so many traces were written: those under way are recorded as cancelled."""

    def prepare() -> None:
        real, count = os.write, 0

        def write(file: int, data: bytes) -> int:
            nonlocal count
            written = real(file, data)
            if data.startswith(b'{"schema":"mcpgym.trace'):
                count += 1
                if count == after:
                    os.kill(os.getpid(), signal.SIGINT)
            return written

        os.write = write

    return prepare


def faults(folder: Path) -> None:
    for prepare in (
        in_mid_replace("run.json"),
        in_mid_write(1, lambda size: 1),
        in_mid_write(20, lambda size: size // 2),
        in_mid_write(30, lambda size: size - 1),  # whole but for its newline
        in_mid_write(10, lambda size: size),
        interrupted(40),
        in_mid_replace("traces.jsonl"),  # their lines are in attempts.jsonl already
        in_mid_replace("traces.jsonl"),
        interrupted(160),
        in_mid_write(5, lambda size: size // 3),  # in mid-move of a line to attempts.jsonl
        interrupted(50),
        in_mid_replace("summary.json"),
    ):
        ended(fork(folder, prepare), folder)
    ended(fork(folder), folder)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.redirect_stdout(None):
        main([*NEW[:5], "3", "--out", sys.argv[-1] + "-before"])  # what is imported late is imported now
    if sys.argv[1] == "kills":
        kills(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        faults(Path(sys.argv[2]))

"""Lines that a person types, read without holding up the event loop and without a thread that outlives the command."""

from __future__ import annotations

import asyncio
import os
import sys

from mcpgym_clients.console import out

PASTED_SECONDS = 0.05
"""So soon after one line, the next comes of a pasted text."""


class Lines:
    """Standard input, line by line: a terminal, a pipe or a file.

    The file descriptor is read as it becomes ready, so a server in the same process keeps answering while a person
    thinks, and Ctrl-C ends the wait at once. ``told`` is what the person has been told already.
    """

    def __init__(self) -> None:
        self.told: set[str] = set()
        self._buffer = b""
        self._ended = False
        try:
            self._descriptor = sys.stdin.fileno()
        except (AttributeError, OSError, ValueError):
            self._descriptor = -1

    async def ask(self, prompt: str) -> str | None:
        """The next line after ``prompt`` (markup), without its end; None when there is no more."""
        out().print(prompt, end="")
        out().file.flush()
        line = await self._line()
        if line is None or not (self._descriptor >= 0 and os.isatty(self._descriptor)):
            out().print("" if line is None else line, markup=False)  # what a terminal would have echoed
        return line

    async def more(self) -> bool:
        """Whether another line is there already, which a person cannot have typed since: a text was pasted."""
        if self._descriptor < 0 or not os.isatty(self._descriptor):
            return False  # in a pipe all lines are there from the beginning
        if b"\n" in self._buffer:
            return True
        try:
            return await asyncio.wait_for(self._ready(), PASTED_SECONDS)
        except TimeoutError:
            return False

    async def _line(self) -> str | None:
        if self._descriptor < 0:
            line = sys.stdin.readline() if sys.stdin is not None else ""
            return line.rstrip("\r\n") if line else None
        while b"\n" not in self._buffer and not self._ended:
            await self._ready()
            read = os.read(self._descriptor, 65536)
            self._ended = not read
            self._buffer += read
        if not self._buffer:
            self._ended = False  # a terminal may go on after Ctrl-D
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(sys.stdin.encoding or "utf-8", "replace").rstrip("\r")

    async def _ready(self) -> bool:
        """Wait until there is something to read; False where that cannot be known."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self._descriptor, ready.set)
        except (NotImplementedError, PermissionError, OSError, ValueError):
            return False  # a file is always ready; a loop that cannot watch descriptors has to block
        try:
            return await ready.wait()
        finally:
            loop.remove_reader(self._descriptor)

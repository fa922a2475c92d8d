"""Players over stdio: one process is one episode, or a person's own server of many.

Standard output belongs to the protocol, whatever an environment prints; and the process ends with its client, whatever
a tool is doing: a client that was killed cannot ask for it.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import select
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.wire.bare import BarePlayer, Handles
from mcpgym.wire.mcp_server import mcp_server
from mcpgym.wire.players import EpisodePlayer, Player

GRACE = 1.0
"""Seconds the process has to end by itself once its client has gone."""
_LOOK = 0.1
_MAX_LINES_AHEAD = 64


class Wire:
    """Standard input and output, taken for the protocol: from now on ``print`` writes to standard error.

    Make one before environments are imported, so that not even what they print then reaches the client.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)  # it is a log now: it must be there when the process dies
        self.input, self.output = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)


async def serve_stdio(episodes: Episodes, bound: Episode | None = None, *, wire: Wire | None = None) -> None:
    """Serve the client at standard input and output until it leaves; both protocol eras, always UTF-8.

    It takes the process with it: when the client's end closes or the parent process dies, and also when this returns,
    the process is ended a second later if it has not ended by itself.

    Args:
        episodes: what is played.
        bound: the one episode of this process, with its tools as they are; without it, bare: ``start_episode`` and
            handles.
        wire: the streams, where they were taken earlier.
    """
    wire = wire or Wire()
    lines = _Lines(wire.input)
    watch = _Watch(wire.input, lines.end)
    watch.start()
    player: Player = (
        BarePlayer(episodes, Handles(episodes), list(episodes.environments)) if bound is None else EpisodePlayer(bound)
    )
    server = mcp_server(player.face, lambda context: (player, None))
    output = io.TextIOWrapper(os.fdopen(wire.output, "wb"), encoding="utf-8", newline="\n")
    try:
        async with stdio_server(cast(Any, lines), anyio.wrap_file(output)) as (incoming, outgoing):
            lines.answer = outgoing.send
            await server.run(incoming, outgoing, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client closed its end before it had read an answer: it has gone
    finally:
        watch.client_has_gone()


class _Lines:
    """The lines of a file descriptor, read in a daemon thread: one that waits for input keeps no process alive.

    Those that are no message are answered here with an error: the SDK passes them over, and their senders would wait.
    """

    answer: Callable[[SessionMessage], Awaitable[None]] | None = None
    """What sends an answer; set once there is a stream for it."""

    def __init__(self, descriptor: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(_MAX_LINES_AHEAD)
        self._file = os.fdopen(descriptor, "rb", closefd=False)
        threading.Thread(target=self._read, name="mcpgym stdin", daemon=True).start()

    def _read(self) -> None:
        try:
            for line in self._file:
                self._room.acquire()
                self._put(paired(line.decode("utf-8", "replace")))
        finally:
            self.end()

    def end(self) -> None:
        """No more lines: whoever reads them goes home in order. Any thread may call it."""
        self._put(None)

    def _put(self, line: str | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:
            return  # the loop has closed

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            self._room.release()
            if (refusal := refused(line)) is None:
                yield line
            elif self.answer is not None:
                await self.answer(SessionMessage(refusal))


def refused(line: str) -> types.JSONRPCError | None:
    """The answer to a line that the SDK cannot read; None for a message, and for an empty line."""
    try:
        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        return None
    except ValueError:
        if not line.strip():
            return None
    number: Any = None
    code, why = types.PARSE_ERROR, "this line is no JSON that can be read"
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        pass
    else:
        code, why = types.INVALID_REQUEST, "this line is no JSON-RPC message, or is nested too deep"
        number = found.get("id") if isinstance(found, dict) else None
    known = isinstance(number, (int, str)) and not isinstance(number, bool)
    error = types.ErrorData(code=code, message=why)
    return types.JSONRPCError(jsonrpc="2.0", id=number if known else None, error=error)


_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def paired(line: str) -> str:
    """A line of JSON with a replacement character for each escape of half a character (a lone surrogate).

    Models and JavaScript clients make such; the SDK cannot read them, and over stdio it would answer nothing at all.
    """
    if "\\ud" not in line and "\\uD" not in line:
        return line
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], line)


class _Watch(threading.Thread):
    """Ends the process when its client has gone and it does not end by itself.

    A thread, because the event loop may be the one that is stuck. The client has gone when every writer of our input
    has closed it, or when our parent is another process than at the start (then a sibling may still hold the input).
    """

    def __init__(self, descriptor: int, go_home: Callable[[], None]) -> None:
        super().__init__(name="mcpgym stdio watch", daemon=True)
        self._go_home = go_home
        self._parent = os.getppid()
        self._gone_since: float | None = None
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(descriptor, 0)  # only what is always told: hang-up and error

    def client_has_gone(self) -> None:
        """Begin the grace, if it has not begun."""
        if self._gone_since is None:
            self._gone_since = time.monotonic()
            self._go_home()

    def run(self) -> None:
        """Look now and then; Windows tells of neither sign, and there the end of the input must do."""
        while True:
            time.sleep(_LOOK)
            if os.getppid() != self._parent or (self._poll is not None and self._poll.poll(0)):
                self.client_has_gone()
            if self._gone_since is not None and time.monotonic() - self._gone_since > GRACE:
                os._exit(0)

"""Agents that are threads of the test: one that answers as it should, and ones that do whatever a test says."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Stream, Unavailable
from mcpgym_environments.python_sandbox.sessions.streams import SocketStream

Answering = Callable[[dict[str, Any], bytes, socket.socket], None]
"""What an agent does about one request: it sends on the socket what it likes."""


def fine(request: Mapping[str, Any], blob: bytes = b"", **changed: Any) -> bytes:
    """The frame of a good answer, with fields changed; a field set to ``...`` is left out."""
    header: dict[str, Any] = {"n": request["n"], "status": "ok", "why": None, "fresh": False}
    header |= {"milliseconds": 1, "omitted": 0}
    if request["op"] == "hello":
        header |= {"python": "3.11.2", "packages": {}, "facts": {}}
    header |= changed
    return frames.encode({name: value for name, value in header.items() if value is not ...}, blob)


def honest(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
    """Answers a run with the code itself, an evaluation with its arguments, a list with nothing."""
    said = {"run": blob, "evaluate": blob, "list": b"[]"}.get(request["op"], b"")
    more = {"more": False} if request["op"] == "export" else {}
    connection.sendall(fine(request, said, **more))


def serve(connection: socket.socket, answering: Answering) -> None:
    """Be an agent until the other side ends."""
    with connection:
        try:
            while True:
                head = exactly(connection, frames.HEAD_BYTES)
                json_length, blob_length = frames.lengths(head)
                request = json.loads(exactly(connection, json_length))
                answering(request, exactly(connection, blob_length), connection)
        except (OSError, EOFError):
            return


def exactly(connection: socket.socket, count: int) -> bytes:
    """So many bytes, or ``EOFError``."""
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def agent(answering: Answering = honest) -> SocketStream:
    """A stream to a fresh agent that does ``answering``."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=serve, args=(theirs, answering), daemon=True).start()
    return SocketStream(ours)


@dataclass
class World:
    """What became of all back-ends of one kind, and what the next ones shall do."""

    answering: Answering = honest
    unavailable: str = ""
    broken: set[int] = field(default_factory=set)
    """Numbers of starts whose back-end opens nothing any more."""
    starts: int = 0
    closed: list[int] = field(default_factory=list)
    opened: list[SocketStream] = field(default_factory=list)
    ended: list[Stream] = field(default_factory=list)
    opening: Callable[[], None] = lambda: None


class FakeBackend:
    """A back-end whose sessions are threads."""

    name = "fake"

    def __init__(self, world: World, level: Level = "namespaces") -> None:
        self.world = world
        self.level: Level = level
        self.number = 0

    def another(self) -> FakeBackend:
        return FakeBackend(self.world, self.level)

    async def start(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        if self.world.unavailable:
            raise Unavailable(self.world.unavailable, "Do something about it.")
        self.world.starts += 1
        self.number = self.world.starts
        return {"backend": self.name, "isolation": self.level, "python": "3.11.2", "packages": {}}

    async def open(self, spec: SandboxSpec) -> Stream:
        if self.number in self.world.broken:
            raise OSError("the fork server is gone")
        self.world.opening()
        made = agent(self.world.answering)
        self.world.opened.append(made)
        return made

    async def kill(self, stream: Stream) -> None:
        stream.kill()
        self.world.ended.append(stream)

    async def close(self) -> None:
        if self.number:
            self.world.closed.append(self.number)

    def kill_now(self) -> None:
        self.world.closed.append(self.number)

"""What is played under load: episodes of an environment of ours, or sessions of any other MCP server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Protocol

from mcpgym import meta_keys
from mcpgym_clients.doctor.calls import PlannedCall
from mcpgym_clients.doctor.subjects import Served
from mcpgym_clients.doctor.wire import CLIENT, HANDSHAKE_VERSIONS, Era
from mcpgym_clients.stress.load import NoAnswer, Pipe, Tally, prepared, read_answer, timed

MOST_CALLS = 20
"""Calls of one episode at most."""
SESSION_CALLS = 8


class Opened(Protocol):
    """An episode or a session that is open."""

    async def play(self, tally: Tally) -> None:
        """Make its calls."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


class Work(Protocol):
    """Where episodes or sessions come from."""

    unit: str
    """``episode`` or ``session``."""

    def pipe(self) -> Pipe:
        """A connection to the server."""
        ...

    async def open(self, pipe: Pipe) -> Opened:
        """A new one, over a connection.

        Raises:
            NoAnswer: it cannot be opened.
        """
        ...

    def sample(self, url: str) -> bytes:
        """A request like those that are made, for the server at ``url``."""
        ...


class EpisodeWork:
    """Episodes of an environment, played with random arguments that its tools allow, until they are done."""

    unit = "episode"

    def __init__(self, served: Served, environment: str, url: str, tools: Sequence[Mapping[str, Any]]) -> None:
        self._served, self._url, self._tools = served, url, tools
        self._count = 0

    def pipe(self) -> Pipe:
        """A connection to the server; every episode's URL has the same host."""
        return Pipe(self._url)

    async def open(self, pipe: Pipe) -> Opened:
        """Open an episode of the next seed."""
        self._count += 1
        url, token = await self._served.open(seed=self._count)
        return _Episode(self, pipe, url, token, Random(self._count))

    async def close(self, token: str) -> None:
        """Close one."""
        await self._served.close(token)

    def call(self, url: str, random: Random) -> bytes:
        """A request with a random call in it."""
        from mcpgym.check.arguments import valid_arguments

        tool = random.choice(self._tools)
        params = {"name": tool["name"], "arguments": valid_arguments(tool["inputSchema"], random)}
        return prepared(url, Era.MODERN, "tools/call", params)

    def sample(self, url: str) -> bytes:
        """A random call."""
        return self.call(url, Random(0))


class _Episode:
    def __init__(self, work: EpisodeWork, pipe: Pipe, url: str, token: str, random: Random) -> None:
        self._work, self._pipe, self._url, self._token, self._random = work, pipe, url, token, random
        self._requests = [work.call(url, random) for _ in range(MOST_CALLS)]  # made before the clock runs

    async def play(self, tally: Tally) -> None:
        for request in self._requests:
            result = await timed(self._pipe, request, tally)
            meta = (result or {}).get("_meta")
            if isinstance(meta, Mapping) and meta.get(meta_keys.DONE) is True:
                break

    async def close(self) -> None:
        await self._work.close(self._token)


class SessionWork:
    """Sessions of any MCP server: a handshake (where it has one), some calls, and a goodbye."""

    unit = "session"

    def __init__(self, url: str, era: Era, plan: Sequence[PlannedCall], headers: Mapping[str, str]) -> None:
        self.url, self._era, self._plan, self._headers = url, era, plan, dict(headers)

    def pipe(self) -> Pipe:
        """A connection to the server."""
        return Pipe(self.url)

    async def open(self, pipe: Pipe) -> Opened:
        """Shake hands, or nothing."""
        if self._era is Era.MODERN:
            return _Session(self, pipe, None, "2026-07-28")
        version = HANDSHAKE_VERSIONS[0]
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
        status, body = await pipe.exchange(self.prepare("initialize", params, None, version))
        session = pipe.headers.get("mcp-session-id")
        result = read_answer(body).get("result")
        if not isinstance(result, Mapping):
            raise NoAnswer(f"initialize: HTTP {status}")
        version = str(result.get("protocolVersion", version))
        await pipe.exchange(self.prepare("notifications/initialized", {}, session, version))
        return _Session(self, pipe, session, version)

    def prepare(self, method: str, params: Mapping[str, Any], session: str | None, version: str) -> bytes:
        """A request to the server."""
        return prepared(self.url, self._era, method, params, session=session, version=version, headers=self._headers)

    def calls(self, session: str | None, version: str) -> list[bytes]:
        """The requests of one session."""
        made = [
            self.prepare("tools/call", {"name": each.tool, "arguments": dict(each.arguments)}, session, version)
            for each in self._plan
        ]
        return (made * SESSION_CALLS)[:SESSION_CALLS]

    def goodbye(self, session: str, version: str) -> bytes:
        """The request that ends a session."""
        return prepared(
            self.url, self._era, "", {}, session=session, version=version, headers=self._headers, verb="DELETE"
        )

    def sample(self, url: str) -> bytes:
        """The first of the calls."""
        first = self._plan[0]
        return prepared(url, Era.MODERN, "tools/call", {"name": first.tool, "arguments": dict(first.arguments)})


class _Session:
    def __init__(self, work: SessionWork, pipe: Pipe, session: str | None, version: str) -> None:
        self._work, self._pipe, self._session, self._version = work, pipe, session, version
        self._requests = work.calls(session, version)

    async def play(self, tally: Tally) -> None:
        for request in self._requests:
            await timed(self._pipe, request, tally)

    async def close(self) -> None:
        if self._session is not None:
            await self._pipe.exchange(self._work.goodbye(self._session, self._version))

"""What the checks of one examination share: the server, what is known of it so far, and clients to try things with."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpgym_clients.doctor.calls import Permission, PlannedCall
from mcpgym_clients.doctor.stdio_wire import StdioConnection
from mcpgym_clients.doctor.subjects import Subject
from mcpgym_clients.doctor.wire import Answer, Connection, Era

PAGES = 100
"""Pages of a list of tools that are read."""


@dataclass(slots=True)
class Context:
    """One examination.

    ``quick`` leaves out what waits; ``sessions`` is how many the leak check opens. ``slow`` is a call known to take
    long. Filled in by the first checks: ``eras`` that work, ``tools`` in each, ``plan``: calls to make.
    """

    subject: Subject
    permission: Permission = field(default_factory=Permission)
    quick: bool = False
    sessions: int = 1000
    slow: PlannedCall | None = None
    eras: list[Era] = field(default_factory=list)
    tools: dict[Era, list[Mapping[str, Any]]] = field(default_factory=dict)
    plan: list[PlannedCall] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    solo: list[Answer] | None = None
    """What a client of its own, alone, gets from the isolation check's calls; None until that has been found."""
    sequence: list[PlannedCall] = field(default_factory=list)
    isolated: Era | None = None
    """An era in which clients are apart from each other, if one was found."""
    _kept: dict[Era, Connection] = field(default_factory=dict)

    @property
    def era(self) -> Era:
        """The newest era that works."""
        return self.eras[0] if self.eras else Era.MODERN

    @property
    def listed(self) -> Sequence[Mapping[str, Any]]:
        """The tools, as the newest era that works lists them."""
        return self.tools.get(self.era, [])

    def tool(self, name: str) -> Mapping[str, Any]:
        """The listing of a tool; empty where there is none of that name."""
        return next((tool for tool in self.listed if tool.get("name") == name), {})

    @contextlib.asynccontextmanager
    async def client(self, era: Era | None = None) -> AsyncIterator[Connection]:
        """A client to try things with. Over HTTP a new one, at a place of its own where there are several; of a stdio
        server one process is kept for each era, for each costs a start.
        """
        era = era or self.era
        if self.subject.transport == "stdio":
            yield await self._kept_process(era)
            return
        place = await self.subject.new_place() if self.has_places else None
        connection = await self.subject.connect(era, place=place)
        try:
            yield connection
        finally:
            await connection.close()
            await self.subject.leave(place)

    @contextlib.asynccontextmanager
    async def fresh(self) -> AsyncIterator[Connection]:
        """A client whose calls are the first that its state sees, where the server keeps clients apart."""
        if self.subject.transport == "stdio":
            async with self.alone(self.era) as connection:
                yield connection
        else:
            async with self.client() as connection:
                yield connection

    @contextlib.asynccontextmanager
    async def alone(self, era: Era, place: str | None = None) -> AsyncIterator[Connection]:
        """A client that nobody else uses, at ``place``."""
        connection = await self.subject.connect(era, place=place)
        try:
            yield connection
        finally:
            await connection.close()

    @property
    def has_places(self) -> bool:
        """Whether the server gives out as many addresses as are wanted, each with a state of its own."""
        return self.subject.places is None

    async def alive(self, connection: Connection) -> str:
        """Empty if the server still answers, to this client or to a new one; else what happened instead."""
        answer = await list_page(connection)
        if answer.result is not None:
            return ""
        if self.subject.transport == "stdio":
            return answer.shown()
        async with self.client(connection.era) as other:
            again = await list_page(other)
            return "" if again.result is not None else again.shown()

    async def end(self) -> None:
        """Close what was kept."""
        for connection in self._kept.values():
            await connection.close()
        self._kept.clear()

    async def _kept_process(self, era: Era) -> Connection:
        kept = self._kept.get(era)
        if isinstance(kept, StdioConnection) and kept.process is not None and kept.process.returncode is None:
            return kept
        self._kept[era] = await self.subject.connect(era)
        return self._kept[era]


async def list_page(connection: Connection, cursor: str | None = None) -> Answer:
    """One page of the server's tools."""
    return await connection.request("tools/list", {} if cursor is None else {"cursor": cursor})


async def list_tools(connection: Connection) -> tuple[list[Mapping[str, Any]], Answer]:
    """All tools, and the last answer, which says why if there are none."""
    tools: list[Mapping[str, Any]] = []
    cursor: str | None = None
    for _ in range(PAGES):
        answer = await list_page(connection, cursor)
        if answer.result is None:
            return tools, answer
        found = answer.result.get("tools")
        tools += [tool for tool in found if isinstance(tool, Mapping)] if isinstance(found, list) else []
        cursor = answer.result.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            break
    return tools, answer


def tools_counted(count: int) -> str:
    """``1 tool``, ``2 tools``."""
    return f"{count} tool{'' if count == 1 else 's'}"

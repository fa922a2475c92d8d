"""MCP as messages, the same over HTTP and stdio: what is asked, and whatever comes back, kept as it came.

Nothing here raises for what a server does: an :class:`Answer` has a result, an error, or a ``problem`` in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

MODERN_VERSION = "2026-07-28"
HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The revisions that begin with ``initialize``, newest first."""
MAX_ANSWER = 32 * 1024 * 1024
"""Bytes of one answer that are read."""
CLIENT = {"name": "mcpgym-doctor", "version": "1"}


class Era(StrEnum):
    """The two ways to speak MCP: one that begins with ``initialize``, and one where every request stands alone."""

    MODERN = "2026-07-28"
    HANDSHAKE = "handshake"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. ``problem`` is why there is neither result nor error; ``status`` and ``headers`` are HTTP's."""

    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    problem: str = ""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def answered(self) -> bool:
        """Whether it is an MCP answer, good or bad."""
        return not self.problem

    @property
    def refused(self) -> bool:
        """Whether the request was answered with an error, of the protocol's or the tool's kind."""
        return self.error is not None or self.is_error

    @property
    def is_error(self) -> bool:
        """Whether it is a tool's result that says it is an error."""
        return self.result is not None and self.result.get("isError") is True

    @property
    def code(self) -> Any:
        """The JSON-RPC error code; None without one."""
        return None if self.error is None else self.error.get("code")

    @property
    def text(self) -> str:
        """What a model reads of it: the text of a tool's result, or an error's message."""
        if self.error is not None:
            return str(self.error.get("message", ""))
        blocks = (self.result or {}).get("content")
        if not isinstance(blocks, list):
            return ""
        texts = [block.get("text") for block in blocks if isinstance(block, Mapping)]
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def seen(self) -> str:
        """All that a client sees of it, as one text: equal for equal answers."""
        if self.problem:
            return f"problem: {self.problem}"
        if self.error is not None:
            return f"error {self.code}: {self.error.get('message')}"
        kept = {name: value for name, value in (self.result or {}).items() if name in ("content", "structuredContent")}
        return json.dumps({**kept, "isError": self.is_error}, sort_keys=True)

    def shown(self, limit: int = 120) -> str:
        """In a few words, for a report."""
        if self.problem:
            return self.problem
        status = f"HTTP {self.status}, " if self.status not in (None, 200) else ""
        kind = f"error {self.code}" if self.error is not None else "tool error" if self.is_error else "result"
        text = self.text or (json.dumps(self.result, sort_keys=True) if self.result is not None else "")
        return f"{status}{kind}: {brief(text, limit)}"


class Connection(Protocol):
    """One client's connection to the server under examination."""

    era: Era
    version: str
    """The revision agreed on."""
    opening: Answer
    """What the server said at the beginning: to ``initialize``, or to ``server/discover``."""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        patience: float | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask, and wait for the answer; ``patience`` in seconds."""
        ...

    async def raw(self, body: bytes, *, patience: float | None = None, tool: str | None = None) -> Answer:
        """Send ``body`` as it is, and wait for whatever comes; ``tool`` is what it calls, for HTTP's headers."""
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        ...

    async def close(self) -> None:
        """End the session as a good client does."""
        ...

    async def abandon(self) -> None:
        """Go away without a word."""
        ...


async def call(
    connection: Connection,
    tool: str,
    arguments: Any,
    *,
    patience: float | None = None,
    meta: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Call a tool."""
    params = {"name": tool, "arguments": arguments}
    return await connection.request("tools/call", params, patience=patience, meta=meta, headers=headers)


def envelope(era: Era, meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """The ``_meta`` of a request in ``era``, with ``meta`` in it; may be empty."""
    own: dict[str, Any] = {}
    if era is Era.MODERN:
        own = {
            "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
            "io.modelcontextprotocol/clientInfo": CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    return {**own, **(meta or {})}


def message(era: Era, number: int, method: str, params: Mapping[str, Any] | None, meta: Any = None) -> dict[str, Any]:
    """One JSON-RPC request as ``era`` writes it."""
    given = dict(params or {})
    if found := envelope(era, meta):
        given["_meta"] = {**given.get("_meta", {}), **found}
    made: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
    return {**made, "params": given} if given or era is Era.MODERN else made


def encode(value: Any) -> bytes:
    """JSON as the wire has it. Half a surrogate pair goes as an escape, as any JSON may have it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def read(body: bytes, status: int | None, headers: Mapping[str, str], seconds: float) -> Answer:
    """The answer that ``body`` is."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        words = brief(body[:400].decode("utf-8", "replace"), 100) or "nothing"
        where = f"HTTP {status}, " if status is not None else ""
        return Answer(problem=f"{where}no JSON: {words}", status=status, headers=headers, seconds=seconds)
    return of(found, status, headers, seconds)


def of(found: Any, status: int | None, headers: Mapping[str, str], seconds: float) -> Answer:
    """The answer that a JSON value is."""
    if isinstance(found, Mapping):
        if isinstance(found.get("result"), Mapping):
            return Answer(result=found["result"], status=status, headers=headers, seconds=seconds)
        if isinstance(found.get("error"), Mapping):
            return Answer(error=found["error"], status=status, headers=headers, seconds=seconds)
    words = brief(json.dumps(found), 100)
    where = f"HTTP {status}, " if status is not None else ""
    return Answer(problem=f"{where}no JSON-RPC answer: {words}", status=status, headers=headers, seconds=seconds)


def brief(text: str, limit: int = 120) -> str:
    """``text`` on one line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"

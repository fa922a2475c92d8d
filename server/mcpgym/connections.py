"""One HTTP connection, within bounds: what a request may weigh beside its body, and how long it may take to arrive.

Uvicorn bounds neither, and applications see a request only once its head is whole: without this, one client could fill
the memory with a header that never ends, or hold every file descriptor with requests that it never finishes.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 64 * 1024
"""Bytes a request may have beside its body: its line, its headers, and what frames a body in chunks."""
ARRIVE_SECONDS = 60.0
"""Seconds a request may take to arrive whole, and a new connection to send its first."""
LAST_LOOK_SECONDS = 1.0
"""What it gets beyond that, in which a loop that stood still reads what had come in time."""

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 50\r\nconnection: close\r\n\r\nthe request's headers have more bytes than allowed"
)


class BoundedHttp(HttpToolsProtocol):
    """Uvicorn's connection, which is closed when a request is too large beside its body or does not arrive."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._beside_body = 0
        self._whole = True
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, not for ever."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(ARRIVE_SECONDS, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more is awaited."""
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and see that what arrives stays within the bounds."""
        if self.transport.is_closing():
            return
        self._beside_body += len(data)
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if self._beside_body > MAX_HEAD:
            if not answering:
                self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif self._whole and answering:
            self._arrived()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(ARRIVE_SECONDS, self._late)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._whole = False
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """A part of its body: what bounds that is the application."""
        self._beside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """It is whole."""
        self._beside_body = 0
        self._whole = True
        super().on_message_complete()

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = self.loop.call_later(LAST_LOOK_SECONDS, self.transport.close)

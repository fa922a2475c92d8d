"""What is attacked: a player's URL, and, where the server is ours and in this process, what only its owner knows."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpgym.control import LocalControl, OpenedEpisode
from mcpgym.errors import ServerUnavailable
from mcpgym_clients.scanning.raw_http import Address, Answer, send
from mcpgym_clients.scanning.record import Exchange, Recording
from mcpgym_clients.scanning.report import ScanReport
from mcpgym_clients.scanning.wires import LEGACY, MODERN, encoded, mcp_headers, message

STRANGER = "a stranger"
"""Who asks where no episode does: everything that is an episode's is a secret to it."""


@dataclass(slots=True)
class Inside:
    """What only the owner of a server knows of it, so that an attack's success can be told.

    ``secret`` is the control plane's, ``control_address`` where that listens; ``open`` opens another episode.
    """

    control: LocalControl
    control_address: Address
    secret: str
    environment: str
    open: Callable[[], Awaitable[OpenedEpisode]]


@dataclass(slots=True)
class Target:
    """A player's URL under attack. ``attempts`` counts requests by kind of attack."""

    address: Address
    recording: Recording
    report: ScanReport
    inside: Inside | None = None
    owner: str = STRANGER
    attempts: Counter[str] = field(default_factory=Counter)
    spare: OpenedEpisode | None = None

    @property
    def token(self) -> str | None:
        """The episode's token in the path, where it is a URL of ours."""
        parts = self.address.path.split("/")
        return parts[2] if len(parts) == 4 and parts[1] == "e" and parts[3] == "mcp" else None

    async def ask(
        self, attack: str, asked: str, *, owner: str | None = None, to: Address | None = None, **request: Any
    ) -> Answer:
        """Send one raw request (see :func:`~mcpgym_clients.scanning.raw_http.send`) and record what comes back.

        A server that closes the connection without a word has answered with status 0.

        Raises:
            ServerUnavailable: the server is gone.
        """
        self.attempts[attack] += 1
        address = to or self.address
        answer = await send(address, **request)
        sent = repr((request.get("path", address.path), request.get("headers"), request.get("body"))).encode()
        who = self.owner if owner is None else owner
        self.recording.add(Exchange(f"attack: {attack}", asked, answer.raw, who, sent))
        return answer

    async def rpc(
        self,
        attack: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        era: str = MODERN,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        owner: str | None = None,
    ) -> Answer:
        """One MCP request as a player sends it, with changes."""
        body = encoded(message(method, params, 1, era))
        made = {**mcp_headers(method, params, era), **(headers or {})}
        asked = f"{method} {(params or {}).get('name', (params or {}).get('uri', ''))!s:.80}".rstrip()
        return await self.ask(attack, asked, owner=owner, path=path, headers=made, body=body)

    async def still_answers(self) -> bool:
        """Whether the server has survived so far."""
        try:
            return (await send(self.address, method="GET", path=f"/{secrets.token_hex(4)}")).status != 0
        except ServerUnavailable:
            return False


ERAS = (MODERN, LEGACY)

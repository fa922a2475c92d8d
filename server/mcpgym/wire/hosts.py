"""Which Host and Origin headers are answered: a web page must not reach a local server by a name of its own.

(DNS rebinding: a page at evil.example makes that name point to 127.0.0.1 and then talks to whatever listens there.
Its requests still say ``Host: evil.example``.)
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class HostCheck:
    """Knows the names this server answers to: the loopback ones, and ``allowed`` (``name`` or ``name:port``)."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in (*LOOPBACK, *allowed))
        self.known: set[bytes] = set()
        """Host headers that were found to be ours."""

    def problem(self, hosts: Sequence[bytes], origins: Sequence[bytes]) -> tuple[int, str] | None:
        """The HTTP status and the reason to refuse a request with these headers, or None."""
        if len(hosts) != 1:
            return 400, "a request needs exactly one Host header"
        if hosts[0] not in self.known and not self._learn(hosts[0]):
            return (
                421,
                f"this server does not answer to the name {_shown(hosts[0])}; start it with --allowed-host for it",
            )
        if len(origins) > 1:
            return 400, "a request has at most one Origin header"
        if origins and not self._origin_is_known(origins[0]):
            return 403, f"this server does not answer pages from {_shown(origins[0])}"
        return None

    def _learn(self, host: bytes) -> bool:
        """Whether ``host`` is one of ours; if so it is remembered, as few of them occur."""
        if not self._is_ours(host.decode("latin-1")):
            return False
        if len(self.known) < 256:
            self.known.add(host)
        return True

    def _is_ours(self, host: str) -> bool:
        host = host.lower()
        if host in self._names:
            return True
        name, colon, port = host.rpartition(":")
        return bool(colon) and port.isascii() and port.isdigit() and name in self._names

    def _origin_is_known(self, origin: bytes) -> bool:
        try:
            parts = urlsplit(origin.decode("latin-1"))
        except ValueError:
            return False
        plain = not (parts.path or parts.query or parts.fragment)
        return plain and parts.scheme in ("http", "https") and self._is_ours(parts.netloc)


def _shown(header: bytes) -> str:
    return repr(header[:100].decode("latin-1"))

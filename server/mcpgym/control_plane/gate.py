"""What every request to the control plane passes first: the Host and Origin headers, and the secret."""

from __future__ import annotations

from collections.abc import Collection

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcpgym.control_plane.address import PREFIX
from mcpgym.control_plane.codec import encode
from mcpgym.control_plane.failures import HTTP_KINDS
from mcpgym.control_plane.secret import VARIABLE, same_secret
from mcpgym.telemetry import switch
from mcpgym.telemetry.context import CURRENT, TRACEPARENT, caller

MARK = b"mcpgym-control"
"""A header on every answer, by which a client knows that it reached a control plane and nothing else."""
OPEN_PATHS = frozenset({f"{PREFIX}/health", f"{PREFIX}/docs", f"{PREFIX}/openapi.json"})
"""Paths that need no secret: they hold nothing but what is in the package anyway."""


class Gate:
    """Lets a request through to ``app`` when it names a host of ours and carries the secret.

    Args:
        app: what is behind it.
        secret: what to carry.
        hosts: host names without a port that a Host or Origin header may have; None for any (a unix socket has no name,
            and no browser can reach it).
    """

    def __init__(self, app: ASGIApp, secret: str, hosts: Collection[str] | None) -> None:
        self.app = app
        self.hosts = None if hosts is None else frozenset(hosts)
        self._secret = secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (MARK, b"v1"), (b"cache-control", b"no-store")]
            await send(message)

        authorization = trace = b""
        named, pages = [], []
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"traceparent":
                trace = value
            elif name == b"host":
                named.append(_name(value))
            elif name == b"origin":
                pages.append(_name(value.partition(b"://")[2]))
        if self.hosts is not None and not (len(named) == 1 and self.hosts.issuperset([*named, *pages])):
            message = (
                "this listener answers only requests that name its own host, and only its own pages; is something "
                "rebinding DNS?"
            )
            await _refuse("host_refused", message)(scope, receive, marked)
        elif scope["path"] not in OPEN_PATHS and not same_secret(authorization, self._secret):
            message = (
                f"the control plane wants its secret as 'Authorization: Bearer SECRET'; set {VARIABLE} to the one that "
                "`mcpgym serve` printed or was given"
            )
            await _refuse("secret_refused", message)(scope, receive, marked)
        else:
            if switch.recorder is not None:
                CURRENT.set(caller({TRACEPARENT: trace.decode("latin-1")}, "control"))  # the request's own context
            await self.app(scope, receive, marked)


def _refuse(kind: str, message: str) -> Response:
    body = encode({"error": {"kind": kind, "message": message}})
    headers = {"www-authenticate": "Bearer"} if kind == "secret_refused" else {}
    return Response(body, HTTP_KINDS[kind], headers, "application/json")


def _name(host: bytes) -> str:
    text = host.decode("latin-1").lower()
    if "@" in text:
        return ""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]

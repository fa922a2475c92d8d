"""Guessed paths: the control plane's, documentation, metrics, files, and the tricks by which paths are confused."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator

from mcpgym_clients.scanning.attacks.target import Target
from mcpgym_clients.scanning.raw_http import Answer
from mcpgym_clients.scanning.search import excerpt

ATTACK = "routes"
FIX = "serve players on a listener that knows their URLs and nothing else; put control, docs and metrics on another"
REFUSED = frozenset({400, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 431, 501, 505})
HARMLESS = frozenset({"/", "/health", "/healthz", "/livez", "/readyz", "/ping", "/favicon.ico", "/robots.txt"})
"""Paths that answer on many servers, and tell nothing; what they say is searched for canaries all the same."""

PREFIX = "/control/v1"
_CONTROL = (
    "", "/health", "/docs", "/openapi.json", "/metrics", "/environments", "/tasks?environment=x&split=test",
    "/episodes",
    "/step",
)  # fmt: skip
_EPISODE = ("", "/score", "/respond", "/reset", "/state", "/close", "/status", "/reward", "/info", "/task", "/seed")
_COMMON = (
    "/", "/control", "/control/", "/api", "/api/v1", "/v1", "/admin", "/debug", "/debug/vars", "/debug/pprof/",
    "/docs",
    "/redoc", "/openapi.json", "/swagger.json", "/schema", "/metrics", "/health", "/healthz", "/ping", "/status",
    "/info", "/state", "/score", "/reward", "/rewards", "/reset", "/step", "/close", "/seed", "/seed_session",
    "/verify",
    "/answer", "/solution", "/tasks", "/episodes", "/environments", "/sessions", "/traces", "/runs", "/receipts",
    "/key",
    "/web", "/ws", "/sse", "/messages", "/messages/", "/register", "/token", "/authorize", "/login", "/config",
    "/env",
    "/.env", "/.git/config", "/.git/HEAD", "/server.py", "/environment.py", "/requirements.txt", "/favicon.ico",
    "/robots.txt", "/static/", "/files/", "/graphql", "/rpc", "/jsonrpc", "/actuator/env", "/server-status",
    "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource", "/.well-known/mcp.json",
)  # fmt: skip
_FILES = ("etc/passwd", "proc/self/environ", "proc/self/cmdline")
_CLIMBS = (
    "../",
    "..%2f",
    "%2e%2e/",
    "%2e%2e%2f",
    "%252e%252e%252f",
    "..\\",
    "..%5c",
    "..;/",
    "..%00/",
    "%c0%ae%c0%ae/",
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "PROPFIND")


async def attack_routes(target: Target) -> None:
    """Ask for every path there might be; whatever is answered otherwise than a path that cannot be is a finding."""
    usual = {
        method: await target.ask(ATTACK, f"{method} /nothing", method=method, path=_nothing())
        for method in ("GET", "POST")
    }
    for path in dict.fromkeys(_paths(target)):
        for method, nothing in usual.items():
            answer = await target.ask(ATTACK, f"{method} {path}", method=method, path=path)
            judge(target, method, path, answer, nothing)
    base = target.address.path
    for method in METHODS:
        if method in ("POST", "GET"):
            continue
        answer = await target.ask(ATTACK, f"{method} {base}", method=method, path=base)
        if method == "TRACE" and answer.status == 200:
            tell(target, f"TRACE {base}", "the request comes back", answer, "refuse TRACE")
        if method == "DELETE" and answer.status < 300 and answer.status and target.inside is not None:
            tell(target, f"DELETE {base}", "a player can end its episode", answer, FIX)
    await _with_the_secret(target)


def judge(target: Target, method: str, path: str, answer: Answer, nothing: Answer) -> None:
    """Add a finding where ``answer`` says that there is something at a path a player should not know."""
    if "mcpgym-control" in answer.headers:
        tell(target, f"{method} {path}", "the control plane answers on the players' listener", answer, FIX)
    elif answer.status >= 500 and answer.status != 501:
        tell(
            target, f"{method} {path}", f"the server fails ({answer.status})", answer, "answer what cannot be with 404"
        )
    elif answer.status in REFUSED or answer.status == 0 or path.split("?")[0] in HARMLESS:
        return
    elif (answer.status, _shape(answer)) != (nothing.status, _shape(nothing)):
        tell(target, f"{method} {path}", f"something answers ({answer.status})", answer, FIX)


def tell(target: Target, where: str, what: str, answer: Answer, fix: str) -> None:
    """Add a finding about a route."""
    text = (answer.body or answer.raw).decode("utf-8", "replace")
    target.report.add("route", f"{where}: {what}", f"attack: {ATTACK}", where, excerpt(text, "\0"), what, fix)


def _paths(target: Target) -> Iterator[str]:
    base = target.address.path.split("?")[0]
    yield from (f"{PREFIX}{tail}" for tail in _CONTROL)
    yield from _COMMON
    token = target.token or "0" * 32
    yield from (f"{PREFIX}/episodes/{token}{tail}" for tail in _EPISODE)
    yield from (f"/e/{token}{tail}" for tail in _EPISODE)
    yield from (
        f"{base}{tail}" for tail in (*_EPISODE[1:], "/docs", "/metrics", "/control/v1/health", "/../score", "?score=1")
    )
    yield from _confused(base)


def _confused(base: str) -> Iterator[str]:
    """The control plane's health and files of the machine, by every detour."""
    wanted = "control/v1/health"
    depth = base.count("/")
    for climb in _CLIMBS:
        yield f"{base}/{climb * depth}{wanted}"
        yield from (f"{base}/{climb * 8}{file}" for file in _FILES[:2])
    yield from (f"/static/{'../' * 6}{file}" for file in _FILES)
    yield from (
        f"//{wanted}", f"/./{wanted}", f"/{wanted}/", f"/{wanted}//", f"/{wanted}%00", f"/{wanted}%20",
        f"/{wanted};x=1",
        f"/{wanted}?x", f"/{wanted}#x", f"/{wanted.upper()}", "/%63ontrol/v1/health", "/control%2fv1%2fhealth",
        "/control\\v1\\health", "/ｃontrol/v1/health", f"{base};/{wanted}", f"{base}%2f..%2f{wanted}",
        f"http://127.0.0.1/{wanted}", f"http://localhost/{wanted}", "*", f"{base}?path=/{wanted}",
        f"{base}?url=/{wanted}",
    )  # fmt: skip


async def _with_the_secret(target: Target) -> None:
    """With the real secret, and on the real control plane without it: neither may open anything."""
    if target.inside is None:
        return
    secret, token = target.inside.secret, target.token or ""
    bearer = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    calls = [("GET", "/health"), ("GET", "/environments"), ("GET", "/metrics"), ("GET", f"/episodes/{token}")]
    calls += [
        ("POST", f"/episodes/{token}/score"),
        ("POST", "/step"),
        ("POST", "/episodes"),
        ("DELETE", f"/episodes/{token}"),
    ]
    for method, tail in calls:
        path = f"{PREFIX}{tail}"
        answer = await target.ask(
            ATTACK, f"{method} {path} with the secret", method=method, path=path, headers=bearer, body=b"{}"
        )
        if answer.status != 404:
            tell(target, f"{method} {path}", f"the players' listener takes the secret ({answer.status})", answer, FIX)
    wrong = [
        "",
        "Bearer ",
        f"Bearer {secret[:-1]}",
        f"Bearer {secret}x",
        f"Basic {secret}",
        f"Bearer {token}",
        "Bearer null",
    ]
    control = target.inside.control_address
    for method, tail in calls[1:]:
        for given in wrong:
            headers = {"Authorization": given} if given else {}
            path = f"{PREFIX}{tail}"
            asked = f"{method} {path} on the control plane, {given.split(' ')[0] or 'without a secret'}"
            answer = await target.ask(ATTACK, asked, to=control, method=method, path=path, headers=headers, body=b"{}")
            if answer.status not in (401, 403, 404, 421):
                tell(
                    target,
                    f"{method} {path}",
                    f"the control plane answers without its secret ({answer.status})",
                    answer,
                    FIX,
                )


def _nothing() -> str:
    return f"/{secrets.token_hex(6)}"


def _shape(answer: Answer) -> str:
    """A body without what differs from request to request."""
    return re.sub(r"[0-9a-f]{12,}|/[\w%./;-]+", "_", answer.body.decode("utf-8", "replace"))

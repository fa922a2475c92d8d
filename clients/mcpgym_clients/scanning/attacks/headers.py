"""Headers that servers trust by mistake: names of other hosts, proxies' headers, other sites' pages."""

from __future__ import annotations

from mcpgym_clients.scanning.attacks.routes import PREFIX, REFUSED
from mcpgym_clients.scanning.attacks.target import Target
from mcpgym_clients.scanning.raw_http import Answer
from mcpgym_clients.scanning.search import excerpt
from mcpgym_clients.scanning.wires import MODERN, encoded, mcp_headers, message

ATTACK = "headers"
EVIL = "mcpgym-scan.example"
REBINDING = (
    "check the Host and Origin headers against the names the server is meant to be called by: a web page can point a "
    "name of its own at this machine (DNS rebinding)"
)
TRUST = "trust no X-Forwarded, override or rewrite header unless a proxy of yours sets it"


async def attack_headers(target: Target) -> None:
    """Send each header, and see whether it changes what is answered."""
    body = encoded(message("tools/list", {}, 1, MODERN))
    usual = mcp_headers("tools/list", {}, MODERN)
    if target.address.is_loopback:
        hosts = [EVIL, f"{EVIL}:{target.address.port}", f"localhost.{EVIL}", f"127.0.0.1.{EVIL}", f"localhost@{EVIL}"]
        for host in hosts:
            answer = await target.ask(ATTACK, f"Host: {host}", headers={**usual, "Host": host}, body=body)
            if answer.status == 200:
                _tell(
                    target,
                    "rebinding",
                    "the server answers to a stranger's host name",
                    f"Host: {host}",
                    answer,
                    REBINDING,
                )
        pages = (
            f"http://{EVIL}",
            f"https://{EVIL}",
            "null",
            "http://localhost.evil.example",
            f"http://localhost@{EVIL}",
        )
        for origin in pages:
            answer = await target.ask(ATTACK, f"Origin: {origin}", headers={**usual, "Origin": origin}, body=body)
            if answer.status == 200:
                _tell(
                    target,
                    "rebinding",
                    "the server answers to other sites' pages",
                    f"Origin: {origin}",
                    answer,
                    REBINDING,
                )
    twice = [*usual.items(), ("Host", target.address.authority), ("Host", EVIL)]
    await target.ask(ATTACK, "two Host headers", headers=twice, body=body)
    for name, value in _trusted():
        headers = {**usual, name: value}
        answer = await target.ask(ATTACK, f"{name}: {value}", headers=headers, body=body)
        if EVIL in answer.raw.decode("latin-1"):
            _tell(target, "header", f"{name} comes back", f"{name}: {value}", answer, TRUST)
        if "mcpgym-control" in answer.headers:
            _tell(target, "header", f"{name} leads to the control plane", f"{name}: {value}", answer, TRUST)
        elsewhere = await target.ask(ATTACK, f"{name} on no path", path="/nothing", headers=headers, body=body)
        if elsewhere.status not in REFUSED and elsewhere.status != 0:
            _tell(target, "header", f"{name} opens a path that is none", f"{name}: {value}", elsewhere, TRUST)
    answer = await target.ask(
        ATTACK, "preflight", method="OPTIONS",
        headers={"Origin": f"https://{EVIL}", "Access-Control-Request-Method": "POST"},
    )  # fmt: skip
    if answer.headers.get("access-control-allow-origin") in ("*", f"https://{EVIL}"):
        fix = "allow no origin but your own: with this, any web page that a person opens can play, and read the answers"
        _tell(target, "cross-origin", "any web page may ask", "OPTIONS", answer, fix)


def _trusted() -> list[tuple[str, str]]:
    wanted = f"{PREFIX}/environments"
    return [
        ("X-Forwarded-Host", EVIL), ("X-Forwarded-For", "127.0.0.1"), ("X-Real-IP", "127.0.0.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Server", EVIL), ("X-Host", EVIL), ("Forwarded", f"for=127.0.0.1;host={EVIL}"),
        ("X-Original-URL", wanted), ("X-Rewrite-URL", wanted), ("X-Forwarded-Path", wanted),
        ("X-Forwarded-Prefix", PREFIX),
        ("X-Original-Host", EVIL), ("X-HTTP-Method-Override", "DELETE"), ("X-HTTP-Method", "GET"),
        ("X-Method-Override", "PUT"),
        ("Authorization", "Bearer admin"), ("Authorization", "Basic YWRtaW46YWRtaW4="), ("X-Api-Key", "admin"),
        ("X-Debug", "1"), ("X-Admin", "true"), ("X-Role", "control"), ("X-Mcpgym-Control", "1"),
        ("Cookie", "admin=1; debug=1"),
        ("Mcp-Session-Id", "../../control"), ("Accept-Language", EVIL), ("X-Request-Id", EVIL),
        ("Traceparent", EVIL),
        ("Upgrade", "websocket"), ("Expect", "100-continue"), ("Range", "bytes=0-10"), ("Mcp-Method", "score"),
        ("MCP-Protocol-Version", "9999-01-01"), ("Accept", "text/html"), ("Content-Type", "text/plain"),
        ("Content-Encoding", "gzip"), ("Referer", f"http://{EVIL}/"), ("User-Agent", EVIL),
    ]  # fmt: skip


def _tell(target: Target, kind: str, what: str, where: str, answer: Answer, fix: str) -> None:
    text = answer.raw.decode("utf-8", "replace")
    target.report.add(kind, what, f"attack: {ATTACK}", where, excerpt(text, EVIL), f"status {answer.status}", fix)

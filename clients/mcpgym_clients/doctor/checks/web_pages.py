"""Web pages: a page at evil.example that makes its name point to this machine (DNS rebinding) must get nothing."""

from __future__ import annotations

from urllib.parse import urlsplit

from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.http_wire import HttpConnection
from mcpgym_clients.doctor.wire import encode, message

EVIL = "evil.example"
ADVICE = (
    "Refuse a Host or Origin that is not yours, with 403 or 421: the MCP specification asks servers to, and on a "
    "person's own machine it is the only guard against any web page that is open there."
)


async def web_pages(context: Context, outcome: Outcome) -> None:
    """Requests as such a page would send them."""
    async with context.client() as client:
        assert isinstance(client, HttpConnection)
        name = urlsplit(client.url).hostname or ""
        body = encode(message(client.era, 1, "tools/list", {}))
        cases: dict[str, dict[str, str]] = {"Origin": {"Origin": f"http://{EVIL}"}}
        if name in ("127.0.0.1", "localhost", "::1"):  # else a proxy may answer to any name
            cases["Host and Origin"] = {"Host": EVIL, "Origin": f"http://{EVIL}"}
        own = {"Mcp-Method": "tools/list"} if client.era.value.startswith("20") else {}
        for case, headers in cases.items():
            answer = await client.post(body, {**own, **headers}, number=1)
            if answer.result is not None:
                outcome.warn(f"a foreign {case} ({EVIL}) is answered", ADVICE)
            elif answer.status in (400, 401, 403, 404, 421):
                outcome.passed(f"a foreign {case} is refused: {answer.shown(60)}")
            else:
                outcome.warn(f"a foreign {case}: {answer.shown(80)}", ADVICE)

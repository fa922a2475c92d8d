"""A Toolset of verifiers 0.4, served as verifiers serves one to many rollouts: run it with a Python that has verifiers.

Each rollout has a URL of its own, which names and signs the state it reads and writes; the states lie in another server
(here a dictionary), as there. The first line of output is one URL, the second some more, each of a rollout of its own.
"""

from __future__ import annotations

import http.server
import json
import os
import secrets
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlencode

ROLLOUTS = 20


class States(http.server.BaseHTTPRequestHandler):
    """The states of rollouts, by route; what verifiers keeps in its interception server."""

    protocol_version = "HTTP/1.1"
    kept: dict[str, bytes] = {}

    def do_GET(self) -> None:
        """Read one."""
        self._answer(self.kept.get(self.headers["X-Verifiers-State-Route"], b"{}"))

    def do_PUT(self) -> None:
        """Write one."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.kept[self.headers["X-Verifiers-State-Route"]] = body
        self._answer(b"{}")

    def log_message(self, *words: object) -> None:
        """Say nothing."""

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until standard input closes."""
    import verifiers.v1 as vf
    from verifiers.v1.mcp.server import state_signature

    class Sum(vf.State):  # type: ignore[misc, name-defined]
        total: int = 0

    class Counter(vf.Toolset[vf.ToolsetConfig, Sum]):  # type: ignore[misc, name-defined]
        @vf.tool  # type: ignore[misc]
        def add(self, number: int) -> str:
            """Add a number; answers the sum so far."""
            self.state.total += number
            return f"The sum is {self.state.total}."

    states = http.server.ThreadingHTTPServer(("127.0.0.1", 0), States)
    threading.Thread(target=states.serve_forever, daemon=True).start()
    secret = secrets.token_hex(16)
    channel = f"http://127.0.0.1:{states.server_port}/state"
    port_file = Path(tempfile.mkdtemp()) / "port"
    os.environ |= {"VF_STATE_SECRET": secret, "MCP_PORT_FILE": str(port_file)}

    def url(route: str) -> str:
        signed = state_signature(secret, channel, route)
        query = urlencode({"vf_state_url": channel, "vf_state_route": route, "vf_state_signature": signed})
        return f"http://127.0.0.1:{port_file.read_text()}/mcp?{query}"

    def say() -> None:
        while not port_file.exists() or not port_file.read_text():
            time.sleep(0.05)
        time.sleep(1)
        said = {"name": f"verifiers {version('verifiers')}, mcp {version('mcp')}"}
        urls = [url(f"rollout-{number}") for number in range(ROLLOUTS)]
        print(json.dumps({**said, "url": urls[0], "places": urls[1:]}), flush=True)
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=say, daemon=True).start()
    Counter(vf.ToolsetConfig())._serve()


if __name__ == "__main__":
    main()

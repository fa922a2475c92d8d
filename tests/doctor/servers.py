"""Servers for the doctor, one process each: ``python -m tests.doctor.servers KIND``.

``fastmcp-sessions``: FastMCP as its tutorial writes it, with its defaults, and its state keyed on the session id, as is
usual. ``fastmcp-global``: the same with one state for all. The others are broken on purpose, each in one way; see
``tests/clients/test_doctor_finds_faults.py``. Each prints its URL, and serves until its standard input closes.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections import defaultdict
from typing import Any

from fastmcp import Context, FastMCP


def fastmcp(key: str) -> Any:
    """A counter; ``key`` says whose count a call reaches."""
    server: Any = FastMCP("counter", version="1")
    sums: defaultdict[str, int] = defaultdict(int)

    @server.tool
    def add(number: int, ctx: Context) -> str:
        """Add a number; answers the sum so far."""
        mine = "everybody" if key == "global" else ctx.session_id
        sums[mine] += number
        return f"The sum is {sums[mine]}."

    return server


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(kind: str) -> None:
    """Serve ``kind`` until standard input closes."""
    port = free_port()
    Until(port).start()
    fastmcp(kind.removeprefix("fastmcp-")).run(transport="http", port=port, show_banner=False, log_level="critical")


class Until(threading.Thread):
    """Says where the server is once it listens, and ends the process when standard input closes."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port

    def run(self) -> None:
        """Wait for the one, then for the other."""
        import os

        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    break
            time.sleep(0.05)
        print(f"http://127.0.0.1:{self._port}/mcp", flush=True)
        sys.stdin.read()
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])

"""A client that is about to be killed: ``python -m mcpgym_clients.doctor.parent COMMAND…``.

Starts the stdio server as any client does, sends it the first message, tells the server's process id on standard
output, and waits to be killed. It ends nothing: whether the server ends by itself is the question.
"""

from __future__ import annotations

import subprocess
import sys
import time

from mcpgym_clients.doctor.wire import CLIENT, HANDSHAKE_VERSIONS, encode


def main() -> None:
    """Start, ask, tell, wait."""
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert server.stdin is not None
    assert server.stdout is not None
    params = {"protocolVersion": HANDSHAKE_VERSIONS[0], "capabilities": {}, "clientInfo": CLIENT}
    server.stdin.write(encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}) + b"\n")
    server.stdin.flush()
    server.stdout.readline()
    print(server.pid, flush=True)
    time.sleep(60)


if __name__ == "__main__":
    main()

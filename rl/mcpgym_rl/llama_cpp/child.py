"""What runs in the server's process: ``python -I -m mcpgym_rl.llama_cpp.child``.

It reads one line of JSON (``file``, ``key``, ``slots``, ``context`` of one slot, ``threads``), starts llama.cpp's own
HTTP server on loopback and a free port, and writes one line (``address`` or ``problem``). When its standard input
ends, it ends: whoever started it has closed it, or has died, in whatever way.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

CACHE_MEGABYTES = 256
"""How much of what was computed for conversations that rest is kept."""
ERRORS_ALONE = 1
"""How much llama.cpp says."""


def main() -> None:
    """Serve until the standard input ends."""
    told = os.dup(1)
    os.dup2(2, 1)  # whatever llama.cpp prints goes to the errors
    asked = json.loads(sys.stdin.readline())
    server = None
    try:
        server = _serve(asked)
        answer = {"address": server.listening_address}
    except Exception as error:
        answer = {"problem": str(error) or type(error).__name__}
    os.write(told, json.dumps(answer).encode() + b"\n")
    os.close(told)
    while server is not None and sys.stdin.read(4096):
        pass
    os._exit(0)  # requests may be under way: nobody waits for them


def _serve(asked: Any) -> Any:
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path = asked["file"]
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [asked["key"]]
    params.n_parallel, params.n_ctx = asked["slots"], asked["slots"] * asked["context"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = asked["threads"]
    params.cache_ram_mib, params.verbosity = CACHE_MEGABYTES, ERRORS_ALONE
    params.ui, params.endpoint_slots, params.offline = False, False, True
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()

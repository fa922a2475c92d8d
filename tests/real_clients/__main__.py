"""``python -m tests.real_clients [NAME…]``: lets real clients play, and writes the table in docs/clients.md.

Without names all of them; a name is any part of a client's.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.real_clients import table
from tests.real_clients.all_clients import CLIENTS
from tests.real_clients.measuring import measure


def main(wanted: Sequence[str]) -> int:
    """Measure and write; 1 where nothing has such a name."""
    chosen = [client for client in CLIENTS if not wanted or any(part.lower() in client.name.lower() for part in wanted)]
    if not chosen:
        print(f"no such client; there are: {', '.join(client.name for client in CLIENTS)}", file=sys.stderr)
        return 1
    lines = {}
    for client in chosen:
        began = time.monotonic()
        if (reason := client.missing()) is not None:
            lines[client.name] = table.not_run(client.name, reason)
        else:
            with tempfile.TemporaryDirectory() as home:
                row = asyncio.run(measure(client, Path(home)))
            lines[client.name] = table.line(row)
            for way, cell in row.cells.items():
                if cell.problem:
                    print(f"{client.name}, {way}: {cell.problem}", file=sys.stderr)
        print(f"{time.monotonic() - began:5.1f} s  {lines[client.name]}", end="", flush=True)
    table.write(lines, [client.name for client in CLIENTS])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

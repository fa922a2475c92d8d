"""``receipts.jsonl``: the receipts of a run's scores, one a line, in the order of its episodes."""

from __future__ import annotations

import json
from pathlib import Path

from mcpgym.receipts import receipt_line
from mcpgym_clients.files import RECEIPTS, TRACES
from mcpgym_rl.files import replace_whole


def write_receipts(folder: Path) -> int:
    """Write the receipts that are in the traces of ``folder`` to a file of their own; how many there are.

    The file holds what the traces hold, whatever was in it before. Where nothing is signed, there is none.
    """
    found: list[tuple[int, bytes]] = []
    with (folder / TRACES).open("rb") as file:
        for line in file:
            if b'"receipt"' not in line:
                continue
            try:
                trace = json.loads(line)
                receipt, place = trace["score"]["receipt"], trace["place"]
            except (ValueError, RecursionError, TypeError, KeyError):
                continue  # a torn line, or a trace without a score in which somebody speaks of receipts
            if receipt is not None:
                found.append((place if isinstance(place, int) else 0, receipt_line(receipt)))
    if not found:
        (folder / RECEIPTS).unlink(missing_ok=True)
        return 0
    found.sort(key=lambda item: item[0])
    replace_whole(folder / RECEIPTS, b"".join(line + b"\n" for _, line in found))
    return len(found)

"""The whole page in one HTML file that works from a disk, with its data inside and nothing to load.

The modules are put into one script, and the data is compressed and written in base64: whatever a trace says, it stands
there as letters, digits, ``+`` and ``/``, and cannot be read as markup. A policy in the page allows this very script
and style and nothing else.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.viewer.answers import Answers, row_json
from mcpgym_clients.viewer.site import STATIC
from mcpgym_clients.viewer.trace_index import Row, texts

BLOCK = 50
"""Traces that are compressed together: a reader unpacks that many to read one."""
MAX_TRACES = 2_000
"""Traces of one run that can be read in an exported page; of all others the list tells."""
MAX_COMPARED = 10
"""Runs that are compared with each other in an exported page."""
_IMPORT = re.compile(r'^import \{([^}]+)\} from "\./([\w.]+)";\n', re.MULTILINE)
_LINKS = re.compile(r"<!-- style and script -->.*<!-- end -->", re.DOTALL)
_EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Exported:
    """What came of it: the file's size in bytes, how many runs and traces are in it, and how many traces are not."""

    size: int
    runs: int
    traces: int
    left_out: int


def export(answers: Answers, path: Path, max_traces: int = MAX_TRACES) -> Exported:
    """Write the page to ``path``, whole or not at all.

    Args:
        answers: where its data comes from.
        path: the HTML file.
        max_traces: of each run at most, those worth looking into first.

    Raises:
        UsageProblem: the file cannot be written there, or there is nothing to write.
    """
    items = answers.library.items()
    if not items:
        raise UsageProblem("there is no run to export")
    index: dict[str, Any] = {**answers.runs(), "details": {}, "rows": {}, "blocks": {}, "weighed": {}, "compared": []}
    blocks: list[str] = []
    counted = left_out = 0
    cards = {card["name"]: card for card in index["runs"]}
    for name, item in items.items():
        if "problem" in cards[name]:  # its card says why; there is nothing else of it
            continue
        if item.kind == "evaluation":
            index["weighed"][name] = answers.weigh(name)
            rows = answers.library.index(item).rows
            chosen = _chosen(rows, max_traces)
            counted, left_out = counted + len(chosen), left_out + len(rows) - len(chosen)
            index["rows"][name] = [row_json(row) for row in rows]
            index["blocks"][name] = {}
            for numbers in (chosen[first : first + BLOCK] for first in range(0, len(chosen), BLOCK)):
                index["blocks"][name].update(dict.fromkeys(numbers, len(blocks)))
                blocks.append(_packed(_block(answers, name, numbers)))
        index["details"][name] = answers.run(name)
    compared = [name for name, item in items.items() if item.kind == "evaluation" and name in index["rows"]]
    compared = compared[:MAX_COMPARED]
    for pair in combinations(compared, 2):
        if cards[pair[0]].get("environment") == cards[pair[1]].get("environment"):
            with suppress(ConfigurationError):  # lines that are no traces cannot be compared; their run says so
                index["compared"] += [answers.compare(pair), answers.compare(pair[::-1])]
    _write(path, _page(_packed(index), blocks))
    return Exported(path.stat().st_size, len(items), counted, left_out)


def _chosen(rows: list[Row], most: int) -> list[int]:
    """The numbers of the traces that go in, in order: if not all, those worth looking into before the others."""
    first = sorted(rows, key=lambda row: (not (row.bad or row.blunders or row.missed), row.n))[:most]
    return sorted(row.n for row in first)


def _block(answers: Answers, name: str, numbers: list[int]) -> dict[str, Any]:
    index = answers.library.index(answers.library.item(name, "evaluation"))
    return {
        str(n): {**answers.trace(name, n), "search": "\n".join(texts(trace)).casefold()}
        for n, trace in zip(numbers, index.traces(numbers), strict=True)
    }


def bundle() -> str:
    """All modules as one script: each a function that gives what the module exports, after those that it imports."""
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in parts:
            return
        source = (STATIC / name).read_text("utf-8")
        for _, needed in _IMPORT.findall(source):
            add(needed)
        exported = ", ".join(_EXPORT.findall(source))
        body = _IMPORT.sub(r'const {\1} = modules["\2"];\n', source).replace("\nexport ", "\n")
        parts[name] = f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();'

    add("main.js")
    return "\n".join(("const modules = {};", *parts.values()))


def _page(index: str, blocks: list[str]) -> Iterator[str]:
    script = bundle()
    style = (STATIC / "style.css").read_text("utf-8")
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:"
    head, body = _LINKS.split((STATIC / "index.html").read_text("utf-8"))
    yield head.replace("<!-- policy -->", f'<meta http-equiv="Content-Security-Policy" content="{policy}">')
    yield f"<style>{style}</style>"
    yield body.split("</body>")[0]
    yield f'<script type="text/plain" id="index">{index}</script>\n'
    for number, block in enumerate(blocks):
        yield f'<script type="text/plain" id="block-{number}">{block}</script>\n'
    yield f'<script type="module">{script}</script>\n</body>\n</html>\n'


def _packed(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _write(path: Path, parts: Iterator[str]) -> None:
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageProblem(f"--export {path}: {error.strerror}") from None
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.writelines(parts)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageProblem(f"--export {path}: {error.strerror}") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

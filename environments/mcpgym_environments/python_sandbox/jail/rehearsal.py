"""What every session does once, done in the fork server before it forks any: sessions then share the outcome.

A page that a session writes to is its own from then on, and Python writes while it only reads: code that runs for the
first times is rewritten to faster forms, caches are filled, modules make what they need at their first use. After a
rehearsal all that lies in pages that nobody writes to again: a fifth less memory for each session, and a quicker start.
Nothing of it is left that code in a session could find.
"""

from __future__ import annotations

import ast
import linecache
import platform
import random
import sys
from typing import Any

from mcpgym_environments.python_sandbox.jail import frames, limits, tracebacks, values

TIMES = 40
"""More often than the interpreter waits before it rewrites a function."""
CELL = "import math\nx = [number for number in range(10)]\nprint\n1 / 0\n"
"""A cell that ends in an error: how errors are shown touches the most."""


def rehearse() -> None:
    """Compile and run a cell, show its error, seed, encode and decode: as a worker and an init will."""
    numpy: Any = sys.modules.get("numpy")
    platform.machine()
    platform.python_version()
    for number in range(TIMES):
        frames.parsed(frames.encode({"n": number, "status": "ok"})[frames.HEAD_BYTES :])
        limits.Limits.of(vars(limits.Limits()))
        random.seed(number)
        if numpy is not None:
            numpy.random.seed([number, 0])
        _run(f"<cell {number}>")
        values.exact_json([number, 2.5, "text", {"key": None}, True])


def _run(name: str) -> None:
    linecache.cache[name] = (len(CELL), None, CELL.splitlines(keepends=True), name)
    tree: Any = compile(CELL, name, "exec", ast.PyCF_ONLY_AST, True)
    try:
        eval(compile(tree, name, "exec", 0, True), {})
    except ZeroDivisionError as error:
        for _ in tracebacks.render(error, lambda file: True):
            pass
    del linecache.cache[name]

"""Runs a program's own command many times, each in a fork of this process: imports, which take seconds, are done once.

``python entry_runner.py COMMAND MODULE…`` imports the modules, then reads lines from standard input, each a JSON object
with ``arguments``, ``environment`` (variables to set) and ``output`` (a file for what is printed), and answers each
line with the exit code and the seconds of processor time that it took. With ``call``, a function ``module:name`` runs
in the place of the command.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any


def main(command: str, *modules: str) -> None:
    """Import and serve."""
    for module in modules:
        importlib.import_module(module)
    (entry,) = [found for found in entry_points(group="console_scripts") if found.name == command]
    work = entry.load()
    gc.disable()  # what is imported stays, and each run is short
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            os._exit(_run(_named(asked["call"]) if "call" in asked else work, command, asked))
        _, status, used = os.wait4(child, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime]), flush=True)


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _run(work: Any, command: str, asked: dict[str, Any]) -> int:
    with Path(asked["output"]).open("wb", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(asked["environment"])
    sys.argv = [command, *asked["arguments"]]
    try:
        code = work()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    main(*sys.argv[1:])

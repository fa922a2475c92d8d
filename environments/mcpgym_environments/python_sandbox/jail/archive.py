"""The agent as one file, for places that have Python and nothing of ours: containers, virtual machines."""

from __future__ import annotations

import io
import os
import zipfile
from functools import lru_cache

PARTS = (
    "__init__",
    "asking",
    "calls",
    "capture",
    "cells",
    "emptying",
    "files",
    "forking",
    "forwarding",
    "frames",
    "hardening",
    "hidden",
    "init",
    "limits",
    "mailbox",
    "main",
    "notebook",
    "place",
    "processes",
    "seccomp",
    "start",
    "system_calls",
    "table",
    "tar",
    "tracebacks",
    "values",
    "walking",
    "worker",
    "workers",
)
"""The files of the agent; the others here make boundaries of this machine."""
_PLACE = "mcpgym_environments/python_sandbox/jail"
_BEGINNING = (1980, 1, 1, 0, 0, 0)  # the same bytes whenever they are made


@lru_cache(maxsize=1)
def agent_archive() -> bytes:
    """A zip archive to run with ``python -I agent.pyz`` (Python 3.11 or later, nothing else needed).

    It speaks frames on its standard input and output; see ``main.py`` for its options.
    """
    folder = os.path.dirname(os.path.abspath(__file__))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in PARTS:
            with open(os.path.join(folder, f"{name}.py"), "rb") as file:
                data = file.read()
            places = [f"{_PLACE}/{name}.py"] + (["__main__.py"] if name == "start" else [])
            for place in places:
                entry = zipfile.ZipInfo(place, _BEGINNING)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data)
    return made.getvalue()

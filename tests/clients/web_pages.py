"""``mcpgym play --web`` as users run it: its address, while it runs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def served_page(*arguments: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", "play", *arguments, "--web", "--no-open"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", said)
        assert found, said + (process.stderr.read() if process.poll() is not None else "")
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        _, wrong = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in wrong

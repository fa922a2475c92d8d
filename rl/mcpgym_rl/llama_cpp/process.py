"""The server's process, seen from here: started, waited for, ended; it ends with us in any case."""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mcpgym.errors import ConfigurationError
from mcpgym_rl.policy import PolicyUnavailable

START_SECONDS = 600.0
"""How long a model may take to be loaded."""
END_SECONDS = 5.0
"""How long the process may take to end by itself."""
EXTRA = "llama:… is played by llama.cpp, which the extra brings: pip install 'mcpgym[llama]'"


@dataclass(frozen=True, slots=True)
class Size:
    """``slots``: conversations at once, others wait; ``context``: tokens that one of them may have; ``threads``."""

    slots: int = 4
    context: int = 4096
    threads: int = 1


def require_llama_cpp() -> None:
    """See that the package is there.

    Raises:
        ConfigurationError: it is not; the message says how one gets it.
    """
    if find_spec("xllamacpp") is None:
        raise ConfigurationError(EXTRA)


def usable_threads() -> int:
    """Half of the processors, or what ``OMP_NUM_THREADS`` says: threads that wait for one another lose most of their
    time where others want the same processors."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return max(1, (os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count() or 1) // 2)


class LlamaServer:
    """A server of its own for the model in ``file``, on loopback; who asks it must know its ``key``.

    Args:
        file: a GGUF file.
        size: how much it takes on.
        what: what messages call it.
    """

    def __init__(self, file: Path, size: Size, what: str) -> None:
        self.what, self.key = what, secrets.token_hex(16)
        self._lock = threading.Lock()
        self._address: str | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "mcpgym_rl.llama_cpp.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self.pid = self._process.pid
        asked = {"file": str(file), "key": self.key, "slots": size.slots, "context": size.context}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**asked, "threads": size.threads}).encode() + b"\n")
        self._process.stdin.flush()

    def address(self) -> str:
        """Where it is, once it is there; may be asked from any thread.

        Raises:
            PolicyUnavailable: it did not start, or has ended; the message says why.
        """
        with self._lock:
            if self._address is None:
                self._address = self._answer()
        if (ended := self.ended()) is not None:
            raise PolicyUnavailable(ended)
        return self._address

    def _answer(self) -> str:
        stream, until = self._process.stdout, time.monotonic() + START_SECONDS
        assert stream is not None
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([stream], [], [], max(0.0, until - time.monotonic()))
            part = os.read(stream.fileno(), 4096) if ready else b""
            if not ready:
                raise PolicyUnavailable(f"{self.what}: llama.cpp did not load it within {START_SECONDS:g} s")
            if not part:
                self._process.wait()
                raise PolicyUnavailable(self.ended() or f"{self.what}: its server has ended")
            line += part
        answer = json.loads(line)
        if "address" not in answer:
            raise PolicyUnavailable(f"{self.what}: llama.cpp cannot play it: {answer['problem']}{self._said()}")
        made: str = answer["address"]
        return made

    def ended(self) -> str | None:
        """How it ended; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self.what}: its server {how}{self._said()}"

    def _said(self) -> str:
        """The end of what it said on its standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        said = " ".join(" ".join(lines).split())[-400:]
        return f" ({said})" if said else ""

    def end(self) -> None:
        """End it. A second time does nothing."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

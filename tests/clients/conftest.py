"""What the command line's tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mcpgym_clients import console
from mcpgym_clients.cli import main

ENVIRONMENT_VARIABLES = {"COLUMNS": "120", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple]:
    """Run the command line in this process, in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    console._console.cache_clear()  # one that an earlier test made has kept the width it found
    monkeypatch.delenv("MCPGYM_CONTROL_SECRET", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line as users do: a process of its own."""

    def run(
        *arguments: str, stdin: str = "", timeout: float = 60, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mcpgym_clients", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            cwd=tmp_path,
            env={**os.environ, **ENVIRONMENT_VARIABLES, **(environment or {})},
        )

    return run

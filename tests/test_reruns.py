"""A test that fails is run again only if it had to do with other processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
HOOKS = "from reruns import pytest_collection_modifyitems, pytest_runtest_logstart\n"
TESTS = """
import asyncio, itertools, socket, subprocess, sys

tries = itertools.count()

def test_with_a_process():
    subprocess.run([sys.executable, "-c", ""])
    assert next(tries) == 1

def test_with_a_server():
    listener = socket.create_server(("127.0.0.1", 0))
    assert next(tries) == 3

def test_of_plain_code():
    assert next(tries) == 5

def test_of_coroutines():
    asyncio.run(asyncio.sleep(0))
    assert next(tries) == 6

def test_that_fails_twice():
    subprocess.run([sys.executable, "-c", ""])
    raise ValueError
"""


def test_who_gets_a_second_try(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS, encoding="utf-8")
    (tmp_path / "test_them.py").write_text(TESTS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rAR", "-p", "no:cacheprovider", "--max-suite-reruns=9", str(tmp_path)],
        cwd=tmp_path, env={"PYTHONPATH": str(HERE)}, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    for result, names in {
        "PASSED": ("with_a_process", "with_a_server"),
        "FAILED": ("of_plain_code", "of_coroutines", "that_fails_twice"),
        "RERUN": ("with_a_process", "with_a_server", "that_fails_twice"),
    }.items():
        told = {line.split("::")[1].split()[0] for line in done.stdout.splitlines() if line.startswith(result)}
        assert told == {f"test_{name}" for name in names}, done.stdout

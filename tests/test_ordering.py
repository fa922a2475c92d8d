"""The order of tests on several workers: every unit once, the longest first, modules whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ordering

HERE = Path(__file__).parent


def test_what_is_recorded_is_read_and_orders(tmp_path: Path) -> None:
    file = tmp_path / "seconds.txt"
    document = "tests/test_documents.py::test_it[a page of 3 words]"
    tests = [("tests/a.py::x", 2.4), ("tests/a.py::y", 3.0), ("tests/b.py::x[ 1 ]", 0.04), (document, 70.2)]
    ordering.record(tests, file)
    found = ordering.recorded(file)
    assert found == {document: 70, "tests/a.py": 5, "tests/b.py": 0}
    assert ordering.longest_first(["tests/b.py", "tests/new.py", "tests/a.py", document], found) == [
        document, "tests/new.py", "tests/a.py", "tests/b.py"
    ]  # fmt: skip


def test_the_table_and_the_modules_named_are_there() -> None:
    assert {unit.split("::")[0] for unit in ordering.recorded()} >= set(ordering.APART)
    for module in ordering.APART:
        assert (HERE.parent / module).is_file()


@pytest.mark.slow
def test_workers_get_whole_modules_in_that_order(tmp_path: Path) -> None:
    """Really run, with two workers: three modules, of which the last by name is said to take longest."""
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("conftest.py", "ordering.py", "reruns.py"):
        (tests / name).write_text((HERE / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tests / "seconds.txt").write_text("9 tests/test_z.py\n2 tests/test_a.py\n1 tests/test_b.py\n", encoding="utf-8")
    body = """
import os, pytest, time
@pytest.mark.parametrize("number", range(4))
def test_it(number):
    time.sleep(0.01)
    with open("log", "a") as log: log.write(f"{os.environ['PYTEST_XDIST_WORKER']} {__name__} {number}\\n")
"""
    for name in "abz":
        (tests / f"test_{name}.py").write_text(body, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--record-seconds", "tests"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert "12 passed" in done.stdout, done.stdout + done.stderr
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert len({tuple(line) for line in lines}) == 12
    for module in ("test_a", "test_b", "test_z"):
        own = [(worker, number) for worker, name, number in lines if name == module]
        assert len({worker for worker, _ in own}) == 1, own
        assert [number for _, number in own] == ["0", "1", "2", "3"]
    first = {name for _, name, number in lines if number == "0"} - {"test_b"}
    assert first == {"test_z", "test_a"}
    assert [name for _, name, _ in lines].index("test_b") >= 4, "the shortest came before another had ended"
    assert set(ordering.recorded(tests / "seconds.txt")) == {f"tests/test_{name}.py" for name in "abz"}

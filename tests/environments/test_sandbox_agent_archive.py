"""The agent as one file, run by an interpreter that has nothing of ours: over pipes, over a socket and by files."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.jail.archive import agent_archive

SPEC = {"limits": {"seconds": 20, "cpu_seconds": 20}, "packages": [], "seed": 3}
PYTHON = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
"""The interpreter outside of any virtual environment."""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the agent forks")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "agent.pyz"
    path.write_bytes(agent_archive())
    return path


def command(archive: Path, folder: Path, *more: str) -> list[str]:
    return [PYTHON, "-I", str(archive), "--work", f"{folder}/work", "--scratch", f"{folder}/tmp", *more]


def read(stream: IO[bytes]) -> tuple[dict[str, Any], bytes]:
    json_length, blob_length = frames.lengths(stream.read(frames.HEAD_BYTES))
    return frames.header(stream.read(json_length)), stream.read(blob_length)


def talk(answers: IO[bytes], requests: IO[bytes]) -> None:
    """One session from the first frame to the last."""
    for number, (header, blob, output) in enumerate(
        [
            ({"op": "hello", "spec": SPEC}, b"", b""),
            ({"op": "run"}, b"import sys\nx = 6\n[n for n in sys.modules if 'mcpgym' in n], x * 7", b"([], 42)\n"),
            ({"op": "write", "path": "a.txt"}, b"text", b""),
            ({"op": "run"}, b"open('a.txt').read()", b"'text'\n"),
            ({"op": "evaluate", "function": "str.upper"}, b'["a"]', b""),
            ({"op": "run"}, b"upper = str.upper", b""),
            ({"op": "evaluate", "function": "upper"}, b'["a"]', b'"A"'),
            ({"op": "reset"}, b"", b""),
            ({"op": "list", "path": "."}, b"", b"[]"),
        ]
    ):
        requests.write(frames.encode({"n": number, **header}, blob))
        requests.flush()
        answer, content = read(answers)
        assert answer["n"] == number
        if header.get("function") == "str.upper":
            assert answer["status"] == "error"  # there is no module of that name
        else:
            assert (answer["status"], answer["why"], content) == ("ok", None, output)


def answered(words: list[str], *requests: tuple[dict[str, Any], bytes]) -> list[tuple[dict[str, Any], bytes]]:
    """What an agent answers to these after hello."""
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        found = []
        with agent.stdin:
            for number, (header, blob) in enumerate([({"op": "hello", "spec": SPEC}, b""), *requests]):
                agent.stdin.write(frames.encode({"n": number, **header}, blob))
                agent.stdin.flush()
                found.append(read(agent.stdout))
    return found[1:]


def test_it_is_the_same_whenever_it_is_made_and_holds_the_standard_librarys_users_only(archive: Path) -> None:
    agent_archive.cache_clear()
    assert agent_archive() == archive.read_bytes()
    with zipfile.ZipFile(archive) as held:
        names = held.namelist()
    assert "__main__.py" in names
    assert len(names) == len(set(names))
    assert not [name for name in names if "zygote" in name or "namespaces" in name]


def test_it_serves_over_two_pipes_and_ends_with_them(archive: Path, tmp_path: Path) -> None:
    with subprocess.Popen(command(archive, tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        with agent.stdin:
            talk(agent.stdout, agent.stdin)
        assert agent.wait(20) == 0
        assert agent.stdout.read() == b""


def test_it_serves_over_a_socket_and_ends_with_it(archive: Path, tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with subprocess.Popen(command(archive, tmp_path), stdin=theirs, stdout=subprocess.DEVNULL) as agent:
        theirs.close()
        with ours, ours.makefile("rwb") as stream:
            talk(stream, stream)
        assert agent.wait(20) == 0


@pytest.mark.parametrize(
    "data",
    [b"\xff" * 8, frames.encode({"op": "run", "n": 0}), frames.encode({"op": "hello", "n": 0}), b"GET / HTTP/1.1\r\n"],
    ids=["lengths", "not hello", "no spec", "HTTP"],
)
def test_what_does_not_speak_frames_gets_no_answer(data: bytes, archive: Path, tmp_path: Path) -> None:
    done = subprocess.run(command(archive, tmp_path), input=data, capture_output=True, timeout=30, check=False)
    assert done.stdout == b""


def test_a_package_that_is_missing_is_named(archive: Path, tmp_path: Path) -> None:
    hello = frames.encode({"op": "hello", "n": 0, "spec": {**SPEC, "packages": ["no-such-thing"]}})
    done = subprocess.run(command(archive, tmp_path), input=hello, capture_output=True, timeout=30, check=False)
    header = frames.header(done.stdout[frames.HEAD_BYTES :][: frames.lengths(done.stdout[: frames.HEAD_BYTES])[0]])
    assert header["status"] == "error"
    assert "the package no-such-thing cannot be imported" in header["why"]


# ---------------------------------------------------------------------- by files


class Box:
    """Requests as files, for places that nothing can be streamed to."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.folder = folder
        self.asked = [*command(archive, folder), "--mailbox", str(folder / "box"), "--once"]

    def ask(self, header: dict[str, Any], blob: bytes = b"") -> tuple[int, dict[str, Any], bytes]:
        request, answer = self.folder / "request", self.folder / "answer"
        request.write_bytes(frames.encode(header, blob))
        answer.unlink(missing_ok=True)
        done = subprocess.run([*self.asked, str(request), str(answer)], capture_output=True, timeout=60, check=False)
        if not answer.exists():
            return done.returncode, {}, done.stderr
        with answer.open("rb") as file:
            return (done.returncode, *read(file))


@pytest.fixture
def box(archive: Path, tmp_path: Path) -> Iterator[Box]:
    made = Box(archive, tmp_path)
    yield made
    (tmp_path / "box" / "socket").unlink(missing_ok=True)  # the agent that stays notices, and ends


def test_one_frame_per_command_reaches_the_agent_that_stays(box: Box) -> None:
    assert box.ask({"op": "run", "n": 0}, b"1")[0] == 3  # nobody is there yet
    code, answer, _ = box.ask({"op": "hello", "n": 1, "spec": SPEC})
    assert (code, answer["status"], answer["n"]) == (0, "ok", 1)
    assert box.ask({"op": "run", "n": 2}, b"x = 5")[0] == 0
    code, answer, output = box.ask({"op": "run", "n": 3}, b"import os\nx, os.listdir()")
    assert (code, answer["n"], output) == (0, 3, b"(5, [])\n")
    box.ask({"op": "hello", "n": 4, "spec": SPEC})
    code, answer, output = box.ask({"op": "run", "n": 5}, b"x")
    assert answer["status"] == "error"  # another hello is another session


def test_a_session_that_is_lost_is_said(box: Box, tmp_path: Path) -> None:
    box.ask({"op": "hello", "n": 1, "spec": SPEC})
    (tmp_path / "box" / "socket").unlink()
    code, _, said = box.ask({"op": "run", "n": 2}, b"1")
    assert code == 3
    assert said.startswith(b"the session is lost: ")
    deadline = time.monotonic() + 15
    while _stays(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _stays(tmp_path)


def _stays(folder: Path) -> bool:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return f"--stay {folder}" in listed


def test_a_request_that_is_no_frame_is_refused(box: Box, tmp_path: Path) -> None:
    for data in (b"", b"\xff" * 20, frames.encode({"op": "run"}, b"code")[:-1], json.dumps({"op": "run"}).encode()):
        (tmp_path / "request").write_bytes(data)
        done = subprocess.run(
            [*box.asked, str(tmp_path / "request"), str(tmp_path / "answer")],
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith(str(tmp_path / "request").encode() + b": ")
        assert not (tmp_path / "answer").exists()


def test_a_folder_with_something_in_it_is_no_workspace(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("years of work")
    hello = frames.encode({"op": "hello", "n": 0, "spec": SPEC}) + frames.encode({"op": "reset", "n": 1})
    done = subprocess.run(command(archive, tmp_path), input=hello, capture_output=True, timeout=30, check=False)
    assert done.stdout == b""
    assert b"there is something in" in done.stderr
    assert (tmp_path / "work" / "thesis.txt").read_text() == "years of work"


def test_a_reset_leaves_what_lies_in_the_folder_for_temporary_files(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "thesis.txt").write_text("years of work")
    code = b"import tempfile; open(tempfile.gettempdir() + '/mine', 'w').close()"
    answers = answered(command(archive, tmp_path), ({"op": "run"}, code), ({"op": "reset"}, b""))
    assert [header["status"] for header, _ in answers] == ["ok", "ok"]
    assert (tmp_path / "tmp" / "thesis.txt").read_text() == "years of work"
    assert not list((tmp_path / "tmp").glob("*/mine"))


@pytest.mark.skipif(sys.platform != "linux", reason="filters of system calls are of Linux")
def test_code_cannot_signal_what_serves_it(archive: Path, tmp_path: Path) -> None:
    code = b"""
import os, signal
refused = []
for act in (
    lambda: os.kill(os.getppid(), 0),
    lambda: os.kill(-1, 0),
    lambda: os.killpg(os.getpgid(os.getppid()), 0),
    lambda: os.pidfd_open(os.getppid()),
):
    try: act()
    except PermissionError: refused.append(1)
os.kill(os.getpid(), 0)
len(refused)
"""
    assert answered(command(archive, tmp_path), ({"op": "run"}, code))[0][1] == b"4\n"

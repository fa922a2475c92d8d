"""Docker and Podman: with an engine where there is one, else with a command that stands for it.

To run the contract against an engine, name an image that it has and that has ``python3``:
``MCPGYM_TEST_IMAGE=localhost/python pytest tests/environments/test_sandbox_backends_engines.py``, with the runtimes in
``MCPGYM_TEST_RUNTIMES`` (``runc runsc``) and an engine's further needs in ``MCPGYM_SANDBOX_OPTIONS``.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
import sandbox_contract as contract

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.backends.docker import Container, Docker, Podman
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, Unavailable

IMAGE = os.environ.get("MCPGYM_TEST_IMAGE", "")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ["docker", "podman"])
@pytest.mark.parametrize("runtime", os.environ.get("MCPGYM_TEST_RUNTIMES", "").split() or [""])
def test_an_engine_keeps_the_contract(engine: str, runtime: str) -> None:
    if shutil.which(engine) is None or not IMAGE:
        pytest.skip(f"needs {engine} and MCPGYM_TEST_IMAGE (an image with python3)")
    asyncio.run(contract.keeps_the_contract(Container(engine, IMAGE, runtime), contract.Promises()))


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command ``docker`` that writes down what it is asked and does what ``answer`` in its folder says."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "docker"
    command.write_text(
        f"#!{sys.executable} -I\nimport pathlib, sys\nhere = pathlib.Path(__file__).parent\n"
        "open(here / 'asked', 'a').write(repr(sys.argv[1:]) + '\\n')\nexec((here / 'answer').read_text())\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def refusal(engine: Path, answer: str) -> Unavailable:
    (engine / "answer").write_text(answer)
    with pytest.raises(Unavailable) as caught:
        asyncio.run(asyncio.wait_for(Docker().start(SandboxSpec()), 30))
    return caught.value


def test_an_engine_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for backend in (Docker(), Podman()):
        with pytest.raises(Unavailable, match=f"there is no {backend.name} command here"):
            asyncio.run(backend.start(SandboxSpec()))


def test_an_engine_that_does_not_run_is_said(engine: Path) -> None:
    error = refusal(engine, "sys.exit('Cannot connect to the Docker daemon at unix:///var/run/docker.sock.')")
    assert "Cannot connect to the Docker daemon" in error.reason
    assert "Start docker's service" in error.remedy


def test_an_image_that_cannot_be_had_is_said(engine: Path) -> None:
    error = refusal(engine, "sys.argv[1] == 'version' or sys.exit('no such image')")
    assert "docker pull failed: no such image" in error.reason
    assert "MCPGYM_SANDBOX_IMAGE" in error.remedy


def test_a_container_that_does_not_start_is_said(engine: Path) -> None:
    answer = "sys.argv[1] == 'run' and sys.exit('docker: Error response from daemon: unknown runtime: runsc')"
    error = refusal(engine, answer)
    assert "unknown runtime: runsc" in error.reason
    asked = (engine / "asked").read_text()
    assert asked.count("['run'") == 1
    assert "['rm', '--force', 'mcpgym-" in asked  # nothing is left of it


def test_an_image_without_python_is_said(engine: Path) -> None:
    error = refusal(engine, "print('hello')")
    assert "does not answer in frames" in error.reason or "ended at once" in error.reason
    assert "python3" in error.remedy


def test_containers_are_run_with_nothing_they_do_not_need() -> None:
    for backend in (Docker(image="i"), Podman(image="i"), Docker(image="i", runtime="runsc")):
        words = backend.command(SandboxSpec(), "name")
        text = " ".join(words)
        for wanted in (
            "--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--user 1000:1000",
            "--pids-limit", "--memory-swap", "--rm", "--ipc none", "--pull never",
        ):  # fmt: skip
            assert wanted in text
        assert "--privileged" not in words
        assert not [word for word in words if word in ("-v", "--volume", "--mount", "--device")]
        assert words.index("--entrypoint") < words.index("i") < words.index("-I")


def test_the_level_is_what_the_runtime_is() -> None:
    assert [Docker(runtime=name).level for name in ("", "runsc", "kata", "runc")] == [
        "namespaces", "gvisor", "vm", "namespaces",
    ]  # fmt: skip
    with pytest.raises(ConfigurationError, match="docker or podman"):
        Container("lxc")

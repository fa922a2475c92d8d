"""``mcpgym serve``: what is served to whom, over HTTP and stdio, and how it ends."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import os
import pty
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

from mcpgym_clients import serve
from mcpgym_clients.options import parse_config


def start(tmp_path: Path, *arguments: str, **variables: str) -> tuple[subprocess.Popen[str], str]:
    """A serving process and what it announced."""
    variables = {"XDG_RUNTIME_DIR": "", "TMPDIR": str(tmp_path), **variables}
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", "serve", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, **variables},
    )  # fmt: skip
    said = ""
    assert process.stderr is not None
    for line in process.stderr:
        said += line
        if "Stop with" in line:
            break
    return process, said


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    processes = []

    def serve(*arguments: str, **variables: str) -> tuple[subprocess.Popen[str], str]:
        processes.append(start(tmp_path, *arguments, **variables))
        return processes[-1]

    yield serve
    for process, _ in processes:
        process.kill()
        process.communicate(timeout=10)


def players_url(said: str) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+", said)
    assert found, said
    return found[0]


async def tool_names(server: Any) -> list[str]:
    from mcp import Client

    async with Client(server) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


def test_serving_everything_by_default(served: Callable) -> None:
    _, said = served("--port", "0")
    for name in ("tic-tac-toe", "reverse-text", "double-check"):
        assert f"/{name}/mcp" in said
    assert "play" in asyncio.run(tool_names(f"{players_url(said)}/tic-tac-toe/mcp"))
    assert re.search(r"Control plane: unix:/\S+", said)
    assert "MCPGYM_CONTROL_SECRET=" in said


def test_a_broken_environment_does_not_keep_the_others_from_being_served(served: Callable, tmp_path: Path) -> None:
    metadata = tmp_path / "site" / "broken_package-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-package\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[mcpgym.environments]\nbroken = broken_package:Broken\nfragile = broken_package:Fragile\n"
    )
    (tmp_path / "site" / "broken_package.py").write_text(
        "from mcpgym import Environment\n"
        "class Fragile(Environment):\n"
        "    name = 'fragile'\n"
        "    def __init__(self, config=None): raise RuntimeError('no licence key')\n"
    )
    _, said = served("--port", "0", PYTHONPATH=str(tmp_path / "site"))
    assert "/tic-tac-toe/mcp" in said
    assert "no licence key" in said
    assert "'broken'" in said


def test_serving_one_leaves_the_others_out(served: Callable) -> None:
    _, said = served("tic-tac-toe", "--port", "0")
    assert "reverse-text" not in said
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{players_url(said)}/reverse-text/mcp", data=b"{}", method="POST"), timeout=10)
    assert refused.value.code == 404


def test_the_control_plane_is_where_it_was_put(served: Callable, tmp_path: Path) -> None:
    secret = tmp_path / "secret file"
    secret.write_text("a-secret-of-this-test-alone\n")
    secret.chmod(0o600)
    _, said = served("--port", "0", "--control-socket", str(tmp_path / "c.sock"), "--secret-file", str(secret))
    assert stat.S_IMODE((tmp_path / "c.sock").stat().st_mode) == 0o600
    assert "a-secret-of-this-test-alone" not in said
    _, said = served("--port", "0", "--control-port", "0", MCPGYM_CONTROL_SECRET="another-secret-of-this-test")
    address = re.search(r"Control plane: (http://127\.0\.0\.1:\d+)", said)
    assert address
    request = Request(f"{address[1]}/control/v1/environments")
    with pytest.raises(HTTPError) as refused:
        urlopen(request, timeout=10)
    assert refused.value.code == 401
    request.add_header("Authorization", "Bearer another-secret-of-this-test")
    listed = json.loads(urlopen(request, timeout=10).read())
    assert {item["name"] for item in listed["environments"]} >= {"tic-tac-toe", "reverse-text"}
    request.full_url = f"{players_url(said)}/control/v1/environments"
    with pytest.raises(HTTPError) as hidden:  # on the players' side there is no control plane, secret or not
        urlopen(request, timeout=10)
    assert hidden.value.code == 404


def test_configuration_says_whose_it_is(served: Callable, command: Callable) -> None:
    from mcpgym.control_client import HttpControl

    async def config(address: str) -> dict[str, Any]:
        async with HttpControl(address, "a-secret-of-this-test-alone") as control:
            return {item.name: dict(item.config) for item in await control.environments()}

    _, said = served(
        "--port", "0", "--config", "tic-tac-toe.max_turns=5", MCPGYM_CONTROL_SECRET="a-secret-of-this-test-alone"
    )
    found = re.search(r"unix:\S+", said)
    assert found
    assert asyncio.run(config(found[0]))["tic-tac-toe"]["max_turns"] == 5
    code, _, err = command("serve", "--port", "0", "--config", "max_turns=5")
    assert code == 2
    assert "which environment's?" in err
    assert "environment.max_turns=5" in err


@pytest.mark.parametrize(
    ("environments", "option", "kept"),
    [
        (["one"], "section.inner.key=1", "section.inner.key"),
        (["one"], "one.section.key=1", "section.key"),
        (["one", "two"], "one.section.key=1", "section.key"),
    ],
)
def test_a_field_of_a_section_may_be_set(environments: list[str], option: str, kept: str) -> None:
    assert parse_config([option], environments)["one"] == {kept: "1"}


def test_the_cap_on_episodes_is_the_one_given(served: Callable) -> None:
    from mcpgym.control_client import HttpControl
    from mcpgym.errors import TooManyEpisodes

    _, said = served("--port", "0", "--max-episodes", "2", MCPGYM_CONTROL_SECRET="a-secret-of-this-test-alone")
    found = re.search(r"unix:\S+", said)
    assert found

    async def fill() -> None:
        async with HttpControl(found[0], "a-secret-of-this-test-alone") as control:
            for index in range(3):
                await control.open("tic-tac-toe", split="test", index=index)

    with pytest.raises(TooManyEpisodes, match="2 episodes"):
        asyncio.run(fill())


def test_idle_episodes_end_when_told(served: Callable) -> None:
    from mcpgym.control_client import HttpControl

    _, said = served("--port", "0", "--idle-seconds", "0.2", MCPGYM_CONTROL_SECRET="a-secret-of-this-test-alone")
    found = re.search(r"unix:\S+", said)
    assert found

    async def wait() -> str | None:
        async with HttpControl(found[0], "a-secret-of-this-test-alone") as control:
            opened = await control.open("tic-tac-toe", split="test", index=0)
            for _ in range(300):
                await asyncio.sleep(0.1)
                if (ended := (await control.status(opened.token)).ended) is not None:
                    return ended
        return None

    assert "expired" in (asyncio.run(wait()) or "")


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({"stdio": True, "split": "test"}, math.inf),  # a notebook is there tomorrow, if its client is
        ({"stdio": True, "task": "test-1"}, math.inf),
        ({"stdio": True}, 1800.0),
        ({}, 1800.0),
        ({"stdio": True, "split": "test", "idle_seconds": 5.0}, 5.0),
    ],
)
def test_how_long_an_episode_may_wait_for_a_call(changed: dict[str, Any], seconds: float) -> None:
    typed = dict.fromkeys((field.name for field in dataclasses.fields(serve.ServeOptions)), None)
    typed |= {"environments": ["tic-tac-toe"], "config": [], "max_episodes": 2, **changed}
    episodes = serve.load(serve.ServeOptions(**typed))
    assert episodes.limits.idle_seconds == seconds


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_case_11_a_signal_ends_the_server_in_order(
    served: Callable, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process, _ = served("--port", "0", "--control-socket", str(tmp_path / "c.sock"))
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert "Traceback" not in err
    assert not (tmp_path / "c.sock").exists()
    assert not [child for child in children if child.is_running()]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--task", "test-1"], "add --stdio"),
        (["--seed", "1"], "add --stdio"),
        (["tic-tac-toe", "--stdio", "--port", "1"], "--port belongs to HTTP"),
        (["tic-tac-toe", "--stdio", "--control-port", "0"], "--control-port belongs to HTTP"),
        (["tic-tac-toe", "--stdio", "--index", "1"], "needs a task"),
        (["tic-tac-toe", "--stdio", "--task", "test-1", "--split", "test"], "not by both"),
        (["--stdio", "--task", "test-1"], "name it"),
        (["tic-tac-to"], "did you mean 'tic-tac-toe'"),
        (["tic-tac-toe", "tic-tac-toe"], "named twice"),
        (["--host", "256.0.0.1"], "256.0.0.1"),
        (["--port", "0", "--control-port", "0", "--control-socket", "x"], "not both"),
        (["--port", "0", "--secret-file", "nowhere"], "nowhere"),
        (["--max-episodes", "0"], "--max-episodes"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(process: Callable, arguments: list[str], says: str) -> None:
    done = process("serve", *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_names_the_option(served: Callable, process: Callable) -> None:
    _, said = served("--port", "0")
    done = process("serve", "--port", players_url(said).rsplit(":", 1)[1])
    assert done.returncode == 2
    assert "in use" in done.stderr
    assert "--port" in done.stderr


def test_beyond_loopback_only_when_asked_and_with_a_warning(served: Callable) -> None:
    _, said = served("--port", "0")
    assert "warning" not in said
    _, said = served("--host", "0.0.0.0", "--port", "0")
    assert "warning: --host 0.0.0.0 lets other machines play here" in " ".join(said.split())


def test_a_further_host_name_is_accepted_when_allowed(served: Callable) -> None:
    def status(url: str) -> int:
        request = Request(f"{url}/mcp", data=b"{}", method="POST", headers={"Host": "gym.example"})
        try:
            return int(urlopen(request, timeout=10).status)
        except HTTPError as error:
            return error.code

    refused = status(players_url(served("--port", "0")[1]))
    allowed = status(players_url(served("--port", "0", "--allowed-host", "gym.example")[1]))
    assert refused in (403, 421)
    assert allowed not in (403, 421)


def over_stdio(tmp_path: Path, *arguments: str, **variables: str) -> Any:
    """A transport to a stdio server of its own process; what it logs goes to a file."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = ["-m", "mcpgym_clients", "serve", *arguments, "--stdio"]
    server = StdioServerParameters(command=sys.executable, args=command, cwd=tmp_path, env={**os.environ, **variables})
    return stdio_client(server, errlog=(tmp_path / "log").open("w"))


def test_stdio_bound_to_a_task_is_one_episode(tmp_path: Path) -> None:
    from mcp import Client

    async def play(*arguments: str) -> list[str]:
        async with Client(over_stdio(tmp_path, "tic-tac-toe", *arguments)) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["play"]
            assert list(tools[0].input_schema["properties"]) == ["position"]
            return [(await client.call_tool("play", {"position": cell})).content[0].text for cell in (4, 0, 1)]

    by_index = asyncio.run(play("--split", "test", "--index", "2", "--seed", "7"))
    assert "You played 4" in by_index[0]
    assert asyncio.run(play("--task", "test-2", "--seed", "7")) == by_index


def test_stdio_without_a_task_has_handles(tmp_path: Path) -> None:
    assert "start_episode" in asyncio.run(tool_names(over_stdio(tmp_path, "tic-tac-toe")))


NOISY = """
print("noise at import")
from mcpgym import Environment, LazyTasks, Task, reward, task_id, tool
from mcpgym.messages import user
class Noisy(Environment):
    "Prints all the time."
    name = "noisy"
    def tasks(self, split):
        return LazyTasks(2, lambda i: Task(task_id(split, i), split, (user("Go."),)))
    def reset(self, task, seed):
        print("noise at reset")
        return {}
    @tool
    def speak(self, state) -> str:
        "Speak."
        print("noise in a tool")
        return "é…"
"""


def test_case_32_nothing_but_protocol_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    from mcp import Client

    async def speak() -> str:
        variables = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
        async with Client(over_stdio(tmp_path, "noisy:Noisy", "--split", "test", **variables)) as client:
            return (await client.call_tool("speak", {})).content[0].text

    assert asyncio.run(speak()) == "é…"
    log = (tmp_path / "log").read_text("utf-8", "replace")
    assert all(f"noise {where}" in log for where in ("at import", "at reset", "in a tool"))


def test_stdio_in_a_terminal_says_what_it_waits_for(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", "serve", "tic-tac-toe", "--stdio"],
        stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert "to a client that starts it" in process.stderr.readline()
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=20)
        os.close(master)
        os.close(slave)
    assert out == ""


@pytest.mark.flaky(reruns=1)  # it measures time
def test_case_10_stdio_ends_with_its_input_and_on_a_signal(tmp_path: Path) -> None:
    for end in ("close", "signal"):
        process = subprocess.Popen(
            [sys.executable, "-m", "mcpgym_clients", "serve", "tic-tac-toe", "--stdio"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }}  # fmt: skip
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        started = time.monotonic()
        if end == "close":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) in (0, 130)
        assert time.monotonic() - started < 12
        assert b"Traceback" not in (process.stderr.read() if process.stderr else b"")
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                stream.close()


SHELL = """
import subprocess
from typing import Annotated

from mcpgym import Environment, Task, tool

STARTED = subprocess.run(["env"], capture_output=True, text=True).stdout


class Shell(Environment):
    name = "shell"

    def tasks(self, split):
        return [Task(f"{split}-0", split, [{"role": "user", "content": "Run things."}])]

    def reset(self, task, seed):
        return {}

    @tool
    def run(self, state: dict, command: Annotated[str, "The command."]) -> str:
        \"\"\"Run a command.\"\"\"
        return STARTED + subprocess.run(command.split(), capture_output=True, text=True).stdout
"""


def test_case_25_what_a_tool_starts_does_not_inherit_the_control_secret(served: Callable, tmp_path: Path) -> None:
    from mcp import Client

    (tmp_path / "shell.py").write_text(SHELL)
    secret = "a-secret-for-evaluators-alone"
    _, said = served("shell:Shell", "--port", "0", MCPGYM_CONTROL_SECRET=secret, MCPGYM_CONTROL_SECRET_FILE="/nowhere")

    async def read() -> str:
        async with Client(f"{players_url(said)}/shell/mcp") as client:
            started = await client.call_tool("start_episode", {})
            handle = started.content[0].text.split()[1]  # type: ignore[union-attr]
            answer = await client.call_tool("run", {"episode": handle, "command": "env"})
            return str(answer.content[0].text)  # type: ignore[union-attr]

    found = asyncio.run(read())
    assert "PATH=" in found
    assert secret not in found
    assert "MCPGYM_CONTROL" not in found


def test_with_episode_urls_only_a_policy_cannot_practise_at_another_address(served: Callable) -> None:
    secret = "a-secret-for-evaluators-alone"
    _, said = served(
        "tic-tac-toe", "--port", "0", "--control-port", "0", "--episode-urls-only", MCPGYM_CONTROL_SECRET=secret
    )
    assert "/e/TOKEN/mcp, the URL of an episode" in said
    players, control = re.findall(r"http://127\.0\.0\.1:\d+", said)
    body = json.dumps({"environment": "tic-tac-toe", "split": "test", "index": 0}).encode()
    headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
    with urlopen(Request(f"{control}/control/v1/episodes", body, headers)) as answer:
        episode = json.load(answer)
    assert asyncio.run(tool_names(episode["url"])) == ["play"]
    for path in ("/mcp", "/tic-tac-toe/mcp"):
        with pytest.raises(HTTPError, match="404"):
            urlopen(Request(players + path, b"{}", {"content-type": "application/json"}))


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are read on Linux alone")
def test_case_9_a_server_may_hold_as_many_connections_as_the_system_allows(tmp_path: Path) -> None:
    command = f'ulimit -Sn 64; exec "{sys.executable}" -m mcpgym_clients serve tic-tac-toe --port 0'
    with subprocess.Popen(
        ["sh", "-c", command], stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "Stop with" in line:
                break
        soft, hard = psutil.Process(process.pid).rlimit(psutil.RLIMIT_NOFILE)
        process.terminate()
        assert soft == hard

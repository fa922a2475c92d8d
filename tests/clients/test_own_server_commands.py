"""A server of one's own in every command: by name, by ``serve --fastmcp``, and by ``wrap``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpgym.combined.naming import is_combined
from mcpgym.errors import ConfigurationError
from mcpgym.own_server.naming import is_brought
from mcpgym.own_server.specs import command_name, spec_class
from mcpgym.own_server.task_file import read_tasks
from mcpgym.registry import environment_class, load_environment
from mcpgym_clients.cli import main

TOY = Path(__file__).parents[1] / "server" / "own_server_toy.py"
NOTES = '''
from fastmcp import FastMCP

def make_server():
    server, notes = FastMCP("notes"), {}

    @server.tool
    def write(title: str, text: str) -> str:
        """Write a note."""
        notes[title] = text
        return f"{len(notes)} notes"

    return server, notes

server = FastMCP("module level")
'''
REWARDS = '''
from mcpgym import reward

@reward
def kept(episode, task):
    """1 if the note is there."""
    return float(task.info.get("title") in episode.state)

@reward(weight=0)
async def counted(calls):
    return float(len(calls) > 0)

def is_done(episode):
    return "end" in episode.state
'''
TASKS = [
    {
        "prompt": "Write a.",
        "info": {"title": "a"},
        "setup": [{"tool": "write", "arguments": {"title": "b", "text": ""}}],
    },
    {"id": "second", "split": "train", "prompt": [{"role": "user", "content": "Write b."}], "info": {"title": "b"}},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "brought_notes.py").write_text(NOTES)
    (tmp_path / "brought_rewards.py").write_text(REWARDS)
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)))
    (tmp_path / "script.json").write_text('[{"name": "write", "arguments": {"title": "a", "text": "x"}}, "done"]')
    yield tmp_path
    for name in ("brought_notes", "brought_rewards"):
        sys.modules.pop(name, None)
    spec_class.cache_clear()


SPEC = "fastmcp:brought_notes:make_server"
REWARDED = "brought_rewards"
CONFIG = ["--config", "tasks=tasks.jsonl", "--config", "rewards=brought_rewards"]


def test_it_is_evaluated_shown_and_replayed_by_its_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", SPEC, "-p", "script:script.json", *CONFIG, "--out", "runs/a"]) == 0
    trace = json.loads((folder / "runs" / "a" / "traces.jsonl").read_text())
    assert (trace["environment"], trace["score"]["total"]) == ("brought-notes", 1.0)
    assert [call["result"] for call in trace["calls"]] == ["2 notes"], (
        "the setup came first, and is no call of the policy's"
    )
    assert main(["replay", "runs/a", "--env", SPEC]) == 2, "a file does not decide what is read"
    assert main(["replay", "runs/a", "--env", SPEC, "--trust"]) == 0
    assert "replays equal" in capsys.readouterr().out


def test_a_name_may_be_wished_for(folder: Path) -> None:
    assert environment_class(SPEC).name == "brought-notes"
    assert load_environment("fastmcp@my-notes:brought_notes:make_server").name == "my-notes"
    for wrong in ("fastmcp@a b:x:y", "fastmcp@:brought_notes:make_server"):
        with pytest.raises(ConfigurationError):
            environment_class(wrong)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python my_server.py --port 3", "my-server"),
        ("npx -y @modelcontextprotocol/server-memory", "server-memory"),
        ("uvx mcp-server-time@latest", "mcp-server-time"),
        ("/usr/bin/python3.11 -m weather", "weather"),
        ("node /srv/bank/index.js", "bank"),
        ("uv run python -u", "server"),
    ],
)
def test_a_command_is_called_after_its_server(command: str, name: str) -> None:
    assert command_name(command.split()) == name


def test_a_brought_name_is_no_combination_whatever_is_in_it() -> None:
    assert is_brought("stdio:python a+b.py --config=x.toml")
    assert not is_combined("stdio:python a+b.py --config=x.toml")
    assert not is_brought("tic-tac-toe")
    assert not is_brought("module:Class")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "tasks:1: is no JSON"),
        ("[]", "tasks:1: is list, not an object"),
        ('{"prompt": "x", "answer": 4}', "has 'answer'; a task has: id, split, prompt, info, setup"),
        ("{}", "prompt is a text, or a list of chat messages"),
        ('{"prompt": [{"role": "x", "content": ""}]}', "a message of its prompt has the role 'x'"),
        ('{"prompt": "x", "info": []}', "info is list, not an object"),
        ('{"prompt": "x", "setup": [{"name": "y"}]}', "setup is a list of calls"),
        ('{"prompt": "x", "split": 4}', "split is 4; it is a text"),
        ('{"prompt": "x", "id": "i"}\n{"prompt": "x", "id": "i"}', "tasks:2: line 1 has the id 'i' too"),
        ("", "has no task; write one a line"),
    ],
    ids=range(10),
)
def test_a_broken_line_of_tasks_is_told_with_its_place(line: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text(line)
    with pytest.raises(ConfigurationError, match=told):
        read_tasks(tmp_path / "tasks")
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        read_tasks(tmp_path / "other")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["serve", "--fastmcp", "brought_notes"], "write MODULE:FACTORY"),
        (["serve", "--fastmcp", "brought_notes:server"], "each episode needs a server of its own"),
        (["serve", "--fastmcp", "no_such_module:x"], "cannot be imported"),
        (["serve", "tic-tac-toe", "--tasks", "tasks.jsonl"], "belongs to a server of your own, and none is served"),
        (
            ["serve", "--fastmcp", "brought_notes:make_server", "--rewards", "brought_notes"],
            "brought_notes has no reward",
        ),
        (["wrap", "no-such-program"], "there is no program 'no-such-program'"),
        (["eval", SPEC, "-p", "random", "--config", "hide=wrte"], "did you mean 'write'"),
    ],
    ids=["no factory", "a server", "no module", "whose tasks", "no rewards", "no program", "no tool"],
)
def test_mistakes_end_in_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(words) == 2
    assert told in capsys.readouterr().err


async def _play(address: Any, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """One game over bare MCP; what was answered."""
    from mcp.client.client import Client

    async with Client(address) as client:
        assert (await client.list_tools()).tools[0].name == "start_episode"
        started = (await client.call_tool("start_episode", {})).content[0].text
        handle = started.split()[1]
        answers = [started]
        for name, arguments in calls:
            answers.append((await client.call_tool(name, {"episode": handle, **arguments})).content[0].text)
        return answers


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fastmcp", "wrap"])
def test_it_is_served_over_http(folder: Path, how: str) -> None:
    words = {
        "fastmcp": ["serve", "--fastmcp", "brought_notes:make_server", "--tasks", "tasks.jsonl", "--rewards", REWARDED],
        "wrap": ["wrap", "--port", "0", "--name", "toy", sys.executable, "-I", "-S", str(TOY)],
    }[how]  # fmt: skip
    words += ["--port", "0"] if how == "fastmcp" else []
    command = [sys.executable, "-m", "mcpgym_clients", *words]
    variables = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables)
    try:
        assert server.stdout is not None
        address = ""
        for line in server.stdout:
            found = [word for word in line.split() if word.startswith("http://127.0.0.1:")]
            if found:
                address = found[0].rstrip("/")
                break
        address = address if address.endswith("/mcp") else f"{address}/mcp"
        calls = {"fastmcp": ("write", {"title": "x", "text": "y"}), "wrap": ("add", {"word": "x"})}
        started, answer = asyncio.run(_play(address, calls[how]))
        assert answer in ("1 notes", "2 notes", "1 words")
        assert "episode: " in started
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=30)
        server.stdout.close()  # type: ignore[union-attr]


@pytest.mark.slow
def test_it_is_served_over_stdio(folder: Path) -> None:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = ["-m", "mcpgym_clients", "wrap", "--stdio", sys.executable, "-I", "-S", str(TOY)]
    with (folder / "log").open("w") as log:
        server = stdio_client(StdioServerParameters(command=sys.executable, args=words), errlog=log)
        assert asyncio.run(_play(server, ("add", {"word": "x"})))[1] == "1 words"


def test_its_name_is_shown_as_it_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    from mcpgym_clients.console import _console

    _console.cache_clear()
    _console(False).print("fastmcp:notebook:make_server")
    _console.cache_clear()
    assert capsys.readouterr().out == "fastmcp:notebook:make_server\n"

"""Claude Code, the real one and offline, on our servers as ``mcpgym connect`` wrote them down, by stdio.

Only its model is ours: a function that reads what it is shown. ``test_clients_play.py`` has it play by URL too.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.real_clients.claude_code import ask, bundled
from tests.real_clients.fake_messages_api import Block, calls, results, says

from mcpgym.schema import schema_hash
from mcpgym_environments.tic_tac_toe import TicTacToe

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bundled() is None, reason="claude-agent-sdk brings no Claude Code for this machine"),
]


def listed(requests: Sequence[Mapping[str, Any]], server: str) -> list[dict[str, Any]]:
    """The tools of ``server`` as the model saw them, without the prefix that Claude Code gives them."""
    prefix = f"mcp__{server}__"
    return [
        {
            "name": tool["name"].removeprefix(prefix),
            "description": tool["description"],
            "inputSchema": tool["input_schema"],
        }
        for tool in requests[-1]["tools"]
        if tool["name"].startswith(prefix)
    ]


def first_free_cell(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Sequence[Block]:
    """Play the lowest free cell until the game is over."""
    got = results(messages)
    if got and "Game over" in got[-1]:
        return [says(got[-1].split("\n")[0])]
    free = re.findall(r"free ([0-8])", got[-1] if got else "")
    return [calls("mcp__game__play", {"position": int(free[0]) if free else 4}, len(got) + 1)]


def connected(written: Path, *words: str) -> dict[str, Any]:
    """The servers that ``mcpgym connect claude-code`` wrote into a file."""
    connect = [sys.executable, "-m", "mcpgym_clients", "connect", "claude-code", *words, "--write", "--file", written]
    subprocess.run(connect, check=True, timeout=60, capture_output=True)
    return json.loads(written.read_text())["mcpServers"]


def test_it_plays_a_whole_game_by_stdio_as_connect_wrote_it(tmp_path: Path) -> None:
    servers = connected(tmp_path / "my servers.json", "tic-tac-toe", "--split", "test", "--name", "game")
    said, requests = asyncio.run(ask("Play.", servers, first_free_cell, tmp_path / "a home"))
    assert "Game over" in said["result"]
    assert schema_hash(listed(requests, "game")) == TicTacToe.schema_hash


def test_it_has_a_safe_notebook_in_the_python_sandbox(tmp_path: Path) -> None:
    script = [
        ("run_python", {"code": "import sys\nprimes = [n for n in range(2, 60) if all(n % d for d in range(2, n))]"}),
        ("write_file", {"path": "note.txt", "text": "kept between calls\n"}),
        ("run_python", {"code": "print(open('note.txt').read(), end='')\nsum(primes)"}),
        ("run_python", {"code": "open('/etc/shadow')"}),
    ]

    def brain(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Sequence[Block]:
        done = len(results(messages))
        if done == len(script):
            return [says("\n".join(results(messages)))]
        name, arguments = script[done]
        return [calls(f"mcp__notebook__{name}", arguments, done)]

    words = ["python-sandbox", "--config", "tasks=open", "--split", "test", "--index", "0", "--name", "notebook"]
    said, requests = asyncio.run(ask("How much?", connected(tmp_path / "s.json", *words), brain, tmp_path / "home"))
    assert "kept between calls\n440" in said["result"]
    assert "FileNotFoundError" in said["result"]
    assert {"run_python", "read_file", "list_files"} <= {tool["name"] for tool in listed(requests, "notebook")}

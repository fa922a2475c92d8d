"""Agent products, the real ones and offline, play under ``mcpgym eval --agent``; only their models are ours."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.real_clients.claude_code import bundled
from tests.real_clients.fake_endpoints import FakeEndpoints
from tests.real_clients.fake_messages_api import Block, FakeMessagesAPI, calls, results, says

from mcpgym_rl.traces import read_traces

pytestmark = pytest.mark.slow
KEY = "a-key-of-the-tests"


def first_free_cell(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Sequence[Block]:
    got = results(messages)
    if got and "Game over" in got[-1]:
        return [says("That was it.")]
    free = re.findall(r"free ([0-8])", got[-1] if got else "")
    name = next(tool["name"] for tool in tools if tool["name"].endswith("play"))
    thought = says("<think>The first free cell will do.</think>")
    return [thought, calls(name, {"position": int(free[0]) if free else 4}, len(got) + 1)]


async def mcpgym(folder: Path, *words: str) -> str:
    """What the command printed; it ends with 0."""
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), KEY)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcpgym_clients", *words),
        cwd=folder,
        env={**os.environ, **keys, "COLUMNS": "140", "TERM": "dumb"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, (out.decode(), err.decode())
    return out.decode()


def whole_games(folder: Path, agent: str, version: str, count: int) -> None:
    traces = read_traces(folder / "traces.jsonl")
    assert len(traces) == count
    for trace in traces:
        assert (trace.stop_reason, trace.error) == ("done", None)
        assert trace.score is not None
        assert trace.score.components["format"] == 1.0, "what it wrote beside its calls is in the transcript"
        assert trace.agent["name"] == agent
        assert re.match(version, trace.agent["version"])
        assert trace.agent["last_words"] == "That was it."
        assert trace.usage.completion_tokens > 0
        assert not trace.agent.get("untold_calls")
        assert not trace.agent.get("not_sent")
    assert KEY not in (folder / "traces.jsonl").read_text() + (folder / "run.json").read_text()


@pytest.mark.skipif(bundled() is None, reason="claude-agent-sdk brings no Claude Code for this machine")
def test_claude_code_plays_and_is_told_apart_from_our_loop_with_the_same_model(tmp_path: Path) -> None:
    async def play() -> tuple[str, list[dict[str, Any]]]:
        async with FakeMessagesAPI(first_free_cell) as api:
            model = ["-p", f"anthropic:claude-sonnet-4-5@{api.address}", "-n", "3"]
            await mcpgym(tmp_path, "eval", "tic-tac-toe", "--agent", "claude-code", *model, "--out", "product")
            products = list(api.requests)
            await mcpgym(tmp_path, "eval", "tic-tac-toe", "--agent", "loop", *model, "--out", "loop")
        await mcpgym(tmp_path, "replay", "product")
        await mcpgym(tmp_path, "verify", "product")
        return await mcpgym(tmp_path, "compare", "loop", "product", "--json", "c.json"), products

    said, requests = asyncio.run(play())
    whole_games(tmp_path / "product", "claude-code", r"2\.", 3)
    assert {tool["name"] for asked in requests for tool in asked["tools"]} == {"mcp__environment__play"}
    assert "the model is claude-sonnet-4-5 in both" in " ".join(said.split())
    found = json.loads((tmp_path / "c.json").read_text())
    assert [(run["agent"], run["model"]) for run in found["runs"]] == [
        ("loop", "claude-sonnet-4-5"),
        ("claude-code", "claude-sonnet-4-5"),
    ]
    assert found["comparisons"][0]["paired_by"] == "episode"
    assert found["comparisons"][0]["equal_games"] == 3


@pytest.mark.skipif(find_spec("agents") is None, reason="openai-agents is not installed")
def test_openai_agents_plays(tmp_path: Path) -> None:
    async def play() -> None:
        async with FakeEndpoints() as api:
            model = f"openai-responses:gpt-5@{api.address}/v1"
            words = ["--agent", "openai-agents", "-p", model, "-n", "2", "--out", "run"]
            await mcpgym(tmp_path, "eval", "tic-tac-toe", *words)

    asyncio.run(play())
    whole_games(tmp_path / "run", "openai-agents", r"0\.", 2)


@pytest.mark.parametrize(
    ("agent", "model"),
    [("codex", "openai-responses:gpt-5-codex@{}/v1"), ("gemini", "gemini:gemini-2.5-flash@{}")],
    ids=["codex", "gemini"],
)
def test_a_command_line_from_npm_plays_where_it_is_installed(tmp_path: Path, agent: str, model: str) -> None:
    if shutil.which(agent) is None:
        pytest.skip(f"{agent} is not installed")

    async def play() -> list[dict[str, Any]]:
        async with FakeEndpoints() as api:
            words = ["--agent", agent, "-p", model.format(api.address), "-n", "2", "--out", "run"]
            await mcpgym(tmp_path, "eval", "tic-tac-toe", *words)
            return api.requests

    requests = asyncio.run(play())
    whole_games(tmp_path / "run", agent, r"0\.", 2)
    assert "shell" not in json.dumps([asked["tools"] for asked in requests])

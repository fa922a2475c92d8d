"""Agent products, the real ones and offline, play under ``mcpgym eval --agent``; only their models are ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.real_clients.claude_code import bundled
from tests.real_clients.fake_endpoints import FakeEndpoints
from tests.real_clients.fake_messages_api import Block, FakeMessagesAPI, calls, results, says

from mcpgym_clients import console
from mcpgym_clients.cli import main
from mcpgym_rl.traces import read_traces

pytestmark = pytest.mark.slow
KEY = "a-key-of-the-tests"
Api = TypeVar("Api", FakeMessagesAPI, FakeEndpoints)


def first_free_cell(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Sequence[Block]:
    got = results(messages)
    if got and "Game over" in got[-1]:
        return [says("That was it.")]
    free = re.findall(r"free ([0-8])", got[-1] if got else "")
    name = next(tool["name"] for tool in tools if tool["name"].endswith("play"))
    thought = says("<think>The first free cell will do.</think>")
    return [thought, calls(name, {"position": int(free[0]) if free else 4}, len(got) + 1)]


@pytest.fixture
def mcpgym(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the command line in this process, in an empty folder: what it printed; it ends with 0."""
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("COLUMNS", "140")
    console._console.cache_clear()

    def run(*words: str) -> str:
        code = main(words)
        printed = capfd.readouterr()
        assert code == 0, printed
        return printed.out

    return run


@contextlib.contextmanager
def served(api: Api) -> Iterator[Api]:
    """A fake API at work in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(api.__aenter__(), loop).result(30)
    try:
        yield api
    finally:
        asyncio.run_coroutine_threadsafe(api.__aexit__(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


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
def test_claude_code_plays_and_is_told_apart_from_our_loop_with_the_same_model(
    mcpgym: Callable[..., str], tmp_path: Path
) -> None:
    with served(FakeMessagesAPI(first_free_cell)) as api:
        model = ["-p", f"anthropic:claude-sonnet-5@{api.address}", "-n", "3"]
        mcpgym("eval", "tic-tac-toe", "--agent", "claude-code", *model, "--out", "product")
        requests = list(api.requests)
        mcpgym("eval", "tic-tac-toe", "--agent", "loop", *model, "--out", "loop")
    mcpgym("replay", "product")
    mcpgym("verify", "product")
    said = mcpgym("compare", "loop", "product", "--json", "c.json")
    whole_games(tmp_path / "product", "claude-code", r"2\.", 3)
    assert {tool["name"] for asked in requests for tool in asked["tools"]} == {"mcp__environment__play"}
    assert "the model is claude-sonnet-5 in both" in " ".join(said.split())
    found = json.loads((tmp_path / "c.json").read_text())
    assert [(run["agent"], run["model"]) for run in found["runs"]] == [
        ("loop", "claude-sonnet-5"),
        ("claude-code", "claude-sonnet-5"),
    ]
    assert found["comparisons"][0]["paired_by"] == "episode"
    assert found["comparisons"][0]["equal_games"] == 3


@pytest.mark.skipif(find_spec("agents") is None, reason="openai-agents is not installed")
def test_openai_agents_plays(mcpgym: Callable[..., str], tmp_path: Path) -> None:
    with served(FakeEndpoints()) as api:
        words = ["--agent", "openai-agents", "-p", f"openai-responses:gpt-5@{api.address}/v1", "-n", "1"]
        mcpgym("eval", "tic-tac-toe", *words, "--out", "run")
    whole_games(tmp_path / "run", "openai-agents", r"0\.", 1)


@pytest.mark.parametrize(
    ("agent", "model"),
    [("codex", "openai-responses:gpt-5-codex@{}/v1"), ("gemini", "gemini:gemini-2.5-flash@{}")],
    ids=["codex", "gemini"],
)
def test_a_command_line_from_npm_plays_where_it_is_installed(
    mcpgym: Callable[..., str], tmp_path: Path, agent: str, model: str
) -> None:
    if shutil.which(agent) is None:
        pytest.skip(f"{agent} is not installed")
    with served(FakeEndpoints()) as api:
        words = ["--agent", agent, "-p", model.format(api.address), "-n", "2", "--out", "run"]
        mcpgym("eval", "tic-tac-toe", *words)
    whole_games(tmp_path / "run", agent, r"0\.", 2)
    assert "shell" not in json.dumps([asked["tools"] for asked in api.requests])

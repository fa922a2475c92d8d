"""``mcpgym eval`` with ``anthropic:`` and ``openai-responses:``, against fakes as strict as the real APIs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fake_apis.messages import MessagesAPI, reply, thought, use
from tests.fake_apis.responses import ResponsesAPI, function_call, reasoning, response
from tests.fake_apis.serving import Fault, Json, serving

from mcpgym_clients.prices import price_of
from mcpgym_environments.tic_tac_toe import TicTacToe
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.endpoint import EndpointPolicy

KINDS = ["anthropic", "openai-responses"]


def free_cell(shown: str) -> int:
    """The lowest free cell of the last board that was shown; the middle one where none is."""
    return int(found[-1]) if (found := re.findall(r"free ([0-8])", shown)) else 4


def claude(body: Json) -> Json:
    """Thinks, and takes a free cell."""
    last = body["messages"][-1]["content"][-1]
    cell = free_cell(last.get("content") or last.get("text"))
    made = f"{len(body['messages'])}_{hash(json.dumps(body['messages'])) & 0xFFFFFF:x}"
    return reply(thought(f"Cell {cell}.", made), use("play", {"position": cell}, f"toolu_{made}"))


def gpt(body: Json) -> Json:
    """Reasons, and takes a free cell."""
    last = body["input"][-1]
    cell = free_cell(last.get("output") or last.get("content"))
    made = f"{len(body['input'])}_{hash(json.dumps(body['input'])) & 0xFFFFFF:x}"
    return response(reasoning(made), function_call("play", json.dumps({"position": cell}), f"call_{made}"))


def fake(kind: str, *before: Any) -> Any:
    """The API with such a model, which fails at first where it is told to."""
    return serving(MessagesAPI(), *before, claude) if kind == "anthropic" else serving(ResponsesAPI(), *before, gpt)


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_evaluation(kind: str, command: Callable[..., tuple], tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('["m"]\ninput = 2.0\ncached_input = 1.0\noutput = 10.0\n')
    options = ["-n", "8", "--concurrency", "4", "--prices", "prices.toml", "--retries", "3", "--out", "run"]
    with fake(kind, Fault(529), Fault(429)) as api:
        code, out, err = command("eval", "tic-tac-toe", "-p", f"{kind}:m@{api.url}", *options)
    assert code == 0, err
    assert api.refused == []
    traces = [json.loads(line) for line in (tmp_path / "run" / "traces.jsonl").read_text().splitlines()]
    assert {trace["stop_reason"] for trace in traces} == {"done"}
    assert {trace["schema_hash"] for trace in traces} == {TicTacToe.schema_hash}
    assert {trace["policy"] for trace in traces} == {f"{kind}:m@{api.url}"}
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    requests = len(api.requests) - 2
    assert summary["tokens"] == {"prompt": 11 * requests, "completion": 5 * requests}
    assert summary["cost"]["usd"] == pytest.approx(requests * (9 * 2 + 2 * 1 + 5 * 10) / 1e6)
    assert f"{kind}:m@" in out
    assert command("replay", "run")[0] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_goes_on_and_asks_for_nothing_twice(
    kind: str, command: Callable[..., tuple], tmp_path: Path
) -> None:
    with fake(kind) as api:
        words = ["eval", "tic-tac-toe", "-p", f"{kind}:m@{api.url}", "-n", "30", "--concurrency", "2", "--out", "run"]
        traces = tmp_path / "run" / "traces.jsonl"
        with subprocess.Popen(
            [sys.executable, "-m", "mcpgym_clients", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as running:
            deadline = time.monotonic() + 60
            while not (traces.exists() and traces.read_bytes().count(b"\n") >= 3) and time.monotonic() < deadline:
                assert running.poll() is None
                time.sleep(0.002)
            running.send_signal(signal.SIGKILL)
        kept = traces.read_bytes().count(b"\n")
        assert 3 <= kept < 30
        code, _, err = command("eval", "--resume", "run")
    assert (code, api.refused) == (0, []), err
    lines = [json.loads(line) for line in traces.read_text().splitlines()]
    assert sorted(line["place"] for line in lines) == list(range(30))
    assert {line["stop_reason"] for line in lines} == {"done"}


@pytest.mark.parametrize(
    ("spec", "provider"),
    [("anthropic:claude-sonnet-4-5", "anthropic, claude-sonnet-4-5"), ("openai-responses:gpt-5", "openai, gpt-5")],
)
def test_prices_are_known_by_the_providers_own_address_alone(
    spec: str, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    here, there = make_policy(spec), make_policy(f"{spec}@http://127.0.0.1:9")
    assert isinstance(here, EndpointPolicy)
    assert isinstance(there, EndpointPolicy)
    price = price_of(here, None)
    assert price is not None
    assert price.source.endswith(provider)
    assert 0 < price.cached_input < price.input < price.output
    assert price_of(there, None) is None


def test_the_command_line_names_them(command: Callable[..., tuple], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    for wrong, says in [
        ("anthropic:claude", "https://api.anthropic.com needs a key: set ANTHROPIC_API_KEY"),
        ("anthropc:claude", "did you mean 'anthropic'"),
        ("antropic", "anthropic:MODEL, "),
        ("openai-responses:", "write openai-responses:MODEL[@BASE_URL]"),
    ]:
        code, _, err = command("eval", "tic-tac-toe", "-p", wrong)
        assert (code, says in err) == (2, True), err

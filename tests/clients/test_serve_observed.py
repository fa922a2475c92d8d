"""A server that is watched: its log as JSON, its telemetry when it is interrupted, and ``mcpgym top``."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.server.episode_toys import lab
from tests.server.telemetry_backend import attributes, backend

from mcpgym.control_client import HttpControl
from mcpgym.json_lines import JsonLines
from mcpgym.metrics import LoopLag, Metrics
from mcpgym.telemetry import switch
from mcpgym.telemetry.spans import digest
from mcpgym_clients.top.figures import between, percentile, read
from mcpgym_clients.top.table import picture

SECRET = "a-secret-of-this-test-alone"
SEED = 918_273_645_546_372


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET", SECRET)
    return tmp_path


def mcpgym(*words: str, cwd: Path, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=os.environ | {"COLUMNS": "100"}, **more,
    )  # fmt: skip


async def play(address: str) -> str:
    async with HttpControl(address, SECRET) as control:
        from mcpgym.control import Call

        opened = await control.open("tic-tac-toe", split="test", index=0, seed=SEED)
        await control.step([Call(opened.token, "play", {"position": "what was argued"})])
        await control.step([Call(opened.token, "no-such-tool-but-a-text", {})])
        await control.score(opened.token, [{"role": "user", "content": "what was said"}])
        return opened.token


def test_a_server_is_watched_by_log_traces_and_top_until_it_is_interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server for all of it: a process costs seconds."""
    with backend() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        server = mcpgym("serve", "tic-tac-toe", "--port", "0", "--log-format", "json", cwd=folder)
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
        assert server.stderr is not None
        first = server.stderr.readline()
        began = json.loads(first)
        watch = mcpgym("top", "--server", began["url"], "--interval", "0.3", "--json", cwd=folder)
        once = mcpgym("top", "--server", began["url"], "--interval", "2.5", "--once", cwd=folder)
        try:
            assert watch.stdout is not None
            assert json.loads(watch.stdout.readline())["calls_per_second"] == 0
            token = asyncio.run(play(began["control"]))
            until = time.monotonic() + 20
            while time.monotonic() < until:
                seen = json.loads(watch.stdout.readline())
                if seen["environments"][0]["calls"] == 2:
                    break
            assert (seen["environments"][0]["errors"], seen["episodes_live"]) == (2, 1)
            assert seen["calls_per_second"] > 0
            shown, said = once.communicate(timeout=30)
            assert once.returncode == 0, said
            assert re.search(r"tic-tac-toe +1 ", shown), shown
            server.send_signal(signal.SIGINT)
            _, log = server.communicate(timeout=30)
            assert server.returncode == 130
            while "trouble" not in seen or seen["trouble"] is None:
                seen = json.loads(watch.stdout.readline())
            assert "waiting for it" in seen["trouble"]
            assert "calls_per_second" not in seen
            watch.send_signal(signal.SIGINT)
            _, said = watch.communicate(timeout=30)
            assert (watch.returncode, said) == (0, "")
        finally:
            for process in (server, watch, once):
                process.kill()
                process.communicate(timeout=10)
    lines = [json.loads(line) for line in (first + log).splitlines()]
    assert [line["event"] for line in lines] == [
        "serving", "episode_opened", "call", "call", "episode_scored", "episode_ended",
    ]  # fmt: skip
    assert {line.get("episode") for line in lines[1:]} == {digest(token)}
    call = lines[2]
    assert call.keys() == {
        "time", "level", "event", "episode", "environment", "tool", "milliseconds", "outcome",
    }  # fmt: skip
    assert (call["environment"], call["tool"], call["outcome"]) == ("tic-tac-toe", "play", "error")
    assert lines[3]["tool"] == "_unknown"
    names = {span.name for span in found.spans}
    assert {"episode tic-tac-toe", "execute_tool play", "execute_tool _unknown", "reward outcome"} <= names
    assert found.services == {"mcpgym-serve"}
    assert "mcpgym.tool_call.duration" in found.metrics
    everything = (first + log + shown).encode() + found.raw
    for hidden in (token, SECRET, str(SEED), "what was argued", "what was said", "no-such-tool", "position"):
        assert hidden.encode() not in everything, hidden


def test_an_interrupted_evaluation_sends_what_it_has(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with backend() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        words = ("eval", "tic-tac-toe", "--policy", "random", "-n", "100", "-r", "1000", "--out", "run")
        evaluation = mcpgym(*words, cwd=folder)
        try:
            until = time.monotonic() + 30
            traces = folder / "run" / "traces.jsonl"
            while time.monotonic() < until and not (traces.is_file() and traces.stat().st_size):
                time.sleep(0.05)
            evaluation.send_signal(signal.SIGINT)
            _, said = evaluation.communicate(timeout=30)
        finally:
            evaluation.kill()
            evaluation.communicate(timeout=10)
    assert evaluation.returncode == 130, said
    written = [json.loads(line) for line in traces.read_text().splitlines()]
    rollouts = [attributes(span) for span in found.spans if span.name == "rollout tic-tac-toe"]
    assert len(rollouts) == len(written), "each trace that was written is a span that was sent"
    assert found.services == {"mcpgym-eval"}


def test_what_breaks_is_told_by_type_and_place_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("mcpgym")
    monkeypatch.setattr(switch, "events", True)
    monkeypatch.setattr(logger, "level", logging.INFO)
    logging.getLogger("mcpgym.events").manager._clear_cache()  # type: ignore[attr-defined]

    async def main() -> None:
        episodes = lab()
        for tool in ("crash", "crash_async", "crash_thread"):
            episode = await episodes.open("lab", split="train")
            await episode.call(tool, {"how": "error"})
            await episodes.close(episode.token)

    logger.addHandler(handler)
    try:
        asyncio.run(main())
    finally:
        logger.removeHandler(handler)
    said = written.getvalue()
    lines = [json.loads(line) for line in said.splitlines()]
    broken = [line for line in lines if line["level"] == "error"]
    assert [line["error"] for line in broken] == ["ValueError"] * 3
    assert all("episode_toys.py" in " ".join(line["where"]) for line in broken)
    assert broken[0]["message"] == "lab: task train-0: …"
    assert [line["outcome"] for line in lines if line["event"] == "episode_ended"] == ["failed"] * 3
    assert "secret-inside" not in said


@pytest.mark.parametrize(
    ("name", "template", "arguments", "said"),
    [
        ("mcpgym.episodes", "%s: %d of %.1f", ("tic-tac-toe", 3, 2.5), "tic-tac-toe: 3 of 2.5"),
        ("mcpgym.episodes", "reset failed: %s", (ValueError("the answer"),), "reset failed: ValueError"),
        ("mcpgym.wire", "of %s", ("0af7651916cd43dd8448eb211c80319c",), "of …"),
        ("mcpgym.wire", "of %s", ("two words",), "of …"),
        ("mcpgym.wire", "100 % of it", (), "100 % of it"),
        ("mcpgym.wire", "of %d", ("no number",), "of %d"),
        (
            "asyncio",
            "Task exception was never retrieved\nfuture: KeyError('x')",
            (),
            "Task exception was never retrieved",
        ),
        ("uvicorn.error", "Invalid request: b'the answer'", (), "Invalid request"),
    ],
)
def test_words_of_others_are_not_repeated(name: str, template: str, arguments: tuple[Any, ...], said: str) -> None:
    record = logging.LogRecord(name, logging.WARNING, "f.py", 1, template, arguments, None)
    assert json.loads(JsonLines().format(record))["message"] == said


def test_percentiles_of_buckets() -> None:
    buckets = {0.1: 50, 0.2: 90, 1.0: 100, float("inf"): 100}
    assert percentile(buckets, 0.5) == pytest.approx(0.1)
    assert percentile(buckets, 0.7) == pytest.approx(0.15)
    assert percentile(buckets, 0.99) == pytest.approx(0.92)
    assert percentile(buckets, 0.5, buckets) is None
    assert percentile({}, 0.5) is None
    assert percentile({0.1: 0, float("inf"): 4}, 0.5) == pytest.approx(0.1), "above all bounds: the last one"
    assert percentile({0.1: 4, float("inf"): 4}, 0.5, {0.1: 2, float("inf"): 2}) == pytest.approx(0.05)


@pytest.mark.flaky(reruns=1)  # it measures time
def test_what_is_shown_is_what_was_counted_at_any_width() -> None:
    async def main() -> tuple[str, str]:
        episodes = lab()
        metrics = Metrics(episodes, LoopLag())
        before = metrics.render().decode()
        episode = await episodes.open("lab", split="train")
        for _ in range(20):
            await episode.call("now", {})
        await episode.call("now", {"what": 7})
        return before, metrics.render().decode()

    before, after = asyncio.run(main())
    figures = between(read(before, 10.0), read(after, 12.0))
    (row,) = figures["environments"]
    assert (row["live"], row["calls"], row["errors"], row["calls_per_second"]) == (1, 21, 1, 10.5)
    assert 0 < row["p50_seconds"] <= row["p99_seconds"] < 1
    assert figures["memory_bytes"] > 1_000_000
    for width in (20, 30, 50, 80, 120):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(picture(figures, "http://127.0.0.1:8000", width, "gone\x1b[31m"))
        text = console.export_text()
        assert max(map(len, text.splitlines())) <= width
        assert "lab" in text
        assert "\x1b" not in text
        assert ("errors/s" in text) == (width >= 48)
    with pytest.raises(ValueError, match="no metrics of an mcpgym server"):
        read("# HELP x y\n# TYPE x gauge\nx 1\n", 0.0)


def test_top_ends_with_a_reason_where_there_is_no_server(command: Any, folder: Path) -> None:
    code, _, said = command("top", "--once", "--server", "http://127.0.0.1:9")
    assert code == 1
    assert "nothing answers there" in said

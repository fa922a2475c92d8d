"""Runs for the viewer's tests: real ones, a hostile one, a training run; and the page in a headless browser."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from mcpgym_clients.cli import main

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
EVIL = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\x1b[31m\u202e\u2028'\"`${1}"


def make_runs(folder: Path) -> Path:
    """An expert's, a random player's and a local model's run, words, a hostile trace, and a training run."""
    played = {"expert": 40, "random": 40, "local:default": 12}
    for policy, tasks in played.items():
        out = folder / policy.split(":")[0]
        assert main(["eval", "tic-tac-toe", "-p", policy, "-n", str(tasks), "--out", str(out)]) == 0
    assert main(["eval", "double-check", "-p", "expert", "-n", "4", "--out", str(folder / "words")]) == 0
    make_hostile(folder / "hostile")
    make_training(folder / "trained")
    return folder


def make_hostile(folder: Path) -> None:
    folder.mkdir()
    call = {"id": "c", "type": "function", "function": {"name": EVIL, "arguments": json.dumps({EVIL: EVIL})}}
    said = f"<think>{EVIL}</think>{EVIL}"
    trace = {
        "schema": "mcpgym.trace/1",
        **dict.fromkeys(("environment", "environment_version", "task", "split", "policy", "stop_reason"), EVIL),
        "seed": 1, "config": {EVIL: EVIL}, "schema_hash": EVIL, "calls": [],
        "messages": [
            {"role": "system", "content": EVIL},
            {"role": "user", "content": EVIL},
            {"role": "assistant", "content": said, "tool_calls": [call], "reasoning_content": "a"},
            {"role": "tool", "content": EVIL, "is_error": True, "tool_call_id": "c", "name": EVIL},
        ],
        "score": {"total": 0.5, "components": {EVIL: 0.5}, "game_outcome": EVIL},
        "error": {"kind": EVIL, "message": EVIL}, "prompt_messages": 2, "turns": 1,
    }  # fmt: skip
    (folder / "traces.jsonl").write_text(json.dumps(trace) + "\n")
    (folder / "certificate.json").write_text(
        json.dumps({"schema": "mcpgym.certificate/1", "policy": EVIL, "environment": EVIL, "regrets": [{"seat": EVIL}]})
    )


def make_training(folder: Path) -> None:
    (folder / "rl").mkdir(parents=True)
    (folder / "recipe.json").write_text('{"environment": "tic-tac-toe"}')
    rows = []
    for step in range(60):
        rows.append(
            {"step": step, "loss": 2 * math.exp(-step / 20), "reward": 1 - math.exp(-step / 15), "cpu_seconds": step}
        )
        rows[-1]["outcomes"] = {"win": step / 100, "draw": 0.2, "loss": 0.8 - step / 100}
        if step % 10 == 0:
            rows[-1]["certificate"] = {"lost_lines": 60 - step, "win": step / 80}
    (folder / "rl" / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    where = str(folder / "certificate.json")
    assert main(["certify", "tic-tac-toe", "-p", "random", "--seed", "1", "--out", where]) == 1


@contextlib.contextmanager
def served(*paths: Path, port: int = 0) -> Iterator[str]:
    """``mcpgym view`` as users run it: its address, while it runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", "view", *map(str, paths), "--port", str(port)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", said)
        assert found, said + (process.stderr.read() if process.poll() is not None and process.stderr else "")
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=20)


def find_browser() -> str:
    """The path of a Chromium; without one the viewer cannot be tested."""
    for name in (os.environ.get("MCPGYM_BROWSER", ""), *NAMES):
        if name and (found := shutil.which(name)):
            return found
    pytest.fail("there is no Chromium: run tests/install_browser.sh, or set MCPGYM_BROWSER to its path")


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        try:
            yield opened
        finally:
            opened.close()


def errors_on(page: Page) -> list[str]:
    """What will go wrong on a page from now on: its exceptions, and the errors on its console."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    return wrong

"""Wiki search: when an index is built, how long the first episode takes, and what many at once need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

FIRST = """
import asyncio, json, time
from mcpgym import load_environment
from mcpgym.episodes import Episodes
async def first(episodes):
    began = time.process_time(), time.perf_counter()
    await (await episodes.open("wiki-search", split="test", index=0, seed=0)).call("search_pages", {"query": "river"})
    return time.process_time() - began[0]
async def main():
    taken = [await first(Episodes({"wiki-search": load_environment("wiki-search")})) for _ in range(2)]
    print(json.dumps(taken))
asyncio.run(main())
"""


def run(*command: str, cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=110,
        env=os.environ | {"MCPGYM_CACHE": str(cache), "PYTHONPATH": str(HERE)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_to_list_it_builds_nothing(tmp_path: Path) -> None:
    shown = run("-m", "mcpgym_clients", "list", "wiki-search", cache=tmp_path / "cache")
    assert "search_pages" in shown
    assert not (tmp_path / "cache").exists()


def test_the_first_episode_begins_in_seconds_and_the_next_process_in_less(tmp_path: Path) -> None:
    cold, again = json.loads(run("-c", FIRST, cache=tmp_path))
    warm, _ = json.loads(run("-c", FIRST, cache=tmp_path))
    assert cold < 6  # CPU-seconds; under 2 on a quiet machine
    assert again < 0.2
    assert warm < cold


def test_a_library_is_built_by_a_command_that_says_what_was_wrong(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# Oder\n\nA river.")
    (notes / "b.md").write_text("# Oder\n\nAnother.")
    told = run("-m", "mcpgym_environments.wiki_search", f"corpus=folder:{notes}", cache=tmp_path / "cache")
    assert ": 2 pages, searched by fts5; " in told
    assert "title" in told.splitlines()[1]
    command = [sys.executable, "-m", "mcpgym_environments.wiki_search", "corpus=folder:/no/such/place"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")


FORKED = """
import asyncio, os
from mcpgym_environments.wiki_search.looking import apart
assert asyncio.run(apart(len, "abc")) == 3
if child := os.fork():
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    os._exit(asyncio.run(asyncio.wait_for(apart(len, "abcde"), 10)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_is_forked_looks_things_up_too(tmp_path: Path) -> None:
    assert run("-c", FORKED, cache=tmp_path) == "5\n"


@pytest.mark.slow
def test_256_episodes_need_little_more_memory_than_one(tmp_path: Path) -> None:
    one, many = json.loads(run(str(HERE / "wiki_memory.py"), "2000", cache=tmp_path))
    assert many < 1.2 * one, (one, many)

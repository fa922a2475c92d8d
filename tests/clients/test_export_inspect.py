"""The task file for Inspect AI, really run: by ``inspect eval`` and by its mock model, on a server of ours."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from exported_policy import CAREFUL, policy_served
from exported_server import SECRET, Watched, played_here, watched_server

from mcpgym_clients.cli import main
from mcpgym_rl.traces import Trace

HERE = Path(__file__).parent
TASKS, SILENT = 12, 4
UNSCORED = "test-2"
IMPORTED = ("anthropic", "acp", "fastapi", "markdown_it", "mcp", "numpy", "openai")
"""What Inspect imports late, for whatever model: here once for all runs."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass
class Played:
    """What happened once: two of Inspect's logs, the server's view, and the same policy in our own loop."""

    folder: Path
    scripted: dict[str, Any]
    mocked: dict[str, Any]
    silent: dict[str, Any]
    watched: Watched
    ours: dict[tuple[str, int], Trace]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("inspect")
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield asyncio.run(_play(folder, monkeypatch))


async def _play(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    for name in ("tic-tac-toe", "reverse-text"):
        assert main(["export", "inspect", name, "--out", str(folder / f"{name}.py")]) == 0
    async with (
        watched_server(monkeypatch, folder / "key", "tic-tac-toe", "reverse-text") as watched,
        policy_served() as policy,
    ):
        watched.unscored = {("reverse-text", UNSCORED)}
        secret = folder / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MCPGYM_CONTROL")}
        given = clean | {"MCPGYM_CONTROL_SECRET_FILE": str(secret), "MCPGYM_SERVER": watched.control_url}
        given |= {"FAKE_API_KEY": "none", "FAKE_BASE_URL": policy}

        process = await asyncio.create_subprocess_exec(
            sys.executable, HERE / "entry_runner.py", "inspect", "inspect_ai._cli.main", *IMPORTED,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=given,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        async def run(*arguments: str, **more: str) -> None:
            asked = {"arguments": arguments, "environment": {}, "output": str(folder / "said"), **more}
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            code, _ = json.loads(await process.stdout.readline())
            assert code == 0, (folder / "said").read_text()[-4000:]

        shared = ("--log-format", "json", "--display", "none", "--max-samples", "12", "--log-dir", "a")
        await run("eval", "tic-tac-toe.py", "--model", f"openai-api/fake/{CAREFUL}", "--limit", "12", *shared)
        await run("tic-tac-toe.py", "reverse-text.py", call="inspect_mock:main")
        process.stdin.close()
        await process.wait()
        ours = await played_here("tic-tac-toe", f"openai:{CAREFUL}@{policy}", TASKS, 0, 1)
    logs = [
        json.loads(next((folder / name).glob("*.json")).read_text())
        for name in ("a", "mock-tic-tac-toe", "mock-reverse-text")
    ]
    return Played(folder, *logs, watched, ours)


def test_scores_are_those_of_our_own_loop(played: Played) -> None:
    for log, epochs in ((played.scripted, 1), (played.mocked, 2)):
        assert log["status"] == "success"
        assert len(log["samples"]) == TASKS * epochs
        for sample in log["samples"]:
            ours = played.ours[sample["id"], sample["epoch"] - 1].score
            assert ours is not None
            assert sample["scores"]["scored"]["value"] == {**ours.components, "total": ours.total}
    assert len({trace.score.total for trace in played.ours.values() if trace.score}) > 4


def test_means_are_those_of_every_component(played: Played) -> None:
    means = {one["name"]: one["metrics"]["mean"]["value"] for one in played.scripted["results"]["scores"]}
    totals = [trace.score.total for (_, seed), trace in played.ours.items() if seed == 0 and trace.score]
    assert set(means) == {"outcome", "format", "invalid_move", "total"}
    assert math.isclose(means["total"], math.fsum(total for total in totals if total is not None) / TASKS)


def test_each_sample_has_an_episode_of_its_own_which_is_closed(played: Played) -> None:
    assert not played.watched.live
    assert len(played.watched.episodes) == TASKS + 2 * TASKS + SILENT
    assert played.watched.most > 4


def test_a_turn_without_tools_is_scored_too(played: Played) -> None:
    totals = []
    for sample in played.silent["samples"]:
        if sample["id"] != UNSCORED:
            value = sample["scores"]["scored"]["value"]
            assert value["exact"] == 0
            assert 0 <= value["total"] < 0.5
            totals.append(value["total"])
    # and one that has no score is in the log with the reason, and in no mean
    (score,) = [sample["scores"]["scored"] for sample in played.silent["samples"] if sample["id"] == UNSCORED]
    assert re.search("the episode has no score: .*exact", score["explanation"])
    assert not isinstance(score["value"], dict) or "total" not in score["value"]
    means = {one["name"]: one for one in played.silent["results"]["scores"]}
    assert math.isclose(means["total"]["metrics"]["mean"]["value"], math.fsum(totals) / (SILENT - 1))
    assert (means["total"]["scored_samples"], means["total"]["unscored_samples"]) == (SILENT - 1, 1)


def test_the_secret_and_the_episodes_are_in_no_log(played: Played) -> None:
    looked_at = 0
    for path in played.folder.rglob("*"):
        if path.is_file() and path.name != "secret" and path.suffix != ".jsonl":
            looked_at += 1
            content = path.read_bytes()
            assert SECRET.encode() not in content, path
            assert not [token for token in played.watched.episodes if token.encode() in content], path
    assert looked_at > 5

"""The package for verifiers, really run: by verifiers' own eval, in a virtual environment of its own, on our server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from exported_policy import policy_served
from exported_server import SECRET, Watched, played_here, watched_server

from mcpgym_clients.cli import main
from mcpgym_rl.traces import Trace

HERE = Path(__file__).parent
PYTHON = Path(sys.prefix) / "verifiers" / "bin" / "python"
"""The Python that has verifiers; ``make test`` makes it from verifiers.txt."""
ROLLOUTS, AT_ONCE, TALKS = 64, 16, 6
FAILING = ("test-5", "test-17", "test-42")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON.exists(), reason="verifiers has a virtual environment of its own: make test"),
]


@dataclass
class Run:
    """One ``vf-eval``: its exit code, what it printed, and its trace of each task."""

    code: int
    text: str
    episodes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def reward(self, task: str) -> float:
        """What verifiers makes of the rewards."""
        return sum(one["score"] * one["weight"] for one in self.episodes[task]["traces"][0]["rewards"].values())


@dataclass
class Played:
    """Everything that happened once: the runs, the server's view, and the same policy in our own loop."""

    folder: Path
    first: Run
    resumed: Run
    again: Run
    source: dict[str, Any]
    refused: Sequence[Run]
    talk: Run
    talk_ours: dict[str, Trace]
    watched: Watched
    opened_before: int
    ours: dict[str, Trace]


class Evals:
    """verifiers' ``vf-eval``, as often as wanted."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, environment: dict[str, str]) -> None:
        self._process = process
        self._folder = folder
        self._environment = environment

    async def run(self, *arguments: str, name: str, environment: dict[str, str] | None = None) -> Run:
        """Run it; ``name`` is its run's."""
        output = self._folder / f"{name}.log"
        asked = {"arguments": arguments, "environment": self._environment | (environment or {}), "output": str(output)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        code, _ = json.loads(await self._process.stdout.readline())
        traces = self._folder / "outputs" / (name if name == "talk" else "run") / "traces.jsonl"
        rows = [json.loads(line) for line in traces.read_text().splitlines()] if traces.exists() else []
        return Run(code, output.read_text(), {row["task"]["key"]: row for row in rows})


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("verifiers")
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield asyncio.run(_play(folder, monkeypatch))


async def _play(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    site = _installed(folder)
    async with (
        watched_server(monkeypatch, folder / "key", "tic-tac-toe", "double-check", cut_every=9) as watched,
        policy_served() as policy,
    ):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("MCPGYM_", "PRIME_"))}
        places = f"{site}{os.pathsep}{folder / 'talk'}"
        process = await asyncio.create_subprocess_exec(
            PYTHON, HERE / "entry_runner.py", "vf-eval",
            "verifiers.v1.cli.eval.main", "verifiers.v1.tasksets", "mcpgym_tic_tac_toe",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, limit=2**20,
            env=clean | {"PYTHONPATH": places, "HOME": str(folder), "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        given = {"MCPGYM_CONTROL_SECRET": SECRET, "MCPGYM_SERVER": watched.control_url}
        evals = Evals(process, folder, given)
        try:
            watched.refuse = set(FAILING)
            endpoint = ("-m", "m", "--client.base-url", policy, "--no-push", "--no-rich", "--run.name", "run")
            proxied = ("--env.taskset.players", watched.proxy)
            size = ("-n", str(ROLLOUTS), "-c", str(AT_ONCE))
            first = await evals.run("mcpgym-tic-tac-toe", *size, *endpoint, *proxied, name="first")
            opened_before = len(watched.episodes)
            watched.refuse = set()
            resume = ("@", "outputs/run/configs/resolved/eval.json", "--resume")
            resumed = await evals.run(*resume, name="resumed")
            again = await evals.run(*resume, name="again")
            endpoint = (*endpoint[:-1], "talk")
            talk = await evals.run("mcpgym-double-check", "-n", str(TALKS), "-c", "4", *endpoint, name="talk")
            source = await _read_as_prime_rl_hands_it(evals, folder)
            other = ("mcpgym-tic-tac-toe", *endpoint[:-1], "other", "-n", "1")
            refused = await evals.run(*other, name="refused", environment={"MCPGYM_CONTROL_SECRET": "x" * 20})
            nobody = {"MCPGYM_SERVER": f"unix:{folder}/nobody"}
            refused_by_none = await evals.run(*other, name="nobody", environment=nobody)
            _change(folder / "talk" / "mcpgym_double_check" / "environment.json")
            other = ("mcpgym-double-check", *other[1:])
            changed = await evals.run(*other, name="changed")
            here = await played_here("tic-tac-toe", f"openai:m@{policy}", ROLLOUTS, 0)
            talk_here = await played_here("double-check", f"openai:m@{policy}", TALKS, 0)
            ours, talk_ours = ({task: trace for (task, _), trace in made.items()} for made in (here, talk_here))
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()
    refusals = (refused, refused_by_none, changed)
    return Played(folder, first, resumed, again, source, refusals, talk, talk_ours, watched, opened_before, ours)


def _change(path: Path) -> None:
    """As if the server's environment were another than the one that was exported."""
    exported = json.loads(path.read_text())
    path.write_text(json.dumps(exported | {"rewards": {**exported["rewards"], "old": 1.0}, "version": "0.1"}))


async def _read_as_prime_rl_hands_it(evals: Evals, folder: Path) -> dict[str, Any]:
    """What verifiers itself makes of a source of rl.toml, whose ``env`` and ``select`` are its own configuration."""
    exported = tomllib.loads((folder / "package" / "rl.toml").read_text())["orchestrator"]
    found = {}
    for group in ("train", "eval"):
        (source,) = exported[group]["source"]
        written = tomlkit.dumps({"env": source["env"], "select": source.get("select", {}), "run": {"name": group}})
        (folder / f"{group}.toml").write_text(written)
        run = await evals.run("@", f"{group}.toml", "--dry-run", "--no-rich", name=group)
        assert run.code == 0, run.text
        found[group] = json.loads((folder / "outputs" / group / "configs" / "resolved" / "eval.json").read_text())
    (folder / "wrong.toml").write_text(written.replace("split =", "splits ="))
    run = await evals.run("@", "wrong.toml", "--dry-run", "--no-rich", name="wrong")
    return found | {"wrong": run.code, "why": run.text}


def _installed(folder: Path) -> Path:
    """The exported package, built into a wheel as an installer builds it, and unpacked."""
    package = folder / "package"
    assert main(["export", "verifiers", "tic-tac-toe", "--out", str(package)]) == 0
    assert main(["export", "verifiers", "double-check", "--out", str(folder / "talk")]) == 0
    build = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, folder], cwd=package, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    site = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def test_every_rollout_is_scored_or_fails_and_none_is_zero_for_lack_of_a_server(played: Played) -> None:
    assert played.first.code == 0, played.first.text
    assert len(played.first.episodes) == ROLLOUTS
    failed = {task for task, episode in played.first.episodes.items() if not episode["ok"]}
    assert failed == set(FAILING)
    for task in FAILING:
        (error,) = played.first.episodes[task]["errors"]
        assert "cannot be opened just now" in error["message"]


def test_resume_plays_again_what_failed_and_nothing_else(played: Played) -> None:
    assert played.resumed.code == 0, played.resumed.text
    assert all(episode["ok"] for episode in played.resumed.episodes.values())
    assert len(played.resumed.episodes) == ROLLOUTS
    new = list(played.watched.episodes.values())[played.opened_before : -TALKS]
    assert sorted(opened.task for opened in new) == sorted(FAILING)
    for task in set(played.first.episodes) - set(FAILING):
        assert played.first.episodes[task]["id"] == played.resumed.episodes[task]["id"]
    assert played.again.code == 0
    assert "nothing to resume" in played.again.text


def test_each_rollout_reached_its_own_episode_and_no_other(played: Played) -> None:
    watched = played.watched
    assert watched.most == AT_ONCE
    assert not watched.live
    assert len(watched.episodes) == ROLLOUTS + TALKS
    for task, episode in played.resumed.episodes.items():
        (token,) = watched.tokens("tic-tac-toe", task)
        read = [node["message"]["content"] for node in episode["traces"][0]["nodes"] if _is_answer(node)]
        answered = [call.text for call in watched.calls[token]]
        # what never reached the server is malformed; what the model was not asked to read any more is the last answers
        reached = [text for text in read if not text.startswith("the JSON of")]
        assert reached == answered[: len(reached)]
        assert len(answered) - len(reached) <= 2
        receipt = episode["traces"][0]["info"]["mcpgym"]["receipt"]["receipt"]
        assert receipt["task"] == task
        assert receipt["calls"]["count"] == len(answered)
        assert receipt["claims"]["harness"] == "verifiers-mcpgym-tic-tac-toe"


def _is_answer(node: dict[str, Any]) -> bool:
    return node["message"]["role"] == "tool"


def test_rewards_are_those_of_our_own_loop(played: Played) -> None:
    assert len(played.ours) == ROLLOUTS
    for task, ours in played.ours.items():
        trace = played.resumed.episodes[task]["traces"][0]
        assert ours.score is not None
        assert played.resumed.reward(task) == ours.score.total
        assert trace["metrics"] == ours.score.components
        said = [_said(node["message"]) for node in trace["nodes"]]
        assert said == [_said(message) for message in ours.messages][: len(said)]
    assert len({ours.score.total for ours in played.ours.values() if ours.score}) > 5


def _said(message: Any) -> tuple[str, str, Sequence[str]]:
    calls = [call.get("function", call)["arguments"] for call in message.get("tool_calls") or []]
    return message["role"], message.get("content") or "", calls


def test_a_call_whose_answer_was_lost_is_made_once(played: Played) -> None:
    assert played.watched.cut > 10
    # every call is in the log once, so the games are those of our own loop, where no connection was cut
    for task, ours in played.ours.items():
        (token,) = played.watched.tokens("tic-tac-toe", task)
        assert [(call.name, call.text) for call in played.watched.calls[token]] == [
            (call.name, call.result) for call in ours.calls
        ]


def test_an_environment_that_answers_as_the_user_is_talked_with(played: Played) -> None:
    assert played.talk.code == 0, played.talk.text
    assert len(played.talk_ours) == TALKS
    for task, ours in played.talk_ours.items():
        assert ours.score is not None
        trace = played.talk.episodes[task]["traces"][0]
        assert played.talk.reward(task) == ours.score.total
        assert [_said(node["message"]) for node in trace["nodes"]] == [_said(message) for message in ours.messages]
    assert len({ours.score.total for ours in played.talk_ours.values() if ours.score}) > 1


def test_verifiers_reads_what_prime_rl_hands_it(played: Played) -> None:
    for group, split, limit in (("train", "train", None), ("eval", "test", 128)):
        found = played.source[group]
        assert found["env"]["taskset"]["split"] == split
        assert found["env"]["agent"]["runtime"]["type"] == "subprocess"
        assert found["env"]["agent"]["max_turns"] == 8
        assert found["env"]["retries"]["max_retries"] == 2
        assert found["select"]["limit"] == limit
    assert played.source["wrong"] != 0
    assert "splits" in played.source["why"]


def test_the_secret_is_nowhere(played: Played) -> None:
    looked_at = 0
    for path in played.folder.rglob("*"):
        if path.is_file():
            looked_at += 1
            assert SECRET.encode() not in path.read_bytes(), path
    assert looked_at > 20


def test_a_server_that_will_not_do_is_refused_before_anything_is_played(played: Played) -> None:
    assert len(played.refused) == 3
    for run, words in zip(
        played.refused,
        (
            ("ServerTrouble: the server at http://127.0.0.1:", "secret"),
            ("ServerTrouble: the server at unix:", "nobody does not answer"),
            (
                "double-check at http://127.0.0.1:",
                "is not what was exported: version 0.1, and there",
                "the reward old 1.0",
            ),
        ),
        strict=True,
    ):
        assert run.code != 0
        assert not run.episodes.keys() - played.first.episodes.keys()
        for word in words:
            assert word in run.text.splitlines()[-1], run.text

"""An environment in a virtual environment of its own is, from here, the one that it would be if it was installed."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from isolated_toybox import Other, Toy
from isolated_venvs import record
from mcpgym.combined.making import combine
from mcpgym.control import Call, LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError, EpisodeError, InfrastructureError, McpgymError, RewardError
from mcpgym.isolated import process
from mcpgym.isolated.environment import IsolatedEnvironment
from mcpgym.isolated.home import home_of, in_use
from mcpgym.isolated.records import VARIABLE, added, records
from mcpgym.messages import assistant
from mcpgym.registry import environment_class, environment_names, load_environment
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.run import EpisodeSpec, run

SOURCE = Path(__file__).parents[1] / "isolated_toybox.py"
ENTRIES = {"toy-box": "isolated_toybox:Toy", "toy-other": "isolated_toybox:Other"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The virtual environment of a package that was added; its module is importable here too, for comparing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("added")))
        patch.setenv("MCPGYM_CONTROL_SECRET", "not-for-environments-to-read")
        yield record("0123456789abcdef", "toy-box", "7.0", ENTRIES, {SOURCE.name: SOURCE.read_text("utf-8")})
        for found in records():
            home_of(found).end()


@contextlib.asynccontextmanager
async def control(environment: Environment[Any, Any, Any]) -> AsyncIterator[LocalControl]:
    made = LocalControl(Episodes({environment.name: environment}))
    try:
        yield made
    finally:
        await made.aclose()


async def told(work: Any) -> Any:
    """What is answered, or how it fails: both are to be the same."""
    try:
        return await work
    except (McpgymError, OSError) as error:
        return type(error).__name__, str(error)


PLANS: Mapping[str, Sequence[tuple[str, Any]]] = {
    "played": [("add", {"number": 1}), ("slowly", {}), ("patiently", {}), ("add", {"number": 1})],
    "refused": [("add", {}), ("add", {"number": "x", "mehr": [1.5, None, "\ud83d"]}), ("none", {"a": 1}), ("add", [1])],
    "too much": [("add", {"number": 40}), ("add", {"number": 2.0}), ("slowly", {"number": True})],
    "late": [("patiently", {"seconds": 5.0}), ("slowly", {"number": 2}), ("patiently", {})],
    "a bug": [("slowly", {}), ("wrong", {}), ("add", {"number": 1})],
    "gone": [("gone", {}), ("add", {"number": 1})],
    "not to be told": [("add", {"number": -1}), ("add", {"number": 1})],
    "no number": [("add", {"number": 5}), ("add", {"number": 1})],
    "to the limit": [("add", {"number": 0})] * 7,
    "not JSON": [("add", {"number": float("inf")}), ("slowly", {"number": 10**30})],
}


async def everything(environment: Environment[Any, Any, Any], **config: Any) -> list[Any]:
    """All that a harness and a policy can see of an environment, as it is played by every plan."""
    seen: list[Any] = []
    async with control(environment) as plane:
        seen += [asdict(about) for about in await plane.environments()]
        seen += [asdict(row) for row in await plane.tasks("toy-box", "test", offset=13, limit=8)]
        for number, plan in enumerate(PLANS.values()):
            made = await plane.open("toy-box", split="test", index=number, seed=number + 100, config=config)
            seen.append({key: value for key, value in asdict(made).items() if key != "token"})
            for name, arguments in plan:
                seen += await plane.step([Call(made.token, name, arguments)])
            seen.append(await told(plane.respond(made.token, [assistant("what now?")])))
            seen.append(await plane.status(made.token))
            seen += [call._replace(milliseconds=0) for call in await plane.calls(made.token)]
            for messages in ([assistant("well")], None):
                seen.append(await told(plane.score(made.token, messages)))
            seen.append(await told(plane.respond(made.token, [assistant("stop")])))
            await plane.close(made.token)
        for seed in (666, 13):
            seen.append(await told(plane.open("toy-box", split="test", index=0, seed=seed)))
        for wrong in (
            {"most": "x"},
            {"mood": "odd", "most": 1.5},
            {"moot": 1},
            {"manner.thank": 1},
            {"manner.thanks": 3},
        ):
            seen.append(await told(plane.open("toy-box", split="test", index=0, config=wrong)))
        for task in ("test-39", "test-40"):
            seen.append(await told(plane.tasks("toy-box", task)))
    return seen


@pytest.mark.parametrize(
    "config", [{}, {"most": "4", "mood": "gruff", "manner.thanks": "true"}], ids=["default", "changed"]
)
def test_it_is_the_same_to_every_byte(folder: Path, config: dict[str, Any]) -> None:
    here, there = asyncio.run(everything(Toy(), **config)), asyncio.run(everything(_there(), **config))
    assert len(here) == len(there) > 100
    for one, other in zip(here, there, strict=True):
        assert one == other
    assert any(isinstance(item, tuple) and "cannot run here: there is no sand" in str(item) for item in there)
    assert any(isinstance(item, tuple) and "KeyError: 'nothing'" in str(item) for item in there)


def _there(name: str = "toy-box") -> IsolatedEnvironment:
    made = load_environment(name)
    assert isinstance(made, IsolatedEnvironment)
    return made


async def _traces(environment: Environment[Any, Any, Any], policy_name: str) -> list[Any]:
    lane = ControlLane(LocalControl(Episodes({environment.name: environment})))
    policy = make_policy(policy_name, environment)
    specs = [EpisodeSpec(environment.name, split="train", index=index, seed=3) for index in range(12)]
    try:
        return list((await run(policy, lane, specs, concurrency=6)).traces)
    finally:
        await policy.aclose()
        await lane.aclose()


def test_its_own_policies_play_the_same_rollouts(folder: Path) -> None:
    def plain(trace: Any) -> Any:
        calls = [[call.name, call.arguments, call.result, call.is_error] for call in trace.calls]
        score = trace.score and (trace.score.total, dict(trace.score.components))
        return trace.task, trace.seed, trace.schema_hash, list(trace.messages), calls, score, str(trace.stop_reason)

    for policy in ("random", "teacher:skill=0.5"):
        here = [plain(trace) for trace in asyncio.run(_traces(Toy(), policy))]
        there = [plain(trace) for trace in asyncio.run(_traces(_there(), policy))]
        assert here == there
        assert sum(score is not None for *_, score, _ in there) > 5


def test_beside_others_in_one_episode_it_is_what_it_is_alone(folder: Path) -> None:
    async def played(environment: Environment[Any, Any, Any]) -> list[Any]:
        seen: list[Any] = []
        async with control(environment) as plane:
            made = await plane.open(environment.name, split="test", index=1, seed=5)
            seen += [made.messages, made.tools, made.schema_hash, made.config]
            for name in ("toy_box__add", "toy_other__slowly", "toy_box__add"):
                seen += await plane.step([Call(made.token, name, {"number": 1}), Call(made.token, name, {"x": 1})])
            seen.append(await plane.score(made.token, [assistant("done")]))
        return seen

    here, there = asyncio.run(played(combine(Toy, Other))), asyncio.run(played(load_environment("toy-box+toy-other")))
    assert here == there


def test_it_is_found_by_name_and_described_without_being_started(folder: Path) -> None:
    assert {"toy-box", "toy-other", "tic-tac-toe"} <= set(environment_names())
    for found in records():
        home_of(found).end()
    made = environment_class("toy-box")()
    assert (made.version, made.max_turns, made.size("test"), made.schema_hash) == ("7", 6, 40, Toy.schema_hash)
    assert made.config_class.model_json_schema() == Toy.config_class.model_json_schema()
    assert home_of(added()["toy-box"]).running is None
    assert getattr(importlib.import_module(type(made).__module__), type(made).__qualname__) is type(made)
    assert made.config_class.model_validate({"notes": "/etc/passwd"}).reaches() == ["notes=/etc/passwd"]
    random, other = Random(4), Random(4)
    turn = asyncio.run(made.reference_policies()["random"]([], random))  # type: ignore[arg-type]
    assert (turn, random.getstate()) == (Toy()._random([], other), other.getstate())


def test_what_dies_takes_its_episodes_and_no_other(folder: Path) -> None:
    async def play() -> None:
        async with control(_there()) as plane:
            one, other = [await plane.open("toy-box", split="test", index=index) for index in (0, 1)]
            (answer,) = await plane.step([Call(one.token, "end_process")])
            assert answer == ("end_process failed inside the environment", True, True)
            status = await plane.status(one.token)
            assert status.stop_reason == "failed"
            assert "the process that toy-box plays in ended with exit code 3" in str(status.failure)
            with pytest.raises(EpisodeError, match="no score, the environment broke"):
                await plane.score(one.token, [])
            with pytest.raises(RewardError, match="InfrastructureError: the process that toy-box plays in ended"):
                await plane.score(other.token, [])
            assert (await plane.step([Call(other.token, "add", {"number": 1})]))[0].done
            again = await plane.open("toy-box", split="test", index=0)
            assert (await plane.step([Call(again.token, "add", {"number": 1})]))[0].text == "Fine: 1"

    asyncio.run(play())


def test_what_answers_no_more_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A computation in C that holds everything: no signal that Python handles would reach it."""
    monkeypatch.setattr("mcpgym.isolated.process.PONG_SECONDS", 0.5)
    environment = _there()
    monkeypatch.setattr("mcpgym.isolated.process.LOOK_SECONDS", 0.1)
    from mcpgym.isolated import tools

    monkeypatch.setattr(tools, "LONGER_SECONDS", 0.2)
    parts = {**vars(environment), "tools": tools.made_tools(environment.about["tools"])}
    vars(environment).update(parts)

    async def play() -> None:
        async with control(environment) as plane:
            made = await plane.open("toy-box", split="test", index=0)
            (answer,) = await plane.step([Call(made.token, "hold")])
            assert answer.is_error
            for _ in range(300):
                if environment.home.running is None:
                    break
                await asyncio.sleep(0.1)
            assert environment.home.running is None
            again = await plane.open("toy-box", split="test", index=0)
            assert (await plane.step([Call(again.token, "add", {"number": 1})]))[0].text == "Fine: 1"

    asyncio.run(play())


ANSWERS = {
    "no result": b'{"id":1}',
    "no error": b'{"id":1,"error":"x"}',
    "no kind of error": b'{"id":1,"error":{"kind":"other","type":"a\\u0000b","text":"x"}}',
    "no object": b"[1]",
    "no number": b'{"id":[]}',
    "no JSON": b"hello",
    "too deep": b"[" * 100_000 + b"]" * 100_000,
    "no end of it": None,
}


@pytest.mark.parametrize("what", list(ANSWERS))
def test_what_is_no_answer_ends_it_and_nobody_waits_for_it(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a process of ours at all: whatever it sends, who asks is told, and keeps the memory that it has."""
    monkeypatch.setattr(process, "LONGEST", 1_000_000)
    (tmp_path / "answer").write_bytes((ANSWERS[what] or b"x" * 3_000_000) + (b"" if ANSWERS[what] is None else b"\n"))
    fake = tmp_path / "python"
    fake.write_text(
        f"#!{sys.executable} -IS\nimport socket, sys\nchannel = socket.socket(fileno=int(sys.argv[4]))\n"
        f"channel.recv(1000)\nchannel.sendall(open({str(tmp_path / 'answer')!r}, 'rb').read())\nchannel.recv(1)\n"
    )
    fake.chmod(0o700)
    child = process.Child(fake, "the liar")
    try:
        with pytest.raises(InfrastructureError, match=r"the liar answered what is no answer \("):
            child.ask_now("hello")
    finally:
        child.kill("the test is over")


CHILD = """
import asyncio, sys
from mcpgym.registry import load_environment
from mcpgym.control import Call, LocalControl
from mcpgym.episodes import Episodes
from mcpgym.isolated import process
process.GRACE_SECONDS = 0.5
async def play():
    plane = LocalControl(Episodes({"toy-box": load_environment("toy-box")}))
    made = await plane.open("toy-box", split="test", index=0)
    print(plane.episodes.environments["toy-box"].home.child().pid, flush=True)
    await plane.step([Call(made.token, sys.argv[1])])
asyncio.run(play())
"""


@pytest.mark.parametrize("busy", ["rest", "hold"])
def test_it_dies_with_whoever_started_it_however_busy_it_is(folder: Path, busy: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", CHILD, busy], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    child = psutil.Process(pid)
    assert in_use(folder)
    before = time.monotonic() + 30
    while busy == "hold" and child.cpu_times().user < 1.0 and time.monotonic() < before:
        time.sleep(0.05)  # until it holds
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 60
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
        time.sleep(0.05)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_changed_package_is_not_played_under_its_old_schema_hash(folder: Path) -> None:
    (module,) = folder.glob("lib/python*/site-packages/isolated_toybox.py")
    source = module.read_text("utf-8")
    for found in records():
        home_of(found).end()
    try:
        module.write_text(source.replace('"""Add a number."""', '"""Add any number."""'), "utf-8")

        async def play() -> None:
            async with control(_there()) as plane:
                await plane.open("toy-box", split="test", index=0)

        with pytest.raises(
            ConfigurationError, match="has been changed since it was added, toy-box has other tools now"
        ):
            asyncio.run(play())
    finally:
        for found in records():
            home_of(found).end()
        module.write_text(source, "utf-8")


def test_records_that_are_none_and_environments_that_are_gone(folder: Path, tmp_path: Path) -> None:
    (folder.parents[1] / "odd.json").write_text('{"schema": "mcpgym.added/1", "folder": "../../x"}')
    content = json.loads((folder.parents[1] / "toy-box.json").read_text())
    content |= {"package": "lost", "folder": "f" * 16, "environments": {"lost": content["environments"]["toy-box"]}}
    lost = folder.parents[1] / "lost.json"
    try:
        lost.write_text(json.dumps(content))
        assert "lost" in environment_names()
        with pytest.raises(
            ConfigurationError, match=r"the virtual environment of lost is gone .*mcpgym env remove lost"
        ):
            load_environment("lost", {"most": 3})
    finally:
        lost.unlink()
        (folder.parents[1] / "odd.json").unlink()


def test_it_gets_no_secret_and_nothing_of_our_pythons_settings(folder: Path) -> None:
    pid = home_of(added()["toy-box"]).child().pid
    names = set(psutil.Process(pid).environ())
    assert "MCPGYM_CONTROL_SECRET" in os.environ
    assert not {name for name in names if name.startswith(("MCPGYM_CONTROL", "PYTHON"))}
    assert "VIRTUAL_ENV" in names

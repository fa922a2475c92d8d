"""Any program that speaks MCP on stdio: one process for each episode, bounded in all it does, gone when it is over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from own_server_toys import TOY, episodes, open_files, said, toy

from mcpgym.errors import ConfigurationError, EpisodeError
from mcpgym.own_server import processes
from mcpgym.own_server.environment import OwnServerEnvironment
from mcpgym.own_server.pool import Pool

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no processes of this kind on Windows")


def until(met: Callable[[], bool], seconds: float = 15.0) -> bool:
    """Whether it comes to be within the time."""
    end = time.monotonic() + seconds
    while not met():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def processes_below() -> set[int]:
    """This process and all below it: other tests may have left some of theirs running."""
    return {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}


def new_processes(before: set[int]) -> list[psutil.Process]:
    """Those below this process that were not there, and that none of those begot which were."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            begetters = {parent.pid for parent in child.parents()} - {os.getpid()}
            if child.pid not in before and not begetters & before:
                found.append(child)
    return found


def test_three_interleaved_episodes_have_a_process_each() -> None:
    async def main() -> None:
        async with episodes(toy(warm=2), 3) as (_, live):
            for number in range(3):
                for place, episode in enumerate(live):
                    if place >= number:
                        assert await said(episode, "add", word=f"{place}{number}") == f"{number + 1} words"
            assert [await said(episode, "read") for episode in live] == ["00", "10 11", "20 21 22"]
            assert live[0].conditions["server"]["name"] == "toy"
            places = [json.loads(await said(episode, "do", word="where")) for episode in live]
            assert len({place["folder"] for place in places}) == 3
            assert all(place["environment"]["HOME"] == place["folder"] for place in places)
        assert not any(Path(place["folder"]).exists() or lives(place["pid"]) for place in places)

    asyncio.run(main())


def test_it_inherits_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-private")
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET", "private")
    monkeypatch.setenv("NEEDED", "given")

    async def main() -> None:
        async with episodes(toy(inherited=("NEEDED",), variables={"MODE": "x"})) as (_, (episode,)):
            text = await said(episode, "do", word="where")
            assert "private" not in text
            found = json.loads(text)["environment"]
            assert (found["NEEDED"], found["MODE"]) == ("given", "x")

    asyncio.run(main())
    with pytest.raises(ConfigurationError, match="'MISSING' is not set"):
        toy(inherited=("MISSING",))


def test_all_that_it_has_started_ends_with_its_episode() -> None:
    async def main() -> None:
        async with episodes(toy("children"), 2) as (served, live):
            pids = [list(map(int, (await said(episode, "do", word="children")).split())) for episode in live]
            assert all(map(lives, [*pids[0], *pids[1]]))
            await served.close(live[0].token)
            assert not any(map(lives, pids[0])), "near, in a session of its own, and an orphan"
            assert all(map(lives, pids[1]))
        assert not any(map(lives, pids[1]))

    asyncio.run(main())


def test_all_of_it_ends_when_our_server_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "holder.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import asyncio, sys
            sys.path.insert(0, {str(Path(__file__).parent)!r})
            from own_server_toys import episodes, said, toy
            async def main():
                async with episodes(toy(warm=1)) as (_, (episode,)):
                    print(await said(episode, "do", word="where"), flush=True)
                    print(await said(episode, "do", word="children"), flush=True)
                    await asyncio.sleep(300)
            asyncio.run(main())
            """
        )
    )
    holder = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert holder.stdout is not None
        place = json.loads(holder.stdout.readline())
        children = list(map(int, holder.stdout.readline().split()))
        family = [child.pid for child in psutil.Process(holder.pid).children(recursive=True)]
        assert place["pid"] in family
        assert len(family) >= 5
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert until(lambda: not any(map(lives, [*family, *children])))
        assert until(lambda: not Path(place["folder"]).exists())
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()  # type: ignore[union-attr]


def test_one_that_ends_in_a_call_leaves_no_score_and_says_how() -> None:
    async def main() -> None:
        async with episodes(toy(), 2) as (served, live):
            result = await live[0].call("do", {"word": "exit"})
            assert result == ("do failed inside the environment", True, True), "the policy reads nothing of our machine"
            assert re.search(
                r"ended while do was called \(it ended with exit code 3; .*giving up", live[0].failure, re.DOTALL
            )
            with pytest.raises(EpisodeError, match="no score"):
                await live[0].score(None)
            os.kill(json.loads(await said(live[1], "do", word="where"))["pid"], signal.SIGKILL)
            await said(live[1], "add", word="lost")
            assert "was killed by SIGKILL" in (live[1].failure or "")
            assert (await live[1].call("read", {})).done, "it is not begun again behind the policy's back"
            fresh = await served.open("toy", split="test")
            assert await said(fresh, "read") == ""

    asyncio.run(main())


def test_what_it_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    class_limits: dict[str, Any] = {"call_seconds": 20.0}

    async def main() -> None:
        async with episodes(toy(**class_limits)) as (_, (episode,)):
            large = await episode.call("do", {"word": "large"})
            assert large.is_error
            assert large.text == "the answer has more than 16,777,216 bytes, and nothing of it was read. Ask for less"
            assert psutil.Process().memory_info().rss < before + 150_000_000
            assert await said(episode, "do", word="noise") == "said something else before"
            wrong = await episode.call("do", {"word": "wrong"})
            assert wrong.is_error
            assert "answered what is no result of a tool" in wrong.text
            asked = await episode.call("do", {"word": "ask"})
            assert asked.is_error
            assert asked.text.startswith("no answer: ")
            assert await said(episode, "add", word="x") == "1 words"
            assert not episode.failure

    before = psutil.Process().memory_info().rss
    asyncio.run(main())


@pytest.mark.flaky(reruns=1)  # it measures time
def test_one_that_hangs_is_left_at_its_limit_and_killed_with_its_episode() -> None:
    async def main() -> None:
        async with episodes(toy(call_seconds=0.5)) as (served, (episode,)):
            pid = json.loads(await said(episode, "do", word="where"))["pid"]
            assert (await episode.call("do", {"word": "hang"})).text == "do did not finish within 0.5 s and was stopped"
            started = time.monotonic()
            await served.close(episode.token)
            assert time.monotonic() - started < 10
            assert not lives(pid)

    asyncio.run(main())


def test_tools_that_change_during_the_episode_leave_no_score() -> None:
    async def main() -> None:
        async with episodes(toy(), 2) as (_, live):
            assert await said(live[0], "do", word="same") == "not changed"
            assert (await live[0].score(None)).total == 1.0
            assert (await live[1].call("do", {"word": "change"})).text == "do failed inside the environment"
            assert "changed its tools during the episode" in (live[1].failure or "")

    asyncio.run(main())


def test_episodes_whose_tools_differ_do_not_begin() -> None:
    async def main() -> None:
        environment = toy("fickle")
        outcomes = set()
        for _ in range(40):
            try:
                async with episodes(environment):
                    outcomes.add("began")
            except EpisodeError as error:
                outcomes.add(str(error).partition(" has ")[2][:27])
            if len(outcomes) == 2:
                break
        assert outcomes == {"began", "other tools in this episode"}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("manners", "told"),
    [
        (["hang"], "did not answer within 0.6 s"),
        (["quit"], "ended before it had begun.*exit code 7.*no licence"),
        (["untyped"], "does not list its tools.*tools.1.inputSchema.type"),
        (["endless"], "lists tools without an end: 10[0-9]{2} so far"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_one_that_does_not_begin_is_told_with_its_reason(manners: list[str], told: str) -> None:
    seconds = 0.6 if manners == ["hang"] else 20.0
    with pytest.raises(ConfigurationError, match=f"(?s){told}"):
        toy(*manners, start_seconds=seconds)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("no-such-program-here",), "there is no program 'no-such-program-here' on PATH"),
        ((), "which command"),
        ((sys.executable, "-c", "pass"), "ended before it had begun"),
        ((sys.executable, "-c", "print('x' * 10, flush=True)"), "no message of MCP: 'xxxxxxxxxx'"),
        (("cat",), "is no MCP server"),
    ],
    ids=["no program", "nothing", "ends at once", "prints", "an echo"],
)
def test_what_is_no_server_is_said_to_be_none(command: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        toy(command=command, start_seconds=20.0)


def test_noise_before_and_invalid_schemas_do_not_keep_it_from_playing() -> None:
    async def main() -> None:
        async with episodes(toy("noise", "old")) as (_, (episode,)):
            assert await said(episode, "add", word="x") == "1 words"
            assert episode.conditions["server"]["protocol"] == "2024-11-05"
        environment = toy("invalid")
        assert "x: has no description; write a docstring, it is all that a model knows of it" in environment.differences
        assert environment.tools["x"].listing["inputSchema"]["properties"]["a"]["type"] == "string"

    asyncio.run(main())


def test_a_seed_in_the_command_is_the_episodes() -> None:
    async def main() -> None:
        program = f"import os, runpy, sys; os.environ['SEED'] = sys.argv.pop(); runpy.run_path({TOY!r})"
        async with episodes(toy(command=(sys.executable, "-c", program, "{seed}"), warm=2), 3) as (_, live):
            found = [json.loads(await said(episode, "do", word="where"))["environment"]["SEED"] for episode in live]
            assert found == ["0", "1", "2"]

    asyncio.run(main())


def test_relative_files_are_found_though_it_runs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here.py").write_text(Path(TOY).read_text())
    monkeypatch.chdir(tmp_path)
    assert set(toy(command=(sys.executable, "here.py")).tools) == {"add", "read", "do"}


def test_the_pool_is_bounded_filled_beside_and_given_to_nobody_twice() -> None:
    async def main() -> None:
        before, environment = processes_below(), toy(warm=2)
        assert environment.gauges() == {"warm_servers": 0.0}, "nothing is started before the first episode"
        async with episodes(environment) as (served, live):
            for _ in range(300):
                if environment.gauges()["warm_servers"] == 2:
                    break
                await asyncio.sleep(0.02)
            assert environment.gauges() == {"warm_servers": 2.0}
            live += await asyncio.gather(*(served.open("toy", split="test") for _ in range(5)))
            pids = [json.loads(await said(episode, "do", word="where"))["pid"] for episode in live]
            assert len(set(pids)) == 6
            waiting = [child for child in psutil.Process().children(recursive=True) if TOY in child.cmdline()[-1]]
            assert len(waiting) >= 6
        assert until(lambda: not new_processes(before)), "the pool ends too"

    asyncio.run(main())


def test_what_is_only_kept_ready_starts_after_what_somebody_waits_for() -> None:
    class Ready:
        alive = True

        async def close(self) -> None:
            pass

    async def main() -> None:
        begun: list[int] = []
        may_end = asyncio.Event()

        async def start() -> Any:
            begun.append(len(begun))
            await may_end.wait()
            return Ready()

        pool = Pool(start, 2)
        taking = asyncio.create_task(pool.take())
        await asyncio.sleep(0.05)
        assert begun == [0]
        may_end.set()
        await taking
        await asyncio.sleep(0.05)
        assert begun == [0, 1, 2]
        assert pool.ready == 2
        await pool.aclose()

    asyncio.run(main())


def test_a_dead_one_in_the_pool_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.tempfile, "tempdir", str(tmp_path))

    async def main() -> None:
        before, environment = processes_below(), toy(warm=1)
        async with episodes(environment) as (served, _):
            while environment.gauges()["warm_servers"] < 1:
                await asyncio.sleep(0.02)
            for child in new_processes(before):
                child.kill()
            await asyncio.sleep(0.3)
            fresh = await served.open("toy", split="test")
            assert await said(fresh, "add", word="x") == "1 words"
        assert not list(tmp_path.iterdir()), "also of those whose keeper was killed"

    asyncio.run(main())


def test_many_episodes_leave_no_process_no_file_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.tempfile, "tempdir", str(tmp_path))

    async def main() -> None:
        async with episodes(toy(warm=0), 0) as (served, _):
            before, files, tasks = processes_below(), open_files(), len(asyncio.all_tasks())
            for _ in range(3):
                live = await asyncio.gather(*(served.open("toy", split="test") for _ in range(8)))
                await asyncio.gather(*(said(episode, "add", word="x") for episode in live))
                assert len(list(tmp_path.iterdir())) == 8
                await asyncio.gather(*(served.close(episode.token) for episode in live))
            assert not new_processes(before)
            assert open_files() <= files
            assert len(asyncio.all_tasks()) == tasks
            assert not list(tmp_path.iterdir())

    asyncio.run(main())


def _older() -> Path:
    return Path(sys.prefix, "older-sdk", "bin", "python")


NOTES = """
from mcp.server{module} import {name}
server = {name}("bank")
balance = 0

@server.tool()
def pay(amount: int) -> str:
    "Pay in."
    global balance
    balance += amount
    return f"{{balance}} in all"

server.run("stdio")
"""


@pytest.mark.parametrize(
    ("python", "module", "name"),
    [
        (Path(sys.executable), ".mcpserver", "MCPServer"),
        pytest.param(
            _older(), ".fastmcp", "FastMCP", marks=pytest.mark.skipif(not _older().exists(), reason="make test")
        ),
    ],
    ids=["mcp 2", "mcp 1"],
)
def test_official_servers_of_both_times_are_run_from_their_file(
    python: Path, module: str, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "server.py"
    file.write_text(NOTES.format(module=module, name=name))

    async def main() -> None:
        environment: OwnServerEnvironment[Any] = toy(command=(str(python), str(file)), start_seconds=60.0)
        async with episodes(environment, 2) as (_, live):
            assert await said(live[0], "pay", amount=2) == "2 in all"
            assert await said(live[0], "pay", amount=3) == "5 in all"
            assert await said(live[1], "pay", amount=1) == "1 in all"
            wrong = await live[1].call("pay", {"amount": "1"})
            assert "is not of type 'integer'" in wrong.text

    asyncio.run(main())

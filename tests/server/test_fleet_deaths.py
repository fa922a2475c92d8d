"""What becomes of a fleet whose workers die, hang, or are told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import aiohttp
import psutil
import pytest
from control_toys import SECRET
from fleet_toys import DEADLY, call, fleet, headers, post

from mcpgym.control import Call
from mcpgym.errors import EpisodeError, EpisodeLost, ServerDraining
from mcpgym.fleet import members, serving
from mcpgym.fleet.folders import folder_of_sockets
from mcpgym.names import name_in

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers need unix sockets")


def test_a_worker_that_dies_costs_its_own_episodes_alone_and_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with fleet() as (server, control), aiohttp.ClientSession() as session:
            opened = [await control.open("desk", split="train", index=i) for i in range(4)]
            closed = opened.pop(0)
            await control.close(closed.token)
            dying = name_in(opened[1].token)
            (mine, *others), theirs = (
                [e for e in opened if name_in(e.token) == dying],
                [e for e in opened if name_in(e.token) != dying],
            )
            waiting = [asyncio.ensure_future(post(session, e.url, "wait", {"seconds": 2.0})) for e in [mine, *theirs]]
            stepping = asyncio.ensure_future(control.step([Call(e.token, "wait", {"seconds": 1.5}) for e in opened]))
            await asyncio.sleep(0.7)
            worker = server.crew.worker(dying)
            assert worker is not None
            os.kill(worker.process.pid, signal.SIGKILL)
            (status, lost), *alive = await asyncio.gather(*waiting)
            assert status == 200, "a 404 or a broken connection makes some clients drop the server"
            assert lost["result"]["isError"]
            assert "this episode has ended: lost, because the process" in lost["result"]["content"][0]["text"]
            assert lost["result"]["_meta"]["mcpgym/done"]
            assert [answer["result"]["content"][0]["text"] for _, answer in alive] == ["waited"] * len(theirs)
            stepped = dict(zip([e.token for e in opened], await stepping, strict=True))
            assert all(stepped[e.token].text == "waited" for e in theirs)
            assert all("lost" in stepped[e.token].text and stepped[e.token].done for e in [mine, *others])

            assert (await control.status(mine.token)).lost
            with pytest.raises(EpisodeLost, match="lost"):
                await control.score(mine.token)
            await control.close(mine.token)
            listing = {**call("add", {}), "method": "tools/list"}
            async with session.post(mine.url, data=json.dumps(listing), headers={**headers("x"), "mcp-method": "tools/list"}) as a:  # fmt: skip  # noqa: E501
                assert {tool["name"] for tool in (await a.json())["result"]["tools"]} >= {"add", "wait"}
            if name_in(closed.token) == dying:
                _, ended = await post(session, closed.url, "log", {})
                assert ended["result"]["content"][0]["text"].endswith("ended: closed")

            async with asyncio.timeout(60):
                while len(server.crew.alive()) < 2:
                    await asyncio.sleep(0.1)
            names = {name_in((await control.open("desk", split="train")).token) for _ in range(6)}
            assert dying not in names
            assert len(names) == 2
            metrics = await control.metrics()
            assert "mcpgym_workers_died_total 1.0" in metrics
            assert re.search(r"mcpgym_episodes_lost_total [12]\.0", metrics)

            with pytest.raises(EpisodeError, match="2 servers died while they opened"):  # and not one after another
                await control.open("desk", split="train", seed=DEADLY)
            assert (await control.open("desk", split="train")).url, "which waits for a worker to be there again"
            assert server.crew.deaths == 3
            assert (await control.status(mine.token)).lost

    asyncio.run(run())
    assert any("died (signal SIGKILL)" in record.message for record in caplog.records)


def test_a_worker_that_is_stuck_is_killed_and_its_players_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they would wait for as long as they can."""
    monkeypatch.setattr(members, "PROBE_SECONDS", 0.5)
    monkeypatch.setattr(serving, "STUCK_LOOKS", 2)

    async def run() -> None:
        async with fleet(workers=1) as (server, control), aiohttp.ClientSession() as session:
            episode = await control.open("desk", split="train")
            (stuck,) = server.crew.alive()
            os.kill(stuck.process.pid, signal.SIGSTOP)
            status, lost = await asyncio.wait_for(post(session, episode.url, "add", {"number": 1}), 60)
            assert status == 200
            assert "this episode has ended: lost" in lost["result"]["content"][0]["text"]
            assert server.crew.deaths == 1

    asyncio.run(run())


def test_told_to_stop_it_begins_no_episode_and_lets_those_that_run_end() -> None:
    async def run() -> None:
        async with fleet() as (server, control), aiohttp.ClientSession() as session:
            episode = await control.open("desk", split="train")
            pids = [worker.process.pid for worker in server.crew.alive()]
            stopping = asyncio.ensure_future(server.fleet.stop(signal.SIGTERM, 30.0))
            async with asyncio.timeout(20):
                while True:  # until both have heard it
                    with contextlib.suppress(ServerDraining):
                        await control.close((await control.open("desk", split="train", index=1)).token)
                        await asyncio.sleep(0.05)
                        continue
                    break
            status, answer = 502, {}
            while status == 502:  # where it came to the one that was just ending
                status, answer = await post(session, f"{server.url}/mcp", "start_episode", {})
            assert answer["result"]["isError"]
            assert "going down" in answer["result"]["content"][0]["text"]
            status, answer = await post(session, episode.url, "add", {"number": 4})
            assert (status, answer["result"]["content"][0]["text"]) == (200, "4")
            assert (await control.score(episode.token)).components["counted"] == 4
            assert not stopping.done()
            await control.close(episode.token)
            await asyncio.wait_for(stopping, 20)
            assert not [pid for pid in pids if psutil.pid_exists(pid)]
            assert not [r for r in [await control.load()] if not r.draining]

    asyncio.run(run())


def test_no_worker_outlives_the_front_and_no_folder_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import sys\nsys.path.insert(0, sys.argv[1])\nfrom control_toys import desk\nfrom fleet_toys import COMMAND\n"
        "from mcpgym.fleet.serving import run_fleet\n"
        "sys.exit(run_fleet(desk(), COMMAND, 2, control_socket=sys.argv[2]))\n"
    )
    with tempfile.TemporaryDirectory(prefix="f") as base:  # a short path, for sockets
        front = subprocess.Popen(
            [sys.executable, "-c", program, str(Path(__file__).parent), f"{base}/c.sock"],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "MCPGYM_CONTROL_SECRET": SECRET, "TMPDIR": base},
        )  # fmt: skip
        assert front.stderr is not None
        assert any("Stop with" in line for line in iter(front.stderr.readline, ""))
        workers = psutil.Process(front.pid).children()
        assert len(workers) == 2
        assert all(SECRET not in " ".join([*w.cmdline(), *w.environ().values()]) for w in workers)
        monkeypatch.setattr(tempfile, "tempdir", base)
        (left,) = Path(base).glob("mcpgym-fleet-*")
        os.utime(left, (0, 0))
        with folder_of_sockets():
            assert left.exists(), "its front lives"
        front.kill()
        front.wait(10)
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert not alive
        front.stderr.close()
        os.utime(left, (0, 0))
        with folder_of_sockets() as another:
            assert list(Path(base).glob("mcpgym-fleet-*")) == [another]

"""Several processes behind one port: each request reaches its episode's, a dead one costs its own episodes alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from typing import Any

import aiohttp
import psutil
import pytest
from control_toys import SECRET
from fleet_toys import call, fleet, headers, post

from mcpgym.control import Call
from mcpgym.errors import EpisodeLost, ServerDraining, TooManyEpisodes, UnknownEpisodeError
from mcpgym.names import name_in

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers need unix sockets")


def test_episodes_are_spread_and_every_lane_reaches_its_own() -> None:
    async def run() -> None:
        async with fleet(live=5) as (server, control), aiohttp.ClientSession() as session:
            opened = [await control.open("desk", split="train", index=i) for i in range(5)]
            names = [name_in(episode.token) for episode in opened]
            assert sorted(names.count(name) for name in set(names)) == [2, 3]
            with pytest.raises(TooManyEpisodes):
                await control.open("desk", split="train")
            for number, episode in enumerate(opened):  # over one connection, from one worker to the other
                assert episode.url is not None
                assert episode.url.startswith(f"{server.url}/e/")
                status, answer = await post(session, episode.url, "add", {"number": number})
                assert (status, answer["result"]["content"][0]["text"]) == (200, str(number))
            answers = await control.step([Call(episode.token, "log") for episode in opened] + [Call("x" * 32, "log")])
            assert [answer.text for answer in answers[:-1]] == [f"[{number}]" for number in range(5)]
            assert answers[-1].is_error
            assert [(await control.score(e.token)).components["counted"] for e in opened] == [0, 1, 2, 3, 4]
            assert (await control.load()).live == 5
            assert "mcpgym_tool_calls_total 10.0" in await control.metrics()
            for episode in opened:
                await control.close(episode.token)
            assert (await control.status(opened[0].token)).ended == "closed"
            with pytest.raises(UnknownEpisodeError):
                await control.status("w9-" + "0" * 32)
            status, _ = await post(session, f"{server.url}/e/w9-{'0' * 32}/mcp", "log", {})
            assert status == 404
            status, _ = await post(session, f"{server.url}/control/v1/health", "log", {})
            assert status == 404
            await _bare(session, f"{server.url}/mcp")

    async def _bare(session: aiohttp.ClientSession, url: str) -> None:
        """Handles say whose they are too; each start goes where there is room."""
        for _ in range(3):
            _, answer = await post(session, url, "start_episode", {})
            text = answer["result"]["content"][0]["text"]
            handle = text.split()[1]
            for number in (1, 2):
                _, answer = await post(session, url, "add", {"episode": handle, "number": number})
            assert answer["result"]["content"][0]["text"] == "3"

    asyncio.run(run())


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

    asyncio.run(run())
    assert any("died (signal SIGKILL)" in record.message for record in caplog.records)


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
            _, answer = await post(session, f"{server.url}/mcp", "start_episode", {})
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


def test_a_client_that_leaves_cancels_its_call_through_the_front() -> None:
    async def run() -> None:
        async with fleet(workers=1) as (_, control), aiohttp.ClientSession() as session:
            episode = await control.open("desk", split="train")
            gone = asyncio.ensure_future(post(session, episode.url, "wait", {"seconds": 60.0}))
            await asyncio.sleep(0.5)
            gone.cancel()
            status, answer = await asyncio.wait_for(post(session, episode.url, "add", {"number": 1}), 20)
            assert (status, answer["result"]["content"][0]["text"]) == (200, "1")

    asyncio.run(run())


async def _raw(host: str, port: int, *parts: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0.05)
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return answer


def test_requests_that_are_not_plain_get_the_answers_that_plain_ones_get() -> None:
    """In chunks, in pieces, several at once, another method: what the relay does not know, uvicorn's parser reads."""

    async def run() -> None:
        async with fleet(workers=2) as (server, control):
            one, two = [await control.open("desk", split="train", index=i) for i in range(2)]
            assert name_in(one.token) != name_in(two.token)
            host, port = server.url.removeprefix("http://").split(":")

            def request(episode: Any, number: int, *, chunked: bool = False, method: str = "POST") -> bytes:
                body = json.dumps(call("add", {"number": number})).encode()
                lines = [f"{method} /e/{episode.token}/mcp HTTP/1.1", f"Host: {host}:{port}"]
                lines += [f"{name}: {value}" for name, value in headers("add").items()]
                lines += ["Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"]
                sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
                return "\r\n".join([*lines, "", ""]).encode() + sent

            both = await _raw(host, int(port), request(one, 1) + request(two, 2) + request(one, 3))
            assert re.findall(rb'"text":"(\d+)"', both) == [b"1", b"2", b"4"], "each to its own, in order"
            early = await _raw(host, int(port), request(one, 1), request(two, 1) + request(one, 1)[:50], request(one, 1)[50:])  # fmt: skip  # noqa: E501
            assert re.findall(rb'"text":"(\d+)"', early) == [b"5", b"3", b"6"]
            chunked = await _raw(host, int(port), request(two, 1, chunked=True), request(two, 1))
            assert re.findall(rb'"text":"(\d+)"', chunked) == [b"4", b"5"]
            assert (await _raw(host, int(port), request(one, 1, method="GET"))).startswith(b"HTTP/1.1 405")
            assert (await _raw(host, int(port), request(one, 1, method="HEAD"))).startswith(b"HTTP/1.1 405")
            foreign = request(one, 1).replace(f"Host: {host}:{port}".encode(), b"Host: evil.example")
            assert (await _raw(host, int(port), foreign)).startswith(b"HTTP/1.1 421")
            large = (
                b"POST /e/%s/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n" % one.token.encode()
            )
            assert (await _raw(host, int(port), large)).startswith(b"HTTP/1.1 413")
            answers = await control.step([Call(one.token, "log"), Call(two.token, "log")])
            assert [json.loads(answer.text) for answer in answers] == [[1, 3, 1, 1], [2, 1, 1, 1]]

    asyncio.run(run())


def test_no_worker_outlives_the_front_however_that_ends(tmp_path: Any) -> None:
    import subprocess
    import sys
    from pathlib import Path

    program = (
        "import sys\nsys.path.insert(0, sys.argv[1])\nfrom control_toys import desk\nfrom fleet_toys import COMMAND\n"
        "from mcpgym.fleet.serving import run_fleet\n"
        "sys.exit(run_fleet(desk(), COMMAND, 2, control_socket=sys.argv[2]))\n"
    )
    front = subprocess.Popen(
        [sys.executable, "-c", program, str(Path(__file__).parent), str(tmp_path / "c.sock")],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "MCPGYM_CONTROL_SECRET": SECRET},
    )  # fmt: skip
    assert front.stderr is not None
    assert any("Stop with" in line for line in iter(front.stderr.readline, ""))
    workers = psutil.Process(front.pid).children()
    assert len(workers) == 2
    assert all(SECRET not in " ".join([*w.cmdline(), *w.environ().values()]) for w in workers)
    front.kill()
    front.wait(10)
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive
    front.stderr.close()

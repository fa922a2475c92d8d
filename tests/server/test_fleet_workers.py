"""Several processes behind one port: each request reaches its episode's, and is answered as by one server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from collections.abc import Awaitable, Callable, Iterator

import aiohttp
import pytest
from control_toys import desk, served
from fleet_toys import exchanged, post, shared_fleet, written

from mcpgym.control import Call, OpenedEpisode
from mcpgym.control_client import HttpControl
from mcpgym.errors import TooManyEpisodes, UnknownEpisodeError
from mcpgym.fleet.relay import Relay
from mcpgym.fleet.serving import FleetServing
from mcpgym.names import name_in

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers need unix sockets")


LIVE = 20
Test = Callable[[FleetServing, HttpControl], Awaitable[None]]


@pytest.fixture(scope="module")
def shared() -> Iterator[Callable[[Test], None]]:
    """A fleet of two, for the tests that leave it as it was but for a few open episodes."""
    with shared_fleet(LIVE) as run:
        yield run


def test_episodes_are_spread_and_every_lane_reaches_its_own(shared: Callable[[Test], None]) -> None:
    async def run(server: FleetServing, control: HttpControl) -> None:
        async with aiohttp.ClientSession() as session:
            calls = await _calls(control)
            room = LIVE - (await control.load()).live
            opened = [await control.open("desk", split="train", index=index % 10) for index in range(room)]
            with pytest.raises(TooManyEpisodes):
                await control.open("desk", split="train")
            names = [name_in(episode.token) for episode in opened]
            assert abs(names.count("w1") - names.count("w2")) <= LIVE - len(opened), "what others left may be on one"
            assert (await control.load()).live == LIVE
            opened, spare = opened[:5], opened[5:]
            for episode in spare:
                await control.close(episode.token)
            for number, episode in enumerate(opened):  # over one connection, from one worker to the other
                assert episode.url is not None
                assert episode.url.startswith(f"{server.url}/e/")
                status, answer = await post(session, episode.url, "add", {"number": number})
                assert (status, answer["result"]["content"][0]["text"]) == (200, str(number))
            answers = await control.step([Call(episode.token, "log") for episode in opened] + [Call("x" * 32, "log")])
            assert [answer.text for answer in answers[:-1]] == [f"[{number}]" for number in range(5)]
            assert answers[-1].is_error
            assert [(await control.score(e.token)).components["counted"] for e in opened] == [0, 1, 2, 3, 4]
            assert await _calls(control) == calls + 10
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

    async def _calls(control: HttpControl) -> float:
        return sum(
            float(n) for n in re.findall(r"^mcpgym_tool_calls_total(?:{.*})? (.*)$", await control.metrics(), re.M)
        )

    async def _bare(session: aiohttp.ClientSession, url: str) -> None:
        """Handles say whose they are too; each start goes where there is room."""
        for _ in range(3):
            _, answer = await post(session, url, "start_episode", {})
            text = answer["result"]["content"][0]["text"]
            handle = text.split()[1]
            for number in (1, 2):
                _, answer = await post(session, url, "add", {"episode": handle, "number": number})
            assert answer["result"]["content"][0]["text"] == "3"

    shared(run)


def test_a_client_that_leaves_cancels_its_call_through_the_front(shared: Callable[[Test], None]) -> None:
    async def run(_: FleetServing, control: HttpControl) -> None:
        async with aiohttp.ClientSession() as session:
            episode = await control.open("desk", split="train")
            gone = asyncio.ensure_future(post(session, episode.url, "wait", {"seconds": 60.0}))
            await asyncio.sleep(0.5)
            gone.cancel()
            status, answer = await asyncio.wait_for(post(session, episode.url, "add", {"number": 1}), 20)
            assert (status, answer["result"]["content"][0]["text"]) == (200, "1")
            await control.close(episode.token)

    shared(run)


def test_requests_that_are_not_plain_get_the_answers_that_plain_ones_get(shared: Callable[[Test], None]) -> None:
    """In chunks, in pieces, several at once, another method: what the relay does not know, uvicorn's parser reads."""

    async def run(server: FleetServing, control: HttpControl) -> None:
        opened = [await control.open("desk", split="train", index=i) for i in range(5)]
        one = opened[0]
        two = next(episode for episode in opened if name_in(episode.token) != name_in(one.token))

        def add(episode: OpenedEpisode, number: int, *more: str, method: str = "POST") -> bytes:
            return written(episode, "add", {"number": number}, *more, method=method)

        both = await exchanged(server.url, add(one, 1) + add(two, 2) + add(one, 3), answers=3)
        assert re.findall(rb'"text":"(\d+)"', both) == [b"1", b"2", b"4"], "each to its own, in order"
        early = await exchanged(server.url, add(one, 1), add(two, 1) + add(one, 1)[:50], add(one, 1)[50:], answers=3)
        assert re.findall(rb'"text":"(\d+)"', early) == [b"5", b"3", b"6"]
        chunked = await exchanged(server.url, add(two, 1, "Transfer-Encoding: chunked"), add(two, 1), answers=2)
        assert re.findall(rb'"text":"(\d+)"', chunked) == [b"4", b"5"]
        foreign = add(one, 1).replace(b"Host: localhost", b"Host: evil.example")
        assert (await exchanged(server.url, foreign, answers=1)).startswith(b"HTTP/1.1 421")
        large = b"POST /e/%s/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n" % one.token.encode()
        assert (await exchanged(server.url, large, answers=1)).startswith(b"HTTP/1.1 413")
        answers = await control.step([Call(one.token, "log"), Call(two.token, "log")])
        assert [json.loads(answer.text) for answer in answers] == [[1, 3, 1, 1], [2, 1, 1, 1]]
        for episode in opened:
            await control.close(episode.token)

    shared(run)


def test_a_request_whose_head_comes_first_is_passed_on_too(
    shared: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most HTTP clients send it so, the MCP SDK's too."""
    passed: list[bytes] = []
    pass_on = Relay._pass_on
    monkeypatch.setattr(Relay, "_pass_on", lambda self, *which: (passed.append(which[2]), pass_on(self, *which)))

    async def run(server: FleetServing, control: HttpControl) -> None:
        episode = await control.open("desk", split="train")
        request = written(episode, "add", {"number": 1}, "Connection: keep-alive")
        head = request.index(b"\r\n\r\n") + 4
        pieces = [
            request[:head],
            request[head:-1],
            request[-1:],
            request[:head],
            request[head:] + request + request[:5],
        ]
        answers = await exchanged(server.url, *pieces, request[5:], answers=4)
        assert re.findall(rb'"text":"(\d+)"', answers) == [b"1", b"2", b"3", b"4"]
        assert passed == [request]
        await control.close(episode.token)

    shared(run)


def test_an_answer_is_one_servers_byte_for_byte(shared: Callable[[Test], None]) -> None:
    """Headers, their order and lengths too: to a client, nothing tells a fleet from one server."""

    headers = [
        "Content-Length: 3", "Connection: close", "Proxy-Connection: close", "Expect: 100-continue", "X: a\r\n b",
        "Upgrade: h2c\r\nConnection: Upgrade", "X: a\nb", "X: a\rb", "Origin: http://evil.example",
    ]  # fmt: skip

    def odd(episode: OpenedEpisode, other: OpenedEpisode) -> list[bytes]:
        plain, path = written(episode, "log", {}), f"/e/{episode.token}/mcp".encode()
        chunked = written(episode, "log", {}, "Transfer-Encoding: chunked")
        paths = [
            b"//e" + path[2:], path[:-4] + b"%2fmcp", b"http://evil.example" + path, path + b"?x", b"/x/.." + path,
            b"/%65/" + path[3:], b"/control/v1/health", b"/e/w9-%s/mcp" % (b"0" * 32), path + b"%0d%0aX:y",
        ]  # fmt: skip
        return [
            *(plain, plain + written(other, "log", {}), plain[:-3], b"\r\n" + plain, plain.replace(b"\r\n", b"\n")),
            *(plain.replace(b"HTTP/1.1", b"HTTP/1.0"), chunked, chunked.replace(b"Host", b"Content-Length: 5\r\nHost")),
            *(written(episode, "log", {}, method=method) for method in ("GET", "HEAD", "OPTIONS", "DELETE")),
            *(written(episode, "log", {}, header) for header in headers),
            *(plain.replace(path, wrong) for wrong in paths),
        ]

    async def run(server: FleetServing, control: HttpControl) -> None:
        async with served(desk()) as (alone, its):
            seen = []
            for url, asked in ((server.url, control), (alone.url, its)):
                opened = [await asked.open("desk", split="train", index=index) for index in range(2)]
                answers = await asyncio.gather(*(exchanged(url, request) for request in odd(opened[0], opened[1])))
                seen.append([re.sub(rb"date: [^\r]+", b"", answer) for answer in answers])
                for episode in opened:
                    await asked.close(episode.token)
            for mine, theirs, request in zip(*seen, odd(opened[0], opened[1]), strict=True):
                assert mine == theirs, request
            assert sum(answer.startswith(b"HTTP/1.1 200") for answer in seen[0]) >= 5

    shared(run)


def test_a_client_that_reads_no_answers_is_asked_for_no_more(shared: Callable[[Test], None]) -> None:
    """Else the front would keep for it whatever it asks."""

    async def run(server: FleetServing, control: HttpControl) -> None:
        episode = await control.open("desk", split="train")
        host, _, port = server.url.removeprefix("http://").partition(":")
        loop = asyncio.get_running_loop()
        request = written(episode, "add", {"number": 0}, "X: y").replace(b'"id": 1', b'"id": "%s"' % (b"y" * 40_000))
        head, _, body = request.partition(b"\r\n\r\n")
        request = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), head) + b"\r\n\r\n" + body

        async def count() -> int:
            return len(json.loads((await control.step([Call(episode.token, "log")]))[0].text))

        async def answered(number: int) -> None:
            while await count() < number:
                await asyncio.sleep(0.005)

        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await loop.sock_connect(client, (host, int(port)))
            for number in range(1, 600):  # 24 MB; systems keep a few
                await loop.sock_sendall(client, request)
                try:
                    await asyncio.wait_for(answered(number), 2)
                except TimeoutError:
                    break
            assert number < 599
            read = b""
            while read.count(b"HTTP/1.1 200") < number:  # then it reads, and gets them all
                read += await asyncio.wait_for(loop.sock_recv(client, 2**20), 20)
            assert await count() == number
        await control.close(episode.token)

    shared(run)

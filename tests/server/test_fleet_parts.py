"""What a fleet is made of: names in tokens, what is relayed as it is, sums of metrics, who gets the next episode."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httptools
import pytest
from control_toys import SECRET, desk, served
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym.control import Call, Load
from mcpgym.control_client import HttpControl
from mcpgym.errors import ConfigurationError, EpisodeLost, ServerUnavailable, TooManyEpisodes, UnknownEpisodeError
from mcpgym.fleet.crew import Crew
from mcpgym.fleet.front import handle_in
from mcpgym.fleet.members import Member
from mcpgym.fleet.metrics import FleetMetrics, merged
from mcpgym.fleet.pool import Pool
from mcpgym.fleet.relay import plain_head, plain_name
from mcpgym.fleet.serving import Fleet, WorkerCommand
from mcpgym.fleet.workers import Worker
from mcpgym.names import checked_name, name_in, new_token

TOKEN = "w1-" + "0123456789abcdef" * 2
PLAIN = (
    f"POST /e/{TOKEN}/mcp HTTP/1.1\r\nHost: localhost:8000\r\nAccept: application/json\r\n"
    "content-length: 7\r\nMcp-Name: add\r\n\r\n"
).encode() + b'{"a":1}'


class Parsed:
    """What the worker's own parser makes of the bytes."""

    def __init__(self, data: bytes) -> None:
        self.urls: list[bytes] = []
        self.body = b""
        self.whole = 0
        self.begun = 0
        self.names: list[bytes] = []
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.begun += 1

    def on_url(self, url: bytes) -> None:
        self.urls.append(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.names.append(name.lower())

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.whole += 1


def test_a_token_says_whose_it_is_and_stays_unguessable() -> None:
    for name in ("", "w1", "mcpgym-0", "a--b"):
        token = new_token(name)
        assert name_in(token) == name
        assert len(token.rpartition("-")[2]) == 32
    assert len({new_token("w1") for _ in range(1000)}) == 1000
    assert name_in("w1-0123") == name_in("0" * 32) == name_in("") == ""
    for wrong in ("-a", "a-", "A", "a.b", "a/b", "x" * 64, "ä"):
        with pytest.raises(ConfigurationError, match="is none"):
            checked_name(wrong)


def test_what_is_plain_is_passed_on() -> None:
    assert plain_name(PLAIN) == "w1"
    for number in range(len(PLAIN)):
        assert plain_name(PLAIN[:number]) is None, "not whole yet"
    head = PLAIN.index(b"{")
    assert plain_head(PLAIN[: head - 1]) is None
    assert plain_head(PLAIN[:head]) == plain_head(PLAIN + PLAIN) == ("w1", len(PLAIN))
    assert plain_name(PLAIN + PLAIN) is None
    for odd in (
        b"Transfer-Encoding: chunked", b"transfer-encoding : chunked", b"Connection: close", b"Expect: 100-continue",
        b"Upgrade: h2c", b"Content-Length: 7", b"content-length:7 ", b"X: a\r\n b", b"X: \0", b"X: a\rb", b"X: a\nb",
    ):  # fmt: skip
        assert plain_name(PLAIN.replace(b"Mcp-Name: add", odd)) is None, odd
    assert plain_name(PLAIN.replace(b"Mcp-Name: add", b"Connection: keep-alive")) == "w1", "as many clients send it"
    for odd in (b"Connection: keep-alive, close", b"Connection:  keep-alive", b"connection : keep-alive"):
        assert plain_name(PLAIN.replace(b"Mcp-Name: add", odd)) is None, odd
    for path in ("/mcp", f"/e/{TOKEN}/mcp/", f"/e/{TOKEN[3:]}/mcp", f"/e/{TOKEN}/mcp?x=1", f"/e/../e/{TOKEN}/mcp"):
        assert plain_name(PLAIN.replace(f"/e/{TOKEN}/mcp".encode(), path.encode())) is None, path


EDITS = st.sampled_from(
    [b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b"-", b"7", b"\x80", b"GET", b"chunked", b"0\r\n\r\n"]
) | st.sampled_from(
    [b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"POST / HTTP/1.1\r\n\r\n", b"Connection: x\r\n"]
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(PLAIN)), st.integers(0, 12), EDITS), max_size=3))
def test_what_is_passed_on_means_to_the_workers_parser_what_it_means_here(edits: list[tuple[int, int, bytes]]) -> None:
    data = PLAIN
    for place, gone, new in edits:
        data = data[:place] + new + data[place + gone :]
    name = plain_name(data)
    if name is None:
        return
    try:
        seen = Parsed(data)
    except httptools.HttpParserError:
        return  # the worker refuses it, and closes
    head, _, body = data.partition(b"\r\n\r\n")
    assert (seen.begun, seen.whole) == (1, 1), "no second request hides in it"
    assert seen.body == body
    assert b"".join(seen.urls).startswith(f"/e/{name}-".encode())
    assert b"transfer-encoding" not in seen.names
    assert head.startswith(b"POST ")


def test_a_handle_is_read_where_it_is_an_argument_and_nowhere_else() -> None:
    def asking(params: Any) -> bytes:
        return json.dumps({"params": params}).encode()

    other = "w2-" + "f" * 32
    assert handle_in(asking({"arguments": {"text": other, "episode": TOKEN}})) == TOKEN
    assert handle_in(asking({"arguments": {"episode": 3, "episode_handle": TOKEN}})) == TOKEN
    assert handle_in(asking({"uri": f"env://tic-tac-toe/episode/{TOKEN}"})) == TOKEN
    for nothing in (asking({"arguments": {"text": other}}), asking([]), asking(None), b"[" * 100_000, b"\xff", b"{}"):
        assert handle_in(nothing) == ""


def test_what_is_counted_is_added_and_what_is_waited_for_is_the_worst() -> None:
    from prometheus_client.parser import text_string_to_metric_families

    def process(calls: int, lag: float, began: float) -> Any:
        text = (
            f'# TYPE calls counter\ncalls_total{{environment="a"}} {calls}\n'
            f"# TYPE mcpgym_event_loop_lag_seconds gauge\nmcpgym_event_loop_lag_seconds {lag}\n"
            f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {began}\n"
            f'# TYPE took histogram\ntook_bucket{{le="1.0"}} {calls}\ntook_bucket{{le="+Inf"}} {calls}\n'
            f"took_count {calls}\ntook_sum 0.5\n"
        )
        return list(text_string_to_metric_families(text))

    made = {s.name: s.value for m in merged([process(3, 0.5, 10.0), process(4, 0.1, 20.0)]) for s in m.samples}
    assert made["calls_total"] == made["took_count"] == made["took_bucket"] == 7
    assert made["mcpgym_event_loop_lag_seconds"] == 0.5
    assert made["process_start_time_seconds"] == 20.0
    assert made["took_sum"] == 1.0


def dying_worker(name: str, calls: int) -> Any:
    async def metrics() -> str:
        return f"# TYPE calls_total counter\ncalls_total {calls}\n# TYPE live gauge\nlive 1\n"

    control = SimpleNamespace(metrics=metrics)
    return SimpleNamespace(name=name, member=SimpleNamespace(name=name, control=control, gone=False, up=True))


def test_of_workers_that_died_there_is_left_what_they_counted_and_their_names() -> None:
    async def run() -> None:
        crew = Crew(desk())
        shown = FleetMetrics(crew)
        for number in range(1, 6):
            worker = dying_worker(f"w{number}", 10)
            crew.add(worker)
            assert f"calls_total {number * 10}.0" in (await shown.render()).decode()
            crew.remove(worker, "lost")
        assert "calls_total 50.0" in (text := (await shown.render()).decode())
        assert "live 1" not in text
        assert (crew.alive(), crew.members, shown._last, len(shown._dead)) == ([], [], {}, 1)
        assert (await crew.status("w3-" + "0" * 32)).lost
        with pytest.raises(UnknownEpisodeError):
            await crew.status("w6-" + "0" * 32)

    asyncio.run(run())


def test_what_is_said_of_an_episode_whose_process_hangs_names_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgym.fleet.crew.ROOM_SECONDS", 0.1)

    async def run() -> None:
        crew = Crew(desk())
        member = dying_worker("w1", 0).member
        assert "unix:" not in str(await crew._lost(member, ServerUnavailable("nothing answers at unix:/a/b")))
        with pytest.raises(ServerUnavailable, match="no process is ready to answer"):
            await crew.open("desk", split="train")

    asyncio.run(run())


def test_a_worker_that_comes_up_while_the_fleet_is_told_to_stop_is_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def run() -> None:
        fleet = Fleet(crew := Crew(desk()), 1, WorkerCommand([], {}), "http://x", 10, Path("/nowhere"))

        async def kill() -> None:
            ended.append("w1")

        async def start(*_: Any) -> Any:
            await fleet.stop(signal.SIGTERM, 0.0)
            return SimpleNamespace(kill=kill)

        monkeypatch.setattr(Worker, "start", start)
        assert await fleet._again(0, 0) is None
        assert (ended, crew.alive(), await fleet._again(0, 0)) == (["w1"], [], None)

    asyncio.run(run())


def test_the_next_episode_goes_where_there_is_least_to_do() -> None:
    def member(name: str, live: int, **more: Any) -> Member:
        return Member(name, HttpControl("unix:/nowhere", SECRET), Load(live, 10), **more)

    async def run() -> None:
        busy, free, down = member("busy", 3), member("free", 1), member("down", 0, up=False)
        pool = Pool([busy, free, down, member("gone", 0, gone=True)])
        assert pool.least() is free
        free.begun = 3
        assert pool.least() is busy
        assert pool.least({busy, free}) is down, "which may be back"
        assert pool.least({busy, free, down}) is None
        big = Member("big", HttpControl("unix:/nowhere", SECRET), Load(8, 100))
        assert Pool([busy, big]).least() is big, "a larger server is fuller only when it is"
        equal = [member(name, 0) for name in "abc"]
        assert {Pool.least(pool).name for pool in [Pool(equal)] for _ in range(3)} == {"a", "b", "c"}

    asyncio.run(run())


def test_servers_elsewhere_are_one_and_what_one_of_them_held_is_lost_when_it_goes() -> None:
    async def run() -> None:
        async with served(desk(live=2)) as (_, first):
            async with served(desk(live=3)) as (second_server, second):
                pool = await Pool.of([first, second])
                opened = [await pool.open("desk", split="train", index=i) for i in range(5)]
                assert [len({e.url.rsplit("/e/")[0] for e in opened if e.url}), (await pool.load()).live] == [2, 5]
                with pytest.raises(TooManyEpisodes):
                    await pool.open("desk", split="train")
                answers = await pool.step([Call(e.token, "add", {"number": i}) for i, e in enumerate(opened)])
                assert [answer.text for answer in answers] == ["0", "1", "2", "3", "4"]
                theirs = [e for e in opened if (e.url or "").startswith(second_server.url)]
                assert len(theirs) == 3
            answers = await pool.step([Call(e.token, "log") for e in opened])
            assert [answer.is_error for answer in answers] == [e in theirs for e in opened]
            assert (await pool.status(theirs[0].token)).lost
            for question in (pool.score, pool.calls):
                with pytest.raises(EpisodeLost):
                    await question(theirs[0].token)
            await pool.close(theirs[0].token)
            ours = next(e for e in opened if e not in theirs)
            assert (await pool.score(ours.token)).components["counted"] == opened.index(ours)
            await pool.close(ours.token)
            assert (await pool.open("desk", split="train")).url, "the one that is left takes it"
        with pytest.raises(ServerUnavailable, match="none of the environment servers answers"):
            await pool.status("0" * 32)
        await pool.aclose()

    asyncio.run(run())


def test_servers_that_differ_are_refused() -> None:
    from control_toys import Desk

    from mcpgym.episodes import Episodes

    async def run() -> None:
        other = Episodes({"desk": Desk(Desk.config_class(size=11))})
        async with served() as (_, first), served(other) as (_, second):
            with pytest.raises(ConfigurationError, match="do not serve the same desk"):
                await Pool.of([first, second])
            with pytest.raises(ConfigurationError, match="named twice"):
                await Pool.of([first, first])

    asyncio.run(run())

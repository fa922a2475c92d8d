"""The scan finds every planted leak, and nothing in an environment that keeps its secrets."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import scan_toys
import uvicorn
from scan_toys import ENVIRONMENTS, SERVERS, AnswerInBase64, Around, Room, Vault, answer

import mcpgym.serving
from mcpgym import Message, Task
from mcpgym.control_plane.listeners import listen_tcp
from mcpgym.episodes import Episodes
from mcpgym.errors import McpgymError, UnknownNameError
from mcpgym.messages import user
from mcpgym.registry import environment_names
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.scanning import scan
from mcpgym_clients.scanning.canaries import Canaries
from mcpgym_clients.scanning.command import show
from mcpgym_clients.scanning.raw_http import Address
from mcpgym_clients.scanning.remote import scan_url
from mcpgym_clients.scanning.report import ScanReport
from mcpgym_clients.scanning.scan import scan_environment

IMPORTED = {"bfcl", "gymnasium", "reasoning-gym", "textarena"}
"""Scanned in ``tests/environments/test_imported_*.py``, in one lane: whole scans of four more would take minutes."""


def one_lane(monkeypatch: pytest.MonkeyPatch, lane: str = "HTTP, 2026-07-28") -> None:
    monkeypatch.setattr(scan, "LANES", {lane: scan.LANES[lane]})


def told(report: ScanReport) -> str:
    return json.dumps(report.as_json(), indent=1)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted({*environment_names()} - IMPORTED))
def test_nothing_leaks_from_an_installed_environment(name: str) -> None:
    report = scan_environment(name)
    assert report.ok, told(report)
    assert report.compared >= 10
    assert report.requests > 1000
    assert {"stdio", "HTTP, 2026-07-28", "HTTP, handshake era", "HTTP, bare", "attack: routes"} <= set(report.channels)
    assert all(report.canaries[kind] for kind in ("reward", "seed", "hidden info", "control secret", "episode token"))
    assert not [note for note in report.notes if "broke" in note or "failed" in note or "not played" in note]


@pytest.mark.slow
def test_nothing_leaks_from_a_game_under_another_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch)
    config = {"min_random_move_prob": 1, "policy_moves": "first", "illegal_move_loses": True, "max_turns": 4}
    report = scan_environment("tic-tac-toe", config=config, parts=["play"])
    assert report.ok, told(report)
    assert report.compared >= 6


@pytest.mark.slow
def test_a_healthy_environment_is_silent_and_what_could_not_be_planted_is_said() -> None:
    report = scan_environment(Vault())
    assert report.ok, told(report)
    assert [note for note in report.notes if "info.level" in note]
    assert all("info.level" in note for note in report.notes)


@pytest.mark.slow
@pytest.mark.parametrize("leaking", ENVIRONMENTS, ids=lambda cls: cls.__name__)
def test_a_leaking_environment_is_found(leaking: type[Vault], monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch)
    report = scan_environment(leaking(), parts=["play"])
    assert ENVIRONMENTS[leaking] in report.kinds(), told(report)
    for finding in report.findings:
        assert finding.what
        assert finding.where
        assert finding.fix


@pytest.mark.slow
@pytest.mark.parametrize("leaking", SERVERS, ids=lambda cls: cls.__name__)
def test_a_leaking_server_is_found(leaking: type[Around], monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch)
    kind, parts = SERVERS[leaking]
    app = mcpgym.serving.player_app
    monkeypatch.setattr(
        mcpgym.serving, "player_app", lambda episodes, **given: leaking(app(episodes, **given), episodes)
    )
    monkeypatch.setattr(scan_toys.TellsTheSecret, "secret", Canaries(0).text("secret") * 2)
    report = scan_environment(Vault(), parts=parts)
    assert kind in report.kinds(), told(report)


def test_there_are_more_than_a_dozen_kinds_of_planted_leaks() -> None:
    assert len({*ENVIRONMENTS.values(), *(kind for kind, _ in SERVERS.values())}) >= 12


@pytest.mark.slow
def test_a_leak_is_found_over_stdio_too() -> None:
    report = scan_environment(AnswerInBase64(), parts=["stdio"])
    assert {(finding.kind, finding.channel) for finding in report.findings} == {("hidden info", "stdio")}, told(report)
    assert "base64" in report.findings[0].how


@pytest.mark.slow
@pytest.mark.parametrize("lane", scan.LANES)
def test_each_lane_is_looked_at(lane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch, lane)
    report = scan_environment(AnswerInBase64(), parts=["play"])
    assert lane in {channel for finding in report.findings for channel in (finding.channel, *finding.also)}


class NeverTheSame(Vault):
    def tell(self, room: Room) -> str:
        return str(random.SystemRandom().random())[:6]


def test_an_environment_that_is_never_the_same_is_no_leak_but_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch)
    report = scan_environment(NeverTheSame(), parts=["play"])
    assert report.ok, told(report)
    assert any("played twice alike" in note for note in report.notes)


class SmallSeeds(Vault):
    def reset(self, task: Task, seed: int) -> Room:
        if seed >= 1 << 32:
            raise ValueError("seeds are below 2**32")
        return super().reset(task, seed)

    def messages(self, task: Task, state: Room) -> Sequence[Message]:
        return [user(f"Game {state.seed}.")]


def test_a_small_seed_is_found_where_no_larger_one_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch)
    assert "seed" in scan_environment(SmallSeeds(), parts=["play"]).kinds()


class ShowsItsDifficulty(Vault):
    def messages(self, task: Task, state: Room) -> Sequence[Message]:
        return [user(f"Difficulty {task.info['difficulty']}.")]


def test_what_may_be_seen_can_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch)
    report = scan_environment(ShowsItsDifficulty(), parts=["play"])
    assert {finding.what.split(" of ")[0] for finding in report.findings} == {"info.difficulty"}, told(report)
    shown = scan_environment(ShowsItsDifficulty(), parts=["play"], allow=["info.difficulty"])
    assert shown.ok, told(shown)
    with pytest.raises(UnknownNameError, match=r"no place of a task 'info\.dificulty'"):
        scan_environment(ShowsItsDifficulty(), parts=["play"], allow=["info.dificulty"])


class DoesNotBegin(Vault):
    def reset(self, task: Task, seed: int) -> Room:
        raise RuntimeError("no room")


def test_an_environment_that_does_not_play_is_said_to_be_so() -> None:
    with pytest.raises(McpgymError, match=r"vault does not play.*no room"):
        scan_environment(DoesNotBegin(), parts=["play"])


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'routes'"):
        scan_environment(Vault(), parts=["route"])


def test_the_process_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch)
    before = dict(os.environ)
    scan_environment(Vault(), parts=["play"])
    assert dict(os.environ) == before


# A server that runs already.


@contextmanager
def running(make: Callable[[], Any]) -> Iterator[str]:
    """What ``make`` gives (an async context manager of a URL), on an event loop of its own."""
    ready, stop = threading.Event(), threading.Event()
    found: list[str] = []

    async def main() -> None:
        async with make() as url:
            found.append(url)
            ready.set()
            while not stop.is_set():
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield found[0]
    finally:
        stop.set()
        thread.join(20)


class Served:
    """An ASGI app on a port of its own."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __aenter__(self) -> str:
        listener = listen_tcp("127.0.0.1", 0, "--port")
        self.server = uvicorn.Server(uvicorn.Config(self.app, lifespan="on", log_level="error"))
        self.server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        self.task = asyncio.create_task(self.server.serve([listener.socket]))
        while not self.server.started:
            await asyncio.sleep(0.01)
        return listener.url

    async def __aexit__(self, *error: object) -> None:
        self.server.should_exit = True
        await self.task


class OurServer:
    async def __aenter__(self) -> str:
        self.serving = mcpgym.serving.serving(Episodes({"vault": Vault()}))
        return (await self.serving.__aenter__()).url

    async def __aexit__(self, *error: object) -> None:
        await self.serving.__aexit__(None, None, None)


def test_nothing_leaks_from_our_server_seen_from_its_url() -> None:
    with running(OurServer) as url:
        report = scan_url(url, play=True, canaries=["a-secret-that-nobody-says"])
    assert report.ok, told(report)
    assert report.requests > 500
    assert any("only what a URL shows" in note for note in report.notes)


def fastmcp_server() -> Served:
    from fastmcp import FastMCP
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    server: Any = FastMCP("leaky")

    @server.tool
    def move(cell: int) -> dict[str, Any]:
        """Play a cell."""
        return {"board": "X", "reward": 0.5, "hint": "the-plan-of-the-opponent"[::-1]}

    @server.custom_route("/reset", methods=["POST"])
    async def reset(request: Request) -> JSONResponse:
        return JSONResponse({"ok": True})

    return Served(server.http_app())


def test_leaks_of_a_fastmcp_server_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPGYM_SCAN_CANARIES", "the-plan-of-the-opponent\n")
    with running(fastmcp_server) as url:
        report = scan_url(url, play=True)
    found = {(finding.kind, finding.what) for finding in report.findings}
    assert ("given canary", "canary 1") in found, told(report)
    assert ("telling name", "'reward' is sent to players") in found
    assert any(kind == "route" and "POST /reset" in what for kind, what in found)


def test_what_is_no_server_and_what_is_no_url_is_said(command: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = command("scan", "http://127.0.0.1:9/mcp")
    assert (code, "cannot be reached" in err) == (1, True)
    for url in ("http://", "http://u:p@localhost/mcp", "http://localhost:99999/mcp", "http://localhost/mcp#x"):
        code, _, err = command("scan", url)
        assert (code, url in err) == (2, True), err
    with running(lambda: Served(only_hello)) as url:
        code, _, err = command("scan", url)
    assert (code, "does not answer as an MCP server" in err) == (1, True)


async def only_hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await answer(send, "hello")
    elif scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["tic-tac-toe", "--canary", "x" * 20], "--canary belongs to the URL"),
        (["tic-tac-toe", "--play"], "--play belongs to the URL"),
        (["tic-tac-toe", "--header", "A: b"], "--header belongs to the URL"),
        (["http://127.0.0.1:9", "--config", "a=b"], "--config belongs to an environment"),
        (["http://127.0.0.1:9", "--only", "play"], "--only belongs to an environment"),
        (["http://127.0.0.1:9", "--canary", "short"], "canary 1 is too short"),
        (["http://127.0.0.1:9", "--header", "Authorization"], "write it as NAME: VALUE"),
        (["http://127.0.0.1:9", "--header", "A: b\r\nC: d"], "write it as NAME: VALUE"),
        (["no-such-environment"], "no environment 'no-such-environment'"),
        (["tic-tac-toe", "--only", "plays"], "did you mean 'play'"),
        (["tic-tac-toe", "--allow", "nothing"], "info.random_move_prob"),
    ],
)
def test_options_that_cannot_be_are_refused(
    command: Callable[..., tuple[int, str, str]], options: list[str], problem: str
) -> None:
    code, _, err = command("scan", *options)
    assert (code, problem in err) == (2, True), err


@pytest.mark.slow
def test_the_command_reports_and_its_exit_code_tells(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_lane(monkeypatch)
    (tmp_path / "leaky.py").write_text("from scan_toys import AnswerInBase64, Vault\n", encoding="utf-8")
    code, out, err = command("scan", "leaky:AnswerInBase64", "--only", "play", "--json", "report.json")
    assert code == 1
    assert "vault leaks" in err
    assert "hidden info" in out
    assert "fix:" in out
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["schema"] == "mcpgym.scan/1"
    assert report["ok"] is False
    assert report["findings"][0]["excerpt"]
    code, out, err = command("scan", "leaky:Vault", "--only", "play")
    assert (code, "nothing leaked" in out) == (0, True), err


def test_what_is_printed_of_a_hostile_answer_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report = ScanReport("x\x1b]0;y\x07")
    report.add("reward", "\x1b[31m", "[bold]c", "\x9b2J", "\x1b[2J[red]\u202e", "how\x00", "fix")
    show(report)
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x07\x9b\x00\u202e")
    assert "[red]" in out
    assert "[bold]c" in out


def test_a_url_without_a_path_means_mcp() -> None:
    assert Address.of("http://127.0.0.1:8000").path == "/mcp"
    assert Address.of("https://example.com/a/mcp?x=1") == Address("example.com", 443, "/a/mcp?x=1", True)
    assert Address.of("http://[::1]:80/mcp").authority == "[::1]"
    with pytest.raises(UsageProblem, match="no URL of an MCP server"):
        Address.of("ftp://example.com")

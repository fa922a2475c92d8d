"""The control plane's listener: its own, this user's alone, and never the players'."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from control_toys import SECRET, desk, http, served

from mcpgym.control_client import HttpControl
from mcpgym.control_plane.address import default_socket, resolve_control_address, socket_directory
from mcpgym.control_plane.listeners import listen_tcp, listen_unix
from mcpgym.control_plane.secret import configured_secret
from mcpgym.errors import ConfigurationError
from mcpgym.serving import serving

PATHS = [
    "/environments", "/tasks?environment=desk&split=train", "/episodes", "/step", "/episodes/x", "/episodes/x/score",
    "/episodes/x/respond", "/health", "/metrics", "/openapi.json", "/docs", "", "/",
]  # fmt: skip


@pytest.fixture(autouse=True)
def runtime_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cp-") as directory:  # short: a unix socket's path is
        monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
        yield Path(directory)


def refused(act: Any, *says: str) -> None:
    async def run() -> None:
        async with act:
            pytest.fail("it was served")

    with pytest.raises(ConfigurationError) as error:
        asyncio.run(run())
    for words in says:
        assert words in str(error.value)


@pytest.mark.parametrize("options", [{}, {"control_port": 0}])
def test_case_26_on_the_players_listener_every_control_path_is_404_even_with_the_secret(options: Any) -> None:
    async def run() -> list[tuple[str, str, int]]:
        async with served(**options) as (server, control):
            opened = await control.open("desk", split="train")
            headers = {"authorization": f"Bearer {SECRET}"}
            paths = ["/control", "/control/v1", *(f"/control/v1{path}" for path in PATHS)]
            paths += [f"/control/v1/episodes/{opened.token}/score", f"/e/{opened.token}/control/v1/health"]
            paths += [
                f"/e/{opened.token}/score",
                "/metrics",
                "/docs",
                "/openapi.json",
                "/health",
                "/mcp/control/v1/step",
            ]
            found = []
            async with aiohttp.ClientSession(server.url, headers=headers) as session:
                for path, method in itertools.product(paths, ("GET", "POST", "DELETE", "OPTIONS")):
                    async with session.request(method, path) as answer:
                        found.append((method, path, answer.status))
            return found

    found = asyncio.run(run())
    assert len(found) > 60
    assert {status for _, _, status in found} == {404}, found


@pytest.mark.parametrize("options", [{}, {"control_port": 0}])
def test_on_the_control_listener_no_player_is_served(options: Any) -> None:
    async def run() -> list[int]:
        async with served(**options) as (server, control), http(server) as session:
            token = (await control.open("desk", split="train")).token
            return [(await session.post(path)).status for path in (f"/e/{token}/mcp", "/mcp", "/desk/mcp")]

    assert asyncio.run(run()) == [404, 404, 404]


def test_the_socket_and_its_folder_are_this_users_alone_and_gone_afterwards(runtime_directory: Path) -> None:
    async def run() -> Path:
        before = os.umask(0)  # the worst one
        try:
            async with served() as (server, control):
                path = Path(server.control_url.removeprefix("unix:"))
                assert path == default_socket(int(server.url.rpartition(":")[2]))
                assert stat.S_ISSOCK(path.lstat().st_mode)
                assert stat.S_IMODE(path.lstat().st_mode) == 0o600
                assert stat.S_IMODE(path.parent.lstat().st_mode) == 0o700
                assert path.lstat().st_uid == os.getuid()
                assert await control.environments()
                return path
        finally:
            os.umask(before)

    path = asyncio.run(run())
    assert path.parent.parent == runtime_directory
    assert not path.exists()


def test_nothing_listens_beyond_loopback_and_the_control_plane_on_no_port_unless_asked() -> None:
    import psutil

    async def run() -> list[Any]:
        before = {c.laddr for c in psutil.Process().net_connections("tcp") if c.status == "LISTEN"}
        async with served() as (server, _):
            found = [c.laddr for c in psutil.Process().net_connections("tcp") if c.status == "LISTEN"]
            assert f":{server.url.rpartition(':')[2]}" in {f":{address.port}" for address in found}
            return [address for address in found if address not in before]

    (only,) = asyncio.run(run())
    assert only.ip == "127.0.0.1"


def test_a_control_port_is_loopback_and_leaves_no_socket_file(runtime_directory: Path) -> None:
    async def run() -> str:
        async with served(control_port=0) as (server, control):
            assert await control.environments()
            assert not list(runtime_directory.iterdir())
            return server.control_url

    assert asyncio.run(run()).startswith("http://127.0.0.1:")


def test_a_page_that_rebinds_dns_to_the_control_port_is_refused_even_with_the_secret() -> None:
    async def run() -> list[int]:
        async with served(control_port=0) as (server, _), http(server) as session:
            port = server.control_url.rpartition(":")[2]
            hosts = [
                "evil.example",
                f"evil.example:{port}",
                "127.0.0.1.evil.example",
                "localhost",
                f"LOCALHOST:{port}",
                "[::1]:1",
            ]
            return [(await session.get("/control/v1/environments", headers={"host": host})).status for host in hosts]

    assert asyncio.run(run()) == [403, 403, 403, 200, 200, 200]


def test_only_pages_of_the_control_ports_own_are_answered_and_one_host_is_named() -> None:
    async def run() -> list[int]:
        async with served(control_port=0) as (server, _), http(server) as session:
            pages = ["http://evil.example", "null", "http://localhost:1@evil.example", server.control_url]
            found = [(await session.get("/control/v1/environments", headers={"origin": page})).status for page in pages]
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.control_url.rpartition(":")[2]))
            writer.write(b"GET /control/v1/health HTTP/1.1\r\nhost: evil.example\r\nhost: localhost\r\n\r\n")
            two = await reader.readline()
            writer.close()
            return [*found, int(two.split()[1])]

    assert asyncio.run(run()) == [403, 403, 403, 200, 403]


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    assert path.exists()

    async def run() -> int:
        async with served(control_socket=path) as (_, control):
            return len(await control.environments())

    assert asyncio.run(run()) == 1


def test_what_killed_servers_left_in_the_folder_is_swept_and_what_is_live_or_no_socket_is_not(
    runtime_directory: Path,
) -> None:
    folder = runtime_directory / "mcpgym"
    folder.mkdir(0o700)
    for number in (1, 2):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(folder / f"control-{number}.sock"))
    (folder / "control-3.sock").write_text("no socket")
    live = listen_unix(folder / "control-4.sock", 1)

    async def run() -> set[str]:
        async with served() as (server, _):
            own = Path(server.control_url.removeprefix("unix:")).name
            return {item.name for item in folder.iterdir()} - {own}

    assert asyncio.run(run()) == {"control-3.sock", "control-4.sock"}
    live.close()


def test_a_live_socket_is_not_stolen(tmp_path: Path) -> None:
    path = tmp_path / "c.sock"

    async def run() -> None:
        async with served(control_socket=path) as (_, control):
            with pytest.raises(ConfigurationError, match=r"another server listens there.*--control-socket"):
                async with serving(desk(), control_socket=path):
                    pytest.fail("it was stolen")
            assert await control.environments(), "the first server suffered"
            assert stat.S_ISSOCK(path.lstat().st_mode)

    asyncio.run(run())


def test_of_many_servers_that_start_at_once_on_one_path_exactly_one_wins(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    path = tmp_path / "c.sock"

    def start(_: int) -> Any:
        try:
            return listen_unix(path, 1)
        except ConfigurationError as error:
            return str(error)

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(start, range(32)))
    winners = [item for item in found if not isinstance(item, str)]
    assert len(winners) == 1
    assert all("another server" in item for item in found if isinstance(item, str))
    winners[0].close()
    assert not path.exists()


def test_on_leaving_a_file_that_is_another_servers_by_now_is_left_alone(tmp_path: Path) -> None:
    first = listen_unix(tmp_path / "c.sock", 1)
    (tmp_path / "c.sock").rename(tmp_path / "kept")  # keeps the inode, so that it is not given out anew
    second = listen_unix(tmp_path / "c.sock", 1)
    first.close()
    assert (tmp_path / "c.sock").exists()
    second.close()
    assert not (tmp_path / "c.sock").exists()


def test_a_file_that_is_no_socket_is_never_deleted(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("years of work")
    refused(serving(desk(), control_socket=path), "no socket", "another path")
    assert path.read_text() == "years of work"


def test_a_path_too_long_for_a_socket_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(serving(desk(), control_socket=tmp_path / ("x" * 120)), "107 at most", "--control-socket", "--control-port")
    deep = tmp_path / ("d" * 100)
    deep.mkdir(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    refused(serving(desk()), "107 at most", "--control-port")


def test_a_folder_that_is_missing_is_told_so(tmp_path: Path) -> None:
    refused(serving(desk(), control_socket=tmp_path / "no" / "c.sock"), "No such file")


def test_a_folder_that_others_can_read_is_closed_or_passed_by(runtime_directory: Path) -> None:
    (runtime_directory / "mcpgym").mkdir(0o755)

    async def run() -> int:
        async with served() as (server, _):
            return stat.S_IMODE(Path(server.control_url.removeprefix("unix:")).parent.stat().st_mode)

    assert asyncio.run(run()) == 0o700
    runtime_directory.chmod(0o777)
    assert runtime_directory not in socket_directory().parents, "anyone could put a folder there first"


def test_a_folder_that_is_a_link_is_refused(runtime_directory: Path) -> None:
    (runtime_directory / "elsewhere").mkdir(0o700)
    (runtime_directory / "mcpgym").symlink_to(runtime_directory / "elsewhere")
    refused(serving(desk()), "folder of yours", "XDG_RUNTIME_DIR", "--control-socket")


def test_a_taken_port_is_told_with_the_fix() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(serving(desk(), port=port), f"port {port}", "in use", "--port")
        refused(serving(desk(), control_port=port), f"port {port}", "in use", "--control-port")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"port": 70_000}, "0 to 65535"),
        ({"port": -1}, "0 to 65535"),
        ({"host": "no.such.host.invalid"}, "cannot be resolved"),
        ({"host": "192.0.2.1"}, "no address of this machine"),
        ({"control_port": 0, "control_socket": "/tmp/x"}, "not both"),
        ({"control_host": "127.0.0.1"}, "--control-port"),
        ({"secret": "short"}, "5 characters; a control secret has 16"),
        ({"secret": "sixteen or more, with spaces"}, "without spaces"),
        ({"secret": "sixteen-or-more-\n"}, "plain ASCII"),
        ({"secret": "sixteen-or-more-é"}, "plain ASCII"),
    ],
)
def test_options_that_cannot_be_are_refused_with_the_fix(options: Any, says: str, runtime_directory: Path) -> None:
    refused(serving(desk(), **options), says)
    left = runtime_directory / "mcpgym"
    assert not left.exists() or not list(left.iterdir())


def test_after_a_refusal_every_socket_is_free_again() -> None:
    port = (probe := listen_tcp("127.0.0.1", 0, "--port")).socket.getsockname()[1]
    probe.close()
    refused(serving(desk(), port=port, control_host="127.0.0.1"), "--control-port")
    listen_tcp("127.0.0.1", port, "--port").close()


def test_the_secret_comes_from_the_argument_the_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def secret(**options: Any) -> tuple[str, bool]:
        async with serving(desk(), **options) as server:
            return server.secret, server.secret_is_new

    made = [asyncio.run(secret()) for _ in range(2)]
    assert all(new and len(value) >= 43 for value, new in made)
    assert made[0] != made[1]
    file = tmp_path / "secret"
    file.write_text("the-secret-from-the-file\n")
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET_FILE", str(file))
    assert asyncio.run(secret()) == ("the-secret-from-the-file", False)
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET", "the-secret-from-the-environment")
    assert asyncio.run(secret()) == ("the-secret-from-the-environment", False)
    assert asyncio.run(secret(secret_file=file)) == ("the-secret-from-the-file", False)
    assert asyncio.run(secret(secret=SECRET, secret_file=file)) == (SECRET, False)
    refused(serving(desk(), secret_file=tmp_path / "none"), "cannot be read")
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET", "")
    refused(serving(desk()), "MCPGYM_CONTROL_SECRET has 0 characters")


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_who_can_read_the_secrets_file_too_is_warned_of_where_its_owner_could_help_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a pod the file is root's, and a group may read it for whose sake it is there."""
    (tmp_path / "secret").write_text(SECRET)

    def warned(bits: int) -> bool:
        caplog.clear()
        (tmp_path / "secret").chmod(bits)
        assert configured_secret(file=tmp_path / "secret") == SECRET
        return "can be read by others" in caplog.text

    assert [warned(bits) for bits in (0o600, 0o440, 0o644)] == [False, True, True]
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert [warned(bits) for bits in (0o600, 0o440, 0o644)] == [False, False, True]


def test_a_players_url_leads_to_the_control_socket_of_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET", SECRET)

    async def run() -> None:
        async with served() as (server, _):
            for text in (server.url, f"{server.url}/", f"{server.url}/mcp", f"{server.url}/e/0/mcp"):
                assert resolve_control_address(text) == (server.control_url, SECRET)
            assert resolve_control_address(server.control_url) == (server.control_url, SECRET)
            async with HttpControl(*resolve_control_address(server.url)) as control:
                assert len(await control.environments()) == 1
        gone = server.url
        assert resolve_control_address(gone) == (gone, SECRET)  # nothing there: perhaps a control port
        with pytest.raises(ConfigurationError, match="player's URL"):
            resolve_control_address(f"{gone}/mcp")

    asyncio.run(run())


@pytest.mark.parametrize(
    "text", ["", "unix:", "unix:relative.sock", "ftp://x", "http://", "http://a:b", "127.0.0.1:80"]
)
def test_what_is_no_address_is_told_so(text: str) -> None:
    with pytest.raises(ConfigurationError, match="unix:/path"):
        resolve_control_address(text, SECRET)
    with pytest.raises(ConfigurationError, match="unix:/path"):
        HttpControl(text, SECRET)


def test_without_a_secret_a_client_says_how_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPGYM_CONTROL_SECRET", raising=False)
    for make in (HttpControl, resolve_control_address):
        with pytest.raises(ConfigurationError, match="MCPGYM_CONTROL_SECRET"):
            make("unix:/tmp/x")

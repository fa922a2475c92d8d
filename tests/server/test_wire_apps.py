"""MCP Apps: an environment's app over the wire, and that nothing else is different with it or without it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from mcp import Client
from wire_toys import HOST_HEADERS, Ledger, ask, raw_headers, served, text_of, toy_episodes

from mcpgym import App, ConfigurationError
from mcpgym.episodes import Episodes
from mcpgym.schema import schema_hash
from mcpgym.wire import player_app

ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
PAGE = (
    "<!doctype html><title>Words</title><p id=words><script>document.getElementById('words').textContent = 1</script>"
)
MIME = "text/html;profile=mcp-app"
URI = "ui://shown/app.html"


class Shown(Ledger):
    """The ledger with an app that shows two of its tools."""

    name = "shown"

    def app(self) -> App | None:
        return App(PAGE, tools=["add", "start_episode"])


class Broken(Ledger):
    """One whose app cannot be made."""

    name = "broken-app"

    def app(self) -> App | None:
        raise RuntimeError("the secret is 42")


def shown_episodes() -> Episodes:
    return Episodes({"shown": Shown(), "ledger": Ledger()})


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy", "auto"])
@pytest.mark.parametrize("address", ["episode", "one", "all"])
def test_tools_name_the_app_that_shows_them_and_it_can_be_read(mode: str, address: str) -> None:
    async def main() -> None:
        episodes = shown_episodes()
        async with served(player_app(episodes)) as url:
            token = (await episodes.open("shown", split="train", index=0)).token
            where = {"episode": f"/e/{token}/mcp", "one": "/shown/mcp", "all": "/mcp"}[address]
            async with Client(f"{url}{where}", mode=mode) as client:
                tools = (await client.list_tools()).tools
                linked = {tool.name: (tool.meta or {}).get("ui") for tool in tools if tool.meta}
                names = {"episode": ["add"], "one": ["start_episode", "add"], "all": ["shown_add"]}[address]
                assert linked == {name: {"resourceUri": URI} for name in names}
                found = {item.uri: item for item in (await client.list_resources()).resources}
                assert found[URI].mime_type == MIME
                (content,) = (await client.read_resource(URI)).contents
                assert (content.mime_type, content.text) == (MIME, PAGE)  # type: ignore[union-attr]
                assert content.meta == {"ui": {"prefersBorder": True}}
                if mode == "auto":  # the older protocols know no extensions, and 2026-07-28 alone asks nothing first
                    assert client.server_capabilities.extensions == {"io.modelcontextprotocol/ui": {}}

    asyncio.run(main())


def test_what_a_model_sees_of_the_tools_is_the_same_with_an_app_and_without() -> None:
    assert Shown.schema_hash == Ledger.schema_hash

    async def main() -> None:
        episodes = shown_episodes()
        hashes = set()
        async with served(player_app(episodes)) as url:
            for name in ("shown", "ledger"):
                token = (await episodes.open(name, split="train", index=0)).token
                async with Client(f"{url}/e/{token}/mcp") as client:
                    tools = (await client.list_tools()).tools
                    hashes.add(schema_hash([tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]))
                    assert text_of(await client.call_tool("add", {"word": "a"})) == "a"
        assert hashes == {Ledger.schema_hash}

    asyncio.run(main())


@pytest.mark.parametrize("cls", [Ledger, Broken])
def test_without_an_app_not_a_byte_speaks_of_any(cls: type[Ledger], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1)

    async def main() -> None:
        episodes = Episodes({cls.name: cls()})
        token = (await episodes.open(cls.name, split="train", index=0)).token
        app = player_app(episodes)
        said = b""
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        async with app.running():
            for path in (f"/e/{token}/mcp", "/mcp"):
                for method, params in (
                    ("initialize", info), ("tools/list", {}), ("resources/list", {}),
                    ("resources/templates/list", {}), ("resources/read", {"uri": f"ui://{cls.name}/app.html"}),
                    ("resources/read", {"uri": f"env://{cls.name}/episode"}),
                ):  # fmt: skip
                    headers = {
                        **HOST,
                        "content-type": "application/json",
                        "accept": "application/json, text/event-stream",
                    }
                    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                    answer = await ask(app, path, raw_headers(headers), json.dumps(body).encode(), "POST")
                    assert answer[0] in (200, 400), answer
                    if method == "resources/read":
                        assert b'"error"' in answer[2]
                    else:
                        said += answer[2]
        for word in (b"mcp-app", b"resourceUri", b"extensions", b"ui://", b"/episode", b"42"):
            assert word not in said

    asyncio.run(main())


HOST = HOST_HEADERS


@ERAS
def test_an_app_reads_what_the_policy_has_read_and_nothing_else(mode: str) -> None:
    async def main() -> None:
        episodes = shown_episodes()
        async with served(player_app(episodes)) as url:
            mine = await episodes.open("shown", split="train", index=7, seed=987654321)
            other = await episodes.open("shown", split="train", index=8)
            async with Client(f"{url}/e/{mine.token}/mcp", mode=mode) as client:

                async def read(where: str = "") -> str:
                    found = await client.read_resource(f"env://shown/episode{where}")
                    return str(found.contents[0].text)  # type: ignore[union-attr]

                before = json.loads(await read())
                assert before["texts"] == ["Be brief.", "Keep list 7 of train."]
                for number in range(12):
                    await client.call_tool("add", {"word": f"w{number}"})
                await client.call_tool("add", {"word": "no", "times": 99})
                said = await read()
                after = json.loads(said)
                assert len(after["texts"]) == 8
                assert after["texts"][-2].split() == [f"w{number}" for number in range(12)]
                assert after["texts"][-1] == "times is 0 to 9, not 99"
                assert after["done"] is False
                assert after.keys() == {"environment", "texts", "done"}
                for secret in ("SECRET", "987654321", mine.token):
                    assert secret not in said
                for where in (f"/{other.token}", f"/{mine.token}", "/x/y"):
                    with pytest.raises(Exception, match=r"no (episode|resource)"):
                        await read(where)
                await client.call_tool("add", {"word": "stop"})
                assert json.loads(await read())["done"] is True
                await episodes.close(mine.token)
                with pytest.raises(Exception, match="no episode"):
                    await read()

    asyncio.run(main())


@ERAS
def test_at_a_bare_address_a_handle_says_which_episode_an_app_reads(mode: str) -> None:
    async def main() -> None:
        async with served(player_app(shown_episodes())) as url, Client(f"{url}/shown/mcp", mode=mode) as client:
            handles = []
            for word in ("one", "two"):
                started = text_of(await client.call_tool("start_episode", {}))
                handles.append(started.split()[1])
                await client.call_tool("add", {"episode": handles[-1], "word": word})
            for handle, word in zip(handles, ("one", "two"), strict=True):
                found = await client.read_resource(f"env://shown/episode/{handle}")
                assert json.loads(found.contents[0].text)["texts"] == [word]  # type: ignore[union-attr]
            for wrong in ("", "/", "/" + "0" * 32, "/" + handles[0][:-1]):
                with pytest.raises(Exception, match="no episode"):
                    await client.read_resource(f"env://shown/episode{wrong}")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("<script src='https://evil.example/a.js'></script>", "loads a file"),
        ("<link rel=stylesheet href='a.css'>", "leads, elsewhere"),
        ("<img src=a.png>", "loads a file"),
        ("<style>p { background: url(a.png) }</style>", "loads a file"),
        ("<style>@import 'a.css'</style>", "loads a file"),
        ("<script type=module>import { a } from './a.js'</script>", "loads a file"),
        ("<script>const a = await import('./a.js')</script>", "loads a file"),
        ("<script>fetch('/x')</script>", "asks for data"),
        ("<script>new WebSocket('ws://x')</script>", "asks for data"),
        ("<script>eval('1')</script>", "made from text"),
        ("<iframe></iframe>", "elsewhere"),
        ("<meta HTTP-EQUIV=refresh content=0>", "headers"),
        ("<a href='https://evil.example'>x</a>", "leads elsewhere"),
        ("<script>localStorage.x = 1</script>", "no storage"),
    ],
)
def test_an_app_that_loads_anything_is_refused_with_its_line(part: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as refused:
        App(f"<!doctype html>\n<p>words</p>\n{part}")
    assert str(refused.value).startswith("line 3 of this app has ")


@pytest.mark.parametrize(
    "html",
    ["", "<p>hello</p>", "<!doctype html>" + "x" * 300_000, "<!doctype html>\ud800", None, b"<!doctype html>"],
    ids=["empty", "part", "long", "half-a-character", "none", "bytes"],
)
def test_what_is_no_page_is_refused(html: Any) -> None:
    with pytest.raises(ConfigurationError, match="app"):
        App(html)


def test_the_app_is_made_once_for_an_instance() -> None:
    made: list[int] = []

    class Counted(Shown):
        name = "counted"

        def app(self) -> App | None:
            made.append(1)
            return super().app()

        def tasks(self, split: Annotated[str, "A split."]) -> Sequence[Any]:
            return super().tasks(split)

    async def main() -> None:
        async with served(player_app(Episodes({"counted": Counted()}))) as url:
            for _ in range(3):
                async with Client(f"{url}/mcp") as client:
                    await client.list_tools()
                    await client.list_resources()

    asyncio.run(main())
    assert made == [1]
    assert "shown" not in toy_episodes().environments


def test_what_is_no_app_keeps_nobody_from_playing(caplog: pytest.LogCaptureFixture) -> None:
    class Mistaken(Shown):
        name = "mistaken"

        def app(self) -> Any:
            return "<!doctype html>"

    async def main() -> None:
        async with served(player_app(Episodes({"mistaken": Mistaken()}))) as url, Client(f"{url}/mcp") as client:
            assert len((await client.list_tools()).tools) > 1
            assert not [
                found for found in (await client.list_resources()).resources if str(found.uri).startswith("ui:")
            ]

    asyncio.run(main())
    assert "app() gives a str, which is no mcpgym.App" in caplog.text

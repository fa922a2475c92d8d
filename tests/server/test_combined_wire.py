"""Combinations over MCP: by an episode's address, by bare ones beside their members, and over stdio."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any

import pytest
from combined_toys import Asking, Counting
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from wire_toys import served, text_of

from mcpgym import load_environment
from mcpgym.combined import combine
from mcpgym.episodes import Episodes
from mcpgym.schema import schema_faults, schema_hash
from mcpgym.wire import player_app
from mcpgym.wire.bare import BarePlayer, Handles

SPEC = "tic-tac-toe+reverse-text+again=tic-tac-toe"
ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])


async def play_out(client: Client, tools: list[str], handle: dict[str, str]) -> list[str]:
    """Play every game by the first free cell."""
    texts = []
    for tool in tools:
        for _ in range(9):
            said = texts[-1] if texts and tool in texts[-1] else ""
            free = re.search(r"free ([\d ]+)", said)
            cell = int(free[1].split()[0]) if free else 4
            result = await client.call_tool(tool, {**handle, "position": cell})
            texts.append(f"{tool}: {text_of(result)}")
            if "is over." in texts[-1]:
                break
    return texts


@ERAS
def test_a_real_client_plays_every_part_by_the_address_of_an_episode(mode: str) -> None:
    async def main() -> None:
        episodes = Episodes({SPEC: load_environment(SPEC)})
        one, other = [await episodes.open(SPEC, split="test", index=3, seed=5) for _ in range(2)]
        async with (
            served(player_app(episodes)) as url,
            Client(f"{url}/e/{one.token}/mcp", mode=mode) as client,
            Client(f"{url}/e/{other.token}/mcp", mode=mode) as second,
        ):
            listed = [tool.model_dump(by_alias=True) for tool in (await client.list_tools()).tools]
            assert schema_hash(listed) == episodes.environments[SPEC].schema_hash
            names = [tool["name"] for tool in listed]
            assert names == ["tic_tac_toe__play", "again__play"]
            prompt = (await client.get_prompt("task")).messages
            assert "## reverse_text\nIt has no tools" in prompt[1].content.text  # type: ignore[union-attr]
            texts = await play_out(client, names, {})
            assert texts == await play_out(second, names, {})
            assert [part.over for part in one.state.parts.values()] == ["done", None, "done"]
            refused = await client.call_tool("again__play", {"position": 0})
            assert refused.is_error
            assert "Still open: reverse_text" in text_of(refused)
            for resource in (await client.list_resources()).resources:
                assert (await client.read_resource(resource.uri)).contents

    asyncio.run(main())


@ERAS
def test_a_server_publishes_members_and_their_combination_beside_each_other(mode: str) -> None:
    async def main() -> None:
        names = ["tic-tac-toe", "reverse-text", SPEC]
        episodes = Episodes.of(*names)
        async with served(player_app(episodes)) as url:
            for path in ("/mcp", f"/{SPEC}/mcp"):
                async with Client(f"{url}{path}", mode=mode) as client:
                    tools = [tool.name for tool in (await client.list_tools()).tools]
                    assert tools[-2:] == ["tic_tac_toe__play", "again__play"]
                    assert len(set(tools)) == len(tools)
                    given_ = {"environment": SPEC} if path == "/mcp" else {}
                    started = text_of(await client.call_tool("start_episode", {"task": "test-3", **given_}))
                    handle = started.split("\n")[0].removeprefix("episode: ")
                    texts = await play_out(client, tools[-2:], {"episode": handle})
                    assert sum("is over." in text for text in texts) == 2

    asyncio.run(main())


def test_a_real_client_plays_a_combination_over_stdio() -> None:
    words = ["-m", "mcpgym_clients", "serve", SPEC, "--stdio", "--split", "test", "--index", "3", "--seed", "5"]

    async def main() -> None:
        async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=words))) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            texts = await play_out(client, names, {})
        episodes = Episodes({SPEC: load_environment(SPEC)})
        here = await episodes.open(SPEC, split="test", index=3, seed=5)
        assert texts[0] == f"tic_tac_toe__play: {(await here.call('tic_tac_toe__play', {'position': 4})).text}"

    asyncio.run(main())


MEMBERS: dict[str, Any] = {"counting": Counting, "asking": Asking, "tic-tac-toe": "tic-tac-toe", "x": "wiki-search"}


@settings(max_examples=12, deadline=None)
@given(
    combinations=st.lists(
        st.lists(st.sampled_from(sorted(MEMBERS)), min_size=2, max_size=4), min_size=1, max_size=5, unique_by=tuple
    ),
    alone=st.sets(st.sampled_from(sorted(MEMBERS))),
)
def test_no_two_tools_at_a_bare_address_have_one_name_and_each_reaches_its_own(
    combinations: list[list[str]], alone: set[str]
) -> None:
    made = [combine(*(MEMBERS[name] for name in names)) for names in combinations]
    single = [MEMBERS[name]() for name in sorted(alone) if not isinstance(MEMBERS[name], str)]
    environments = {environment.name: environment for environment in [*made, *single]}
    player = BarePlayer(Episodes(environments), Handles(Episodes(environments)), list(environments))
    listed = player.tools()
    names = [tool["name"] for tool in listed]
    assert len(set(names)) == len(names) == 1 + sum(len(one.tools) for one in environments.values())
    assert [fault for tool in listed for fault in schema_faults("mcpgym", tool)] == []
    for bare in player._tools.values():
        assert environments[bare.environment].tools[bare.tool.name] == bare.tool
    assert json.dumps(listed) == json.dumps(
        BarePlayer(Episodes(environments), Handles(Episodes(environments)), list(environments)).tools()
    )

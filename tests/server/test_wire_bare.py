"""Bare addresses: handles, names that clash, and what people's clients show (prompts, resources)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import pytest
from mcp import Client
from wire_toys import HOST_HEADERS, Ledger, ask, modern_call, raw_headers, served, text_of, toy_episodes

from mcpgym import Config, Environment, LazyTasks, Task, task_id, tool
from mcpgym.episodes import Episodes, Limits
from mcpgym.schema import schema_faults
from mcpgym.wire import player_app
from mcpgym.wire.bare import BarePlayer, Handles

ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])


def bare(episodes: Episodes, *names: str) -> BarePlayer:
    return BarePlayer(episodes, Handles(episodes), names or list(episodes.environments))


def handle_in(text: str) -> str:
    first = text.split("\n")[0]
    assert first.startswith("episode: ")
    return first.removeprefix("episode: ")


def called(player: BarePlayer, name: str, arguments: Mapping[str, Any]) -> Any:
    return asyncio.run(player.call(name, arguments, None))


def test_case_19_tools_of_one_name_get_their_environments_name_in_front_and_stay_at_the_fixed_point() -> None:
    listed = bare(toy_episodes()).tools()
    names = [tool["name"] for tool in listed]
    assert names == [
        "start_episode", "add", "ledger_read", "add_slowly", "add_in_thread", "overrun", "freeze", "broken",
        "count_er_read", "up",
    ]  # fmt: skip
    assert names == [tool["name"] for tool in bare(toy_episodes()).tools()]
    for tool_ in listed:
        assert schema_faults("mcpgym", tool_) == []  # case 20
        if tool_["name"] != "start_episode":
            assert next(iter(tool_["inputSchema"]["properties"])) == "episode"
            assert "episode" in tool_["inputSchema"]["required"]
    start = listed[0]["inputSchema"]
    assert start["properties"]["environment"]["enum"] == ["ledger", "count-er"]
    assert start["properties"]["task"]["default"] == ""
    assert start["required"] == ["environment"]


def test_case_19_one_environment_alone_keeps_its_tools_names_and_needs_no_environment_argument() -> None:
    listed = bare(toy_episodes(), "ledger").tools()
    assert [tool["name"] for tool in listed] == ["start_episode", *Ledger.tools]
    assert list(listed[0]["inputSchema"]["properties"]) == ["task"]
    assert listed[0]["inputSchema"]["required"] == []


class Nothing(Environment[Task, list[str], Config]):
    """One task, no state."""

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(1, lambda i: Task(task_id(split, i), split, ()))

    def reset(self, task: Task, seed: int) -> list[str]:
        return []


def clashing(environment: str, *names: str) -> Environment[Any, Any, Any]:
    """An environment with tools of these names, each of which says who answers, and takes an ``episode`` of its own."""

    def made(name: str) -> Any:
        def handler(self: Any, state: Any, episode: Annotated[str, "A part of a series."] = "") -> str:
            """Say who answers."""
            return f"{environment} {name} {episode}"

        return tool(name=name, inline=True)(handler)

    methods = {f"method_{name}": made(name) for name in names}
    return cast(Any, type(environment, (Nothing,), {"name": environment, **methods})())


def test_case_19_names_that_clash_even_with_prefixes_and_reserved_names_stay_apart_and_reach_their_own() -> None:
    long = "a-name-as-long-as-an-environment-name-can-well-be"
    made = [
        clashing("a", "b_c", "start_episode", "c"),
        clashing("a-b", "c", "go"),
        clashing("d", "a_c", "c"),
        clashing(long, "go", "c"),
    ]
    episodes = Episodes({environment.name: environment for environment in made})
    player = bare(episodes)
    listed = player.tools()
    names = [tool["name"] for tool in listed]
    assert len(set(names)) == len(names) == 1 + sum(len(environment.tools) for environment in made)
    assert [fault for tool in listed for fault in schema_faults("mcpgym", tool)] == []

    async def main() -> None:
        handles = {
            environment.name: handle_in(
                (await player.call("start_episode", {"environment": environment.name}, None)).text
            )
            for environment in made
        }
        for name, bare_tool in player._tools.items():
            given = {"episode_handle": handles[bare_tool.environment], "episode": "4"}
            assert (await player.call(name, given, None)).text == f"{bare_tool.environment} {bare_tool.tool.name} 4"

    asyncio.run(main())


@ERAS
def test_starting_anew_is_always_possible_and_each_start_is_its_own_episode(mode: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url, Client(f"{url}/mcp", mode=mode) as client:
            tasks, handles = set(), set()
            for _ in range(12):
                text = text_of(await client.call_tool("start_episode", {"environment": "ledger"}))
                handles.add(handle_in(text))
                tasks.add(text)
                assert "of test." in text  # the last split
            assert len(handles) == 12
            assert len({text.split("Keep list ")[1] for text in tasks}) > 4
            assert len({episode.seed for episode in episodes._live.values()}) == 12
            text = text_of(await client.call_tool("start_episode", {"environment": "ledger", "task": "train-3"}))
            assert text == f"episode: {handle_in(text)}\n\nBe brief.\n\nKeep list 3 of train."
            over = await client.call_tool("add", {"episode": handle_in(text), "word": "stop"})
            assert text_of(over) == "stop\n(This episode is over; start_episode begins another.)"
            assert (over.meta or {})["mcpgym/done"] is True
            counted = text_of(await client.call_tool("start_episode", {"environment": "count-er"}))
            assert text_of(await client.call_tool("up", {"episode": handle_in(counted), "by": 2})) == "2"
            assert text_of(await client.call_tool("count_er_read", {"episode": handle_in(counted)})) == "2"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("add", {"word": "a"}, "episode is missing; give the handle that start_episode returned"),
        ("add", {"word": "a", "episode": "nope"}, "no episode has the handle 'nope'; call start_episode"),
        ("add", {"word": "a", "episode": ""}, "no episode has the handle ''"),
        ("add", {"word": "a", "episode": 5}, "no episode has the handle"),
        ("add", {"word": "a", "episode": ["x"]}, "no episode has the handle"),
        ("add", {"word": "a", "episode": "x" * 10_000}, "call start_episode"),
        ("read", {}, "there is no tool 'read'; there is: start_episode, add, ledger_read"),
        ("start_episode", {"environment": "nope"}, "environment"),
        ("start_episode", {}, "environment is missing"),
        ("start_episode", {}, "task: string (optional)}"),
        ("start_episode", {"environment": "ledger", "task": "train-999"}, "no task 'train-999'"),
        ("start_episode", {"environment": "ledger", "task": 3}, "task"),
        ("start_episode", {"environment": "ledger", "seed": 3}, "seed is not a parameter"),
    ],
)
def test_bad_calls_read_what_would_be_right(name: str, arguments: dict[str, Any], says: str) -> None:
    result = called(bare(toy_episodes()), name, arguments)
    assert result.is_error
    assert says in result.text
    assert len(result.text) < 600


def test_a_handle_reaches_only_its_own_environments_tools() -> None:
    async def main() -> None:
        player = bare(toy_episodes())
        handle = handle_in((await player.call("start_episode", {"environment": "count-er"}, None)).text)
        result = await player.call("add", {"episode": handle, "word": "a"}, None)
        assert result.is_error
        assert (
            "add belongs to ledger, and this episode is one of count-er, whose tools are: count_er_read, up"
            in result.text
        )

    asyncio.run(main())


def test_an_episode_of_the_control_plane_is_unknown_here_and_a_handle_is_no_token() -> None:
    async def main() -> None:
        episodes = toy_episodes()
        app = player_app(episodes)
        scored = await episodes.open("ledger", split="train", index=0)
        async with app.running():

            async def call(path: str, name: str, arguments: dict[str, Any]) -> tuple[int, str]:
                headers, body = modern_call(name, arguments)
                status, _, answer = await ask(
                    app, path, raw_headers({**HOST_HEADERS, **headers}), json.dumps(body).encode()
                )
                return status, answer.decode()

            status, text = await call("/mcp", "add", {"episode": scored.token, "word": "a"})
            assert (status, scored.state) == (200, [])
            assert "no episode has the handle" in text
            status, text = await call("/mcp", "start_episode", {"environment": "ledger"})
            handle = text.split("episode: ")[1][:32]
            assert (await call(f"/e/{handle}/mcp", "read", {}))[0] == 404
            token = next(token for token in episodes._live if token != scored.token)
            assert token not in text
            for path in ("/mcp", "/ledger/mcp"):
                name = "ledger_read" if path == "/mcp" else "read"
                assert '"isError":false' in (await call(path, name, {"episode": handle}))[1]
            assert "no tool" in (await call("/count-er/mcp", "add", {"episode": handle, "word": "a"}))[1]

    asyncio.run(main())


def test_a_full_server_and_an_expired_episode_are_told_as_tool_errors() -> None:
    async def main() -> None:
        episodes = Episodes({"ledger": Ledger()}, Limits(live=2, idle_seconds=0.05))
        player = bare(episodes)
        handles = [handle_in((await player.call("start_episode", {}, None)).text) for _ in range(2)]
        full = await player.call("start_episode", {}, None)
        assert full.is_error
        assert "2 episodes are live, which is this server's cap" in full.text
        await asyncio.sleep(0.1)
        await episodes.expire()
        late = await player.call("read", {"episode": handles[0]}, None)
        assert late.is_error
        assert late.text.startswith("this episode has ended: expired")
        assert late.text.endswith("call start_episode for a new one")
        assert not (await player.call("start_episode", {}, None)).is_error

    asyncio.run(main())


def test_an_environment_that_fails_to_begin_tells_a_policy_nothing_of_how() -> None:
    class Failing(Ledger):
        name = "failing"

        def reset(self, task: Task, seed: int) -> list[str]:
            raise RuntimeError(f"the answer is {task.info['answer']}")

    result = called(bare(Episodes({"failing": Failing()})), "start_episode", {})
    assert result.is_error
    assert result.text == "start_episode failed inside the environment; try another task"


def test_handles_are_as_many_as_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgym.wire.bare.MAX_HANDLES", 3)

    async def main() -> None:
        player = bare(toy_episodes(), "ledger")
        handles = [handle_in((await player.call("start_episode", {}, None)).text) for _ in range(5)]
        alive = [not (await player.call("read", {"episode": handle}, None)).is_error for handle in handles]
        assert alive == [False, False, True, True, True]

    asyncio.run(main())


@ERAS
def test_prompts_start_a_task_and_resources_tell_rules_and_tasks(mode: str) -> None:
    async def main() -> None:
        async with served(player_app(toy_episodes())) as url, Client(f"{url}/mcp", mode=mode) as client:
            prompts = (await client.list_prompts()).prompts
            assert [prompt.name for prompt in prompts] == ["ledger", "count-er"]
            assert [argument.name for argument in prompts[0].arguments or ()] == ["task"]
            asked = await client.get_prompt("ledger", {"task": "train-3"})
            said = asked.messages[0].content.text  # type: ignore[union-attr]
            assert 'Call start_episode with environment "ledger" and task "train-3"' in said
            with pytest.raises(Exception, match="no prompt 'nope'"):
                await client.get_prompt("nope")
            found = [resource.uri for resource in (await client.list_resources()).resources]
            assert found == [
                "env://ledger/rules", "env://ledger/tasks/train", "env://ledger/tasks/test",
                "env://count-er/rules", "env://count-er/tasks/train", "env://count-er/tasks/test",
            ]  # fmt: skip
            templates = [
                template.uri_template for template in (await client.list_resource_templates()).resource_templates
            ]
            assert templates[:2] == ["env://ledger/task/{id}", "env://ledger/tasks/{split}{?offset}"]

            async def read(address: str) -> str:
                return (await client.read_resource(address)).contents[0].text  # type: ignore[union-attr,no-any-return]

            assert Ledger.instructions in await read("env://ledger/rules")
            ids: list[str] = []
            address: str | None = "env://ledger/tasks/train"
            while address is not None:
                page = json.loads(await read(address))
                ids += page["ids"]
                address = page.get("next")
            assert ids == [f"train-{number}" for number in range(250)]
            task = json.loads(await read("env://ledger/task/test-9"))
            assert task.keys() == {"id", "split", "messages"}

    asyncio.run(main())


def test_instructions_fit_what_clients_show_however_much_is_served() -> None:
    class Wordy(Ledger):
        name = "wordy"
        instructions = "é" * 1024

    one = bare(Episodes({"wordy": Wordy()})).face.instructions
    environments: Sequence[Any] = [
        type("W", (Ledger,), {"name": f"e{i}", "description": "é" * 300})() for i in range(20)
    ]
    many = bare(Episodes({environment.name: environment for environment in environments})).face.instructions
    for text in (one, many):
        assert len(text.encode()) <= 2048
        assert text.startswith("Call start_episode first.")

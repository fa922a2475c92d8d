"""What people's clients ask besides playing: suggestions while they type, a log level, resources that are not there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference
from tests.server.wire_toys import HOST_HEADERS, Ledger, ask, modern_call, raw_headers, served, toy_episodes

from mcpgym import Config, ConfigurationError, Environment, LazyTasks, Task, task_id
from mcpgym.episodes import Episodes
from mcpgym.wire import player_app

MODES = ["auto", "legacy"]


class Drawn(Environment[Task, None, Config]):
    """An environment of a million tasks, of which it counts how many it has to make."""

    name = "drawn"
    made = 0

    def tasks(self, split: str) -> Sequence[Task]:
        def one(index: int) -> Task:
            self.made += 1
            return Task(task_id(split, index), split, ({"role": "user", "content": "Go."},))

        return LazyTasks(1_000_000, one)

    def reset(self, task: Task, seed: int) -> None:
        return None


@pytest.mark.parametrize("mode", MODES)
def test_a_prompts_task_is_completed_by_ids(mode: Any) -> None:
    async def main() -> Any:
        async with served(player_app(toy_episodes())) as url, Client(f"{url}/mcp", mode=mode) as client:
            assert client.server_capabilities.completions is not None
            prompt = PromptReference(name="ledger")
            some = await client.complete(prompt, {"name": "task", "value": "test-11"})
            far = await client.complete(prompt, {"name": "task", "value": "train-249"})
            none = await client.complete(prompt, {"name": "task", "value": "nothing"})
            everything = await client.complete(prompt, {"name": "task", "value": ""})
            other = await client.complete(prompt, {"name": "mood", "value": ""})
            return [found.completion for found in (some, far, none, everything, other)]

    some, far, none, everything, other = asyncio.run(main())
    assert some.values == ["test-11"]
    assert far.values == ["train-249"]  # beyond what is looked through, and typed whole
    assert none.values == other.values == []
    assert (len(everything.values), everything.values[0], everything.has_more) == (100, "train-0", True)


def test_templates_are_completed_by_ids_and_splits() -> None:
    async def main() -> Any:
        async with served(player_app(toy_episodes())) as url, Client(f"{url}/ledger/mcp") as client:
            task = ResourceTemplateReference(uri="env://ledger/task/{id}")
            page = ResourceTemplateReference(uri="env://ledger/tasks/{split}{?offset}")
            ids = await client.complete(task, {"name": "id", "value": "train-9"})
            splits = await client.complete(page, {"name": "split", "value": "t"})
            offset = await client.complete(page, {"name": "offset", "value": "1"})
            return [found.completion.values for found in (ids, splits, offset)]

    ids, splits, offset = asyncio.run(main())
    assert ids == ["train-9", *(f"train-{number}" for number in range(90, 100))]
    assert splits == ["train", "test"]
    assert offset == []


@pytest.mark.parametrize(
    "ref",
    [PromptReference(name="chess"), ResourceTemplateReference(uri="env://count-er/task/{id}")],
    ids=["prompt", "uri"],
)
def test_what_is_not_there_is_not_completed_and_the_answer_says_what_is(ref: Any) -> None:
    async def main() -> None:
        async with served(player_app(toy_episodes())) as url, Client(f"{url}/ledger/mcp") as client:
            with pytest.raises(MCPError, match=r"there is: .*ledger") as caught:
                await client.complete(ref, {"name": "task", "value": ""})
            assert caught.value.error.code == -32602

    asyncio.run(main())


def test_a_key_pressed_costs_little_in_an_environment_of_a_million_tasks() -> None:
    drawn = Drawn()

    async def main() -> Any:
        episodes = Episodes({"drawn": drawn})
        async with served(player_app(episodes)) as url, Client(f"{url}/mcp") as client:
            found = await client.complete(PromptReference(name="drawn"), {"name": "task", "value": "test-999999"})
            return found.completion.values

    assert asyncio.run(main()) == ["test-999999"]
    assert drawn.made <= 201


def test_a_log_level_is_accepted_by_the_protocols_that_have_it() -> None:
    async def main() -> Any:
        app = player_app(toy_episodes())
        async with app.running():
            body = b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}'
            headers = {**HOST_HEADERS, "content-type": "application/json", "accept": "application/json"}
            wrong = body.replace(b"info", b"loudest")
            older = raw_headers({**headers, "accept": "application/json, text/event-stream"})
            return [(await ask(app, "/mcp", older, text))[2] for text in (body, wrong)]

    good, bad = asyncio.run(main())
    assert b'"result":{}' in good
    assert b'"code":-32602' in bad


@pytest.mark.parametrize(("mode", "code"), [("auto", -32602), ("legacy", -32002)], ids=["2026", "2025"])
def test_a_resource_that_is_not_there_is_an_error_that_names_it(mode: Any, code: int) -> None:
    async def main() -> None:
        async with served(player_app(toy_episodes())) as url, Client(f"{url}/mcp", mode=mode) as client:
            with pytest.raises(MCPError) as caught:
                await client.read_resource("env://ledger/nothing")
            assert (caught.value.error.code, caught.value.error.data) == (code, {"uri": "env://ledger/nothing"})

    asyncio.run(main())


@pytest.mark.parametrize("fast_lane", [True, False], ids=["fast", "sdk"])
def test_blanks_around_a_headers_value_are_no_part_of_it(fast_lane: bool) -> None:
    async def main() -> Any:
        episodes = toy_episodes()
        episode = await episodes.open("ledger", split="train", index=0)
        app = player_app(episodes, fast_lane=fast_lane)
        async with app.running():
            headers, body = modern_call("add", {"word": "a"})
            padded = {name: f" \t{value} " for name, value in headers.items()}
            return await ask(
                app, f"/e/{episode.token}/mcp", raw_headers({**HOST_HEADERS, **padded}), json.dumps(body).encode()
            )

    status, _, body = asyncio.run(main())
    assert (status, b'"text":"a"' in body) == (200, True)


@pytest.mark.parametrize(
    "icon",
    ["data:image/svg+xml,<svg/>", "data:image/svg+xml,%3Csvg width='4'%3E ", "icon.png", "http://e/i", "data:%3"],
)
def test_an_icon_that_is_no_uri_is_refused_where_it_is_written(icon: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Odd: its icon .* write %20 for a space"):
        type("Odd", (Ledger,), {"icon": icon})


@pytest.mark.parametrize("mode", MODES)
def test_the_text_of_an_unexpected_error_stays_in_the_servers_log(mode: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Hiding(Drawn):
        name = "hiding"

        @property
        def splits(self) -> Any:  # type: ignore[override]
            raise RuntimeError("the secret is 42")

    async def main() -> None:
        async with served(player_app(Episodes({"hiding": Hiding()}))) as url, Client(f"{url}/mcp", mode=mode) as client:
            for asked in (
                client.list_resources(),
                client.complete(PromptReference(name="hiding"), {"name": "task", "value": ""}),
            ):
                with pytest.raises(MCPError, match=r"^the server failed; its log says how$"):
                    await asked

    asyncio.run(main())
    assert "the secret is 42" in caplog.text

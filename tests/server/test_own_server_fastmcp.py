"""A FastMCP or official-SDK server brought as a factory: one for each episode, its tools proxied, rewards beside it."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from typing import Any

import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.logging import configure_logging
from own_server_toys import (
    Notebook,
    episodes,
    log,
    make_low_level,
    make_official,
    open_files,
    over,
    said,
)

from mcpgym import check_environment
from mcpgym.errors import ConfigurationError, EpisodeError, RewardError, UnknownNameError
from mcpgym.own_server import FastMCPEnvironment
from mcpgym.schema import schema_faults, schema_hash


def test_three_interleaved_episodes_have_a_server_each() -> None:
    async def main() -> None:
        async with episodes(Notebook(), 3) as (_, live):
            for number in range(3):
                for place, episode in enumerate(live):
                    if place >= number:
                        assert (
                            await said(episode, "write", title=f"{place}-{number}", text="x") == f"{number + 1} notes"
                        )
            assert [await said(episode, "titles") for episode in live] == [
                '["0-0"]', '["1-0","1-1"]', '["2-0","2-1","2-2"]'
            ]  # fmt: skip
            assert await said(live[0], "remember", word="a") == "before: None"
            assert await said(live[1], "remember", word="b") == "before: None"
            assert await said(live[0], "remember", word="c") == "before: a", "a session is an episode"

    asyncio.run(main())


def test_tools_are_listed_as_their_author_wrote_them_and_what_is_changed_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Fresh(Notebook):
        name = "fresh"

    environment = Fresh()
    Fresh()
    assert environment.tools["write"].listing == {
        "name": "write",
        "description": "Write a note.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "Its title."},
                "text": {"type": "string", "description": "Its text."},
            },
            "additionalProperties": False,
            "required": ["title", "text"],
        },
    }
    limit = environment.tools["titles"].listing["inputSchema"]["properties"]["limit"]
    assert limit == {"type": "integer", "description": "Limit."}
    assert environment.instructions == "Write notes."
    assert "number" not in environment.tools
    assert not [fault for tool in environment.tools.values() for fault in schema_faults("fresh", tool.listing)]
    assert environment.schema_hash == schema_hash([tool.listing for tool in environment.tools.values()])
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert "titles.limit: not described; write limit: Annotated" in warnings[0]
    assert "write." not in warnings[0], "what needs no change is not mentioned"
    assert environment.differences == [line[4:] for line in warnings[0].splitlines()[1:]]


def test_answers_reach_the_policy_as_text() -> None:
    async def main() -> None:
        async with episodes(Notebook()) as (_, (episode,)):
            failed = await episode.call("fail", {})
            assert failed.is_error
            assert "the pencil is broken" in failed.text
            drawn = await episode.call("picture", {})
            assert drawn.is_error
            assert drawn.text == "picture answered with an image (image/png); only text can be read here:\na drawing:"
            asked = await episode.call("ask", {})
            assert asked.is_error
            assert "licit" in asked.text, asked.text
            assert await said(episode, "tell") == "told"
            wrong = await episode.call("write", {"title": 4, "sheet": 1})
            assert wrong.is_error
            assert "title: 4 is not of type 'string'" in wrong.text
            assert "text is missing" in wrong.text
            assert "sheet is not a parameter" in wrong.text
            half = await episode.call("write", {"title": "\ud800", "text": "x"})
            assert "half a surrogate pair" in half.text
            assert (await episode.call("number", {})).text.startswith("there is no tool 'number'")
            assert not episode.failure

    asyncio.run(main())


def test_a_tools_error_is_an_answer_and_not_a_traceback_on_the_screen(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    def make() -> FastMCP:
        server: FastMCP = FastMCP("broken")

        @server.tool(description="Fail.")
        async def fail(context: Context, how: str) -> str:
            await context.info("about to fail")
            raise ToolError(how) if how == "politely" else RuntimeError(how)

        return server

    async def main() -> None:
        async with episodes(over(make)) as (_, live):
            assert await said(live[0], "fail", how="politely") == "politely"
            assert await said(live[0], "fail", how="badly") == "Error calling tool 'fail': badly"
        async with Client(make()) as client:
            assert (await client.call_tool("fail", {"how": "elsewhere"}, raise_on_error=False)).is_error

    handlers = logging.getLogger("fastmcp").handlers
    try:
        configure_logging()  # to the standard error of this test
        asyncio.run(main())
    finally:
        logging.getLogger("fastmcp").handlers[:] = handlers
    printed = capfd.readouterr().err
    assert "politely" not in printed
    assert "badly" not in printed
    assert printed.count("Error calling tool") == 1, "servers that are no environment's log as they did"
    assert not [warning for warning in recwarn if "badly" in str(warning.message) or "SEP" in str(warning.message)][1:]


def test_rewards_see_the_servers_state_and_ask_what_no_policy_can() -> None:
    async def main() -> None:
        async with episodes(Notebook(), 2) as (_, live):
            await said(live[1], "write", title="test0", text="x")
            first, second = [await episode.score(None) for episode in live]
            assert (first.total, second.total) == (0.0, 1.0)
            assert (first.components["asked"], second.components["asked"]) == (0.0, 1.0), "the seed reached the factory"
            result = await live[1].call("write", {"title": "end", "text": ""})
            assert result.done
            assert live[1].stop_reason == "done"

    asyncio.run(main())


def test_lifespans_end_with_their_episode_however_it_ends() -> None:
    async def main() -> None:
        environment = Notebook()
        log.clear()
        async with episodes(environment, 3) as (served, live):
            assert log == ["begin"] * 3
            await served.close(live[0].token)
            assert log.count("end") == 1
            slow = asyncio.ensure_future(live[1].call("slow", {"seconds": 0.5}))
            await asyncio.sleep(0.1)
            await served.close(live[1].token)
            assert (await slow).done
            assert log.count("end") == 2
            live[2].last_used -= 10_000
            assert await served.expire() == 1
            assert log.count("end") == 3
            opening = asyncio.ensure_future(served.open("notebook", split="test"))
            await asyncio.sleep(0)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
        assert log.count("begin") == log.count("end")

    asyncio.run(main())


def test_calls_are_answered_in_order_and_bounded_in_time() -> None:
    class Hasty(Notebook):
        name = "hasty"
        call_seconds = 0.3

    async def main() -> None:
        async with episodes(Hasty(), 2) as (_, (episode, other)):
            slow = asyncio.ensure_future(episode.call("slow", {"seconds": 0.2}))
            await asyncio.sleep(0)
            assert await said(episode, "titles") == '["slow"]', "the second waited for the first"
            assert (await slow).text == "done"
            late = await episode.call("slow", {"seconds": 1.0})
            assert late.text == "slow did not finish within 0.3 s and was stopped"
            gone = asyncio.ensure_future(other.call("slow", {"seconds": 0.2}))
            await asyncio.sleep(0.05)
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            assert await said(other, "titles") == '["slow"]', "what was begun is ended before the next call begins"

    asyncio.run(main())


def test_a_server_that_changes_its_tools_leaves_the_episode_unscored() -> None:
    async def main() -> None:
        async with episodes(Notebook(), 2) as (_, live):
            assert await said(live[0], "unlock") == "unlocked", "nobody has announced it"
            with pytest.raises(RewardError, match="changed its tools during the episode"):
                await live[0].score(None)
            await said(live[1], "titles")
            assert (await live[1].score(None)).total == 0.0

    asyncio.run(main())


def test_official_servers_are_brought_as_well() -> None:
    async def main() -> None:
        async with episodes(over(make_official), 2) as (_, live):
            assert [await said(live[0], "pay", amount=n) for n in (2, 3)] == ["2", "5"]
            assert await said(live[1], "pay", amount=1) == "1"
        async with episodes(over(make_low_level), 2) as (_, live):
            assert await said(live[0], "start_episode") == '{"count": 1}'
            assert await said(live[0], "start_episode") == '{"count": 2}'
            assert await said(live[1], "start_episode") == '{"count": 1}'

    asyncio.run(main())


def test_tools_called_as_ours_are_play_with_handles_too() -> None:
    from mcpgym.episodes import Episodes
    from mcpgym.wire.bare import BarePlayer, Handles

    async def main() -> None:
        served = Episodes({"own": over(make_low_level)})
        player = BarePlayer(served, Handles(served), ["own"])
        names = [tool["name"] for tool in player.tools()]
        assert names == ["start_episode", "own_start_episode"]
        properties = player.tools()[1]["inputSchema"]["properties"]
        assert list(properties) == ["episode_handle_2", "episode", "episode_handle"]
        started = await player.call("start_episode", {}, None)
        handle = started.text.split()[1]
        answer = await player.call("own_start_episode", {"episode_handle_2": handle, "episode": 4}, None)
        assert answer.text == '{"count": 1}'
        await served.aclose()

    asyncio.run(main())


shared = FastMCP("shared")
shared.tool(lambda: "x", name="x", description="X.")


def _again() -> FastMCP:
    return shared


def _wanting(database: Any) -> FastMCP:
    return shared


def _failing() -> FastMCP:
    raise OSError("no disk")


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        (shared, "is one FastMCP server, and each episode needs a server of its own.*def make_server.*mcpgym wrap"),
        (_again, "gave the same server twice.*def make_server"),
        (_wanting, "wants 'database'; a factory may ask for: seed, task, config"),
        (_failing, "failed: OSError: no disk"),
        (lambda: 4, "gave int; it must return a FastMCP server"),
        (lambda: FastMCP("empty"), "has no tool that a policy could be given"),
        ("text", "is str, not a function"),
    ],
    ids=["a server", "the same twice", "wants more", "fails", "no server", "no tools", "no function"],
)  # fmt: skip
def test_a_factory_that_is_none_is_told_what_to_do(factory: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=f"(?s){told}"):
        over(factory)


def test_a_class_without_factory_or_with_a_wrong_hidden_tool_is_told() -> None:
    class Bare(FastMCPEnvironment):
        name = "bare"

        def tasks(self, split: str) -> Any:
            return Notebook.tasks(self, split)  # type: ignore[arg-type]

    with pytest.raises(ConfigurationError, match=r"Bare\.factory is missing"):
        Bare()

    class Wrong(Notebook):
        hidden_tools = ("numbr",)

    with pytest.raises(UnknownNameError, match="did you mean 'number'"):
        Wrong()


def test_a_server_that_dies_in_its_own_lifespan_is_no_ones_score() -> None:
    import contextlib

    begun = []

    def make() -> FastMCP:
        @contextlib.asynccontextmanager
        async def lifespan(server: Any) -> Any:
            begun.append(1)
            if len(begun) > 1:
                raise OSError("the database is gone")
            yield

        server: FastMCP = FastMCP("frail", lifespan=lifespan)
        server.tool(lambda: "x", name="x", description="X.")
        return server

    async def main() -> None:
        with pytest.raises(EpisodeError, match="the database is gone"):
            async with episodes(over(make)):
                pass

    asyncio.run(main())


def test_two_hundred_episodes_leave_nothing() -> None:
    made: list[weakref.ref[Any]] = []

    def make() -> FastMCP:
        server: FastMCP = FastMCP("small")
        server.tool(lambda: server.name, name="write", description="Write.")  # what FastMCP's caches keep it alive by
        made.append(weakref.ref(server))
        return server

    async def main() -> None:
        async with episodes(over(make), 0) as (served, _):
            descriptors = open_files()
            tasks = len(asyncio.all_tasks())
            for _ in range(10):
                live = [await served.open("own", split="test") for _ in range(20)]
                await asyncio.gather(*(said(episode, "write") for episode in live))
                await asyncio.gather(*(served.close(episode.token) for episode in live))
            del live
            assert len(asyncio.all_tasks()) == tasks
            assert open_files() == descriptors
            gc.collect()
            assert sum(ref() is not None for ref in made) <= 60

    asyncio.run(main())
    gc.collect()
    assert len(made) > 200
    assert sum(ref() is not None for ref in made) <= 2


@pytest.mark.slow
def test_it_keeps_the_contract_as_checked() -> None:
    class Sound(Notebook):
        name = "sound"
        hidden_tools = ("number", "unlock", "slow", "remember", "fail", "picture", "ask")

    report = check_environment(Sound(), episodes=2)
    assert not report.findings, report
    assert any("titles.limit: not described" in note for note in report.notes)
    assert any(note.startswith("reproducible: not promised") for note in report.notes)
    assert any(note.startswith("state: it lives in the server") for note in report.notes)


def test_a_server_that_is_not_deterministic_is_found_out() -> None:
    from random import SystemRandom

    def make() -> FastMCP:
        server: FastMCP = FastMCP("dice")
        server.tool(lambda: SystemRandom().randint(0, 10**9), name="roll", description="Roll.")
        return server

    report = check_environment(over(make, "dice"), episodes=1)
    assert [finding.rule for finding in report.findings] == ["splits-disjoint", "seed"]


def test_observations_that_differ_in_time_alone_are_the_same() -> None:
    environment = Notebook()
    same = environment.same_observation
    assert same(
        "at 2026-11-30T08:28:52Z, 1c9b3f6e-0000-4000-8000-000000000000",
        "at 2027-01-01 00:00:00, " + "1c9b3f6e-0000-4000-8000-00000000000f",
    )
    assert same("<object at 0x7f00aa11bb22>", "<object at 0x7f00aa11bb23>")
    assert not same("4 notes", "5 notes")
    assert not same("written at 08:28:52", "read at 08:28:52")


def test_a_server_that_is_gone_when_the_rewards_are_asked_has_no_score() -> None:
    async def main() -> None:
        async with episodes(Notebook()) as (_, (episode,)):
            await episode.state.connection.close()
            with pytest.raises(RewardError, match="has ended"):
                await episode.score(None)

    asyncio.run(main())

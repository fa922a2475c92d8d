"""Long texts as an environment: what the policies score, who answers, what may be asked, and what a replay asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiohttp import web
from sandbox_agents import missing

from mcpgym.control import LocalControl
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym_environments.long_context import LongContext, LongContextConfig
from mcpgym_environments.long_context.asking.reader import Reader
from mcpgym_environments.long_context.made.families import FAMILIES, make
from mcpgym_environments.long_context.reference import solution
from mcpgym_environments.python_sandbox.problems.answers import answer_text
from mcpgym_environments.python_sandbox.shared import take
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.replay import replay_trace
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace

pytestmark = pytest.mark.skipif(bool(missing("auto")), reason="there is nothing here that keeps code in")


_HOLDER = LongContext()


@pytest.fixture(scope="module", autouse=True)
def _one_sandbox_for_all() -> None:
    take(_HOLDER.config.sandbox, _HOLDER)


def environment(**config: Any) -> LongContext:
    return LongContext(LongContextConfig(**{"max_level": 1, **config}))


async def play(made: LongContext, policy: str, count: int, split: str = "test") -> list[Trace]:
    lane = ControlLane(LocalControl(Episodes({made.name: made})))
    one = make_policy(policy, made)
    result = await run(one, lane, [EpisodeSpec(made.name, split=split, index=index) for index in range(count)])
    await one.aclose()
    await lane.aclose()
    return list(result.traces)


def totals(made: LongContext, policy: str, count: int) -> list[float | None]:
    return [trace.score and trace.score.total for trace in asyncio.run(play(made, policy, count))]


def with_episode(act: Callable[[Episode], Awaitable[Any]], made: LongContext, index: int = 0) -> Any:
    async def do() -> Any:
        episodes = Episodes({made.name: made})
        episode = await episodes.open(made.name, split="test", index=index)
        try:
            return await act(episode)
        finally:
            await episode.end("the test is over")
            await made.shutdown()

    return asyncio.run(do())


async def ran(episode: Episode, code: str) -> str:
    return (await episode.call("run_python", {"code": code})).text


# The policies.


def test_with_recursion_everything_is_solved_and_without_it_nothing_that_must_be_read() -> None:
    made = environment(max_level=3)
    assert totals(made, "expert", 12) == [1.0] * 12  # every family at levels 1 to 3
    assert totals(made, "flat", 12) == [float(family == "ledger") for family in FAMILIES] * 3
    assert sum(totals(made, "random", 12)) < 2  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_longest_texts_are_solved_too() -> None:
    made = environment(min_level=5, max_level=5, families="tally,chain")
    assert totals(made, "expert", 2) == [1.0, 1.0]
    assert totals(made, "flat", 2) == [0.0, 0.0]


def test_where_everything_fits_into_the_window_nothing_is_lost_without_recursion() -> None:
    assert totals(environment(window=150_000), "flat", 4) == [1.0] * 4


def test_what_was_asked_is_reported_and_pays_nothing() -> None:
    (trace,) = asyncio.run(play(environment(families="tally"), "expert", 1))
    assert trace.score is not None
    assert trace.score.total == 1.0
    assert trace.score.components["prompts_used"] == 7 / 2_000  # 100,000 characters in pieces of nearly 16,000
    assert 0.005 < trace.score.components["characters_used"] < 0.0055
    assert trace.score.components["no_errors"] == 1


# The text.


def test_the_text_is_there_and_nothing_else_and_comes_back_whatever_code_does_to_it() -> None:
    made = environment(families="chain")

    async def act(episode: Episode) -> None:
        plan = episode.state.plan
        text, answer = make(plan)
        seen = await ran(episode, "import os\nprint(len(context), os.listdir(), sorted(set(globals()) - {'os'}))")
        assert (
            seen
            == f"{len(text)} ['context.txt'] ['__builtins__', '__doc__', '__loader__', '__name__', '__package__',"
            + (" '__spec__', 'context']")
        )
        assert (
            await ran(episode, f"import hashlib\nhashlib.md5(context.encode()).hexdigest() == {_md5(text)!r}") == "True"
        )
        for harm in ("del context; os.remove('context.txt')\nos._exit(0)", "import ctypes; ctypes.string_at(0)"):
            await ran(episode, harm)
            assert await ran(
                episode, f"(len(context), open('context.txt').read() == context) == ({len(text)}, True)"
            ) == ("True")
        told = " ".join(message["content"] for message in episode.messages) + str(episode.task.info)
        assert answer_text(answer) not in told

    with_episode(act, made)


def _md5(text: str) -> str:
    import hashlib

    return hashlib.md5(text.encode()).hexdigest()


def test_the_answer_can_be_submitted_once_without_a_run_and_not_empty() -> None:
    async def act(episode: Episode) -> None:
        right = answer_text(make(episode.state.plan).answer)
        assert "an empty answer cannot be submitted" in (await episode.call("submit", {"answer": " "})).text
        result = await episode.call("submit", {"answer": f"**{right}**."})
        assert result.done
        assert (await episode.score(None)).components["correct"] == 1
        assert (await episode.call("submit", {"answer": right})).is_error

    with_episode(act, environment())


def test_runs_are_counted_and_the_last_ones_announced() -> None:
    async def act(episode: Episode) -> None:
        assert [await ran(episode, "1") for _ in range(3)] == ["1\n[1 run left]", "1\n[0 runs left]", "you have made 2 "
            "runs, and may make no more: submit is the only tool left"]  # fmt: skip

    with_episode(act, environment(max_runs=2))


# The budget.


@pytest.mark.parametrize(
    ("config", "code", "said"),
    [
        ({"sub_calls": 3}, "[llm('x') for _ in range(9)]", "may be asked 3 prompts: 3 were, and these are 1 more"),
        ({"sub_calls": 3}, "llm_batch('x' * 4)", "may be asked 3 prompts: 0 were, and these are 4 more"),
        ({"sub_calls": 0}, "llm('x')", "may be asked 0 prompts"),
        (
            {"sub_characters": 9},
            "[llm('x' * 5) for _ in range(2)]",
            "9 characters in all: 5 are used, and these have 5",
        ),
        ({"window": 500}, "llm('x' * 501)", "a prompt may have 500 characters; number 0 has 501"),
    ],
)
def test_what_an_episode_may_ask_is_all_that_it_may_ask(config: dict[str, Any], code: str, said: str) -> None:
    made = environment(**config)
    asked: list[str] = []

    async def model(prompt: str) -> str:
        asked.append(prompt)
        return "y"

    made.sub_model = model

    async def act(episode: Episode) -> None:
        for _ in range(3):
            assert said.replace("3 were", "3 were") in await ran(episode, code) or asked
        assert said.split(":")[0] in await ran(episode, code)
        assert len(asked) <= config.get("sub_calls", 99)
        assert sum(map(len, asked)) <= config.get("sub_characters", 99_999)

    with_episode(act, made)


def test_answers_are_cut_and_only_so_many_are_asked_at_once() -> None:
    made = environment(answer_characters=100, at_once=3)
    now = most = 0

    async def model(prompt: str) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        return prompt * 200

    made.sub_model = model

    async def act(episode: Episode) -> None:
        assert await ran(episode, "[len(said) for said in llm_batch('abcdefgh')]") == str([100] * 8)
        assert most == 3

    with_episode(act, made)


def test_a_run_does_not_wait_for_ever() -> None:
    made = environment(sub_seconds=0.3)

    async def model(prompt: str) -> str:
        await asyncio.sleep(0.2)
        return "late"

    made.sub_model = model

    async def act(episode: Episode) -> None:
        text = await ran(episode, "for n in range(20): llm(str(n))")
        assert "this run has waited 1.5 s for the model, and may not longer" in text
        assert await ran(episode, "llm('the next run may')") == "'late'"

    with_episode(act, made)


# Who answers.


def test_without_a_sub_model_there_is_nothing_to_ask_and_code_alone_solves_what_it_can() -> None:
    made = environment(sub_model="none")

    async def act(episode: Episode) -> None:
        assert "NameError" in await ran(episode, "llm('x')")
        assert not any("llm" in message["content"] for message in episode.messages)

    with_episode(act, made)
    assert totals(made, "expert", 4) == [float(family == "ledger") for family in FAMILIES]


def test_a_given_model_answers_whatever_is_configured_and_has_to_be_given() -> None:
    with pytest.raises(ConfigurationError, match=r"nobody has set environment\.sub_model"):
        with_episode(lambda episode: episode.end("unreachable"), environment(sub_model="given"))
    for config in ("given", "none", "reader"):
        made = environment(sub_model=config)
        reader, asked = Reader(16_000), 0

        async def model(prompt: str, reader: Reader = reader) -> str:
            nonlocal asked
            asked += 1
            return reader.read(prompt)

        made.sub_model = model
        (trace,) = asyncio.run(play(made, "expert", 1))
        assert trace.score is not None
        assert (trace.score.total, trace.conditions["sub_model"]) == (1.0, "given")
        assert asked > 2


async def _with_endpoint(act: Callable[[str, list[Any]], Awaitable[None]]) -> None:
    """A server that speaks as OpenAI's does: it reads as the reader; some prompts it refuses, others break it."""
    reader, bodies = Reader(16_000), []

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        prompt = body["messages"][0]["content"]
        if prompt in ("bad", "broken"):
            status = 400 if prompt == "bad" else 500
            return web.json_response(
                {"error": {"message": "the secret reason"}}, status=status, headers={"x-should-retry": "false"}
            )
        said = {"role": "assistant", "content": reader.read(prompt)}
        choice = {"index": 0, "finish_reason": "stop", "message": said}
        return web.json_response(
            {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        )

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        await act(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", bodies)
    finally:
        await runner.cleanup()


def test_an_endpoint_answers_and_its_refusals_and_failures_are_told_apart() -> None:
    async def act(url: str, bodies: list[Any]) -> None:
        made = environment(sub_model=f"openai:some-model@{url}", families="chain,tally")
        traces = await play(made, "expert", 2)
        assert [trace.score and trace.score.total for trace in traces] == [1.0, 1.0]
        assert {(body["model"], body["temperature"]) for body in bodies} == {("some-model", 0)}
        assert not any("these questions" in message["content"] for message in traces[0].messages)  # it is no reader
        episodes = Episodes({made.name: made})
        episode = await episodes.open(made.name, split="test", index=0)
        said = await ran(episode, "llm('bad')")
        assert said.endswith("RuntimeError: the model does not take this prompt")
        broken = await episode.call("run_python", {"code": "llm('broken')"})
        assert broken.is_error
        assert "secret" not in said + broken.text
        assert episode.failure is not None
        assert "InternalServerError" in episode.failure
        await episode.end("played")
        await made.shutdown()

    asyncio.run(_with_endpoint(act))


def test_what_is_recorded_is_replayed_without_asking_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(tmp_path / "answers.jsonl")
    asked: list[str] = []

    async def model(prompt: str) -> str:
        asked.append(prompt)
        return Reader(16_000).read(prompt)

    made = environment(sub_model="given", record=file, families="chain,tally")
    made.sub_model = model
    traces = asyncio.run(play(made, "expert", 2))
    assert [trace.score and trace.score.total for trace in traces] == [1.0, 1.0]
    rows = [json.loads(line) for line in Path(file).read_text().splitlines()]
    assert len(rows) == len(asked) > 5
    assert {row["task"] for row in rows} == {"test-0", "test-1"}

    async def replayed() -> list[bool]:
        lane = ControlLane(LocalControl(Episodes({made.name: LongContext()})))  # configured by each trace
        return [(await replay_trace(trace, lane)).equal for trace in traces]

    asked.clear()
    assert asyncio.run(replayed()) == [True, True]
    assert not asked
    made.sub_model = None
    only = environment(sub_model="recorded", record=file, families="chain,tally")

    async def other(episode: Episode) -> None:
        assert (await episode.call("run_python", {"code": "llm('what nobody asked before')"})).is_error
        assert "the record has no answer to this prompt" in str(episode.failure)

    with_episode(other, only)
    elsewhere = environment(sub_model="openai:m@http://127.0.0.1:9/v1", record=file, families="chain,tally")
    assert totals(elsewhere, "expert", 2) == [1.0, 1.0]  # nobody listens there, and nobody is asked
    monkeypatch.setenv("MCPGYM_SUB_MODEL", "recorded")
    made = environment(sub_model="given", record=file, families="chain,tally")
    made.sub_model = model
    with_episode(other, made)
    assert not asked
    Path(file).write_text("no record\n")
    with pytest.raises(ConfigurationError, match="line 1 is no answer of a sub-model"):
        environment(record=file)


# The configuration.


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"families": "chain,poem"}, "no family of tasks 'poem'; there is: all, chain, tally, compare, ledger"),
        ({"sub_model": "gpt"}, "write one of reader, none, given, recorded, or openai:MODEL@BASE_URL"),
        ({"sub_model": "openai:m@ftp://x"}, "openai:MODEL@BASE_URL"),
        ({"sub_model": "recorded"}, "needs a record"),
        ({"min_level": 3, "max_level": 2}, "min_level=3 must not be above max_level=2"),
        ({"backend": "nowhere"}, "no back-end 'nowhere'"),
    ],
)
def test_a_wrong_configuration_is_refused_with_what_would_be_right(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)validation error") as refused:
        LongContextConfig(**config)
    assert said in str(refused.value)


def test_what_reaches_outside_is_said_and_an_endpoint_elsewhere_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LongContextConfig().reaches() == []
    outside = LongContextConfig(sub_model="openai:m@https://api.example/v1", record="x.jsonl")
    assert outside.reaches() == ["sub_model=openai:m@https://api.example/v1", "record=x.jsonl"]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="set OPENAI_API_KEY"):
        LongContext(outside)


def test_the_documentation_shows_what_the_expert_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "long-context.md").read_text("utf-8")
    asked = environment().task_at("test", 1).messages[-1]["content"]
    code = solution(asked, 16_000)
    assert code is not None
    assert f"```text\n{code.strip()}\n```" in page


@pytest.mark.slow
def test_many_episodes_at_once_need_no_more_memory_than_their_texts() -> None:
    """64 episodes of a million characters: their sessions hold about 10 MB each, and the server next to nothing."""
    made, me = environment(min_level=3, max_level=3, families="ledger"), psutil.Process()

    async def act() -> None:
        episodes = Episodes({made.name: made})
        before = me.memory_info().rss
        opened = [await episodes.open(made.name, split="test", index=index) for index in range(64)]
        most = 0

        async def one(episode: Episode) -> None:
            nonlocal most
            assert int(await ran(episode, "llm_batch([context[:10_000], 'x'])\nlen(context)")) > 980_000
            most = max(most, me.memory_info().rss)

        await asyncio.gather(*map(one, opened))
        sessions = sum(child.memory_full_info().pss for child in me.children(recursive=True))
        assert most - before < 100 * 2**20
        assert sessions < 64 * 20 * 2**20
        for episode in opened:
            await episode.end("the test is over")
        await made.shutdown()

    asyncio.run(act())

"""An agent framework in an environment with several tools, calling more than one of them in a turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.real_clients.client_programs import run_program
from tests.real_clients.clients import Seat
from tests.real_clients.fake_chat_completions import FakeChatCompletions, results, tools

from mcpgym.control import Call, LocalControl
from mcpgym.episodes import Episodes
from mcpgym.messages import Message, tool_answer
from mcpgym.rewards import Score
from mcpgym.schema import schema_hash
from mcpgym.serving import serving


async def solved(name: str, index: int) -> tuple[list[tuple[str, dict[str, Any]]], list[str], Score]:
    """What the environment's own expert calls, what it reads, and its score: in process, call by call."""
    control = LocalControl(Episodes.of(name))
    episode = await control.open(name, split="test", index=index, seed=3)
    expert = control.episodes.environments[name].reference_policies()["expert"]
    messages: list[Message] = list(episode.messages)
    calls: list[tuple[str, dict[str, Any]]] = []
    texts: list[str] = []
    while not (await control.status(episode.token)).done:
        turn = expert(messages, Random(0))
        messages.append(turn)
        for wanted in turn["tool_calls"]:
            function = wanted["function"]
            calls.append((function["name"], json.loads(function["arguments"])))
            (answer,) = await control.step([Call(episode.token, *calls[-1])])
            texts.append(answer.text)
            messages.append(tool_answer(wanted, answer.text, is_error=answer.is_error))
    score = await control.score(episode.token)
    await control.aclose()
    return calls, texts, score


@pytest.mark.slow
def test_agents_that_call_several_tools_in_one_turn_find_what_the_expert_finds_and_are_scored_alike(
    tmp_path: Path,
) -> None:
    indices = (0, 1, 2)

    async def run() -> None:
        found = {f"seat-{index}": await solved("wiki-search", index) for index in indices}
        asked: dict[str, int] = dict.fromkeys(found, 0)

        async def model(name: str, texts: Sequence[str]) -> Sequence[tuple[str, Mapping[str, Any]]]:
            calls = found[name][0]
            assert len(texts) == asked[name], "a result is missing"
            rest = calls[len(texts) :]
            turn = rest[:2] if len(rest) > 2 else rest[:1]  # in pairs, and the answer by itself
            asked[name] += len(turn)
            return turn

        async with serving(Episodes.of("wiki-search"), secret="a-secret-of-the-tests") as server:
            opened = [await server.control.open("wiki-search", split="test", index=index, seed=3) for index in indices]
            seats = {
                name: Seat("episode", episode.url or "", [], "", [0], tmp_path)
                for name, episode in zip(found, opened, strict=True)
            }
            async with FakeChatCompletions(model) as api:
                answers = await run_program("play_openai_agents.py", seats, api.address)
            assert not any("error" in answer for answer in answers), answers
            assert not api.failures, api.failures
            for (name, (_, texts, score)), episode in zip(found.items(), opened, strict=True):
                assert results(api.last[name]) == texts
                assert schema_hash(tools(api.last[name])) == episode.schema_hash
                assert (await server.control.score(episode.token)) == score
                assert score.components["correct"] == 1.0
        assert len({str(texts) for _, texts, _ in found.values()}) == len(indices)

    asyncio.run(run())

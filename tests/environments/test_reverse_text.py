"""Reverse text: the similarity against its definition, the answer in tags, the data, and hostile answers."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from episode_driver import drive, open_episode
from hypothesis import given
from hypothesis import strategies as st

from mcpgym import ConfigurationError, load_environment
from mcpgym.messages import assistant
from mcpgym_environments.reverse_text import ReverseText
from mcpgym_environments.reverse_text.sentences import SENTENCES, sentence
from mcpgym_environments.reverse_text.subsequence import common_subsequence_length, similarity

ENVIRONMENT = ReverseText()


def scores(answer: str, index: int = 0) -> Any:
    async def run() -> Any:
        episode = await open_episode(ENVIRONMENT, "train", index)
        return await episode.score([*episode.messages, assistant(answer)])

    return asyncio.run(run())


def right(index: int = 0) -> str:
    return ENVIRONMENT.task_at("train", index).messages[-1]["content"][::-1]


def by_table(first: str, second: str) -> int:
    row = [0] * (len(second) + 1)
    for a in first:
        above = row[:]
        for column, b in enumerate(second, start=1):
            row[column] = above[column - 1] + 1 if a == b else max(above[column], row[column - 1])
    return row[-1]


letters = st.text("ab c", max_size=30) | st.text(max_size=90)


@given(first=letters, second=letters)
def test_the_common_subsequence_is_as_long_as_the_usual_table_says(first: str, second: str) -> None:
    assert common_subsequence_length(first, second) == by_table(first, second)
    assert 0 <= similarity(first, second) <= 1
    assert similarity(first, second) == similarity(second, first)
    assert (similarity(first, second) == 1) == (first == second)


def test_the_similarity_is_twice_the_common_part_over_both_lengths() -> None:
    assert similarity("abcd", "abxd") == 2 * 3 / 8
    assert similarity("abc", "") == 0
    assert similarity("abc", "xyz") == 0
    assert similarity("", "") == 1


def test_only_what_is_in_the_last_tags_counts() -> None:
    answer = right()
    assert scores(f"<reversed_text>{answer}</reversed_text>").total == 1
    assert scores(f"So: <reversed_text>\n{answer}\n</reversed_text> Done.").total == 1
    assert scores(f"<reversed_text>x</reversed_text><reversed_text>{answer}</reversed_text>").total == 1
    assert scores(f"<reversed_text>{answer}</reversed_text><reversed_text>#</reversed_text>").total == 0
    for without in (
        answer,
        "",
        f"<reversed_text>{answer}",
        f"<reversed>{answer}</reversed>",
        "<reversed_text></reversed_text>",
    ):
        assert scores(without).total == 0
    almost = scores(f"<reversed_text>{answer[:-1]}</reversed_text>")
    assert 0.98 < almost.total < 1
    assert almost.components["exact"] == 0


def test_answers_that_try_everything_gain_nothing() -> None:
    answer = right()
    everything = "".join(sorted(set(answer))) * len(answer)
    assert scores(f"<reversed_text>{everything}</reversed_text>").total == 0
    assert scores(f"<reversed_text>{answer * 4}</reversed_text>").total == pytest.approx(2 / 5)
    assert scores(f"<reversed_text>{answer * 4} </reversed_text>").total == pytest.approx(2 / 5)
    assert scores(f"<reversed_text>{answer * 4}x</reversed_text>").total == 0


@pytest.mark.parametrize(
    "answer",
    [
        "<reversed_text>" + "ab" * 500_000 + "</reversed_text>",
        "<reversed_text>" * 70_000 + "x" + "</reversed_text>" * 70_000,
        "<" * 1_000_000,
        "\ud800" * 1_000_000,
        "<reversed_text>" + "\ud800" * 50 + "</reversed_text>",
    ],
    ids=["long", "nested", "open", "surrogates", "few surrogates"],
)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_a_hostile_answer_is_scored_at_once(answer: str) -> None:
    started = time.process_time()
    assert scores(answer).total is not None
    assert time.process_time() - started < 1


def test_without_a_transcript_the_score_is_unknown() -> None:
    async def run() -> Any:
        return await (await open_episode(ENVIRONMENT, "train", 0)).score(None)

    score = asyncio.run(run())
    assert score.total is None
    assert score.components == {"likeness": None, "exact": None}


def test_expert_is_perfect_in_one_turn_and_random_is_far_below() -> None:
    async def run(name: str) -> list[float]:
        totals = []
        for index in range(100):
            episode = await open_episode(ENVIRONMENT, "test", index)
            messages = await drive(episode, ENVIRONMENT.reference_policies()[name], Random(index))
            assert len(messages) == 3
            assert episode.stop_reason == "answered"
            totals.append((await episode.score(messages)).total)
        return totals  # type: ignore[return-value]

    assert asyncio.run(run("expert")) == [1.0] * 100
    assert max(asyncio.run(run("random"))) < 0.7


def test_no_sentence_is_in_two_tasks_and_none_of_train_in_test() -> None:
    environment = load_environment("reverse-text", {"train_tasks": 20_000, "test_tasks": 5_000})
    texts = [task.messages[-1]["content"] for split in environment.splits for task in environment.tasks(split)]
    assert len(set(texts)) == 25_000
    assert all(text.isascii() and text == text.strip() and 40 < len(text) < 150 for text in texts)
    assert all(task.info["answer"] == task.messages[-1]["content"][::-1] for task in environment.tasks("test"))


def test_neighbouring_sentences_are_not_alike() -> None:
    tasks = ENVIRONMENT.tasks("train")[:60]
    words = [set(task.messages[-1]["content"].split()) for task in tasks]
    shared = [len(a & b) / len(a | b) for a, b in pairwise(words)]
    assert sum(shared) / len(shared) < 0.25
    assert len({sentence(0), sentence(SENTENCES - 1), sentence(SENTENCES // 2)}) == 3


def test_the_prompt_does_not_hold_the_answer() -> None:
    for task in ENVIRONMENT.tasks("train")[:200]:
        assert task.info["answer"] not in str(task.messages)


def test_more_tasks_than_sentences_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="together must not be above"):
        load_environment("reverse-text", {"train_tasks": SENTENCES, "test_tasks": 1})
    with pytest.raises(ConfigurationError, match=r"train_tasks: .*greater than or equal to 1"):
        load_environment("reverse-text", {"train_tasks": 0})
    with pytest.raises(ConfigurationError, match="no split"):
        ENVIRONMENT.tasks("validation")

"""Wiki search on the generated world: what the reference policies score, and what one scores without looking."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from random import Random
from typing import Any

import pytest
from episode_driver import drive

from mcpgym.episodes import Episodes
from mcpgym.messages import user
from mcpgym.registry import configure
from mcpgym_environments.wiki_search.environment import WikiSearch
from mcpgym_environments.wiki_search.questions.question import KINDS
from mcpgym_environments.wiki_search.scoring import judge

PAGES = 600


@pytest.fixture(scope="module")
def world() -> Any:
    """The environment over a small world."""
    return configure(WikiSearch, {"pages": PAGES})


def scores(environment: Any, policy: str, split: str, indices: range) -> list[tuple[str, dict[str, float | None]]]:
    """The kind of question and the components of the score, for each of these tasks."""
    act = environment.reference_policies()[policy]
    episodes = Episodes({environment.name: environment})

    async def main() -> list[tuple[str, dict[str, float | None]]]:
        found = []
        for index in indices:
            episode = await episodes.open(environment.name, split=split, index=index, seed=0)
            messages = await drive(episode, act, Random(index))
            score = await episode.score(messages)
            found.append((episode.task.info["kind"], dict(score.components)))
        return found

    return asyncio.run(main())


def mean(found: list[tuple[str, dict[str, float | None]]], name: str) -> float:
    return sum(components[name] or 0.0 for _, components in found) / len(found)


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_is_right_on_every_kind_by_the_fewest_calls_and_reads_all_evidence(world: Any, split: str) -> None:
    found = scores(world, "expert", split, range(60))
    assert {kind for kind, _ in found} == set(KINDS)
    assert [components["correct"] for _, components in found] == [1.0] * 60
    assert all(components["evidence"] in (1.0, None) for _, components in found)
    assert mean(found, "efficiency") > 0.95


def test_matching_words_and_wandering_are_far_below(world: Any) -> None:
    keyword, random = scores(world, "keyword", "test", range(60)), scores(world, "random", "test", range(60))
    assert mean(random, "correct") < 0.1
    assert mean(keyword, "correct") < 0.4
    assert mean(keyword, "evidence") > mean(random, "evidence")


def test_the_expert_knows_a_question_that_was_made_elsewhere(world: Any) -> None:
    """A policy may run in another process than the episodes; the questions are the same there."""
    asked = world.tasks("test")[5].messages
    fresh = configure(WikiSearch, {"pages": PAGES, "train_tasks": 9_999})
    message = fresh.reference_policies()["expert"](asked, Random(0))
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "search_pages"


def test_the_expert_does_not_guess_at_what_it_does_not_know() -> None:
    few = configure(WikiSearch, {"pages": PAGES, "train_tasks": 1, "test_tasks": 1})
    message = few.reference_policies()["expert"]([user("What is the meaning of life?")], Random(0))
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"answer": "not answerable"}


def test_nobody_knows_the_answers_by_heart(world: Any) -> None:
    """The best closed-book policy that one can learn from 500 other questions: for each form of question, the answer
    that was most often right."""
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    for task in list(world.tasks("train")[:500]):
        answers[form(task)][str(task.info["wanted"])] += 1
    usual = Counter(str(task.info["wanted"]) for task in world.tasks("train")[:500]).most_common(1)[0][0]
    right = 0
    for index in range(200):
        task = world.tasks("test")[index]
        learnt = answers.get(form(task))
        guess = learnt.most_common(1)[0][0] if learnt else usual
        right += judge(world.question_of(task).answer, guess[:200]).correct
    assert right / 200 < 0.25, right  # half of the questions with yes or no, and those that cannot be answered


def form(task: Any) -> str:
    return " ".join(task.messages[-1]["content"].split()[:3])


def test_256_episodes_at_once_do_not_cross(world: Any) -> None:
    episodes = Episodes({world.name: world})
    act = world.reference_policies()["expert"]

    async def one(index: int) -> tuple[float | None, float | None, int]:
        episode = await episodes.open(world.name, split="train", index=index, seed=index)
        messages = await drive(episode, act, Random(index))
        score = await episode.score(messages)
        return score.total, score.components["evidence"], len(episode.calls)

    async def alone_and_together() -> None:
        alone = [await one(index) for index in range(0, 256, 32)]
        together = await asyncio.gather(*(one(index) for index in range(256)))
        assert [row[0] for row in together] == [1.0] * 256
        assert [together[index] for index in range(0, 256, 32)] == alone

    asyncio.run(alone_and_together())

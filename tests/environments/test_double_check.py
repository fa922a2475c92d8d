"""Double check: two turns through the environment's own words, and exactly which answers count."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from episode_driver import drive, open_episode

from mcpgym import ConfigurationError, Message, load_environment
from mcpgym.messages import assistant
from mcpgym_environments.double_check import DoubleCheck
from mcpgym_environments.double_check.questions import QUESTIONS, read_number

ENVIRONMENT = DoubleCheck()
ANSWER = ENVIRONMENT.task_at("train", 0).info["answer"]


def played(*texts: str) -> tuple[Any, list[Message]]:
    """The score of a policy that says these texts, one a turn, and its messages."""
    said = iter(texts)

    def policy(messages: Sequence[Message], random: Random) -> Message:
        return assistant(next(said))

    async def run() -> tuple[Any, list[Message]]:
        episode = await open_episode(ENVIRONMENT, "train", 0)
        messages = await drive(episode, policy, Random(0))
        assert episode.stop_reason == "answered"
        return await episode.score(messages), messages

    return asyncio.run(run())


def tagged(number: object) -> str:
    return f"<answer>{number}</answer>"


def test_the_environment_doubts_once_as_the_user_and_then_accepts() -> None:
    _, messages = played(tagged(ANSWER), tagged(ANSWER))
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant"]
    assert messages[3]["content"] == "Are you sure?"


@pytest.mark.parametrize(
    ("first", "second", "correct", "steady"),
    [
        (tagged(ANSWER), tagged(ANSWER), 1, 1),
        (tagged(ANSWER), f"Yes. <answer> {ANSWER}.0 </answer> I am sure.", 1, 1),
        (tagged(ANSWER + 1), tagged(ANSWER), 1, 0),
        ("I do not know.", tagged(ANSWER), 1, 0),
        (tagged(ANSWER), tagged(ANSWER + 1), 0, 0),
        (tagged(ANSWER + 1), tagged(ANSWER + 1), 0, 0),
        (tagged(ANSWER), "Yes, I am sure.", 0, 0),
        (tagged(ANSWER), "", 0, 0),
        (tagged(ANSWER), f"It is {ANSWER}.", 0, 0),
        (tagged(ANSWER), f"<answer>{ANSWER} or {ANSWER + 1}</answer>", 0, 0),
        (tagged(ANSWER), f"<answer>It is {ANSWER}</answer>", 0, 0),
        (tagged(ANSWER), tagged(ANSWER) + tagged(0), 0, 0),
        (tagged(ANSWER), tagged(0) + tagged(ANSWER), 1, 1),
    ],
)
def test_the_number_in_the_last_tags_of_the_last_turn_counts(
    first: str, second: str, correct: float, steady: float
) -> None:
    score, _ = played(first, second)
    assert score.components == {"correct": correct, "steady": steady}
    assert score.total == pytest.approx(0.8 * correct + 0.2 * steady)


def test_an_answer_that_was_never_doubted_is_not_final() -> None:
    async def run() -> Any:
        episode = await open_episode(ENVIRONMENT, "train", 0)
        return await episode.score([*episode.messages, assistant(tagged(ANSWER)), assistant(tagged(ANSWER))])

    assert asyncio.run(run()).total == 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", 42), ("-42", -42), ("+42", 42), ("−42", -42), ("1,204", 1204), ("1204.0", 1204), ("007", 7), ("-0", 0),
        ("", None), ("4 2", None), ("42!", None), ("1,20", None), ("12,04", None), ("1204.5", None), ("1e3", None),
        ("٤٢", None), ("0x2a", None), ("42\n43", None), ("--4", None), ("9" * 19, None), ("9" * 100_000, None),
    ],
)  # fmt: skip
def test_a_number_is_read_only_where_the_text_is_nothing_else(text: str, number: int | None) -> None:
    assert read_number(text) == number


def test_expert_is_perfect_and_random_is_far_below() -> None:
    async def run(name: str) -> list[float]:
        totals = []
        for index in range(200):
            episode = await open_episode(ENVIRONMENT, "test", index)
            messages = await drive(episode, ENVIRONMENT.reference_policies()[name], Random(index))
            totals.append((await episode.score(messages)).total)
        return totals  # type: ignore[return-value]

    assert asyncio.run(run("expert")) == [1.0] * 200
    assert sum(asyncio.run(run("random"))) < 10


def test_every_question_has_its_answer_and_none_is_in_both_splits() -> None:
    environment = load_environment("double-check", {"train_tasks": 20_000, "test_tasks": 5_000})
    asked = set()
    for split in environment.splits:
        for task in environment.tasks(split):
            text = task.messages[-1]["content"]
            asked.add(text)
            a, times, b, sign, c = text.removeprefix("What is ").removesuffix("?").split()
            assert times == "*"
            assert task.info["answer"] == int(a) * int(b) + {"+": 1, "-": -1}[sign] * int(c)
    assert len(asked) == 25_000


def test_more_tasks_than_questions_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="together must not be above"):
        load_environment("double-check", {"train_tasks": QUESTIONS, "test_tasks": 1})


def test_two_episodes_of_one_task_do_not_share_the_doubt() -> None:
    async def run() -> list[Any]:
        one, other = [await open_episode(ENVIRONMENT, "train", 0) for _ in range(2)]
        turn = [assistant(tagged(1))]
        return [await one.respond(turn), await other.respond(turn), await one.respond(turn), await other.respond(turn)]

    first, second, *ends = asyncio.run(run())
    assert first == second
    assert first is not None
    assert ends == [None, None]

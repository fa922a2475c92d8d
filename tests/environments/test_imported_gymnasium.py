"""Gymnasium environments: what is played here is what is played there, by name instead of number."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from random import Random
from typing import Any

import gymnasium
import gymnasium_toys
import pytest
from episode_driver import drive, open_episode

from mcpgym import ConfigurationError, Message, Score, check_environment, load_environment
from mcpgym.episode import Episode
from mcpgym.errors import CannotBegin, MissingPackage
from mcpgym.messages import assistant
from mcpgym_clients.listing import list_environments
from mcpgym_clients.scanning import scan
from mcpgym_clients.scanning.scan import scan_environment
from mcpgym_environments.imported import extras
from mcpgym_environments.imported.gymnasium import Gymnasium, GymnasiumConfig

EPISODES = {"FrozenLake-v1": 60, "Taxi-v4": 15, "CliffWalking-v1": 3, "Blackjack-v1": 100}
IDS = ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1", "Blackjack-v1"]


def made(id: str, **fields: Any) -> Gymnasium:
    return Gymnasium(GymnasiumConfig(id=id, **fields))


def played(environment: Gymnasium, policy: str, indices: Sequence[int]) -> list[tuple[Score, Episode, list[Message]]]:
    async def one(index: int) -> tuple[Score, Episode, list[Message]]:
        episode = await open_episode(environment, "test", index)
        messages = await drive(episode, environment.reference_policies()[policy], Random(index))
        score = await episode.score(messages)
        await episode.end("closed")
        return score, episode, messages

    async def run() -> list[tuple[Score, Episode, list[Message]]]:
        return [await one(index) for index in indices]

    return asyncio.run(run())


@pytest.mark.parametrize("id", [*IDS, "CartPole-v1", "MountainCar-v0"])
def test_the_same_steps_in_gymnasium_itself_give_the_same_return_and_the_same_end(id: str) -> None:
    for score, episode, _ in played(made(id), "random", range(3)):
        theirs = gymnasium.make(id, max_episode_steps=episode.state.limit)
        theirs.reset(seed=episode.state.seed)
        gained, over = 0.0, (False, False)
        for action in episode.state.actions:
            assert not any(over)
            _, more, terminated, truncated, _ = theirs.step(action)
            gained, over = gained + float(more), (terminated, truncated)
        assert any(over)
        assert score.total == pytest.approx(gained)
        assert score.components["ended_by_itself"] == float(over[0])


@pytest.mark.parametrize(
    ("id", "options", "low", "high"),
    [
        ("FrozenLake-v1", "", 0.65, 0.83),  # .74 within 100 steps, to the best play
        ("FrozenLake-v1", '{"is_slippery": false}', 1.0, 1.0),
        ("Taxi-v4", "", 7.5, 8.7),
        ("CliffWalking-v1", "", -13.0, -13.0),
        ("Blackjack-v1", "", -0.2, 0.1),  # -.05 in the long run
    ],
)
def test_the_expert_plays_as_well_as_can_be_played(id: str, options: str, low: float, high: float) -> None:
    scores = [score.total or 0.0 for score, _, _ in played(made(id, options=options), "expert", range(EPISODES[id]))]
    assert low <= sum(scores) / len(scores) <= high


def test_an_episode_that_is_left_earns_nothing_by_that() -> None:
    environment = made("CliffWalking-v1", max_steps=50)

    async def left(steps: int) -> float | None:
        episode = await open_episode(environment, "test", 0)
        for _ in range(steps):
            await episode.call("step", {"action": "up"})
        score = await episode.score([])
        assert not episode.state.over
        assert (await episode.call("step", {"action": "up"})).is_error is False  # and the episode goes on
        return score.total

    assert asyncio.run(left(0)) == asyncio.run(left(7)) == -50.0


def test_a_policy_that_stops_too_early_is_told_so_twice() -> None:
    async def run() -> list[str]:
        episode = await open_episode(made("Taxi-v4"), "test", 0)
        messages = await drive(episode, lambda messages, random: assistant("I am done."), Random(0))
        return [message["content"] for message in messages if message["role"] == "user"][1:]

    assert asyncio.run(run()) == ["The episode is not over. Call step with an action."] * 2


@pytest.mark.parametrize("id", ["FrozenLake-v1", "Taxi-v4", "CartPole-v1"])
def test_interleaved_episodes_are_what_they_are_alone(id: str) -> None:
    environment = made(id, max_steps=12)
    random = Random(3)
    plans = [[str(random.randrange(2)) for _ in range(8)] for _ in range(6)]

    async def texts(interleaved: bool) -> list[list[str]]:
        episodes = [await open_episode(environment, "train", index, seed=index % 2) for index in range(len(plans))]
        found: list[list[str]] = [[*(m["content"] for m in episode.messages)] for episode in episodes]
        steps = [(place, number) for number in range(len(plans)) for place in range(8)]
        for place, number in sorted(steps) if interleaved else sorted(steps, key=lambda step: step[::-1]):
            found[number].append((await episodes[number].call("step", {"action": plans[number][place]})).text)
        return found

    assert asyncio.run(texts(True)) == asyncio.run(texts(False))


def test_actions_have_names_and_numbers_and_nothing_else_is_one() -> None:
    async def run() -> list[tuple[bool, str]]:
        episode = await open_episode(made("FrozenLake-v1"), "test", 0)
        tried = ["DOWN", " 0 ", "4", "-1", "down down", "", "²"]
        return [((done := await episode.call("step", {"action": text})).is_error, done.text) for text in tried]

    answers = asyncio.run(run())
    assert [error for error, _ in answers] == [False, False, True, True, True, True, True]
    assert answers[2][1] == "'4' is no action; there is: left, down, right, up"


def test_whoever_never_names_an_action_is_done_after_as_many_calls_as_steps() -> None:
    async def run() -> tuple[int, str | None]:
        episode = await open_episode(made("FrozenLake-v1", max_steps=5), "test", 0)
        while not episode.done:
            await episode.call("step", {"action": "fly"} if episode.turns % 2 else {"act": 1})
        return episode.turns, episode.stop_reason

    assert asyncio.run(run()) == (6, "done")


def test_text_for_actions_and_dictionaries_to_see() -> None:
    assert gymnasium_toys.Echo.__doc__

    async def run() -> tuple[list[str], float | None]:
        episode = await open_episode(made("gymnasium_toys:toys/Echo-v0"), "test", 0)
        word = episode.state.made.unwrapped.word
        texts = [m["content"] for m in episode.messages]
        for action in ("xyz", word):
            texts.append((await episode.call("step", {"action": action})).text)
        return [*texts, word], (await episode.score([])).total

    (rules, seen, refused, answer, word), total = asyncio.run(run())
    assert "gymnasium_toys:toys/Echo-v0. Say the word that is asked for.\n\nAn action is a text." in rules
    assert seen == f"observation: \n  word: {word}\n  left: 3"
    assert refused.startswith("'xyz' is no action here")
    assert answer.endswith("left: 2\nThe episode is over.")
    assert total == 1.0


def test_spaces_are_an_episodes_own_and_what_is_seen_is_plain_text(recwarn: pytest.WarningsRecorder) -> None:
    environment = made("gymnasium_toys:toys/Drawn-v0")

    async def run(interleaved: bool) -> list[list[str]]:
        episodes = [await open_episode(environment, "test", index) for index in range(2)]
        assert episodes[0].messages[1]["content"] == "[A]B\nobservation: \n  outer: \n    inner: 3"
        read: list[list[str]] = [[], []]
        for number in (0, 1, 0, 1, 0, 1) if interleaved else (0, 0, 0, 1, 1, 1):
            read[number].append((await episodes[number].call("step", {"action": "0"})).text)
        return read

    first, second = asyncio.run(run(True))
    assert first != second
    assert asyncio.run(run(False)) == [first, second]
    assert [*recwarn] == []  # of observations that are not of their space: that is for the author, not for each episode


def test_the_return_between_two_bounds() -> None:
    scores = [s.total for s, _, _ in played(made("Taxi-v4", lowest=-200, highest=10), "expert", range(5))]
    assert all(0.97 < (score or 0) <= 1 for score in scores)
    assert [s.total for s, _, _ in played(made("Taxi-v4", lowest=0, highest=10), "random", range(3))] == [0.0] * 3


def test_no_seed_is_in_both_splits_whatever_the_episodes_seed() -> None:
    environment = made("FrozenLake-v1", train_tasks=400, test_tasks=400)

    async def seeds(split: str) -> set[int]:
        states = [
            await environment.reset(environment.task_at(split, i), seed) for i in range(0, 400, 10) for seed in (0, 1)
        ]
        return {state.seed for state in states}

    train, test = asyncio.run(seeds("train")), asyncio.run(seeds("test"))
    assert {seed % 2 for seed in train} == {0}  # for all that there are, by construction
    assert {seed % 2 for seed in test} == {1}
    assert len(train) == len(test) == 80


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"id": "NoSuchLake-v1"}, "'NoSuchLake-v1' cannot be made"),
        ({"id": "no_such_module:Lake-v1"}, "No module named 'no_such_module'"),
        ({"id": "Taxi-v3"}, "use `Taxi-v4` instead"),
        ({"id": "Pendulum-v1"}, "only Discrete ones"),
        ({"id": "toys/Picture-v0"}, "12288 numbers cannot be told"),
        ({"id": "FrozenLake-v1", "options": '{"size": 3}'}, "unexpected keyword argument 'size'"),
    ],
)
def test_what_cannot_be_played_is_said_when_it_begins(config: dict[str, Any], says: str) -> None:
    with pytest.raises(CannotBegin, match=says):
        asyncio.run(open_episode(made(**config), "test", 0))


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"options": "{is_slippery: false}"}, "is no JSON"),
        ({"options": "[1]"}, "must be a JSON object"),
        ({"lowest": 1, "highest": 0}, "highest must not be below lowest"),
        ({"ids": "Taxi-v4"}, "did you mean 'id'"),
    ],
)
def test_a_wrong_configuration_is_told(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load_environment("gymnasium", config)


def test_it_is_named_with_its_id() -> None:
    assert load_environment("gymnasium:Taxi-v4", {"max_steps": 7}).config == GymnasiumConfig(id="Taxi-v4", max_steps=7)
    with pytest.raises(ConfigurationError, match="id is given twice"):
        load_environment("gymnasium:Taxi-v4", {"id": "FrozenLake-v1"})
    with pytest.raises(ConfigurationError, match=r"MOUNT=gymnasium, --config MOUNT\.id=Taxi-v4"):
        load_environment("taxi=gymnasium:Taxi-v4+tic-tac-toe")
    both = load_environment("taxi=gymnasium+lake=gymnasium", {"taxi.id": "Taxi-v4", "taxi.max_steps": "3"})
    assert sorted(both.tools) == ["lake__step", "taxi__step"]


def test_a_trace_from_somebody_else_imports_no_module() -> None:
    assert GymnasiumConfig(id="my_module:MyEnv-v0").reaches() == ["id=my_module:MyEnv-v0"]
    assert GymnasiumConfig(options='{"is_slippery": false}').reaches() == []
    assert GymnasiumConfig(id="Other-v0", options='{"file": "/etc/x"}').reaches() == ['options={"file": "/etc/x"}']


def test_without_the_package_it_says_how_to_get_it_and_the_list_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "gymnasium" else find(name))
    with pytest.raises(MissingPackage, match=r"pip install 'mcpgym\[gymnasium\]'"):
        load_environment("gymnasium")
    list_environments(None, as_json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["gymnasium"]["missing"] is True
    assert "tools" in rows["tic-tac-toe"]
    assert [row.met for row in Gymnasium.requirements()] == [False]


@pytest.mark.parametrize("config", [{"id": "CartPole-v1", "lowest": 0, "highest": 500}])
def test_the_checker_finds_nothing(config: dict[str, Any]) -> None:
    check_environment("gymnasium", config=config, episodes=1, second_process=False).raise_for_findings()


def test_nothing_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = "HTTP, 2026-07-28"
    monkeypatch.setattr(scan, "LANES", {lane: scan.LANES[lane]})
    report = scan_environment(made("Blackjack-v1"), parts=["play"])
    assert report.ok, report.as_json()

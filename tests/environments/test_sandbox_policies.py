"""The reference policies of the sandbox: the solutions are right by the tools that all have; play gets nothing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from episode_driver import drive

from mcpgym import load_environment
from mcpgym.episodes import Episodes
from mcpgym.errors import EpisodeError
from mcpgym.messages import system, user
from mcpgym_environments.python_sandbox import PythonSandbox
from mcpgym_environments.python_sandbox.finding import Finder
from mcpgym_environments.python_sandbox.problems.answers import answer_text
from mcpgym_environments.python_sandbox.problems.catalogue import Catalogue, all_generators
from mcpgym_environments.python_sandbox.problems.problem import FAMILIES

CONFIG: dict[str, Any] = {"packages": "none"}
ANYWHERE = {"backend": "unsafe-local", "min_isolation": "none"}
"""For machines without a boundary of their own: what runs here is our own code."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[PythonSandbox]:
    """The environment over whatever this machine has; it starts once."""

    def started(config: dict[str, Any]) -> PythonSandbox:
        environment = load_environment("python-sandbox", config)
        assert isinstance(environment, PythonSandbox)
        asyncio.run(Episodes({environment.name: environment}).open(environment.name, split="test", index=0))
        return environment

    try:
        environment = started(CONFIG)
    except EpisodeError:
        environment = started(CONFIG | ANYWHERE)
    yield environment
    asyncio.run(environment.shutdown())


def played(environment: PythonSandbox, policy: Any, places: list[tuple[str, int]]) -> list[tuple[dict[str, Any], Any]]:
    """What each task hides, and the components of its score, for a policy that plays them side by side."""
    episodes = Episodes({environment.name: environment})

    async def one(split: str, index: int) -> tuple[dict[str, Any], Any]:
        episode = await episodes.open(environment.name, split=split, index=index, seed=index)
        messages = await drive(episode, policy, Random(index))
        score = await episode.score(messages)
        await episodes.close(episode.token)
        return {**episode.task.info, "calls": len(episode.calls)}, score.components

    async def main() -> list[tuple[dict[str, Any], Any]]:
        return await asyncio.gather(*(one(*place) for place in places))

    return asyncio.run(main())


def one_of_each(environment: PythonSandbox) -> list[tuple[str, int]]:
    """A task of every generator, of all levels in turn, in both splits."""
    wanted = {name: generator.levels[at % len(generator.levels)] for at, (name, generator) in enumerate(generators())}
    found: dict[str, tuple[str, int]] = {}
    for index in range(5_000):
        place = environment._catalogue.place(index)
        if place.level == wanted.get(place.generator.name):
            found.setdefault(place.generator.name, (("test", "train")[len(found) % 2], index))
        if len(found) == len(wanted):
            return list(found.values())
    raise AssertionError(set(wanted) - set(found))


def generators() -> list[tuple[str, Any]]:
    return list(all_generators().items())


def test_the_expert_is_right_on_every_generator_by_two_calls(sandbox: PythonSandbox) -> None:
    found = played(sandbox, sandbox.reference_policies()["expert"], one_of_each(sandbox))
    assert {info["generator"] for info, _ in found} == set(all_generators())
    assert {info["family"] for info, _ in found} == set(FAMILIES)
    assert {info["generator"]: score["correct"] for info, score in found if score["correct"] != 1.0} == {}
    assert {info["calls"] for info, _ in found} == {2}
    assert all(score["efficiency"] == score["no_errors"] == score["solved"] == 1.0 for _, score in found)


def test_playing_about_gets_nothing(sandbox: PythonSandbox) -> None:
    found = played(sandbox, sandbox.reference_policies()["random"], [("train", index) for index in range(24)])
    assert {info["family"] for info, _ in found} == set(FAMILIES)
    assert {score["correct"] for _, score in found} == {0.0}


def test_a_teacher_slips_as_often_as_it_should_and_says_so(sandbox: PythonSandbox) -> None:
    prompt = sandbox.task_at("train", 0).messages
    teacher, random = sandbox.teacher(0.7), Random(1)
    turns: list[Any] = [teacher(prompt, random) for _ in range(300)]
    slips = sum(turn.get("weight") == 0 for turn in turns)
    assert 60 < slips < 120  # 90 expected
    good = next(turn for turn in turns if turn.get("weight") != 0)
    assert good["content"].startswith("<think>")


def test_the_expert_knows_a_task_that_was_opened_elsewhere() -> None:
    """A policy may run in another process than the episodes, under another configuration; the problems are the same."""
    asked = load_environment("python-sandbox", {**CONFIG, "families": "debug"}).tasks("test")[0].messages
    fresh = load_environment("python-sandbox", {**CONFIG, "test_tasks": 400})
    message: Any = fresh.reference_policies()["expert"](asked, Random(0))
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "write_file"
    assert json.loads(call["function"]["arguments"])["path"] == "solution.py"


def test_the_expert_does_not_guess_at_what_it_does_not_know() -> None:
    few = load_environment("python-sandbox", {**CONFIG, "train_tasks": 2, "test_tasks": 2})
    whole = load_environment("python-sandbox", CONFIG)  # nobody set a task there: all are not looked through
    rules = system("Solve the task with Python.")
    for environment, said in ((few, [rules, user("What is the meaning of life?")]), (whole, [user("Hello")])):
        message: Any = environment.reference_policies()["expert"](said, Random(0))
        (call,) = message["tool_calls"]
        assert call["function"]["name"] == "submit"
        assert json.loads(call["function"]["arguments"]) == {"answer": "unknown"}


def test_the_episode_in_the_documents_is_one_that_is_played() -> None:
    page = (Path(__file__).parents[2] / "docs" / "python-sandbox.md").read_text("utf-8")
    shown = page.partition("<!-- episode -->")[2].partition("<!-- end of episode -->")[0]
    index = re.search(r"Task `test-(\d+)`", page)
    assert index is not None
    problem = load_environment("python-sandbox", CONFIG).problem("test", int(index[1]))
    assert problem.text in shown
    assert "".join(f"    {line}\n" for line in problem.solution.splitlines()) in shown
    assert f"\n    {answer_text(problem.answer)}\nYou submitted" in shown


def test_every_problem_is_looked_at_once_however_often_one_asks() -> None:
    catalogue = Catalogue(families=["compute"], max_level=1)
    made: list[tuple[str, int]] = []
    problem = catalogue.problem

    def counted(split: str, index: int) -> Any:
        made.append((split, index))
        return problem(split, index)

    catalogue.problem = counted  # type: ignore[method-assign]
    finder = Finder(catalogue, {"train": 5, "test": 3})
    assert finder.find("no such text") is None
    assert sorted(made) == [("test", 0), ("test", 1), ("test", 2), *(("train", index) for index in range(5))]
    assert finder.find("no other text") is None
    assert len(made) == 8
    wanted = problem("train", 4)
    assert finder.find(wanted.text) is wanted

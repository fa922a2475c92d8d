"""What a scan plays: mistakes made twice, long games, rewards worked out apart; and what it does not accuse."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from scan_toys import Room, Vault
from test_scan import Served, one_lane, running, told

from mcpgym import Environment, LazyTasks, Message, Task, Transcript, derive_seed, reward, task_id
from mcpgym.messages import user
from mcpgym_clients.scanning.remote import scan_url
from mcpgym_clients.scanning.scan import scan_environment


class SecondRefusal(Vault):
    """The second refusal of the same call says more than the first."""

    def complain(self, room: Room) -> str:
        return f"still empty: {room.word}" if room.said[-2:] == ["", ""] else "say something"


class AfterARefusal(Vault):
    """A refusal leaves something behind, which another tool shows."""

    def complain(self, room: Room) -> str:
        room.graded = 1.0
        return "say something"

    def show(self, room: Room) -> str:
        return room.word if room.graded else "nothing"


class WhenTired(Vault):
    max_turns = 80

    def tell(self, room: Room) -> str:
        return f"it is {room.word}" if len(room.said) > 30 else "no"


class WorksItsRewardOut(Vault):
    """The same figure as the reward's, from a method that the reward asks too."""

    def points(self, room: Room) -> float:
        return len(room.said) / 7

    @reward
    def opened(self, room: Room) -> float:
        """A share."""
        return self.points(room)

    def show(self, room: Room) -> str:
        return f"points {self.points(room):.10f}"


class ShortHash(Vault):
    def tell(self, room: Room) -> str:
        return hashlib.sha256(room.word.encode()).hexdigest()[:12]


LEAKS = {
    SecondRefusal: "hidden info",
    AfterARefusal: "hidden info",
    WhenTired: "hidden info",
    WorksItsRewardOut: "reward",
    ShortHash: "hidden info",
}


@pytest.mark.slow
@pytest.mark.parametrize("leaking", LEAKS, ids=lambda cls: cls.__name__)
def test_what_is_told_only_after_some_calls_is_found(leaking: type[Vault], monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch)
    report = scan_environment(leaking(), parts=["play"])
    assert LEAKS[leaking] in report.kinds(), told(report)


class Products(Environment[Task, dict[str, int]]):
    """Healthy: large numbers of its state are its question."""

    name = "products"
    description = "Multiply."

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(5, lambda i: Task(task_id(split, i), split, [user("Multiply.")], {"seed": derive_seed(i)}))

    def reset(self, task: Task, seed: int) -> dict[str, int]:
        made = Random(derive_seed(task.info["seed"], seed))
        return {"a": made.randrange(10**13, 10**14), "b": made.randrange(10**13, 10**14)}

    def messages(self, task: Task, state: dict[str, int]) -> Sequence[Message]:
        return [user(f"What is {state['a']} times {state['b']}?")]

    @reward
    def right(self, state: dict[str, int], transcript: Transcript) -> float:
        """1 for the product."""
        return float(str(state["a"] * state["b"]) in transcript.answer)


def test_what_players_may_see_of_a_state_can_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    one_lane(monkeypatch)
    report = scan_environment(Products(), parts=["play"])
    assert {finding.what for finding in report.findings} == {"state['a']", "state['b']"}
    assert all("--allow" in finding.fix for finding in report.findings)
    allowed = scan_environment(Products(), parts=["play", "stdio"], allow=["state['a']", "state['b']"])
    assert allowed.ok, told(allowed)


class Questions(Products):
    """Healthy: its info repeats what its prompt says."""

    def tasks(self, split: str) -> Sequence[Task]:
        def make(place: int) -> Task:
            question = f"Which is the capital of country {place} of the {split} atlas?"
            return Task(
                task_id(split, place), split, [user(question)], {"question": question, "answer": place % 2 == 0}
            )

        return LazyTasks(5, make)

    def reset(self, task: Task, seed: int) -> Any:
        return {"question": task.info["question"], "a": 2, "b": 3}

    def messages(self, task: Task, state: Any) -> Sequence[Message]:
        return [user(f"In one word. {state['question']}")]


def test_a_question_that_info_repeats_is_no_secret_and_an_answer_too_short_to_find_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one_lane(monkeypatch)
    report = scan_environment(Questions(), parts=["play"])
    assert report.ok, told(report)
    assert any("named as a secret: info.answer" in note for note in report.notes), report.notes


def server_with_more_than_tools() -> Served:
    from fastmcp import FastMCP

    server: Any = FastMCP("more")

    @server.prompt
    def hint(cell: str) -> str:
        """A hint."""
        return f"not {cell}, but the-plan-of-the-opponent"

    @server.resource("game://{number}/state")
    def state(number: str) -> str:
        """A state."""
        return f"{number}: the-seed-of-the-game-is-here"

    return Served(server.http_app())


def test_prompts_with_arguments_and_templates_of_resources_are_read() -> None:
    with running(server_with_more_than_tools) as url:
        report = scan_url(url, canaries=["the-plan-of-the-opponent", "the-seed-of-the-game-is-here"])
    assert {"canary 1", "canary 2"} <= {finding.what for finding in report.findings}, told(report)

"""Healthy environments give no finding, however they are handed to the checker."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from typing import Any

import pytest
from check_toys import HEALTHY, Doors, DoorsConfig

from mcpgym import (
    ConfigurationError,
    Environment,
    LazyTasks,
    Message,
    Task,
    check_environment,
    derive_seed,
    reward,
    task_id,
    tool,
)
from mcpgym.check import RULES, CheckFailed, Finding, Report
from mcpgym.messages import user
from mcpgym.registry import environment_names


@pytest.mark.parametrize("cls", HEALTHY)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_healthy_environment_gives_no_finding(cls, seed):
    report = check_environment(cls, seed=seed)
    assert report.ok, str(report)
    assert report.notes == []
    assert report.episodes > 50
    report.raise_for_findings()


class Bare(Environment[Task, dict[str, Any]]):
    """One split, tasks of nothing but an id, everything asynchronous, and a lock in the state."""

    name = "bare"
    splits = ("only",)

    def tasks(self, split: str) -> LazyTasks:
        return LazyTasks(10**9, lambda index: Task(task_id(split, index), split, ()))

    async def reset(self, task: Task, seed: int) -> dict[str, Any]:
        await asyncio.sleep(0.001)
        return {"dice": random.Random(derive_seed(task.id, seed)), "lock": asyncio.Lock(), "rolls": 0, "task": task.id}

    def messages(self, task: Task, state: dict[str, Any]) -> list[Message]:
        return [user(f"Game {task.id}: use `roll`, three times.")]

    @tool
    async def roll(self, state: dict[str, Any]) -> str:
        """Roll the dice."""
        async with state["lock"]:
            await asyncio.sleep(0.001)
            state["rolls"] += 1
            return f"{state['dice'].randint(1, 6)} in roll {state['rolls']}"

    def is_done(self, state: dict[str, Any]) -> bool:
        return bool(state["rolls"] >= 3)

    async def close(self, state: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    @reward
    def rolled(self, state: dict[str, Any]) -> float:
        """Whether it was rolled to the end."""
        return min(state["rolls"], 3) / 3


class BareInTwoSplits(Bare):
    name = "bare-in-two-splits"
    splits = ("train", "test")


@pytest.mark.parametrize("cls", [Bare, BareInTwoSplits])
def test_an_unusual_environment_gives_no_finding(cls):
    report = check_environment(cls, second_process=False)
    assert report.ok, str(report)


@pytest.mark.parametrize(
    "name", sorted({*environment_names()} - {"reasoning-gym", "textarena"})
)  # its own tests check it, cheaper
def test_every_installed_environment_gives_no_finding(name):
    report = check_environment(name)
    assert report.ok, str(report)


def test_an_instance_is_checked_under_its_own_configuration():
    class OnlyForTwo(Doors):
        def reset(self, task, seed):
            assert self.config.doors == 2
            return super().reset(task, seed)

    assert check_environment(OnlyForTwo(DoorsConfig(doors=2)), second_process=False).ok
    assert check_environment(OnlyForTwo, config={"doors": "2"}, second_process=False).ok
    assert {f.rule for f in check_environment(OnlyForTwo, second_process=False).findings} == {"reset"}


def test_it_can_be_called_inside_a_running_loop():
    async def main():
        return check_environment(Doors, episodes=1, second_process=False)

    assert asyncio.run(main()).ok


def test_the_callers_global_generator_is_left_alone():
    random.seed(5)
    before = random.getstate()
    check_environment(Doors, episodes=2, second_process=False)
    assert random.getstate() == before


def test_a_wrong_configuration_is_an_error_not_a_finding():
    with pytest.raises(ConfigurationError, match="doors"):
        check_environment(Doors, config={"doors": 1})
    with pytest.raises(ConfigurationError, match="did you mean 'doors'"):
        check_environment(Doors, config={"door": 3})


def test_a_class_that_no_other_process_can_import_gets_a_note():
    class Local(Doors):
        pass

    report = check_environment(Local)
    assert report.ok
    assert any("another process" in note for note in report.notes)


def test_findings_are_raised_with_all_that_they_say():
    report = Report("x")
    report.add("seed", "a became b", "train[0]", "use the seed")
    assert not report.ok
    with pytest.raises(CheckFailed, match=r"seed: train\[0\]: a became b\n +fix: use the seed"):
        report.raise_for_findings()
    with pytest.raises(AssertionError):
        report.raise_for_findings()
    report.add("seed", "a became b", "train[0]", "use the seed")
    assert report.findings == [Finding("seed", "a became b", "train[0]", "use the seed")]
    for number in range(9):
        report.add("seed", f"{number}", "x", "y")
    assert len(report.of("seed")) == 3
    with pytest.raises(KeyError):
        report.add("no-such-rule", "", "", "")
    assert set(RULES) >= {"seed", "secrets"}


def test_reports_can_be_printed_on_any_console():
    report = Report("x")
    report.add("tools", "\ud800", "\udfff", "z")
    assert str(report).encode()


def test_the_checker_is_imported_only_when_it_is_asked_for():
    code = "import sys, mcpgym; sys.exit('mcpgym.check' in sys.modules or 'mcpgym.episodes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

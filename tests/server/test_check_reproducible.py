"""Environments that cannot give the same bytes twice are checked by their own rule."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import pytest
from check_toys import Chat, Doors, Room

from mcpgym import Message, Task, Transcript, check_environment, tool
from mcpgym.control import describe
from mcpgym.messages import user

CLOCK = re.compile(r"\d{6,}")


class Clock(Doors):
    """Its answers, and its prompts, tell the time, which its rule passes over."""

    name = "clock"
    reproducible = False

    @tool(inline=True)
    def look(self, room: Room) -> str:
        """Look around."""
        return f"it is {time.perf_counter_ns()}, and {len(room.opened)} doors are open"

    def messages(self, task: Task, state: Room) -> Sequence[Message]:
        return [user(f"{super().messages(task, state)[-1]['content']} It is {time.perf_counter_ns()}.")]

    def same_observation(self, recorded: str, replayed: str) -> bool:
        return CLOCK.sub("TIME", recorded) == CLOCK.sub("TIME", replayed)


class ClockChat(Chat):
    """So do its replies."""

    name = "clock-chat"
    reproducible = False

    async def respond(self, state: list[str], transcript: Transcript) -> list[Message] | None:
        said = await super().respond(state, transcript)
        return None if said is None else [user(f"{said[0]['content']} {time.perf_counter_ns()}")]

    def same_observation(self, recorded: str, replayed: str) -> bool:
        return CLOCK.sub("TIME", recorded) == CLOCK.sub("TIME", replayed)


@pytest.mark.parametrize("cls", [Clock, ClockChat])
def test_what_its_rule_passes_over_is_no_finding(cls: type[Doors]) -> None:
    report = check_environment(cls)
    assert report.ok, str(report)
    assert report.notes == [f"process: not checked, {cls.name} says that it is not reproducible"]
    assert report.episodes > 40


def test_the_same_environment_without_its_rule_has_findings() -> None:
    class Strict(Clock):
        def same_observation(self, recorded: str, replayed: str) -> bool:
            return recorded == replayed

    assert {finding.rule for finding in check_environment(Strict).findings} >= {"seed"}


def test_what_its_rule_does_not_pass_over_is_still_found() -> None:
    class Shared(Clock):
        opened = 0

        @tool(inline=True)
        def look(self, room: Room) -> str:
            """Look around."""
            Shared.opened += 1
            return f"it is {time.perf_counter_ns()}, and {Shared.opened} people looked"

    assert {finding.rule for finding in check_environment(Shared).findings} >= {"seed"}


def test_the_control_plane_says_so() -> None:
    assert describe(Doors()).reproducible
    assert not describe(Clock()).reproducible

"""Letting an environment's own policies and its teacher play, which reaches deeper than random calls do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from mcpgym.asking import settle
from mcpgym.check.plays import Act, Place, Plan, Player
from mcpgym.check.report import Report
from mcpgym.check.rules_plays import over, report_broken
from mcpgym.check.rules_tasks import Make
from mcpgym.environment import Environment, ReferencePolicy
from mcpgym.messages import message_fault
from mcpgym.tasks import derive_seed

MAX_TURNS = 60


async def reference_plans(make: Make, place: Place, report: Report) -> list[Plan]:
    """What each reference policy does at ``place``, as plans that can be played again."""
    plans = []
    environment = make()
    for name, policy in _policies(environment):
        player = Player(over(environment), place, ())
        random = Random(derive_seed("reference", name, place.seed))
        report.episodes += 1
        going = await player.open()
        for _ in range(MAX_TURNS):
            if not going:
                break
            try:
                message: Any = await settle(policy(list(player.play.transcript), random))
                fault = message_fault(message)
                acts = [] if fault else _acts(message)
            except Exception as error:
                fault = f"raised {type(error).__name__}: {error}"
            if fault:
                fix = "a reference policy takes the messages and a Random, and returns one assistant message"
                report.add("reference-policies", f"its turn {fault}", f"{name} at {place}", fix)
                break
            for act in acts:
                going = going and await player.act(act)
        plans.append(tuple(player.play.acts))
        report_broken([await player.finish()], report)
    return plans


def _policies(environment: Environment[Any, Any, Any]) -> Iterator[tuple[str, ReferencePolicy]]:
    """The environment's own policies by name; its teacher, where it has one, is among them at half its skill."""
    yield from environment.reference_policies().items()
    if (teacher := environment.teacher(0.5)) is not None:
        yield "teacher", teacher


def _acts(message: Any) -> list[Act]:
    calls = message.get("tool_calls") or []
    if not calls:
        return [Act(None, text=message["content"])]
    return [
        Act(call["function"]["name"], json.loads(call["function"]["arguments"]), message["content"]) for call in calls
    ]

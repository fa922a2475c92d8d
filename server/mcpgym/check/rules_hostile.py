"""Rules about arguments: tools survive whatever a policy sends."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from mcpgym.check.arguments import extreme_arguments, hostile_arguments
from mcpgym.check.plays import Act, Place, Player, dump, show
from mcpgym.check.report import Report
from mcpgym.check.rules_plays import over
from mcpgym.check.rules_tasks import Make
from mcpgym.environment import Environment


async def check_hostile(make: Make, place: Place, random: Random, report: Report) -> list[str]:
    """Send every hostile and extreme call; all that the policy read of it."""
    environment = make()
    seen: list[str] = []
    player: Player | None = None
    for rule, act in _acts(environment, random):
        if player is None:
            player = Player(over(environment), place, ())
            report.episodes += 1
            if not await player.open():
                return seen
        going = await player.act(act)
        where = f"{act.name}({show(dump(act.arguments), 100)})"
        lines = player.play.lines
        if how := player.play.broken.get("tools"):
            fix = "raise mcpgym.ToolError with a text that says what would be right"
            report.add(rule, show(how, 300), where, fix)
        elif lines[-1].act is act:
            seen.append(lines[-1].seen)
            _check_text(lines[-1].seen, where, report)
            if rule == "hostile-arguments" and not lines[-1].is_error:
                problem = f"was answered as if it were right: {show(lines[-1].seen, 80)!r}"
                report.add(rule, problem, where, "let the schema say what fits; do not take over parsing")
        if not going or player.play.broken:
            await _finish(player, report)
            player = None
    if player is not None:
        await _finish(player, report)
    return seen


async def _finish(player: Player, report: Report) -> None:
    """End the episode; its score must keep what it promises also after so much that was wrong."""
    if how := (await player.finish()).broken.get("rewards"):
        fix = "rewards must stay within low and high however many calls there were"
        report.add("rewards", how, f"{player.play.place}, {len(player.play.acts)} wrong and extreme calls", fix)


def _acts(environment: Environment[Any, Any, Any], random: Random) -> Iterator[tuple[str, Act]]:
    for name in ("no_such_tool", "", "\ud800", "x" * 5000):
        yield "hostile-arguments", Act(name, {})
    for tool in environment.tools.values():
        schema = tool.parser.schema
        for arguments in hostile_arguments(schema, random):
            yield "hostile-arguments", Act(tool.name, arguments)
        for arguments in extreme_arguments(schema, random):
            yield "tools", Act(tool.name, arguments)


def _check_text(text: str, where: str, report: Report) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        report.add("tools", "answered text that cannot be sent as UTF-8", where, "replace lone surrogates")
    if len(text) > 1_000_000:
        problem = f"answered {len(text):,} characters"
        report.add("tools", problem, where, "bound what a tool answers: no model reads more than a few thousand")

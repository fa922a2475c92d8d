"""Rules about play: the same bytes again, whatever else happens in the process and in other episodes."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcpgym.asking import settle
from mcpgym.check.plays import Act, Place, Plan, Play, Player, at_once, interleave, play
from mcpgym.check.report import Report
from mcpgym.check.rules_tasks import Make, compare_snapshots, snapshot
from mcpgym.combined.environment import CombinedEnvironment
from mcpgym.combined.naming import SEPARATOR
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes

Planned = Sequence[tuple[Place, Plan]]

_FIXES = {
    "reset": "reset must work for every task and seed",
    "tools": "raise mcpgym.ToolError with a text that helps the policy; return text (str)",
    "respond": "return a sequence of messages, or None to end it",
    "messages": 'write messages as {"role": "user", "content": "text"}',
    "rewards": "return a finite number within low and high of @reward, or None where it cannot be told",
    "done": "is_done and game_outcome must look at the state and change nothing; an unfinished game's outcome is None",
    "close": "close must cope with every state that reset and the tools leave",
}


def over(environment: Environment[Any, Any, Any]) -> Episodes:
    """Episodes over one environment."""
    return Episodes({environment.name: environment})


def report_broken(plays: Sequence[Play], report: Report) -> None:
    """A finding for everything that broke in a play."""
    for one in plays:
        for rule, how in one.broken.items():
            report.add(rule, how, str(one.place), _FIXES[rule])


async def baseline(make: Make, planned: Planned, report: Report) -> list[Play]:
    """Play every plan once, in order, on one fresh instance."""
    environment = make()
    with _generators(1, report):
        plays = [await play(over(environment), place, plan) for place, plan in planned]
    await _shut_down(environment, report)
    report_broken(plays, report)
    report.episodes += len(plays)
    return plays


async def check_replay(make: Make, planned: Planned, first: Sequence[Play], report: Report) -> bool:
    """The rules ``seed`` and ``global-random``; whether both hold."""
    held = True
    for seed, rule in ((1, "seed"), (2, "global-random")):
        environment = make()
        with _generators(seed, report):
            again = [await play(over(environment), place, plan) for place, plan in planned]
        report.episodes += len(again)
        for before, after in zip(first, again, strict=True):
            if (difference := before.difference(after)) is not None and held:
                fix = (
                    "take all randomness from the task and the seed (Random(derive_seed(seed, …))); "
                    "no clock, no set order, nothing kept outside of the state"
                    if rule == "seed"
                    else "use a random.Random of the episode (Random(derive_seed(seed, …))), never the module's"
                )
                report.add(rule, difference, str(before.place), fix)
                held = False
        if not held:
            break
    return held and not report.of("global-random")


async def check_isolation(make: Make, planned: Planned, first: Sequence[Play], report: Report) -> None:
    """Episodes of one instance, in another order, interleaved and all at once, each with a twin, against one alone."""
    environment = make()
    episodes = over(environment)
    tasks = snapshot(environment, environment.splits)
    fix = "keep what changes in the state that reset makes: never on self, on the class, in a module or in the task"
    for before, (place, plan) in reversed(list(zip(first, planned, strict=True))):
        if (difference := before.difference(await play(episodes, place, plan))) is not None:
            report.add("isolation", f"in another order of episodes, {difference}", str(place), fix)
            break
    twins = [*planned, *planned]
    for how, manner in (("interleaved with", interleave), ("at the same time as", at_once)):
        together = await manner([Player(episodes, place, plan) for place, plan in twins])
        for before, after in zip([*first, *first], together, strict=True):
            if (difference := before.difference(after)) is not None:
                report.add("isolation", f"{how} other episodes, {difference}", str(before.place), fix)
                break
    compare_snapshots(tasks, snapshot(environment, environment.splits), "after some episodes", report)
    report.episodes += 5 * len(planned)


async def check_states(make: Make, place: Place, report: Report) -> None:
    """Two episodes never get one and the same mutable state."""
    environment = make()
    try:
        states = [
            await settle(environment.reset(environment.task_at(place.split, place.index), place.seed)) for _ in range(2)
        ]
    except Exception:
        return  # reported as what it is by every play
    immutable = (type(None), bool, int, float, str, bytes, tuple, frozenset)
    if states[0] is states[1] and not isinstance(states[0], immutable):
        problem = f"reset gave one {type(states[0]).__name__} to two episodes"
        report.add("isolation", problem, str(place), "make a fresh state in reset, every time")
    for state in states[: 1 if states[0] is states[1] else 2]:
        try:
            await settle(environment.close(state))
        except Exception as error:
            report.add("close", f"close raised {type(error).__name__}: {error}", str(place), _FIXES["close"])


async def check_done(make: Make, planned: Planned, first: Sequence[Play], report: Report) -> None:
    """``is_done`` may be asked any number of times."""
    environment = make()
    for before, (place, plan) in zip(first, planned, strict=True):
        after = await play(over(environment), place, plan, ask_often=True)
        report_broken([after], report)
        if after.broken == before.broken and (difference := before.difference(after)) is not None:
            problem = f"asked more than once whether it is done, {difference}"
            report.add("done", problem, str(place), _FIXES["done"])
    report.episodes += len(planned)


async def check_invalid(make: Make, planned: Planned, first: Sequence[Play], report: Report) -> None:
    """Calls that are refused before they reach a tool leave the later answers as they are."""
    environment = make()
    for before, (place, plan) in zip(first, planned, strict=True):
        mixed: list[Act] = []
        turns = Counter[str]()
        limits = _limits(environment)
        for act in plan:
            turns.update(list(limits) if act.name is None else [act.name.partition(SEPARATOR)[0]] * 2)
            if any(turns[mount] >= limit for mount, limit in limits.items()):
                break  # the wrong calls would end a part of it, as they end an episode
            if act.name is not None:
                mixed.append(Act(act.name, {"no_such_parameter": len(mixed)}))
            mixed.append(act)
        after = await play(over(environment), place, mixed)
        valid = [line for line in after.lines if line.act is not None and line.act in plan]
        for mine, theirs in zip([line for line in before.lines if line.act is not None], valid, strict=False):
            if not before.agree(mine, theirs):
                problem = (
                    f"after a call with a wrong argument, {mine.label} answered {theirs.seen!r}, not {mine.seen!r}"
                )
                fix = "invalid_arguments may take note for a reward, but must leave the rest of the state as it was"
                report.add("invalid-arguments", problem, str(place), fix)
                break
    report.episodes += len(planned)


def _limits(environment: Environment[Any, Any, Any]) -> dict[str, int]:
    """The turns that each part of a combination may have, by its mount; none of any other environment."""
    if not isinstance(environment, CombinedEnvironment):
        return {}
    limits = {mount: member.max_turns for mount, member in environment.members.items()}
    return {mount: limit for mount, limit in limits.items() if limit is not None}


@contextmanager
def _generators(seed: int, report: Report) -> Iterator[None]:
    """Put the global generators into a known state; see whether they stay there; put them back."""
    numpy = sys.modules.get("numpy")
    kept = random.getstate(), None if numpy is None else numpy.random.get_state()
    random.seed(seed)
    if numpy is not None:
        numpy.random.seed(seed)
    known = random.getstate(), None if numpy is None else str(numpy.random.get_state())
    try:
        yield
        now = random.getstate(), None if numpy is None else str(numpy.random.get_state())
        for name, before, after in zip(("random", "numpy.random"), known, now, strict=True):
            if before != after:
                fix = f"make a generator of your own from the seed; leave the module {name} alone"
                report.add("global-random", f"play changed the global generator of {name}", "a whole episode", fix)
    finally:
        random.setstate(kept[0])
        if numpy is not None:
            numpy.random.set_state(kept[1])


@contextmanager
def working_folder(report: Report) -> Iterator[None]:
    """See whether play leaves the process where it was; put it back."""
    before = Path.cwd()
    try:
        yield
    finally:
        if (after := Path.cwd()) != before:
            os.chdir(before)
            problem = f"play changed the working folder of the whole process to {after}"
            report.add("isolation", problem, "a whole episode", "use whole paths, and cwd=… for subprocesses")


async def _shut_down(environment: Environment[Any, Any, Any], report: Report) -> None:
    try:
        await settle(environment.shutdown())
    except Exception as error:
        problem = f"shutdown raised {type(error).__name__}: {error}"
        report.add("close", problem, environment.name, "shutdown must cope with an instance in any state")

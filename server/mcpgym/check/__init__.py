"""``check_environment``: whether an environment keeps the contract. It plays real episodes, and reports what it finds.

How to read this package: ``report`` has the rules' names; ``plays`` plays an episode by plan and keeps all that the
policy saw; each ``rules_*`` module checks one kind of promise by comparing such plays.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Mapping
from random import Random
from typing import Any

from mcpgym.check.plays import Place, Plan, random_plan
from mcpgym.check.reference import reference_plans
from mcpgym.check.report import RULES, CheckFailed, Finding, Report
from mcpgym.check.rules_app import check_app
from mcpgym.check.rules_hostile import check_hostile
from mcpgym.check.rules_plays import (
    baseline,
    check_done,
    check_invalid,
    check_isolation,
    check_replay,
    check_states,
    working_folder,
)
from mcpgym.check.rules_reproducible import check_reproducible
from mcpgym.check.rules_rewards import check_rewards, check_rubric
from mcpgym.check.rules_tasks import Make, check_config, check_schemas, check_tasks
from mcpgym.check.rules_texts import check_mentions, check_secrets
from mcpgym.check.rules_tree import check_tree
from mcpgym.check.second_process import check_process
from mcpgym.environment import Environment
from mcpgym.registry import configure, load_environment, merged_config
from mcpgym.tasks import derive_seed

__all__ = ["RULES", "CheckFailed", "Finding", "Report", "check_environment"]

CALLS = 10
"""Calls in a random plan."""


def check_environment(
    environment: Environment[Any, Any, Any] | type[Environment[Any, Any, Any]] | str,
    *,
    config: Mapping[str, Any] | None = None,
    episodes: int = 6,
    seed: int = 0,
    second_process: bool = True,
) -> Report:
    """Check an environment against every rule in ``RULES``, by playing it.

    In a test: ``check_environment(MyEnvironment).raise_for_findings()``.

    Args:
        environment: an instance, its class, or the name it is installed under.
        config: configuration fields to change from their defaults (or from the instance's).
        episodes: how many different episodes are planned; each is played about a dozen times.
        seed: chooses the tasks and the calls; the same seed checks the same things.
        second_process: whether to play once more in a new interpreter (takes about a second).

    Raises:
        ConfigurationError: there is no such environment, or the configuration does not fit.
    """
    make = _maker(environment, config or {})
    made = make()
    report = Report(made.name)
    if hasattr(made, "checked_elsewhere"):  # it plays in a process of its own, and is checked there (mcpgym.isolated)
        found = made.checked_elsewhere({"episodes": episodes, "seed": seed, "second_process": second_process})
        report.findings = [Finding(**finding) for finding in found["findings"]]
        report.notes, report.episodes = list(found["notes"]), found["episodes"]
        return report
    with working_folder(report):
        _run(_check(make, max(episodes, 1), seed, second_process, report))
    return report


async def _check(make: Make, count: int, seed: int, second_process: bool, report: Report) -> None:
    environment = make()
    report.notes += [str(remark) for remark in environment.remarks()]
    check_config(environment, report)
    check_schemas(environment, report)
    check_rubric(environment, report)
    check_app(make, report)
    if not check_tasks(make, report):
        report.notes.append("nothing was played: the tasks must be right first")
        return
    random = Random(derive_seed("check", seed))
    places = _places(environment, count, random)
    planned: list[tuple[Place, Plan]] = [(place, random_plan(environment, random, CALLS)) for place in places]
    for place in places[:2]:
        planned += [(place, plan) for plan in await reference_plans(make, place, report)]
    await check_states(make, places[0], report)
    first = await baseline(make, planned, report)
    if any("reset" in one.broken for one in first):
        report.notes.append("little was played: reset must work first")
        return
    if not check_reproducible(environment, first, report):
        report.notes.append("little was compared: same_observation must work first")
        return
    if await check_replay(make, planned, first, report):
        await check_isolation(make, planned, first, report)
        await check_done(make, planned, first, report)
        await check_invalid(make, planned, first, report)
        if second_process:
            await asyncio.to_thread(check_process, environment, planned, first, report)
    else:
        report.notes.append("isolation, done, invalid-arguments, process: not checked, plays must repeat first")
    hostile = await check_hostile(make, places[0], random, report)
    await check_tree(make, Random(derive_seed("check", "tree", seed)), report)
    await check_rewards(make, *planned[-1], report)
    check_mentions(environment, first, report)
    await check_secrets(make, planned, hostile, report)


def _places(environment: Environment[Any, Any, Any], count: int, random: Random) -> list[Place]:
    """Episodes to play: each split's first tasks and some of its others, under several seeds."""
    places = []
    for number in range(count):
        split = environment.splits[number % len(environment.splits)]
        size = len(environment.tasks(split))
        turn = number // len(environment.splits)
        index = min(turn, size - 1) if turn < 2 else random.randrange(size)
        places.append(Place(split, index, random.choice((0, 1, 7, random.getrandbits(31)))))
    return places


def _maker(
    environment: Environment[Any, Any, Any] | type[Environment[Any, Any, Any]] | str, config: Mapping[str, Any]
) -> Make:
    if isinstance(environment, Environment):
        served = environment
        merged = merged_config(type(served), served.config.model_dump(exclude_unset=True), config)

        def again() -> Environment[Any, Any, Any]:
            try:
                return configure(type(served), merged)
            except TypeError:  # its constructor wants more than a configuration: there is only this one
                return served

        return again
    if isinstance(environment, str):
        return lambda: load_environment(environment, config)
    return lambda: configure(environment, config)


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, also from inside a running event loop; the log stays quiet about what is provoked on purpose."""
    quiet = {name: logging.getLogger(name).level for name in ("mcpgym.episode", "fastmcp")}
    for name in quiet:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(work)
            return
        raised: list[BaseException] = []

        def beside() -> None:
            try:
                asyncio.run(work)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=beside, name="check_environment")
        thread.start()
        thread.join()
        if raised:
            raise raised[0]
    finally:
        for name, level in quiet.items():
            logging.getLogger(name).setLevel(level)

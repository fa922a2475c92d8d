"""Rules about what an environment declares: its configuration, its splits and tasks, and its schemas."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from mcpgym.check.plays import dump, show
from mcpgym.check.report import Report
from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.messages import message_fault
from mcpgym.schema import schema_faults
from mcpgym.server_names import server_name
from mcpgym.tasks import Task

SAMPLE = 300
"""Tasks of one split that are looked at: the first ones, and as many spread over the rest."""

Make = Callable[[], Environment[Any, Any, Any]]


def check_config(environment: Environment[Any, Any, Any], report: Report) -> None:
    """Fields have fitting defaults and descriptions, unknown ones are refused; and there is a turn to play."""
    config = type(environment).config_class
    for name, field in config.model_fields.items():
        where = f"{config.__name__}.{name}"
        if field.is_required():
            report.add("config", "has no default", where, f"write {name}: … = a value that suits a first try")
        if not field.description:
            report.add("config", "has no description", where, "put a docstring below the field; options show it")
    try:
        if not any(field.is_required() for field in config.model_fields.values()):
            config.model_validate(config().model_dump())
    except ValueError as error:
        report.add(
            "config", f"its defaults do not fit: {error}", config.__name__, "choose defaults that a user may type"
        )
    turns = environment.max_turns
    if turns is not None and (isinstance(turns, bool) or not isinstance(turns, int) or turns < 1):
        report.add("config", f"max_turns is {turns!r}", environment.name, "a number from 1, or None for no limit")
    if config.model_config.get("extra") != "forbid":
        report.add("config", "takes unknown fields", config.__name__, "keep extra='forbid' of mcpgym.Config")
    if not config.model_config.get("frozen"):
        report.add("config", "can be changed by an episode", config.__name__, "keep frozen=True of mcpgym.Config")


def check_schemas(environment: Environment[Any, Any, Any], report: Report) -> None:
    """Tool listings are at the fixed point, also after what the class did to them."""
    for tool in environment.tools.values():
        for fault in schema_faults(server_name(environment.name), tool.listing):
            report.add("schemas", fault, f"tool {tool.name}", "let @tool make the listing; do not change it afterwards")


def sample(tasks: Sequence[Task]) -> list[int]:
    """Indices to look at, the same for every split of one length."""
    count = len(tasks)
    if count <= 2 * SAMPLE:
        return list(range(count))
    return sorted({*range(SAMPLE), *(SAMPLE + (count - 1 - SAMPLE) * i // (SAMPLE - 1) for i in range(SAMPLE))})


def check_tasks(make: Make, report: Report) -> bool:
    """The rules about tasks; whether there are any to play."""
    environment = make()
    splits = environment.splits
    if not splits or len(set(splits)) != len(splits):
        report.add("tasks", f"splits is {splits!r}", environment.name, "name at least one split, each once")
        return False
    ids: dict[str, str] = {}
    contents: dict[str, tuple[str, str]] = {}
    playable = True
    for split in splits:
        try:
            tasks = environment.tasks(split)
            rows = [(index, tasks[index]) for index in sample(tasks)]
        except Exception as error:
            problem = f"tasks({split!r}) raised {type(error).__name__}: {error}"
            report.add("tasks", problem, split, "return a sequence of mcpgym.Task for every name in splits")
            return False
        if not rows:
            report.add("tasks", "has no tasks", split, "leave the split out of splits, or give it tasks")
            return False
        for index, task in rows:
            playable &= _check_task(task, split, f"{split}[{index}]", report)
        if not playable:
            return False
        for index, task in rows:
            where = f"{split}[{index}]"
            if task.id in ids:
                rule = "task-ids" if ids[task.id].split("[")[0] == split else "splits-disjoint"
                report.add(
                    rule, f"has the id {task.id!r} of {ids[task.id]}", where, "make ids with task_id(split, index)"
                )
            ids.setdefault(task.id, where)
            content = dump([task.messages, dict(task.info)])
            if not task.messages and not task.info:
                continue  # all that it is comes from its id
            other = contents.setdefault(content, (split, where))
            if other[0] != split:
                fix = "derive each task from its split and index: derive_seed(split, index)"
                report.add("splits-disjoint", f"has the prompt and info of {other[1]}", where, fix)
        _check_sequence(environment, split, tasks, rows, report)
    _check_stable(make, environment, report)
    _check_unknown(environment, report)
    return True


def _check_task(task: object, split: str, where: str, report: Report) -> bool:
    if not isinstance(task, Task):
        report.add("tasks", f"is {type(task).__name__}", where, "return mcpgym.Task, or a subclass of it")
        return False
    if not isinstance(task.id, str) or not task.id:
        report.add("task-ids", f"has the id {task.id!r}", where, "make ids with task_id(split, index)")
        return False
    if task.split != split:
        report.add("task-splits", f"says it is in {task.split!r}", where, f"make it with split={split!r}")
    for number, message in enumerate(task.messages):
        if (fault := message_fault(message)) is not None:
            fix = 'write messages as {"role": "user", "content": "text"}, in a tuple'
            report.add("messages", f"message {number} {fault}", where, fix)
            return False
    return True


def _check_sequence(
    environment: Environment[Any, Any, Any],
    split: str,
    tasks: Sequence[Task],
    rows: Sequence[tuple[int, Task]],
    report: Report,
) -> None:
    count = len(tasks)
    fix = "return a list, a tuple or mcpgym.LazyTasks"
    for index in (count, -count - 1):
        try:
            tasks[index]
        except IndexError:
            continue
        except Exception as error:
            report.add("tasks", f"[{index}] raised {type(error).__name__}, not IndexError", split, fix)
        else:
            report.add("tasks", f"has {count} tasks, and yet one at {index}", split, fix)
    try:
        ends = _text(tasks[-1]) == _text(tasks[count - 1]) and [t.id for t in tasks[:2]] == [t.id for _, t in rows[:2]]
        first = [task.id for _, task in zip(range(3), tasks, strict=False)]
        ends &= first == [task.id for _, task in rows[:3]]
        if count <= 2 * SAMPLE:
            ends &= sum(1 for _ in tasks) == count
    except Exception as error:
        report.add("tasks", f"slicing or iterating raised {type(error).__name__}: {error}", split, fix)
        return
    if not ends:
        report.add("tasks", "gives other tasks by [-1], by a slice or by iteration than by index", split, fix)
    for index, task in (rows[0], rows[len(rows) // 2], rows[-1]):
        try:
            found = environment.task(task.id)
        except UnknownNameError:
            problem = f"task({task.id!r}) does not find it"
            report.add("task-ids", problem, f"{split}[{index}]", "make ids with task_id(split, index)")
            continue
        if _text(found) != _text(task):
            problem = f"task({task.id!r}) finds another task"
            report.add("task-ids", problem, f"{split}[{index}]", "make ids with task_id(split, index)")


def _text(task: Task) -> str:
    return dump(
        [*(getattr(task, field.name) for field in dataclasses.fields(task) if field.name != "info"), {**task.info}]
    )


def snapshot(environment: Environment[Any, Any, Any], splits: Sequence[str]) -> dict[str, str]:
    """The text of a few tasks by place, to see whether they stay as they are."""
    texts = {}
    for split in splits:
        tasks = environment.tasks(split)
        for index in sample(tasks)[:40] + sample(tasks)[-10:]:
            texts[f"{split}[{index}]"] = _text(tasks[index]) + str(len(tasks))
    return texts


def _check_stable(make: Make, environment: Environment[Any, Any, Any], report: Report) -> None:
    before = snapshot(environment, environment.splits)
    again = (snapshot(environment, environment.splits[::-1]), snapshot(make(), environment.splits[::-1]))
    for after in again:
        compare_snapshots(before, after, "asked again", report)


def compare_snapshots(before: dict[str, str], after: dict[str, str], when: str, report: Report) -> None:
    """Add a finding where tasks are no longer what they were."""
    for where, text in before.items():
        if after.get(where) != text:
            problem = f"{when}, the task is another: {show(after.get(where, 'none'), 100)}"
            report.add("tasks-stable", problem, where, "make each task from its split and index alone, and change none")
            return


def _check_unknown(environment: Environment[Any, Any, Any], report: Report) -> None:
    split = environment.splits[0]
    for index in (-1, len(environment.tasks(split))):
        try:
            environment.task_at(split, index)
        except ConfigurationError:
            continue
        except Exception as error:
            problem = f"task_at({index}) raised {type(error).__name__}"
        else:
            problem = f"task_at({index}) gave a task"
        report.add("tasks", problem, split, "do not override task_at, or refuse with ConfigurationError")

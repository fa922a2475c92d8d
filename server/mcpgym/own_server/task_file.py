"""Tasks beside a brought server, in a file: one JSON object a line.

``id`` (default: the split and its place), ``split`` (default: test), ``prompt`` (a text, or a list of chat messages),
``info`` (hidden: what rewards need), ``setup`` (hidden: calls that are made before the policy begins, each with
``tool`` and ``arguments``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message, message_fault, user
from mcpgym.tasks import Task, task_id

SETUP = "setup"
MAX_FILE = 256 * 1024 * 1024
_KEYS = ("id", "split", "prompt", "info", SETUP)


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What a file says: tasks by split, and by a task's id the calls to make before its policy begins."""

    splits: Mapping[str, Sequence[Task]]
    setups: Mapping[str, Sequence[Mapping[str, Any]]]


def free_task(name: str) -> TaskFile:
    """The one task of a server for which nobody has written any."""
    text = f"You have the tools of {name}. Try what they do, then say in one sentence what you did."
    return TaskFile({"test": [Task(task_id("test", 0), "test", [user(text)])]}, {})


def read_tasks(file: Path) -> TaskFile:
    """The tasks in ``file``; of the splits train and test come first, others in the order of the file.

    Raises:
        ConfigurationError: it cannot be read, has none, or a line is no task; the message says which.
    """
    try:
        if file.stat().st_size > MAX_FILE:
            raise ConfigurationError(f"{file} has over {MAX_FILE} bytes; keep that many tasks in a class: tasks(split)")
        lines = file.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"the tasks in {str(file)!r} cannot be read: {reason}") from error
    found: dict[str, list[Task]] = {}
    ids: dict[str, int] = {}
    setups: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        task, setup = _task(line, f"{file}:{number}", found)
        if task.id in ids:
            raise ConfigurationError(f"{file}:{number}: line {ids[task.id]} has the id {task.id!r} too")
        ids[task.id] = number
        found.setdefault(task.split, []).append(task)
        if setup:
            setups[task.id] = setup
    if not found:
        raise ConfigurationError(f'{file} has no task; write one a line: {{"prompt": "What to do."}}')
    order: list[str] = [split for split in ("train", "test") if split in found]
    order += [split for split in found if split not in order]
    return TaskFile({split: found[split] for split in order}, setups)


def _task(line: str, where: str, found: Mapping[str, Sequence[Task]]) -> tuple[Task, list[Any]]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{where}: is no JSON: {error}") from None
    if not isinstance(row, dict):
        raise ConfigurationError(f"{where}: is {type(row).__name__}, not an object with a prompt")
    if odd := [key for key in row if key not in _KEYS]:
        raise ConfigurationError(
            f"{where}: has {odd[0]!r}; a task has: {', '.join(_KEYS)}. What is hidden goes into info"
        )
    split = row.get("split", "test")
    if not isinstance(split, str) or not split:
        raise ConfigurationError(f"{where}: split is {split!r}; it is a text, as train")
    name = row.get("id", task_id(split, len(found.get(split, ()))))
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{where}: id is {name!r}; it is a text")
    info = row.get("info", {})
    if not isinstance(info, dict):
        raise ConfigurationError(f"{where}: info is {type(info).__name__}, not an object")
    return Task(name, split, _messages(row.get("prompt"), where), info), _setup(row, where)


def _messages(prompt: Any, where: str) -> list[Message]:
    if isinstance(prompt, str) and prompt:
        return [user(prompt)]
    if not isinstance(prompt, list) or not prompt:
        raise ConfigurationError(f"{where}: prompt is a text, or a list of chat messages; it says what is to be done")
    for message in prompt:
        if (fault := message_fault(message)) is not None:
            raise ConfigurationError(f"{where}: a message of its prompt {fault}")
    return prompt


def _setup(row: Mapping[str, Any], where: str) -> list[Any]:
    steps = row.get(SETUP, [])
    right = isinstance(steps, list) and all(
        isinstance(step, dict)
        and isinstance(step.get("tool"), str)
        and isinstance(step.get("arguments", {}), dict)
        and set(step) <= {"tool", "arguments"}
        for step in steps
    )
    if not right:
        raise ConfigurationError(f'{where}: {SETUP} is a list of calls: {{"tool": "name", "arguments": {{}}}}')
    return list(steps)

"""An environment with canaries in it: a subclass made at run time, which plays as the original does.

Rewards come in two worlds. In the first they are themselves and a hair more, so that an environment that asks its own
rewards still plays as it should; in the second they are something else. Whatever a policy reads must be the same in
both: where it is not, a reward has found its way out, in whatever form.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

from mcpgym.environment import Environment
from mcpgym.tasks import Task
from mcpgym_clients.scanning.canaries import Canaries, Kind, Value
from mcpgym_clients.scanning.task_planting import TaskPlanting

World = Literal["near", "far"]
_DEPTH = 6
_MANY = 2_000
DISTINCTIVE = 12
"""Characters of a reward that is known again as it is, without anything planted in it."""


class Plan:
    """What is planted, and in which world rewards are now. ``failing`` makes every method of the environment raise."""

    def __init__(self, canaries: Canaries) -> None:
        self.canaries = canaries
        self.tasks = TaskPlanting(canaries)
        self.world: World = "near"
        self.failing = False
        self.fault = canaries.text("fault")

    def reward(self, name: str, value: Any) -> Any:
        """What the reward ``name`` gives in this world."""
        if value is None or isinstance(value, str):
            return value
        share = self.canaries.share("reward", name)
        made = share if self.world == "far" else float(value) + 1e-3 * share
        if not math.isfinite(made):
            return value
        self.canaries.watch(Kind.REWARD, f"reward {name}", made)
        if self.world == "near" and len(repr(float(value))) >= DISTINCTIVE:  # a tool may work out the same by itself
            self.canaries.watch(Kind.REWARD, f"reward {name}", float(value))
        return made

    def check(self) -> None:
        """Raise where everything is to fail.

        Raises:
            RuntimeError: with a canary in its text.
        """
        if self.failing:
            raise RuntimeError(f"a fault of the scan's: {self.fault}")


def planted(environment: Environment[Any, Any, Any], plan: Plan) -> Environment[Any, Any, Any]:
    """An instance of a subclass of ``environment``'s class, under the same configuration, with the plan's canaries."""
    cls = type(environment)

    def fill(namespace: dict[str, Any]) -> None:
        namespace["__module__"], namespace["__qualname__"] = cls.__module__, cls.__qualname__
        for reward in cls.rewards.values():
            namespace[_attribute(cls, reward.function)] = _wrapped(reward.function, reward.name, plan)
        namespace["tasks"] = _tasks(cls, plan)
        namespace["reset"] = _reset(cls, plan)
        for name in ("respond", "messages", "invalid_arguments"):
            namespace[name] = _checked(getattr(cls, name), plan)

    made = cast("type[Environment[Any, Any, Any]]", types.new_class(cls.__name__, (cls,), {}, fill))
    made.rewards = {
        name: dataclasses.replace(item, low=-math.inf, high=math.inf) for name, item in made.rewards.items()
    }
    made.tools = {
        name: dataclasses.replace(item, handler=_checked(item.handler, plan)) for name, item in made.tools.items()
    }
    return made(environment.config)


def _attribute(cls: type, function: Callable[..., Any]) -> str:
    """The name a method has on its class."""
    for base in cls.__mro__:
        for name, value in vars(base).items():
            if value is function:
                return name
    return function.__name__


def _wrapped(function: Callable[..., Any], name: str, plan: Plan) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*arguments: Any, **named: Any) -> Any:
            return plan.reward(name, await function(*arguments, **named))

        return later

    @functools.wraps(function)
    def now(*arguments: Any, **named: Any) -> Any:
        return plan.reward(name, function(*arguments, **named))

    return now


def _checked(function: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*arguments: Any, **named: Any) -> Any:
            plan.check()
            return await function(*arguments, **named)

        return later

    @functools.wraps(function)
    def now(*arguments: Any, **named: Any) -> Any:
        plan.check()
        return function(*arguments, **named)

    return now


def _tasks(cls: type[Environment[Any, Any, Any]], plan: Plan) -> Callable[..., Sequence[Task]]:
    @functools.wraps(cls.tasks)
    def tasks(self: Any, split: str) -> Sequence[Task]:
        plan.check()
        return plan.tasks.tasks(cls.tasks(self, split))

    return tasks


def _reset(cls: type[Environment[Any, Any, Any]], plan: Plan) -> Callable[..., Any]:
    def watched(task: Task, state: Any) -> Any:
        plan.tasks.watch(task)
        for path, value in secrets_of(state):
            if f"state{path}" not in plan.tasks.allowed:
                plan.canaries.watch(Kind.STATE, f"state{path}", value)
        return state

    @functools.wraps(cls.reset)
    def reset(self: Any, task: Task, seed: int) -> Any:
        plan.check()
        state = cls.reset(self, task, seed)
        if inspect.isawaitable(state):

            async def later() -> Any:
                return watched(task, await state)

            return later()
        return watched(task, state)

    return reset


def secrets_of(state: Any) -> list[tuple[str, Value]]:
    """Numbers of 40 bits or more, and byte strings of eight or more, anywhere in a fresh state: keys and seeds.

    Texts and small numbers are left out: an episode shows many of them, and rightly.
    """
    found: list[tuple[str, Value]] = []
    waiting: list[tuple[Any, str, int]] = [(state, "", 0)]
    seen: set[int] = set()
    while waiting and len(seen) < _MANY:
        value, path, depth = waiting.pop()
        if isinstance(value, bool) or value is None or id(value) in seen or depth > _DEPTH:
            continue
        seen.add(id(value))
        if isinstance(value, int):
            if abs(value) >= 1 << 40:
                found.append((path, int(value)))
        elif isinstance(value, (bytes, bytearray)):
            if 8 <= len(value) <= 4096:
                found.append((path, bytes(value)))
        elif isinstance(value, Mapping):
            waiting += [(child, f"{path}[{str(key)[:40]!r}]", depth + 1) for key, child in list(value.items())[:200]]
        elif isinstance(value, (list, tuple)):
            names = getattr(value, "_fields", None) or range(len(value))
            waiting += [
                (child, f"{path}.{name}", depth + 1) for name, child in list(zip(names, value, strict=False))[:200]
            ]
        elif not isinstance(value, (str, float, type, types.ModuleType, types.FunctionType)):
            waiting += [(child, f"{path}.{name}", depth + 1) for name, child in _members(value)]
    return found


def _members(value: Any) -> list[tuple[str, Any]]:
    slots = [name for base in type(value).__mro__ for name in getattr(base, "__slots__", ()) if isinstance(name, str)]
    members = dict(getattr(value, "__dict__", {}))
    for name in slots:
        if not name.startswith("__") and hasattr(value, name):
            members[name] = getattr(value, name)
    return list(members.items())[:200]

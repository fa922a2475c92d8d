"""Rewards beside a brought server, in a module: functions under ``@mcpgym.reward``, and ``is_done`` if it has one.

They are written as the methods of an environment are, without ``self``: ``def kept(episode, task): …``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym.own_server.factories import named_module
from mcpgym.rewards import Reward, find_rewards

_MARK = "__mcpgym_reward__"


@dataclass(frozen=True, slots=True)
class Rubric:
    """What a module says of an episode: its rewards, and whether it is over."""

    rewards: Mapping[str, Reward]
    is_done: Callable[[Any], bool] | None


def named_rubric(module: str) -> Rubric:
    """The rewards in the module of this name; modules of the current folder count.

    Raises:
        ConfigurationError: it cannot be imported, has no reward, or one is none.
    """
    where = module.removesuffix(".py").replace("/", ".") if module.endswith(".py") else module
    if not all(part.isidentifier() for part in where.split(".")):
        raise ConfigurationError(f"rewards {module!r}: name a module, as my_rewards")
    loaded = named_module(where, "the module of rewards")
    marked = {name: function for name, function in vars(loaded).items() if hasattr(function, _MARK)}
    if not marked:
        raise ConfigurationError(
            f"{where} has no reward; write one: from mcpgym import reward, then @reward above def kept(episode): …"
        )
    rewards = find_rewards(type(where, (), {name: _as_method(function) for name, function in marked.items()}))
    done = getattr(loaded, "is_done", None)
    if done is not None and (not callable(done) or inspect.iscoroutinefunction(done)):
        raise ConfigurationError(f"{where}.is_done is a plain function of the episode: def is_done(episode): …")
    return Rubric(rewards, done)


def _as_method(function: Any) -> Any:
    """``function`` as the method of an environment; it does not see which."""

    async def later(self: Any, **named: Any) -> Any:
        return await function(**named)

    def now(self: Any, **named: Any) -> Any:
        return function(**named)

    myself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(inspect.signature(function).parameters.values())
    method: Any = later if inspect.iscoroutinefunction(function) else now
    method.__signature__ = inspect.Signature([myself, *parameters])
    method.__name__, method.__doc__ = function.__name__, function.__doc__
    setattr(method, _MARK, getattr(function, _MARK))
    return method

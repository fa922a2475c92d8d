"""``@reward``: one named function of an environment's rubric, and the score that they make together."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

from mcpgym.asking import asked
from mcpgym.errors import ConfigurationError, RewardError
from mcpgym.marks import marked_methods
from mcpgym.telemetry import switch
from mcpgym.telemetry.sections import NOTHING, Template, named, section

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

LARGEST = 1e100
"""No reward and no total is larger, or further below 0: of such numbers no double can hold the squares and sums."""

_MARK = "__mcpgym_reward__"
_BY_NAME = ("transcript", "task", "calls")


@dataclass(frozen=True, slots=True)
class Reward:
    """What ``@reward`` recorded: a function of the episode, its weight in the total, and the range it promises."""

    name: str
    function: Callable[..., Any]
    weight: float
    low: float
    high: float
    description: str
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """The result of an episode's rubric.

    ``components`` has every reward by name; ``None`` where its input was missing. ``total`` is the weighted sum, and
    ``None`` when a component of non-zero weight is: an unknown part makes the whole unknown, never smaller.
    ``game_outcome`` is how a finished game ended for the policy. ``receipt`` is the signed statement of all this (see
    :mod:`mcpgym.receipts`); None where nobody signs.
    """

    total: float | None
    components: Mapping[str, float | None] = field(default_factory=dict)
    game_outcome: Literal["win", "draw", "loss"] | None = None
    receipt: Mapping[str, Any] | None = None


@overload
def reward(function: FunctionT, /) -> FunctionT: ...
@overload
def reward(*, weight: float = 1.0, low: float = 0.0, high: float = 1.0) -> Callable[[FunctionT], FunctionT]: ...
def reward(function: Any = None, /, **options: float) -> Any:
    """Make a method of an :class:`~mcpgym.Environment` one of its rewards.

    Parameters are given by name: ``transcript`` (what the policy wrote; without one the component is null), ``task``,
    ``calls`` (the episode's :class:`~mcpgym.CallRecord` log); any other name gets the episode's state. It may be
    ``async``, may return True or False for 1 or 0, and None for "cannot be told".

    Args:
        function: the method, when the decorator is used bare.
        **options: ``weight`` in the total (0 makes it a metric only) and the range ``low`` to ``high`` that its value
            is promised to lie in, both included. A value outside it, or one that is not finite, is an error; so is one
            beyond ±1e100, whatever the range.
    """

    def mark(method: Any) -> Any:
        setattr(method, _MARK, options)
        return method

    return mark if function is None else mark(function)


def find_rewards(cls: type) -> dict[str, Reward]:
    """The rewards of an environment class by name, in the order they are written, base classes first.

    Raises:
        ConfigurationError: a weight or range that is not finite, or an empty range.
    """
    rewards = {}
    for name, function, given in marked_methods(cls, _MARK, "reward", ConfigurationError):
        where = f"{cls.__name__}.{name}"
        options = _options(where, given)
        rewards[name] = Reward(
            name=name,
            function=function,
            description=" ".join(inspect.cleandoc(function.__doc__ or "").split("\n\n")[0].split()),
            needs=_needs(where, function),
            **options,
        )
    return rewards


def _options(where: str, given: Mapping[str, Any]) -> dict[str, float]:
    options = {"weight": 1.0, "low": 0.0, "high": 1.0}
    for key, value in given.items():
        if key not in options:
            raise ConfigurationError(f"{where}: @reward has no option {key!r}; there is: {', '.join(options)}")
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise ConfigurationError(f"{where}: {key} is {value!r}; it must be a finite number")
        options[key] = float(value)
    if options["low"] > options["high"]:
        raise ConfigurationError(f"{where}: low is {options['low']:g} and high {options['high']:g}; exchange them")
    return options


def _needs(where: str, function: Callable[..., Any]) -> tuple[str, ...]:
    """The names a reward is given its input by."""
    parameters = list(inspect.signature(function).parameters.values())
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if not parameters or any(parameter.kind not in by_name for parameter in parameters[1:]):
        raise ConfigurationError(f"{where}: a reward takes self, and then what it needs by name; no *args, **kwargs, /")
    return tuple(parameter.name for parameter in parameters[1:])


async def score(rewards: Mapping[str, Reward], environment: object, state: object, **inputs: Any) -> Score:
    """Ask every reward and add them up.

    Args:
        rewards: the rubric.
        environment: the instance that the functions are methods of.
        state: the episode's state.
        **inputs: ``transcript`` (or None when there is none), ``task`` and ``calls``.

    Raises:
        RewardError: a function raised, or its value is not finite or outside its range.
    """
    components: dict[str, float | None] = {}
    for name, item in rewards.items():
        given = {need: inputs.get(need) if need in _BY_NAME else state for need in item.needs}
        if "transcript" in item.needs and given["transcript"] is None:
            components[name] = None
            continue
        with NOTHING if switch.recorder is None else section(_reward(name)) as span:
            try:
                value = await asked(item.function, environment, **given)
            except Exception as error:
                raise RewardError(f"reward {name!r} failed: {type(error).__name__}: {error}") from error
            components[name] = made = None if value is None else _checked(item, value)
            if span is not None:
                span.note({} if made is None else {"gen_ai.evaluation.score.value": made})
    known = [(rewards[name].weight, value) for name, value in components.items() if rewards[name].weight]
    if any(value is None for _, value in known):
        return Score(None, components)
    try:
        total = math.fsum(weight * value for weight, value in known if value is not None)
    except OverflowError:
        total = math.inf
    if not abs(total) <= LARGEST:
        raise RewardError(f"the rewards add up to more than {LARGEST:g}: {components}; use smaller weights")
    return Score(total, components)


def _reward(name: str) -> Template:
    return named(f"reward {name}", about=(("gen_ai.evaluation.name", name),))


def _checked(item: Reward, value: Any) -> float:
    if not isinstance(value, numbers.Real):
        raise RewardError(f"reward {item.name!r} gave {type(value).__name__}, not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not abs(number) <= LARGEST or not item.low <= number <= item.high:
        raise RewardError(f"reward {item.name!r} gave {number}, outside its range [{item.low}, {item.high}]")
    return number

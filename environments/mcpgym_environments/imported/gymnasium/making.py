"""Making an environment, and what its actions are called."""

from __future__ import annotations

import contextlib
import copy
import enum
import importlib
import io
import warnings
from collections.abc import Mapping
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym_environments.imported.gymnasium.config import GymnasiumConfig
from mcpgym_environments.imported.gymnasium.package import EXTRA, gymnasium

STEPS = 200
"""The limit of an environment that has none of its own."""
MOST_ACTIONS = 200
"""Actions that a policy can choose among."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    "FrozenLake": ("left", "down", "right", "up"),
    "Taxi": ("south", "north", "east", "west", "pickup", "dropoff"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Blackjack": ("stick", "hit"),
    "CartPole": ("left", "right"),
    "MountainCar": ("left", "nothing", "right"),
    "Acrobot": ("negative", "nothing", "positive"),
}


def family(id: str) -> str:
    """Which of Gymnasium's own small environments an id is of; empty for others."""
    name = id.rpartition(":")[2].rpartition("-v")[0]
    return next((known for known in _NAMES if name.startswith(known)), "")


def make(config: GymnasiumConfig) -> Any:
    """The environment; it tells its picture as text, if it can.

    Raises:
        MissingPackage: Gymnasium, or what the environment needs beside it, is not installed.
        ConfigurationError: there is no such environment, it cannot be made so, or cannot be played by naming actions.
    """
    made: Any = None
    try:
        made = _made(config)
        _check_actions(config.id, made)
    except BaseException:
        if made is not None:
            made.close()
        raise
    return made


def _made(config: GymnasiumConfig) -> Any:
    package = gymnasium()
    given = config.arguments
    with warnings.catch_warnings(action="ignore"), contextlib.redirect_stderr(io.StringIO()):
        try:
            module, colon, _ = config.id.partition(":")
            if colon:
                importlib.import_module(module)  # which registers it
            spec = package.spec(config.id.rpartition(":")[2])
            if "render_mode" not in given and "ansi" in _modes(package, spec):
                given["render_mode"] = "ansi"
            given.setdefault("disable_env_checker", True)  # it warns, in every episode, of what is for the author alone
            steps = config.max_steps or spec.max_episode_steps or STEPS
            return package.make(config.id, max_episode_steps=steps, **given)
        except Exception as error:
            raise ConfigurationError(
                f"gymnasium {EXTRA.version}: {config.id!r} cannot be made: {type(error).__name__}: {error}"
            ) from error


def _modes(package: Any, spec: Any) -> list[str]:
    entry = spec.entry_point
    creator = package.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
    return list((getattr(creator, "metadata", None) or {}).get("render_modes") or ())


def _check_actions(id: str, made: Any) -> None:
    spaces = gymnasium().spaces
    space = made.action_space
    if isinstance(space, spaces.Text):
        return
    if not isinstance(space, spaces.Discrete):
        raise ConfigurationError(
            f"gymnasium: {id} has actions of {space}; only Discrete ones, which have names, and Text can be played"
        )
    if space.n > MOST_ACTIONS:
        raise ConfigurationError(f"gymnasium: {id} has {space.n} actions; {MOST_ACTIONS} at most can be told")


def reset(made: Any, seed: int) -> Any:
    """The first observation under ``seed``.

    What an environment draws from its spaces depends on it too, and on no other episode: spaces may belong to a class.
    """
    for name in ("observation_space", "action_space"):
        space = copy.deepcopy(getattr(made.unwrapped, name))
        space.seed(seed)
        # A property cannot be set: then the space is made anew for each, or is the author's matter.
        with contextlib.suppress(AttributeError):
            setattr(made.unwrapped, name, space)
    return made.reset(seed=seed)[0]


def limit(made: Any) -> int:
    """After how many steps an environment is cut off."""
    return int(made.spec.max_episode_steps)


def action_names(id: str, made: Any) -> tuple[str, ...]:
    """What its actions are called, the first of its space first; empty where an action is any text."""
    space = made.action_space
    if not hasattr(space, "n"):
        return ()
    count = int(space.n)
    inner = made.unwrapped
    known = list(_NAMES.get(family(id), ()))
    if not known and isinstance(kinds := getattr(inner, "actions", None), type) and issubclass(kinds, enum.IntEnum):
        known = [kind.name.lower() for kind in sorted(kinds)]
    if not known and callable(meanings := getattr(inner, "get_action_meanings", None)):
        known = [str(name).lower() for name in meanings()]
    if len(known) != count or len({*known}) != count:
        known = [str(number) for number in range(int(space.start), int(space.start) + count)]
    return tuple(known)

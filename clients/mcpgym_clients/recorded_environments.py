"""The environments that traces name, as they are here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError
from mcpgym.registry import environment_names, load_environment


def recorded_environments(
    names: Iterable[str], written: Iterable[str] = (), *, optional: bool = False
) -> dict[str, Environment[Any, Any, Any]]:
    """The environments called ``names``, under their default configurations.

    A name in a trace is somebody else's text: it never makes this process import a module that no package registered,
    as ``module:Class`` would. Only what the user wrote down may name a class.

    Args:
        names: what traces say they were played on.
        written: classes that the user names (``module:Class``), for environments that no package registers.
        optional: leave out what is not here; a server may have it.

    Raises:
        ConfigurationError: one is not installed here, or cannot be loaded.
    """
    given = {made.name: made for made in map(load_environment, written)}
    installed = environment_names()
    found: dict[str, Environment[Any, Any, Any]] = {}
    for name in sorted(names):
        if name in given:
            found[name] = given[name]
        elif name in installed:
            with contextlib.suppress(ConfigurationError) if optional else contextlib.nullcontext():
                found[name] = load_environment(name)
        elif not optional:
            raise ConfigurationError(
                f"the environment {name[:80]!r} of these traces is not installed here (there is: "
                f"{', '.join(installed)}); say where it is: --env module:Class, or who serves it: --server ADDRESS"
            )
    return found

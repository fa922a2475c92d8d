"""The environments that traces name, as they are here."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError
from mcpgym.registry import environment_names, is_installed, load_environment
from mcpgym_rl.traces import Trace


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
        elif is_installed(name):
            with contextlib.suppress(ConfigurationError) if optional else contextlib.nullcontext():
                found[name] = load_environment(name)
        elif not optional:
            raise ConfigurationError(
                f"the environment {name[:80]!r} of these traces is not installed here (there is: "
                f"{', '.join(installed)}); say where it is: --env module:Class, or who serves it: --server ADDRESS"
            )
    return found


def refuse_what_reaches_out(environments: Mapping[str, Environment[Any, Any, Any]], traces: Iterable[Trace]) -> None:
    """Refuse traces whose configuration would have an environment read or ask outside its package.

    Raises:
        ConfigurationError: there are such; the message says what they reach for.
    """
    different = {(trace.environment, json.dumps(trace.config, sort_keys=True)): trace.config for trace in traces}
    reached: dict[str, None] = {}
    for (name, _), config in different.items():
        if (made := environments.get(name)) is None:
            continue
        with contextlib.suppress(ValidationError):  # said when its episode cannot be opened
            reached |= dict.fromkeys(type(made).config_class.model_validate(dict(config)).reaches())
    if reached:
        said = ", ".join(text[:120] for text in list(reached)[:5])
        raise ConfigurationError(
            f"these traces make an environment read or ask something outside it ({said}); a file does not decide that. "
            "Where you trust them, say so: --trust"
        )

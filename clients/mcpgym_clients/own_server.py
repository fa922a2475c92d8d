"""Options for a brought server, as the names and configurations of environments that all commands know."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcpgym.own_server.naming import is_brought
from mcpgym_clients.failures import UsageProblem


def factory_spec(factory: str) -> str:
    """The environment's name for ``--fastmcp MODULE:FACTORY``.

    Raises:
        UsageProblem: it is written otherwise.
    """
    spec = f"fastmcp:{factory}"
    if ":" not in factory or not is_brought(spec):
        raise UsageProblem(
            f"--fastmcp {factory!r}: write MODULE:FACTORY, a function in a module that can be imported here, as "
            "my_server:make_server. A program is served by: mcpgym wrap python FILE"
        )
    return spec


def command_spec(words: Sequence[str], name: str | None) -> str:
    """The environment's name for ``mcpgym wrap COMMAND…``."""
    return f"stdio{'' if name is None else f'@{name}'}:{shlex.join(words)}"


def brought_config(
    environments: Sequence[str], tasks: Path | None, rewards: str | None, more: Mapping[str, str] | None = None
) -> list[str]:
    """What ``--tasks`` and ``--rewards`` are as ``--config``, for the brought server among ``environments``.

    Raises:
        UsageProblem: there is none, or more than one, to which they could belong.
    """
    given = {"tasks": "" if tasks is None else str(tasks.absolute()), "rewards": rewards or "", **(more or {})}
    given = {name: value for name, value in given.items() if value}
    if not given:
        return []
    own = [name for name in environments if is_brought(name)]
    if len(own) != 1:
        raise UsageProblem(
            f"--{next(iter(given))} belongs to a server of your own, and {'none' if not own else 'more than one'} is "
            "served: name one (--fastmcp MODULE:FACTORY), or write --config NAME.tasks=FILE for each"
        )
    prefix = ""
    if len(environments) > 1:
        from mcpgym.registry import environment_class

        prefix = f"{environment_class(own[0]).name}."
    return [f"{prefix}{name}={value}" for name, value in given.items()]

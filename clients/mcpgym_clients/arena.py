"""Where an evaluation's episodes are: in this process, on a server of its own, or on a running one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcpgym.control import ControlPlane, LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym.registry import load_environment
from mcpgym_clients.agents.lane import AgentLane
from mcpgym_clients.connection import own_server, running_server
from mcpgym_clients.console import warn
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.options import parse_config
from mcpgym_clients.signing import own_signer
from mcpgym_rl.lanes import ControlLane, McpLane


@dataclass(frozen=True, slots=True)
class Arena:
    """Where episodes are opened.

    ``name`` is the environment's own, ``config`` what each episode must ask for beyond what is served, and
    ``environment`` the environment itself where it is installed here: its reference policies may be wanted.
    """

    control: ControlPlane
    lane: ControlLane
    name: str
    config: Mapping[str, Any]
    environment: Environment[Any, Any, Any] | None


@contextlib.asynccontextmanager
async def open_arena(options: EvalOptions, *, signed: bool = False) -> AsyncIterator[Arena]:
    """The arena that the options ask for; on leaving it is closed.

    Args:
        options: what was typed.
        signed: whether scores that are given here are signed, by this user's key; a server signs as it pleases.

    Raises:
        ConfigurationError: there is no such environment, configuration, address or secret.
    """
    config: Mapping[str, Any] = parse_config(options.config, [options.environment])[options.environment]
    async with contextlib.AsyncExitStack() as stack:
        control: ControlPlane
        if options.server is not None:
            local: Environment[Any, Any, Any] | None = None
            with contextlib.suppress(ConfigurationError):  # the server may have what is not installed here
                local = load_environment(options.environment, config)
            name = options.environment if local is None else local.name
            control = await stack.enter_async_context(running_server(options.server, options.secret_file))
            if local is not None and options.agent is None and ":" not in options.policy:
                await _warn_of_another_version(control, local, options.policy)
        else:
            local = load_environment(options.environment, config)
            name, config = local.name, {}
            signer = own_signer() if signed else None
            if options.lane_name == "mcp":
                alone = options.agent is not None
                control = await stack.enter_async_context(own_server(local, signer=signer, closed=alone))
            else:
                control = LocalControl(Episodes({name: local}), signer=signer)
        lane = _lane(options, control)
        stack.push_async_callback(lane.aclose)
        yield Arena(control, lane, name, config, local)


def _lane(options: EvalOptions, control: ControlPlane) -> ControlLane:
    if options.agent is not None:
        return AgentLane(control, options.max_turns)
    return McpLane(control) if options.lane_name == "mcp" else ControlLane(control)


async def _warn_of_another_version(control: ControlPlane, local: Environment[Any, Any, Any], policy: str) -> None:
    """A reference policy reads what the environment installed here writes; the server may have another."""
    for served in await control.environments():
        here, there = (local.version, local.schema_hash), (served.version, served.schema_hash)
        if served.name == local.name and here != there:
            warn(
                f"{policy} is {local.name} {local.version}'s own policy, and the server has {local.name} "
                f"{served.version}" + ("" if here[1] == there[1] else " with other tools") + "; it may misread it"
            )


async def require_tasks(arena: Arena, split: str, count: int, *, fewer: bool = False) -> int:
    """How many tasks of ``split`` to play: ``count``, or all of a smaller split where ``fewer`` will do.

    Raises:
        UsageProblem: there are not so many; the message says how many there are.
        UnknownNameError: there is no such split.
    """

    async def has(index: int) -> bool:
        return bool(await arena.control.tasks(arena.name, split, offset=index, limit=1, config=arena.config))

    if await has(count - 1):
        return count
    low, high = 0, count - 1  # the size lies between them, both included
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if await has(middle) else (low, middle)
    if fewer and low:
        return low
    raise UsageProblem(
        f"-n {count}: the split {split} of {arena.name} has {low} tasks; take at most so many, and repeat them with -r"
    )

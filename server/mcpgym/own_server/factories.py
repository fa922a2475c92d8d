"""Factories: functions that make one server for each episode. Whatever is none is told how to become one."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.asking import asked
from mcpgym.errors import ConfigurationError
from mcpgym.own_server.connection import Connection, Opener

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

HOW = (
    "each episode needs a server of its own: name a function that makes the server, with its state and its tools "
    "inside, and returns it, as def make_server(): server = FastMCP('notes'); …; return server"
)

FASTMCP = "fastmcp"
"""The package of the servers that people bring."""

_made: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""The servers that factories have given, as long as they live: none may be given twice."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a factory gave: the server, and what it put beside it for rewards to look at."""

    server: Any
    state: Any = None


def named_object(spec: str, what: str) -> Any:
    """What ``module:attribute`` names; modules of the current folder count.

    Raises:
        ConfigurationError: it is written otherwise, cannot be imported, or is not there.
    """
    module, colon, attribute = spec.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
        raise ConfigurationError(f"{what} {spec!r}: write it as module:name, for example my_server:make_server")
    found: Any = named_module(module, what)
    for part in attribute.split("."):
        if not hasattr(found, part):
            there = ", ".join(name for name in vars(found) if not name.startswith("_"))[:300]
            raise ConfigurationError(f"{what} {spec!r}: {module} has no {attribute!r}; it has: {there or 'nothing'}")
        found = getattr(found, part)
    return found


def named_module(module: str, what: str) -> Any:
    """The module of this name; those of the current folder count.

    Raises:
        ConfigurationError: it cannot be imported.
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"{what} {module!r} cannot be imported: {type(error).__name__}: {error}") from error


def checked_factory(factory: Any, where: str) -> Any:
    """``factory``, if it can be asked for a server.

    Raises:
        ConfigurationError: it is a server itself, no function, or wants what it will not be given.
    """
    if is_server(factory):
        raise ConfigurationError(
            f"{where} is one {type(factory).__name__} server, and {HOW}. "
            "Or run its file as it is, as one process for each episode: mcpgym wrap python FILE"
        )
    if not callable(factory):
        raise ConfigurationError(f"{where} is {type(factory).__name__}, not a function that makes a server; {HOW}")
    return factory


async def make(factory: Callable[..., Any], where: str, offered: Mapping[str, Any]) -> Made:
    """A server of the factory's; ``offered`` is what it may ask for, by the names of its parameters.

    Raises:
        ConfigurationError: it failed, gave no server, or one that it has given before.
    """
    try:
        given = await asked(factory, **_wanted(factory, where, offered))
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{where} failed: {type(error).__name__}: {error}") from error
    made = Made(*given) if isinstance(given, tuple) and len(given) == 2 else Made(given)
    if not is_server(made.server):
        raise ConfigurationError(
            f"{where} gave {type(made.server).__name__}; it must return a FastMCP server, an MCPServer or a low-level "
            "Server of the official SDK, alone or with a state for rewards: return server, state"
        )
    if _made.get(id(made.server)) is made.server:
        raise ConfigurationError(f"{where} gave the same server twice, so that episodes would share it; {HOW}")
    with contextlib.suppress(TypeError):  # some objects cannot be referred to weakly
        _made[id(made.server)] = made.server
    return made


def _wanted(factory: Callable[..., Any], where: str, offered: Mapping[str, Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return {}
    wanted = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in offered and parameter.kind is not parameter.POSITIONAL_ONLY:
            wanted[parameter.name] = offered[parameter.name]
        elif parameter.default is parameter.empty:
            raise ConfigurationError(
                f"{where} wants {parameter.name!r}; a factory may ask for: {', '.join(offered)}. "
                "Give other parameters a default"
            )
    return wanted


def forget_functions() -> None:
    """Let go of the tools of servers that have ended.

    FastMCP remembers the last 5,000 functions that it has seen, in caches of its modules: each keeps a server's state.
    What a server that lives has there is made again when it is needed.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{FASTMCP}.") and module is not None:
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper) and value.cache_info().maxsize:
                    value.cache_clear()


def is_server(thing: Any) -> bool:
    """Whether it is an MCP server that runs in this process: FastMCP's, or the official SDK's."""
    return _is_fastmcp(thing) or _is_official(thing)


def _is_fastmcp(thing: Any) -> bool:
    module = sys.modules.get(f"{FASTMCP}.server.server")  # a FastMCP server's module has been imported
    return module is not None and isinstance(thing, module.FastMCP)


def _is_official(thing: Any) -> bool:
    from mcp.server.lowlevel import Server
    from mcp.server.mcpserver import MCPServer

    return isinstance(thing, (Server, MCPServer))


def opener(server: Any) -> Opener:
    """What connects to ``server`` in memory, its lifespan run around.

    The handshake era is spoken, in which one session is one episode: what a server keeps for its session stays.
    """
    return _fastmcp_opener(server) if _is_fastmcp(server) else _official_opener(server)


def _fastmcp_opener(server: Any) -> Opener:
    @contextlib.asynccontextmanager
    async def opened(connection: Connection) -> AsyncIterator[ClientSession]:
        transports: Any = importlib.import_module(f"{FASTMCP}.client.transports")  # theirs: no dependency of ours
        async with transports.FastMCPTransport(server).connect_session(message_handler=connection.heard) as session:
            await session.initialize()
            yield session

    return opened


def _official_opener(server: Any) -> Opener:
    @contextlib.asynccontextmanager
    async def opened(connection: Connection) -> AsyncIterator[ClientSession]:
        from mcp.client.client import Client

        async with Client(server, mode="legacy", cache=None, message_handler=connection.heard) as client:
            yield client.session

    return opened

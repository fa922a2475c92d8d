"""An environment whose tools are those of a server that somebody else wrote: one server for each episode.

:class:`~mcpgym.own_server.fastmcp_environment.FastMCPEnvironment` makes them in this process, and
:class:`~mcpgym.own_server.stdio_environment.StdioEnvironment` starts them as processes. What is common is here: tools
are listed once and proxied, tasks and rewards stand beside.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any, ClassVar, TypeVar

from mcpgym.asking import asked
from mcpgym.environment import ConfigT, Environment
from mcpgym.errors import ConfigurationError, InfrastructureError, McpgymError, UnknownNameError
from mcpgym.own_server.connection import Connection, same_tools
from mcpgym.own_server.listing import Listing, made_tools
from mcpgym.rewards import Reward
from mcpgym.schema import MAX_INSTRUCTIONS, content_hash, schema_hash
from mcpgym.tasks import Task

logger = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")

_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-f]{6,}\b|\b[0-9a-f]{32,64}\b",
    re.IGNORECASE,
)
"""Dates, times of day, UUIDs, addresses and digests: what differs from day to day and says nothing to a policy."""
_SPARE_SECONDS = 30.0


@dataclass(eq=False, slots=True)
class ServerEpisode:
    """The state of an episode: its server, and whom to ask about it.

    ``server`` is the server object and ``state`` what its factory gave beside it; both are None for a process.
    """

    task: Task
    seed: int
    connection: Connection
    listed: Sequence[Mapping[str, Any]]
    seconds: float
    server: Any = None
    state: Any = None
    unlooked: bool = False
    """Whether the policy has called anything since it was seen that the server is as it was."""

    async def ask(self, tool: str, /, **arguments: Any) -> str:
        """The text that the server's ``tool`` answers to a reward, or before the policy begins; no policy sees it.

        Raises:
            ToolError: the tool failed.
            InfrastructureError: the server is gone.
        """
        return await self.connection.call(tool, arguments, self.seconds)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """What the policy reads of a call, as in :meth:`ask`.

        Raises:
            InfrastructureError: also where the server has changed its tools: the policy cannot see the new ones.
        """
        self.unlooked = True
        text = await self.connection.call(tool, arguments, self.seconds)
        if self.connection.tools_announced:
            await self.look()
        return text

    async def look(self) -> None:
        """See that the server is there, with the tools that the policy was shown.

        Raises:
            InfrastructureError: it has ended, or has others now.
        """
        async with asyncio.timeout(self.seconds):
            listed = await self.connection.tools()
        if not same_tools(listed, self.listed):
            raise InfrastructureError(
                f"{self.connection.what} changed its tools during the episode, and a policy keeps those it began with; "
                "list all tools from the start, and let those fail that cannot be used yet"
            )
        self.unlooked = False


@dataclass(frozen=True, slots=True)
class _Look:
    """What a first server showed."""

    listed: Sequence[Mapping[str, Any]]
    listing: Listing
    instructions: str
    about: Mapping[str, str]


class OwnServerEnvironment(Environment[Task, ServerEpisode, ConfigT]):
    """What all environments over a brought server have in common. Its tools are known once an instance is made."""

    call_seconds: ClassVar[float] = 30.0
    """Seconds one call may take."""
    start_seconds: ClassVar[float] = 30.0
    """Seconds a server has to begin."""
    hidden_tools: ClassVar[tuple[str, ...]] = ()
    """The server's tools that no policy gets; rewards may :meth:`ServerEpisode.ask` them."""
    reproducible: ClassVar[bool] = False
    """A brought server has promised nothing. Say True where one task, one seed and equal calls give the same bytes."""
    _looks: ClassVar[dict[str, _Look]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._looks = {}

    def __init__(self, config: ConfigT | None = None) -> None:
        super().__init__(config)
        look = self._look()
        tools = {**type(self).tools, **look.listing.tools}
        self._shown: _Look = look
        self._say(tools=tools, schema_hash=schema_hash([tool.listing for tool in tools.values()]))
        rewards = vars(self).get("rewards", type(self).rewards)
        self._say(rewards={name: _sound(item) for name, item in rewards.items()})
        if self.reproducible and type(self).same_observation is OwnServerEnvironment.same_observation:
            self._say(same_observation=MethodType(Environment.same_observation, self))
        if not type(self).instructions and look.instructions:
            self._say(instructions=look.instructions)

    def _say(self, **attributes: Any) -> None:
        """Say of this instance what other environments say of their class."""
        vars(self).update(attributes)

    # What the two kinds say.

    @property
    def brought(self) -> str:
        """What messages call the server."""
        raise NotImplementedError

    def offered(self, task: Task, seed: int) -> Mapping[str, Any]:
        """What a factory, or a command, may ask for by name."""
        return {"seed": seed, "task": task, "config": self.config}

    async def begin(self, task: Task, seed: int) -> tuple[Connection, Any, Any]:
        """A server of its own for an episode: its open connection, the server object, what stands beside it."""
        raise NotImplementedError

    async def first(self) -> Connection:
        """An open connection to a server that is only looked at."""
        connection, _, _ = await self.begin(self.any_task(), 0)
        return connection

    # What authors may say.

    async def prepare(self, episode: ServerEpisode) -> None:
        """Put the server into the state in which the task begins; no policy sees it."""

    # The contract.

    async def reset(self, task: Task, seed: int) -> ServerEpisode:
        """A server of its own, connected and prepared."""
        connection, server, state = await self.begin(task, seed)
        try:
            async with asyncio.timeout(self.start_seconds):
                listed = await connection.tools()
            if not same_tools(listed, self._shown.listed):
                raise InfrastructureError(
                    f"{connection.what} has other tools in this episode than when it was looked at first; a policy's "
                    "tools, and the hash of their schemas, must be the same in each"
                )
            episode = ServerEpisode(task, seed, connection, listed, self.call_seconds, server, state)
            await self.prepare(episode)
        except TimeoutError:
            await connection.close()
            raise InfrastructureError(f"{connection.what} did not list its tools in time{connection.tail()}") from None
        except BaseException:
            await connection.close()
            raise
        return episode

    async def close(self, state: ServerEpisode) -> None:
        """End the episode's server."""
        await state.connection.close()

    def same_observation(self, recorded: str, replayed: str) -> bool:
        """Equal but for dates, times of day, UUIDs, addresses and digests."""
        return recorded == replayed or _VOLATILE.sub("…", recorded) == _VOLATILE.sub("…", replayed)

    def conditions(self) -> Mapping[str, Any]:
        """What the server says it is, and the protocol revision that is spoken with it."""
        return {"server": dict(self._shown.about)}

    def remarks(self) -> Sequence[str]:
        """What was changed about the tools, and what a brought server cannot promise."""
        found = [f"tools: {text}" for text in self._shown.listing.differences]
        if not self.reproducible:
            found.append(
                "reproducible: not promised, so replays compare texts but for dates, times, UUIDs and digests; where "
                "everything comes from the seed, say reproducible = True"
            )
        found.append(
            "state: it lives in the server, so that an episode can be played again from its calls but not saved"
        )
        return found

    @property
    def differences(self) -> Sequence[str]:
        """What was changed about the server's tools so that every client shows a model the same; empty is best."""
        return self._shown.listing.differences

    def any_task(self) -> Task:
        """Some task, to look at a server with."""
        for split in self.splits:
            if len(rows := self.tasks(split)):
                return rows[0]
        raise ConfigurationError(f"{self.name} has no task in any of its splits")

    # The first look.

    def _look(self) -> _Look:
        key = content_hash(self.config.model_dump(mode="json"))
        if key not in self._looks:
            self._looks[key] = _beside(self._looked, 2 * self.start_seconds + _SPARE_SECONDS, self.brought)
            if differences := self._looks[key].listing.differences:
                logger.warning(
                    "%s: %d things about the tools of %s reach models in another way than they are written:\n%s",
                    self.name, len(differences), self.brought, "\n".join(f"  - {text}" for text in differences[:20]),
                )  # fmt: skip
        return self._looks[key]

    async def _looked(self) -> _Look:
        connection: Connection | None = None
        try:
            connection = await self.first()
            async with asyncio.timeout(self.start_seconds):
                listed = await connection.tools()
            instructions, about = connection.instructions, connection.about
        except TimeoutError:
            raise ConfigurationError(f"{self.brought} did not list its tools within {self.start_seconds:g} s") from None
        except McpgymError as error:
            raise ConfigurationError(str(error)) from error
        finally:
            if connection is not None:
                await connection.close()
        names = [tool["name"] for tool in listed]
        for hidden in self.hidden_tools:
            if hidden not in names:
                raise UnknownNameError(f"tool of {self.brought}", hidden, names)
        shown = [tool for tool in listed if tool["name"] not in self.hidden_tools]
        listing = made_tools(self.name, self.brought, shown, self.call_seconds, _caller, list(type(self).tools))
        text = instructions.encode()[:MAX_INSTRUCTIONS].decode("utf-8", "ignore")
        return _Look(listed, listing, text, about)


def _sound(item: Reward) -> Reward:
    """The reward, asked only of an episode whose server is as it was."""
    own = next((need for need in item.needs if need not in ("transcript", "task", "calls")), None)
    name = own or "server_episode"

    async def function(environment: Any, **given: Any) -> Any:
        episode: ServerEpisode = given[name]
        if episode.unlooked or not episode.connection.alive:
            await episode.look()
        if own is None:
            del given[name]
        return await asked(item.function, environment, **given)

    return replace(item, function=function, needs=item.needs if own else (name, *item.needs))


def _caller(tool: str) -> Callable[..., Any]:
    async def call(environment: Any, episode: ServerEpisode, /, arguments: Mapping[str, Any]) -> str:
        return await episode.call(tool, arguments)

    return call


def _beside(work: Callable[[], Coroutine[Any, Any, ResultT]], seconds: float, what: str) -> ResultT:
    """Run to the end in a thread with an event loop of its own: instances are made inside of loops and out of them.

    Raises:
        ConfigurationError: it takes longer than ``seconds``.
    """
    done: list[ResultT] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(asyncio.run(work()))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="mcpgym look", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise ConfigurationError(f"{what} did not begin within {seconds:g} s")
    return done[0]

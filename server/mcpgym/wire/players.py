"""What a player may do at one URL (or over one stdio process): list tools, call them, read the prompt.

Three kinds: :class:`EpisodePlayer` (the URL is the episode), :class:`EndedPlayer` (it was one), and
:class:`~mcpgym.wire.bare.BarePlayer` (explicit handles, many episodes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mcpgym.calls import CallResult, sendable
from mcpgym.environment import Environment
from mcpgym.episode import Episode
from mcpgym.episodes import Tombstone
from mcpgym.errors import UnknownNameError
from mcpgym.messages import Message
from mcpgym.schema import MAX_INSTRUCTIONS
from mcpgym.server_names import server_name
from mcpgym.tools import Tool
from mcpgym.wire.apps import app_of, linked


@dataclass(frozen=True, slots=True)
class Face:
    """Who a server says it is. Two players with equal faces are served by one MCP server."""

    name: str
    version: str
    title: str
    description: str
    instructions: str
    icon: str
    apps: bool = False
    """Whether there is an app to show."""

    @property
    def short(self) -> dict[str, str]:
        """The least an MCP result must say of its server."""
        return {"name": self.name, "version": self.version}


@dataclass(frozen=True, slots=True)
class PromptInfo:
    """An MCP prompt: a person picks it in a client's menu. ``arguments`` maps names to descriptions; all optional."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]


class Player(Protocol):
    """What the MCP server needs of one URL."""

    @property
    def face(self) -> Face:
        """Who answers here."""
        ...

    @property
    def environments(self) -> Mapping[str, Environment[Any, Any, Any]]:
        """The environments whose rules and tasks may be read here."""
        ...

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The tools as MCP lists them."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], key: str | None) -> CallResult:
        """Answer one call; never raises for what a client sent."""
        ...

    def so_far(self, handle: str) -> dict[str, Any]:
        """What the policy of one episode has read last (``texts``), and whether it is over (``done``).

        ``handle`` names the episode where the address does not; it is empty where the address does.

        Raises:
            UnknownNameError: there is no such episode here.
        """
        ...

    def saw(self, client: Any) -> None:
        """Note who plays: ``client`` is what the client calls itself (MCP's ``clientInfo``), whatever it may be."""
        ...

    def prompts(self) -> Sequence[PromptInfo]:
        """The prompts a person may pick."""
        ...

    def prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[Message]:
        """The messages of one prompt.

        Raises:
            UnknownNameError: there is none of that name.
        """
        ...


def title_of(name: str) -> str:
    """``tic-tac-toe`` as people write it: ``Tic tac toe``."""
    return name.replace("-", " ").replace("_", " ").strip().capitalize()


def face_of(environment: Environment[Any, Any, Any]) -> Face:
    """Who a server of one environment says it is."""
    return Face(
        name=server_name(environment.name),
        version=environment.version,
        title=title_of(environment.name),
        description=environment.description,
        instructions=environment.instructions,
        icon=environment.icon,
        apps=app_of(environment) is not None,
    )


def listed(tool: Tool) -> dict[str, Any]:
    """A tool as MCP lists it: what a model sees, plus a title and hints for people's clients."""
    entry = dict(tool.listing)
    if tool.title:
        entry["title"] = tool.title
    if tool.read_only:
        entry["annotations"] = {"readOnlyHint": True}
    return entry


def read_so_far(episode: Episode) -> dict[str, Any]:
    """The last texts of an episode, each of which its policy has read: of its calls, or of its prompt before any."""
    texts = [call.text for call in episode.calls[-LAST_TEXTS:]] or [said["content"] for said in episode.messages]
    return {"environment": episode.environment.name, "texts": [sendable(text) for text in texts], "done": episode.done}


def shorten_instructions(text: str) -> str:
    """``text`` within what clients show of a server's instructions."""
    return text.encode()[:MAX_INSTRUCTIONS].decode("utf-8", "ignore")


TASK_PROMPT = "task"
LAST_TEXTS = 8


class _OneEpisode:
    """What a live and an ended episode have in common: the environment's face and tools."""

    __slots__ = ("environment",)

    def __init__(self, environment: Environment[Any, Any, Any]) -> None:
        self.environment = environment

    @property
    def face(self) -> Face:
        """The environment's."""
        return face_of(self.environment)

    @property
    def environments(self) -> Mapping[str, Environment[Any, Any, Any]]:
        """This episode's alone."""
        return {self.environment.name: self.environment}

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The environment's tools, in its order."""
        return [linked(self.environment, tool.name, listed(tool)) for tool in self.environment.tools.values()]

    def so_far(self, handle: str) -> dict[str, Any]:
        """There is nothing any more."""
        raise UnknownNameError("episode", handle or "of this address", ())

    def saw(self, client: Any) -> None:
        """An episode that has ended is scored no more."""


class EpisodePlayer(_OneEpisode):
    """The player of one live episode: the URL says which, so no schema mentions it."""

    __slots__ = ("episode",)

    def __init__(self, episode: Episode) -> None:
        self.environment = episode.environment
        self.episode = episode

    def saw(self, client: Any) -> None:
        """Note it in the episode, for its receipt."""
        if isinstance(client, dict):
            self.episode.saw(client.get("name"), client.get("version"))
        else:
            self.episode.saw()

    def so_far(self, handle: str) -> dict[str, Any]:
        """What the episode's policy has read last."""
        if handle:
            raise UnknownNameError("episode", handle, ())
        return read_so_far(self.episode)

    async def call(self, name: str, arguments: Mapping[str, Any], key: str | None) -> CallResult:
        """The episode's answer."""
        return await self.episode.call(name, arguments, key)

    def prompts(self) -> Sequence[PromptInfo]:
        """One: the episode's task."""
        return [PromptInfo(TASK_PROMPT, "Play this episode", "The task of this episode, to start playing it.", {})]

    def prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[Message]:
        """The messages the episode begins with."""
        if name != TASK_PROMPT:
            raise UnknownNameError("prompt", name, [TASK_PROMPT])
        return self.episode.messages


class EndedPlayer(_OneEpisode):
    """The player of an episode that was closed or expired: it still connects and lists, and each call says why not."""

    __slots__ = ("reason",)

    def __init__(self, stone: Tombstone) -> None:
        super().__init__(stone.environment)
        self.reason = stone.reason

    async def call(self, name: str, arguments: Mapping[str, Any], key: str | None) -> CallResult:
        """An error that says so."""
        return CallResult(f"this episode has ended: {self.reason}", is_error=True, done=True)

    def prompts(self) -> Sequence[PromptInfo]:
        """None: there is nothing left to start."""
        return []

    def prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[Message]:
        """There is none."""
        raise UnknownNameError("prompt", name, [])

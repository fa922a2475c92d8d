"""Bare ``/mcp``, and stdio without a task: one address, many episodes, each named by a handle the tools take.

For a person's own client, which is configured once and then plays as often as it likes. An episode that is scored for
training or evaluation is not reachable from here, so no policy can restart one.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import logging
import re
import secrets
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Annotated, Any, Literal

from mcpgym.calls import CallResult
from mcpgym.environment import Environment
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.errors import (
    CannotBegin,
    ConfigurationError,
    EpisodeEnded,
    EpisodeError,
    EpisodeLost,
    ServerDraining,
    TooManyEpisodes,
    UnknownEpisodeError,
    UnknownNameError,
)
from mcpgym.messages import Message
from mcpgym.names import name_in, new_token
from mcpgym.schema import MAX_NAME, ArgumentParser
from mcpgym.tools import Tool
from mcpgym.wire.apps import app_of, linked
from mcpgym.wire.players import Face, PromptInfo, face_of, listed, read_so_far, shorten_instructions, title_of

logger = logging.getLogger(__name__)

START = "start_episode"
SERVER = "mcpgym"
MAX_HANDLES = 100_000
HOW = (
    f"Call {START} first. It returns an episode handle and the task; give the handle as the argument `episode` of "
    f"every other tool. To play again, call {START} again."
)


class Handles:
    """The episodes that were opened here, by handle. A handle is as unguessable as a token, and is none; like a token
    it begins with its server's name, where that has one."""

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes
        self._tokens: OrderedDict[str, str] = OrderedDict()

    def add(self, episode: Episode) -> str:
        """A handle for ``episode``."""
        handle = new_token(self._episodes.name)
        self._tokens[handle] = episode.token
        if len(self._tokens) > MAX_HANDLES:
            self._tokens.popitem(last=False)
        return handle

    def get(self, handle: Any) -> Episode:
        """The live episode of a handle.

        Raises:
            EpisodeEnded: it was closed or expired.
            UnknownEpisodeError: nothing here has this handle.
        """
        token = self._tokens.get(handle) if isinstance(handle, str) else None
        if token is None:
            if isinstance(handle, str) and name_in(handle) not in ("", self._episodes.name):
                raise EpisodeLost("this episode was lost with the server that held it, or is on another one")
            raise UnknownEpisodeError("no episode has this handle")
        return self._episodes.get(token)


@dataclass(frozen=True, slots=True)
class _BareTool:
    """A tool of one environment under the name it has here; ``handle`` is the argument that names the episode."""

    environment: str
    tool: Tool
    handle: str
    listing: Mapping[str, Any]


class BarePlayer:
    """Everyone who plays at one bare address: ``start_episode``, and the tools of its environments with a handle.

    Args:
        episodes: where episodes are opened.
        handles: what is open; shared by all bare addresses of a server.
        names: the environments that are offered here.
    """

    def __init__(self, episodes: Episodes, handles: Handles, names: Sequence[str]) -> None:
        self._episodes = episodes
        self._handles = handles
        self._names = tuple(names)

    @property
    def environments(self) -> Mapping[str, Environment[Any, Any, Any]]:
        """Those offered here."""
        return {name: self._episodes.environments[name] for name in self._names}

    @cached_property
    def face(self) -> Face:
        """The environment's where there is one; else that of the house."""
        if len(self._names) == 1:
            face = face_of(self.environments[self._names[0]])
            text = shorten_instructions(f"{HOW}\n\n{face.instructions}".strip())
            return Face(face.name, face.version, face.title, face.description, text, face.icon, face.apps)
        what = "\n".join(f"- {name}: {made.description}" for name, made in self.environments.items())
        from mcpgym import __version__

        text = shorten_instructions(f"{HOW}\n\nThe environments:\n{what}")
        apps = any(app_of(made) is not None for made in self.environments.values())
        return Face(SERVER, __version__, SERVER, "Environments to play.", text, "", apps)

    @cached_property
    def _start_parser(self) -> ArgumentParser:
        hints: dict[str, Any] = {}
        if len(self._names) > 1:
            hints["environment"] = Annotated[Literal[self._names], "Which environment to play."]
        hints["task"] = Annotated[str, "The id of a task; leave it out for a random one."]
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = {name: inspect.Parameter(name, kind) for name in hints}
        parameters["task"] = inspect.Parameter("task", kind, default="")
        return ArgumentParser(START, parameters, hints)

    @cached_property
    def _start_listing(self) -> Mapping[str, Any]:
        what = self._names[0] if len(self._names) == 1 else "an environment"
        text = f"Start a new episode of {what}. Returns its handle, which the other tools need, and the task."
        return {
            "name": START,
            "description": text,
            "inputSchema": self._start_parser.schema,
            "title": "Start an episode",
        }

    @cached_property
    def _tools(self) -> dict[str, _BareTool]:
        """The tools by their name here: their own, or with the environment's before it where two would clash."""
        known = Counter([START, *(tool for made in self.environments.values() for tool in made.tools)])
        found: dict[str, _BareTool] = {}
        for name, environment in self.environments.items():
            for tool in environment.tools.values():
                public = tool.name if known[tool.name] == 1 else f"{_prefix(name)}_{tool.name}"
                public = _fit(public, name, tool.name, taken=found.keys() | known.keys() - {tool.name})
                found[public] = _with_handle(public, environment, tool)
        return found

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """``start_episode``, then the tools of each environment with the handle as their first argument."""
        start = dict(self._start_listing)
        if len(self._names) == 1:  # of several environments, the answer alone says which began
            start = linked(self.environments[self._names[0]], START, start)
        return [start, *(tool.listing for tool in self._tools.values())]

    def so_far(self, handle: str) -> dict[str, Any]:
        """What the policy of the episode with this handle has read last."""
        try:
            return read_so_far(self._handles.get(handle))
        except EpisodeError as error:
            raise UnknownNameError("episode", handle, ()) from error

    def saw(self, client: Any) -> None:
        """Episodes that players started have no receipts."""

    async def call(self, name: str, arguments: Mapping[str, Any], key: str | None) -> CallResult:
        """Start an episode, or answer a call of the one that the handle names."""
        if name == START:
            return await self._start(arguments)
        bare = self._tools.get(name)
        if bare is None:
            return _problem(f"there is no tool {name[:100]!r}; there is: {', '.join([START, *self._tools])}")
        rest = dict(arguments)
        handle = rest.pop(bare.handle, None)
        if handle is None:
            return _problem(f"{name}: {bare.handle} is missing; give the handle that {START} returned")
        try:
            episode = self._handles.get(handle)
        except UnknownEpisodeError:
            return _problem(f"{name}: no episode has the handle {_shown(handle)}; call {START} to get one")
        except EpisodeEnded as error:
            return CallResult(f"{error}; call {START} for a new one", is_error=True, done=True)
        if episode.environment.name != bare.environment:
            theirs = ", ".join(public for public, t in self._tools.items() if t.environment == episode.environment.name)
            return _problem(
                f"{name} belongs to {bare.environment}, and this episode is one of {episode.environment.name}"
                + (f", whose tools are: {theirs}" if theirs else "")
            )
        result = await episode.call(bare.tool.name, rest, key)
        if not result.done:
            return result
        return CallResult(f"{result.text}\n(This episode is over; {START} begins another.)", result.is_error, done=True)

    async def _start(self, arguments: Mapping[str, Any]) -> CallResult:
        """Open an episode. A repeated idempotency key opens another: remembering answers by a key that clients choose
        would hand one client's handle to the next that chose the same."""
        try:
            given = self._start_parser.parse(arguments)
            name = given.get("environment", self._names[0])
            episode = await self._open(name, given["task"])
        except CannotBegin as error:  # a player can do nothing about it, and it may tell of this machine
            logger.error("%s", error)
            return _problem(f"{START}: {name} is not set up to run here; the log of its server says what is missing")
        except (ValueError, ConfigurationError, TooManyEpisodes, ServerDraining) as error:
            return _problem(str(error))
        except EpisodeError as error:  # its text may tell of what is hidden
            logger.error("an episode could not be started: %s", error)
            return _problem(f"{START} failed inside the environment; try another task")
        prompt = "\n\n".join(message["content"] for message in episode.messages)
        return CallResult(f"episode: {self._handles.add(episode)}\n\n{prompt}")

    async def _open(self, name: str, task: str) -> Episode:
        seed = secrets.randbelow(2**63)
        if task:
            return await self._episodes.open(name, task=task, seed=seed, guest=True)
        environment = self._episodes.environment(name)
        split = environment.splits[-1]
        if not (size := environment.size(split)):
            raise UnknownNameError("task", f"any of {split}", [])
        return await self._episodes.open(name, split=split, index=secrets.randbelow(size), seed=seed, guest=True)

    def prompts(self) -> Sequence[PromptInfo]:
        """One for each environment: it asks the model to play."""
        arguments = {"task": "The id of a task; leave it out for a random one."}
        return [
            PromptInfo(name, f"Play {title_of(name)}", made.description or f"Play {name}.", arguments)
            for name, made in self.environments.items()
        ]

    def prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[Message]:
        """The user's request to play."""
        if name not in self.environments:
            raise UnknownNameError("prompt", name, self.environments)
        given = [f'environment "{name}"'] if len(self._names) > 1 else []
        if task := arguments.get("task", ""):
            given.append(f'task "{task}"')
        text = f"Play {name} with me watching. Call {START}{' with ' + ' and '.join(given) if given else ''}, "
        return [{"role": "user", "content": text + "then do what the task it returns says, until the episode is over."}]


def _with_handle(public: str, environment: Environment[Any, Any, Any], tool: Tool) -> _BareTool:
    schema = tool.listing["inputSchema"]
    handle = next(name for name in _handle_names() if name not in schema["properties"])
    described = {"type": "string", "description": f"The handle of the episode, as {START} returned it."}
    extended = {
        **schema,
        "properties": {handle: described, **schema["properties"]},
        "required": [handle, *schema["required"]],
    }
    entry = linked(environment, tool.name, {**listed(tool), "name": public, "inputSchema": extended})
    return _BareTool(environment.name, tool, handle, entry)


def _handle_names() -> Iterator[str]:
    """What the argument for the handle may be called where a tool has parameters of that name."""
    yield "episode"
    yield "episode_handle"
    yield from (f"episode_handle_{number}" for number in count(2))


def _fit(public: str, environment: str, tool: str, *, taken: Any) -> str:
    """``public``, shortened and made unique where it is too long for a host's prefix, or another tool's name."""
    room = MAX_NAME - len(f"mcp__{SERVER}__")
    if len(public) <= room and public not in taken:
        return public
    for attempt in itertools.count():
        mark = hashlib.sha256(f"{environment}/{tool}{'/' * attempt}".encode()).hexdigest()[:8]
        if (found := f"{public[: room - 9]}_{mark}") not in taken:
            return found
    raise AssertionError("unreachable")


def _prefix(environment: str) -> str:
    """The environment's name as a part of a tool's name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", environment).strip("_")


def _problem(text: str) -> CallResult:
    return CallResult(text, is_error=True)


def _shown(handle: Any) -> str:
    return repr(handle if len(str(handle)) <= 40 else str(handle)[:40] + "…") if isinstance(handle, str) else "given"

"""Brought servers by name, without writing a class: ``fastmcp:module:factory`` and ``stdio:COMMAND``.

Every command that takes an environment takes these. ``fastmcp@notes:…`` and ``stdio@notes:…`` call it ``notes``.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from mcpgym.environment import Config, ConfigT
from mcpgym.errors import ConfigurationError, ToolError
from mcpgym.own_server.environment import OwnServerEnvironment, ServerEpisode
from mcpgym.own_server.factories import checked_factory, named_object
from mcpgym.own_server.fastmcp_environment import FastMCPEnvironment
from mcpgym.own_server.naming import split_brought
from mcpgym.own_server.rubric import named_rubric
from mcpgym.own_server.stdio_environment import StdioEnvironment
from mcpgym.own_server.task_file import free_task, read_tasks
from mcpgym.schema import NAME
from mcpgym.tasks import Task

MAX_NAME = 40
_HERE = "brought_"
"""What the names of the classes that are made here begin with; the spec follows."""
_LAUNCHERS = re.compile(
    r"(python|pypy)[\d.]*|node|deno|bun|uv|uvx|npx|npm|pnpm|pipx|docker|podman|bash|sh|env|run|tool|exec|dlx|x|mcpgym"
)
_GENERIC = {"server", "main", "index", "__main__", "app", "mcp", "cli"}


class SpecConfig(Config):
    """What can be set for a server that is named and not written as a class."""

    tasks: str = ""
    """A file of tasks, one JSON object a line (id, split, prompt, info, setup). Without it, there is one free task."""
    rewards: str = ""
    """A module with rewards: functions under @mcpgym.reward, and is_done if the episode may end by itself."""
    hide: str = ""
    """Tools of the server that no policy gets, by commas; rewards and a task's setup may call them."""
    turns: int = Field(default=0, ge=0)
    """The most turns of an episode; 0 for no limit."""
    call_seconds: float = Field(default=30.0, gt=0, le=3600)
    """Seconds a call may take."""
    start_seconds: float = Field(default=30.0, gt=0, le=120)
    """Seconds a server has to begin."""
    deterministic: bool = False
    """Whether one task, one seed and the same calls give the same bytes on any day."""

    def reaches(self) -> Sequence[str]:
        """The files that are read and the module that is run."""
        named = {"tasks": self.tasks, "rewards": self.rewards}
        return [f"{name}={value}" for name, value in named.items() if value]


class StdioConfig(SpecConfig):
    """What can be set for a command."""

    env: str = ""
    """Names of environment variables that the server gets as they are here, by commas; it inherits no others."""
    warm: int = Field(default=2, ge=0, le=64)
    """How many processes are kept ready for the next episodes."""

    def reaches(self) -> Sequence[str]:
        """Also the variables: a key that is handed over is out."""
        return [*super().reaches(), *([f"env={self.env}"] if self.env else [])]


class _Named(OwnServerEnvironment[ConfigT]):
    """Tasks and rewards from where the configuration says."""

    config: Any

    def __init__(self, config: ConfigT | None = None) -> None:
        self.config = config if config is not None else self.config_class()
        rows = read_tasks(Path(self.config.tasks)) if self.config.tasks else free_task(self.name)
        rubric = named_rubric(self.config.rewards) if self.config.rewards else None
        self._rows = rows.splits
        self._setups = rows.setups
        self._done = None if rubric is None else rubric.is_done
        self._say(
            splits=tuple(rows.splits),
            call_seconds=self.config.call_seconds,
            start_seconds=self.config.start_seconds,
            hidden_tools=tuple(_listed(self.config.hide)),
            reproducible=self.config.deterministic,
        )
        if rubric is not None:
            self._say(rewards=rubric.rewards)
        super().__init__(self.config)

    @property
    def max_turns(self) -> int | None:
        """The configuration's."""
        return self.config.turns or None

    def tasks(self, split: str) -> Sequence[Task]:
        """The rows of the file."""
        return self._rows.get(split, [])

    async def prepare(self, episode: ServerEpisode) -> None:
        """The task's ``setup``: its calls, in order.

        Raises:
            ConfigurationError: one failed; it would fail in every episode of the task.
        """
        for step in self._setups.get(episode.task.id, ()):
            try:
                await episode.ask(step["tool"], **step.get("arguments", {}))
            except ToolError as error:
                raise ConfigurationError(f"the setup of task {episode.task.id}: {step['tool']}: {error}") from error

    def is_done(self, state: ServerEpisode) -> bool:
        """What the module of rewards says, if it says it."""
        return self._done is not None and bool(self._done(state))


class NamedFactory(_Named[SpecConfig], FastMCPEnvironment[SpecConfig]):
    """``fastmcp:module:factory``."""

    config_class = SpecConfig


class NamedCommand(_Named[StdioConfig], StdioEnvironment[StdioConfig]):
    """``stdio:COMMAND``."""

    config_class = StdioConfig

    def __init__(self, config: StdioConfig | None = None) -> None:
        made = config if config is not None else StdioConfig()
        self._say(warm=made.warm, inherited=tuple(_listed(made.env)))
        super().__init__(made)


@cache
def spec_class(spec: str) -> type[OwnServerEnvironment[Any]]:
    """The environment over the server that ``spec`` names.

    Raises:
        ConfigurationError: it is written otherwise, or names no factory and no program.
    """
    parts = split_brought(spec)
    if parts is None:
        raise ConfigurationError(f"{spec!r}: write fastmcp:module:factory, or stdio:COMMAND")
    kind, name, rest = parts
    if kind == "fastmcp":
        factory = checked_factory(named_object(rest, "the factory"), rest)
        module, _, attribute = rest.partition(":")
        called = name if name is not None else _plain(module.rpartition(".")[2])
        namespace = {"factory": staticmethod(factory), "description": f"The tools of {module}:{attribute}."}
        return _made(NamedFactory, called, namespace, spec)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise ConfigurationError(f"the command {rest!r} cannot be read as a shell would: {error}") from None
    if not words:
        raise ConfigurationError("stdio: needs a command, as in stdio:'python my_server.py'")
    called = name if name is not None else command_name(words)
    return _made(NamedCommand, called, {"command": tuple(words), "description": f"The tools of {rest[:150]}"}, spec)


def __getattr__(name: str) -> Any:
    """Another process finds the class by its module and name, as it finds any environment's."""
    if name.startswith(_HERE):
        return spec_class(bytes.fromhex(name.removeprefix(_HERE)).decode())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _made(base: type[Any], name: str, namespace: Mapping[str, Any], spec: str) -> type[OwnServerEnvironment[Any]]:
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise ConfigurationError(f"{name!r} is no name for a server: letters, digits, - and _, {MAX_NAME} at most")
    named = {**namespace, "name": name, "__module__": base.__module__, "__qualname__": f"{_HERE}{spec.encode().hex()}"}
    return type(base.__name__, (base,), named)


def command_name(words: Sequence[str]) -> str:
    """What a command's server is called: the first word that is no launcher and no option, without path and ending."""
    for word in words:
        path = Path(word.rpartition("@")[0] if "@" in word[1:] else word)
        stem = path.name.removesuffix(
            path.suffix if path.suffix in (".py", ".js", ".mjs", ".ts", ".sh", ".exe") else ""
        )
        if word.startswith("-") or _LAUNCHERS.fullmatch(stem) or os.pathsep in word:
            continue
        if stem in _GENERIC and (parent := path.resolve().parent.name):
            stem = parent
        return _plain(stem)
    return "server"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:MAX_NAME].strip("-").lower() or "server"


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]

"""The contract: what an environment is."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeVar

from mcpgym.errors import ConfigurationError, EpisodeError, McpgymError, UnknownNameError
from mcpgym.messages import Message, Transcript
from mcpgym.requirements import Requirement
from mcpgym.rewards import Reward, find_rewards
from mcpgym.schema import MAX_INSTRUCTIONS, MAX_NAME, NAME, schema_hash
from mcpgym.tasks import Task, find_task
from mcpgym.tools import Tool, find_tools

if TYPE_CHECKING:
    from mcpgym.apps import App
    from mcpgym.game_tree import GameTree

ICON = re.compile(r"(?:data:|https://)(?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
"""What an icon may be: a URI, whole (RFC 3986). Strict clients refuse a server whose icon is none."""


class Config(BaseModel):
    """Base of environment configurations: unknown keys are refused, and the values are fixed once made.

    Every field needs a default and a description (a docstring below it will do); the fields are the environment's
    options on the command line (``--config name=value``) and in its documentation.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    def reaches(self) -> Sequence[str]:
        """What these values make the environment read or ask outside its package, as ``field=value``: paths, addresses.

        A file from somebody else must not choose it: recorded rollouts that say such things are replayed only when the
        user trusts them.
        """
        return ()


TaskT = TypeVar("TaskT", bound=Task)
StateT = TypeVar("StateT")
ConfigT = TypeVar("ConfigT", bound=Config, default=Config)

GameOutcome = Literal["win", "draw", "loss"]


class ReferencePolicy(Protocol):
    """A policy that an environment ships: it sees what any policy sees, and answers with one assistant message."""

    def __call__(self, messages: Sequence[Message], random: Random, /) -> Message | Awaitable[Message]:
        """The next assistant message after ``messages``; ``random`` is seeded for this rollout."""
        ...


class Environment(Generic[TaskT, StateT, ConfigT]):
    """Tasks, tools, state and rewards under one name. Subclass it and give at least ``name``, ``tasks`` and ``reset``.

    The state is explicit: ``reset`` makes one per episode, tools and rewards get it, and nothing else may be changed.
    One instance serves every episode of one configuration, so an instance holds only what all of them may share.
    """

    name: ClassVar[str]
    """What users type and clients show; letters, digits, - and _."""
    version: ClassVar[str] = "1"
    """Change it with anything that changes scores: tasks, rules, prompts, tools or rewards."""
    description: ClassVar[str] = ""
    """One line for people."""
    instructions: ClassVar[str] = ""
    """What a model should know before it uses the tools; every MCP client shows it to its model (under 2 KB)."""
    icon: ClassVar[str] = ""
    """An icon for people's clients: a ``data:`` or ``https:`` URI."""
    splits: ClassVar[tuple[str, ...]] = ("train", "test")
    config_class: ClassVar[type[Config]] = Config
    spec_field: ClassVar[str] = ""
    """For an environment that is many: the field of its configuration that ``NAME:VALUE`` sets, wherever one is named
    (``gymnasium:Taxi-v4``)."""
    reproducible: ClassVar[bool] = True
    """Whether one task, one seed and the same calls give the same bytes on any day. What cannot promise it (a live
    wiki) says False, and says in :meth:`same_observation` what counts as the same."""

    tools: ClassVar[Mapping[str, Tool]] = {}
    """Made from the ``@tool`` methods when the class is defined."""
    rewards: ClassVar[Mapping[str, Reward]] = {}
    """Made from the ``@reward`` methods when the class is defined."""
    schema_hash: ClassVar[str] = schema_hash([])

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.tools = find_tools(cls)
        cls.rewards = find_rewards(cls)
        cls.schema_hash = schema_hash([tool.listing for tool in cls.tools.values()])
        if not hasattr(cls, "name"):
            return  # an intermediate base
        if not NAME.fullmatch(cls.name):
            raise ConfigurationError(
                f"{cls.__name__}: {cls.name!r} is no environment name; use letters, digits, - and _"
            )
        if cls.icon and not ICON.fullmatch(cls.icon):
            raise ConfigurationError(
                f"{cls.__name__}: its icon {cls.icon[:40]!r} is no data: or https: URI; in one, write %20 for a space, "
                '%3C for <, %3E for >, %22 for " and %23 for #'
            )
        if len(cls.instructions.encode()) > MAX_INSTRUCTIONS:
            raise ConfigurationError(f"{cls.__name__}: instructions over {MAX_INSTRUCTIONS} bytes are cut by clients")
        for tool in cls.tools:
            if len(full := f"mcp__{cls.name}__{tool}") > MAX_NAME:
                raise ConfigurationError(f"{full}: {len(full)} characters with a host's prefix; {MAX_NAME} at most")

    def __init__(self, config: ConfigT | None = None) -> None:
        self.config: ConfigT = config if config is not None else self.config_class()  # type: ignore[assignment]

    # What every environment says.

    def tasks(self, split: str) -> Sequence[TaskT]:
        """The tasks of ``split``: always the same ones in the same order, made lazily where they are many."""
        raise NotImplementedError(f"{type(self).__name__} must define tasks(split)")

    def reset(self, task: TaskT, seed: int) -> StateT | Awaitable[StateT]:
        """A fresh state for an episode of ``task``; all randomness comes from ``task`` and ``seed``."""
        raise NotImplementedError(f"{type(self).__name__} must define reset(task, seed)")

    # What an environment may say.

    def messages(self, task: TaskT, state: StateT) -> Sequence[Message]:
        """The prompt of an episode; by default that of its task. ``state`` is the one ``reset`` just made."""
        return task.messages

    def is_done(self, state: StateT) -> bool:
        """Whether the episode has ended by its own rules; no tool can be called then."""
        return False

    def respond(
        self, state: StateT, transcript: Transcript
    ) -> Sequence[Message] | Awaitable[Sequence[Message] | None] | None:
        """What the user says when the policy stops without calling a tool; None ends the rollout."""
        return None

    def invalid_arguments(self, state: StateT, tool: str, problem: str) -> str:
        """What the policy reads when its arguments do not fit a tool's schema; may take note of it in ``state``."""
        return problem

    def same_observation(self, recorded: str, replayed: str) -> bool:
        """Whether two texts that the policy read count as the same; asked only where ``reproducible`` is False.

        It must hold of every text and itself. Replays and checks compare prompts, tool answers and replies by it.
        """
        return recorded == replayed

    @property
    def max_turns(self) -> int | None:
        """How many turns (tool calls, and answers to ``respond``) an episode may have; None for no limit of its own."""
        return None

    def game_outcome(self, state: StateT) -> GameOutcome | None:
        """For games: how it ended for the policy; None while unfinished, and for what is no game."""
        return None

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """Policies to compare with, by name: ``random`` (uniform over legal acts), ``expert`` (the best known)."""
        return {}

    def teacher(self, skill: float) -> ReferencePolicy | None:
        """A policy worth imitating, of the strength ``skill``: 0 is the weakest there is, 1 the best.

        Data for supervised fine-tuning is made with it (``teacher:skill=0.95``). It may play far worse than ``expert``:
        a policy that is to learn by itself needs the form of a turn and a first idea of the task, not the solution.
        None where there is no such policy.
        """
        return None

    def game_tree(self) -> GameTree | None:
        """The whole game as a tree, for finite games of two players: what lets a policy be certified.

        See :mod:`mcpgym.game_tree`. An environment that gives one is a game that ends when the policy answers without a
        call. None for everything else.
        """
        return None

    def app(self) -> App | None:
        """A page that shows the episode to people whose client renders MCP Apps; see :class:`mcpgym.App`.

        It is asked for once per instance. No policy sees it, and without one nothing is different.
        """
        return None

    @classmethod
    def requirements(cls) -> Sequence[Requirement]:
        """What the environment needs of this machine beyond Python, and whether it is there; found by trying.

        ``mcpgym doctor --sandbox`` shows it. It may take some seconds, and must end.
        """
        return ()

    def conditions(self) -> Mapping[str, Any]:
        """Facts of this machine that its episodes run under and that may change what happens in them, as JSON.

        Asked after each ``reset``; what isolates code, say, and the versions it finds. They go into traces and receipts
        and are never shown to a policy: no secret, nothing that differs from episode to episode, a few hundred bytes.
        """
        return {}

    def remarks(self) -> Sequence[str]:
        """What whoever checks it should know though it breaks no rule; ``mcpgym check`` shows it."""
        return ()

    def gauges(self) -> Mapping[str, float]:
        """Numbers of this instance for ``/metrics``, by name (letters, digits and _), as they stand; must not wait."""
        return {}

    def close(self, state: StateT) -> Awaitable[None] | None:
        """Release what ``reset`` acquired for this episode (a process, a file)."""

    def shutdown(self) -> Awaitable[None] | None:
        """Release what the instance holds for all episodes."""

    # What follows from it.

    def task(self, wanted: str) -> TaskT:
        """The task with this id.

        Raises:
            UnknownNameError: no split has it.
        """
        for split in self.splits:
            with _its_own_fault(f"{self.name}: looking for a task of {split}"):
                if (found := find_task(self.tasks(split), split, wanted)) is not None:
                    return found  # type: ignore[return-value]
        raise UnknownNameError("task", wanted, (), there=", ".join(filter(None, map(self._ends, self.splits))))

    def task_at(self, split: str, index: int) -> TaskT:
        """The task at ``index`` of ``split``.

        Raises:
            UnknownNameError: there is no such split.
            ConfigurationError: the index lies outside it.
            EpisodeError: the environment cannot make it.
        """
        if (found := self.tasks_at(split, index, 1)) and index >= 0:
            return found[0]
        raise ConfigurationError(f"{self.name}: {split} has tasks 0 to {self.size(split) - 1}; there is no {index}")

    def tasks_at(self, split: str, offset: int, limit: int) -> list[TaskT]:
        """Tasks ``offset`` to ``offset + limit`` of ``split``; fewer where it ends.

        Raises:
            UnknownNameError: there is no such split.
            EpisodeError: the environment cannot make them.
        """
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        with _its_own_fault(f"{self.name}: tasks({split!r})"):
            rows = self.tasks(split)
            found = [rows[index] for index in range(max(offset, 0), min(offset + limit, len(rows)))]
            if (odd := next((row for row in found if not isinstance(row, Task)), None)) is not None:
                raise TypeError(f"it has {type(odd).__name__} for a task, not mcpgym.Task")
            return found

    def size(self, split: str) -> int:
        """How many tasks ``split`` has.

        Raises:
            EpisodeError: the environment cannot say.
        """
        with _its_own_fault(f"{self.name}: tasks({split!r})"):
            return len(self.tasks(split))

    def _ends(self, split: str) -> str:
        """The ids of its first and last task, for a message."""
        size = self.size(split)
        ids = [row.id for index in sorted({0, size - 1}) for row in self.tasks_at(split, index, 1)]
        return " to ".join(ids)


@contextlib.contextmanager
def _its_own_fault(what: str) -> Iterator[None]:
    """Whatever an environment's code raises is told as its fault, in a sentence."""
    try:
        yield
    except McpgymError:
        raise
    except (Exception, SystemExit) as error:
        text = f"{what} failed: {type(error).__name__}: {error}. mcpgym check tells what an environment must do"
        raise EpisodeError(text) from error

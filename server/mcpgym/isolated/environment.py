"""An environment that plays in a virtual environment of its own. Here it is an environment like any other."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from mcpgym.apps import App
from mcpgym.environment import Config, Environment, GameOutcome, ReferencePolicy
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.isolated import ADDED
from mcpgym.isolated.config import config_class_of
from mcpgym.isolated.home import Home, child_of, home_of
from mcpgym.isolated.process import Child
from mcpgym.isolated.records import Record
from mcpgym.isolated.tasks import IsolatedTask, IsolatedTasks
from mcpgym.isolated.tools import made_rewards, made_tools
from mcpgym.isolated.wire import decode_error
from mcpgym.messages import Message, Transcript
from mcpgym.requirements import Requirement
from mcpgym.schema import schema_hash
from mcpgym.tasks import Task

RESET_SECONDS = 125.0
CHECK_SECONDS = 900.0
RESPOND_SECONDS = 125.0

_numbers = itertools.count(1)
_classes: dict[tuple[str, str], type[IsolatedEnvironment]] = {}


@dataclass(eq=False, slots=True)
class IsolatedEpisode:
    """The state of an episode: which one it is, in which process, and how it stood after the last request."""

    child: Child
    number: int
    messages: Sequence[Message]
    after: Mapping[str, Any] = field(default_factory=dict)

    def stands(self, after: Mapping[str, Any]) -> None:
        """Keep how it stands now."""
        self.after = after

    def said(self, what: str) -> Any:
        """What the environment said then; None if nothing.

        Raises:
            Exception: what it raised.
        """
        found = self.after.get(what)
        if isinstance(found, Mapping):
            raise decode_error(found["error"])
        return found


class IsolatedEnvironment(Environment[Task, IsolatedEpisode, Config]):
    """Made by :func:`isolated_class`, from what a record says."""

    home: ClassVar[Home]
    about: ClassVar[Mapping[str, Any]]
    package_file: ClassVar[str | None] = None
    """The file that defines the environment; what its package ships lies beside it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super(Environment, cls).__init_subclass__(**kwargs)  # its tools and rewards are given

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config)
        given = self.config.model_dump(mode="json", exclude_unset=True)
        self._place: dict[str, Any] = {"environment": self.name, "config": given}
        self._about = self._ask("describe") if given else self.about
        self._rows: dict[str, IsolatedTasks] = {}
        self._conditions: Mapping[str, Any] = {}
        self._gauges: Mapping[str, float] = {}
        for key in ("instructions", "tools", "rewards"):
            if self._about[key] != self.about[key]:
                vars(self).update(_parts(self._about))
                break

    def _ask(self, request: str, /, **given: Any) -> Any:
        return self.home.child().ask_now(request, {**self._place, **given})

    # What the environment says.

    def tasks(self, split: str) -> Sequence[Task]:
        """Its tasks, which are asked for as they are needed."""
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        if split not in self._rows:
            self._rows[split] = IsolatedTasks(split, self._about["splits"][split], self._some_tasks)
        return self._rows[split]

    def _some_tasks(self, split: str, start: int, stop: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("tasks", split=split, start=start, stop=stop)
        return found

    async def reset(self, task: Task, seed: int) -> IsolatedEpisode:
        """A state there; its process is started where none runs."""
        child = await child_of(self.home)
        number = next(_numbers)
        address = task.address if isinstance(task, IsolatedTask) else _address(task)
        given = {**self._place, "number": number, "task": address, "seed": seed}
        begun = await child.ask("reset", given, RESET_SECONDS)
        if begun["schema_hash"] != self.schema_hash:
            await child.ask("close", {"number": number})
            raise ConfigurationError(
                f"the package {self.home.record.package} in {self.home.record.folder} has been changed since it was "
                f"added, {self.name} has other tools now: {self.home.record.again}"
            )
        self._conditions = begun["conditions"]
        return IsolatedEpisode(child, number, begun["messages"], begun["after"])

    def messages(self, task: Task, state: IsolatedEpisode) -> Sequence[Message]:
        """The prompt that came with the state."""
        return state.messages

    def is_done(self, state: IsolatedEpisode) -> bool:
        """Whether it said so after the last request."""
        return bool(state.said("done"))

    def game_outcome(self, state: IsolatedEpisode) -> GameOutcome | None:
        """What it said after the last request."""
        found: GameOutcome | None = state.said("outcome")
        return found

    async def respond(self, state: IsolatedEpisode, transcript: Transcript) -> Sequence[Message] | None:
        """What it says as the user."""
        request = {"number": state.number, "messages": list(transcript)}
        answer = await state.child.ask("respond", request, RESPOND_SECONDS)
        state.stands(answer["after"])
        said: Sequence[Message] | None = answer["messages"]
        return said

    def same_observation(self, recorded: str, replayed: str) -> bool:
        """Whether it says that they are the same."""
        return recorded == replayed or bool(self._ask("say", what="same_observation", given=[recorded, replayed]))

    @property
    def max_turns(self) -> int | None:
        """Its limit."""
        found: int | None = self._about["max_turns"]
        return found

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """Its policies, which decide there."""
        return {name: self._policy("policy", name) for name in self._about["policies"]}

    def teacher(self, skill: float) -> ReferencePolicy | None:
        """Its teacher, where it has one."""
        return self._policy("teacher", skill) if self._ask("teaches", skill=skill) else None

    def _policy(self, kind: str, which: Any) -> ReferencePolicy:
        async def act(messages: Sequence[Message], random: Random) -> Message:
            child = await child_of(self.home)
            given = {"policy": [kind, which], "messages": list(messages), "random": random.getstate()}
            answer = await child.ask("act", {**self._place, **given})
            version, inner, gauss = answer["random"]
            random.setstate((version, tuple(inner), gauss))
            turn: Message = answer["message"]
            return turn

        return act

    def app(self) -> App | None:
        """Its app."""
        found = self._ask("app") if self._about["has_app"] else None
        return None if found is None else App(**found)

    @classmethod
    def requirements(cls) -> Sequence[Requirement]:
        """What it needs of this machine."""
        found = cls.home.child().ask_now("requirements", {"environment": cls.name}, CHECK_SECONDS)
        return [Requirement(**item) for item in found]

    def conditions(self) -> Mapping[str, Any]:
        """What it said when the last episode began."""
        return self._conditions

    def remarks(self) -> Sequence[str]:
        """What it remarks."""
        found: Sequence[str] = self._ask("say", what="remarks", given=[])
        return found

    def gauges(self) -> Mapping[str, float]:
        """Its numbers as they stood when they were last asked for: this must not wait."""
        if (child := self.home.running) is not None:
            _, answer = child.begin("say", {**self._place, "what": "gauges", "given": []})
            answer.add_done_callback(self._gauged)
        return self._gauges

    def _gauged(self, answer: Any) -> None:
        if answer.exception() is None:
            self._gauges = dict(answer.result())

    async def close(self, state: IsolatedEpisode) -> None:
        """Release its state; with its process that has gone."""
        if state.child.alive:
            await state.child.ask("close", {"number": state.number})

    async def shutdown(self) -> None:
        """Release what its instance holds; the process ends with the last of them."""
        if (child := self.home.running) is not None and await child.ask("shutdown", self._place):
            await asyncio.to_thread(child.end)

    # What only such an environment has.

    def begin_process(self) -> None:
        """Start its process now, so that what is wrong with it is known at once.

        Raises:
            ConfigurationError, InfrastructureError: it does not start.
        """
        self.home.child()

    @property
    def tree_elsewhere(self) -> str:
        """The mcpgym that has its game tree; empty where it has none at all."""
        return str(self.home.record.folder / "bin" / "mcpgym") if self.about["has_tree"] else ""

    def checked_elsewhere(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What ``check_environment`` finds there: ``findings``, ``notes``, ``episodes``."""
        given = {**self._place, "options": options}
        found: dict[str, Any] = self.home.child().ask_now("check", given, CHECK_SECONDS)
        return found


def isolated_class(record: Record, name: str) -> type[IsolatedEnvironment]:
    """The class of an environment that was added; of one virtual environment, always the same."""
    key = (str(record.folder), name)
    if (known := _classes.get(key)) is not None:
        return known
    home, about = home_of(record), record.environments[name]
    namespace = {
        "__module__": "mcpgym.isolated",
        "__qualname__": f"{ADDED}{name}",
        "__doc__": f"{name}, which plays in {record.folder}.",
        "home": home,
        "about": about,
        "name": name,
        "config_class": config_class_of(home, name, about),
        "package_file": None if about["file"] is None else str(record.folder / about["file"]),
        **{key: about[key] for key in ("version", "description", "icon", "reproducible")},
        "splits": tuple(about["splits"]),
        **_parts(about),
        **({} if about["responds"] else {"respond": Environment.respond}),  # some ask whether it is a method of its own
    }
    made: type[IsolatedEnvironment] = type("IsolatedEnvironment", (IsolatedEnvironment,), namespace)
    _classes[key] = made
    return made


def _parts(about: Mapping[str, Any]) -> dict[str, Any]:
    tools = made_tools(about["tools"])
    return {
        "instructions": about["instructions"],
        "tools": tools,
        "rewards": made_rewards(about["rewards"]),
        "schema_hash": schema_hash([tool.listing for tool in tools.values()]),
    }


def _address(task: Task) -> dict[str, Any]:
    """A task that was made here is sought by its id."""
    return {"split": task.split, "index": -1, "id": task.id, "info": dict(task.info)}

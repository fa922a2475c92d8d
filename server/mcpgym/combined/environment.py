"""Several environments in one episode: each plays as it does alone, and they are scored together.

How to read this package: ``naming`` has the names, ``parts`` the state, ``tools``, ``prompts`` and ``scoring`` what a
policy calls, reads and is paid, ``views`` what a member sees of it all; ``making`` makes the class of a spec.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, ClassVar

from mcpgym.asking import asked
from mcpgym.combined import prompts
from mcpgym.combined.configuration import CombinedConfig
from mcpgym.combined.naming import Tools, owner
from mcpgym.combined.parts import CombinedState, CombinedTask, Members, Part
from mcpgym.combined.policies import combined_policy
from mcpgym.combined.scoring import combined_rewards, weighed
from mcpgym.combined.tools import combined_tools, count_call, refused
from mcpgym.combined.views import own_transcript
from mcpgym.conditions import sound_conditions
from mcpgym.environment import Environment, ReferencePolicy
from mcpgym.episode import sound
from mcpgym.errors import UnknownNameError
from mcpgym.messages import Message, Transcript
from mcpgym.requirements import Requirement
from mcpgym.rewards import Reward, find_rewards
from mcpgym.schema import schema_hash
from mcpgym.tasks import LazyTasks, Task, derive_seed, task_id


class CombinedEnvironment(Environment[CombinedTask, CombinedState, CombinedConfig]):
    """Several environments as one. Its classes are made by :func:`mcpgym.combined.combine` and by name (``a+b``).

    Args:
        config: a section for each member, their weights, and how they make one episode.
        given: members that are there already, by mount; one whose configuration is another is made anew.
    """

    member_classes: ClassVar[Mapping[str, type[Environment[Any, Any, Any]]]] = {}
    """The members' classes by mount."""
    tool_names: ClassVar[Tools] = {}
    """The own names of each member's tools, by mount."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super(Environment, cls).__init_subclass__(**kwargs)  # its tools are its members', and it has them already
        cls.rewards = find_rewards(cls)

    def __init__(
        self, config: CombinedConfig | None = None, given: Mapping[str, Environment[Any, Any, Any]] | None = None
    ) -> None:
        super().__init__(config)
        self.members: Members = {
            mount: _member(cls, getattr(self.config, mount), (given or {}).get(mount))
            for mount, cls in self.member_classes.items()
        }
        rewards = type(self).rewards
        if any(vars(member).keys() & {"tools", "rewards", "instructions"} for member in self.members.values()):
            rewards = self._as_instances_say()
        weights = self.config.weights.model_dump()  # type: ignore[attr-defined]
        self.rewards = weighed(rewards, weights, self.members)  # type: ignore[misc]

    def _as_instances_say(self) -> Mapping[str, Reward]:
        """Take tools and texts from the members as they are: those of a brought server are known by instance."""
        tools = combined_tools(self.members)
        names = {mount: tuple(member.tools) for mount, member in self.members.items()}
        texts = {mount: member.instructions for mount, member in self.members.items()}
        vars(self).update(
            tools=tools,
            tool_names=names,
            schema_hash=schema_hash([tool.listing for tool in tools.values()]),
            instructions=prompts.instructions(texts, names),
        )
        found = find_rewards(type("Rewards", (), combined_rewards(self.members)))
        return {**found, **type(self).rewards}

    def tasks(self, split: str) -> Sequence[CombinedTask]:
        """One task of each member. Members of one class share its tasks out: none is in two of an episode's parts."""
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        rows = {mount: member.tasks(split) for mount, member in self.members.items()}
        places = _places(self.member_classes)
        sizes = [len(rows[mount]) // copies or min(len(rows[mount]), 1) for mount, (_, copies) in places.items()]
        count = min(sizes) if self.config.lengths == "shortest" or not min(sizes) else max(sizes)

        def make(index: int) -> CombinedTask:
            found = {
                mount: rows[mount][(index % size * copies + copy) % len(rows[mount])]
                for (mount, (copy, copies)), size in zip(places.items(), sizes, strict=True)
            }
            prompt = prompts.compose({mount: task.messages for mount, task in found.items()}, self.tool_names, {})
            info = {mount: dict(task.info) for mount, task in found.items()}
            return CombinedTask(task_id(split, index), split, prompt, info, tuple(found.values()))

        return LazyTasks(count, make)  # type: ignore[return-value]

    async def reset(self, task: CombinedTask, seed: int) -> CombinedState:
        """Every member's part, each under a seed of its own. Where one cannot begin, those that have are released."""
        state = CombinedState({})
        try:
            for (mount, member), row in zip(self.members.items(), task.parts, strict=True):
                own = _with_info(row, task.info[mount])
                part = Part(mount, own, member_seed(seed, mount), None)
                part.state = await asked(member.reset, own, part.seed)
                state.parts[mount] = part
                part.messages = tuple(sound(member.messages(own, part.state)))
                part.look(member)
            for part in state.parts.values():
                if part.over is not None:
                    part.by_call, part.note = True, state.note(part.mount)
        except BaseException:
            with contextlib.suppress(Exception):  # what failed first is what is told
                await asyncio.shield(asyncio.ensure_future(self._close(state)))
            raise
        return state

    def messages(self, task: CombinedTask, state: CombinedState) -> Sequence[Message]:
        """The members' prompts as parts of one."""
        own = {mount: part.messages for mount, part in state.parts.items()}
        return prompts.compose(own, self.tool_names, {mount: part.note for mount, part in state.parts.items()})

    def is_done(self, state: CombinedState) -> bool:
        """Whether all parts are over, or any, as the configuration says."""
        return state.is_over(self.config.ends)

    async def respond(self, state: CombinedState, transcript: Transcript) -> Sequence[Message] | None:
        """What the members say to a turn without a call: all of them, or those that it has headings for."""
        to = prompts.addressed(transcript.answer, self.member_classes)
        said: dict[str, Sequence[Message]] = {}
        over = [] if to is None else [mount for mount in to if state.parts[mount].over is not None]
        for part in [part for part in state.open() if to is None or part.mount in to]:
            member = self.members[part.mount]
            own = own_transcript(part, transcript, self.tool_names)
            part.answers += 1
            answer = await asked(member.respond, part.state, own)
            if answer is None:
                part.over = "answered"
                over.append(part.mount)
                continue
            said[part.mount] = sound(answer)
            part.replies.append(tuple(said[part.mount]))
            part.look(member)
            if part.over is not None:
                over.append(part.mount)
        if state.is_over(self.config.ends) and not said:
            return None
        return prompts.replies(said, [state.note(mount) for mount in over], list(self.member_classes))

    def invalid_arguments(self, state: CombinedState, tool: str, problem: str) -> str:
        """What the tool's member says; a part that is over says so."""
        mount, own = owner(tool, state.parts) or ("", "")
        part, member = state.parts[mount], self.members[mount]
        if part.over is not None:
            return refused(state, part)
        try:
            text = member.invalid_arguments(part.state, own, problem)
        except BaseException:
            count_call(member, state, part)
            raise
        note = count_call(member, state, part)
        return f"{text}{note}" if isinstance(text, str) else text

    @property
    def max_turns(self) -> int | None:
        """What the members' limits add up to, and a turn more for each to be answered in; None where one has none."""
        limits = [member.max_turns for member in self.members.values()]
        return None if None in limits else sum(limit + 1 for limit in limits if limit is not None)

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """Those that every member has: ``expert`` does one part after the other, ``random`` any in each turn."""
        offered = {mount: member.reference_policies() for mount, member in self.members.items()}
        first, *others = offered.values()
        return {
            name: combined_policy(
                {mount: own[name] for mount, own in offered.items()}, self.tool_names, at_random=name == "random"
            )
            for name in first
            if all(name in other for other in others)
        }

    def teacher(self, skill: float) -> ReferencePolicy | None:
        """The members' teachers, one part after the other; None where one has none."""
        found: dict[str, ReferencePolicy] = {}
        for mount, member in self.members.items():
            if (own := member.teacher(skill)) is None:
                return None
            found[mount] = own
        return combined_policy(found, self.tool_names)

    @classmethod
    def requirements(cls) -> Sequence[Requirement]:
        """Every member's; of members of one class, once."""
        classes = dict.fromkeys(cls.member_classes.values())
        return [requirement for member in classes for requirement in member.requirements()]

    def conditions(self) -> Mapping[str, Any]:
        """Each member's under its mount, where it says any."""
        found = {mount: sound_conditions(member.conditions()) for mount, member in self.members.items()}
        return {mount: said for mount, said in found.items() if said}

    def gauges(self) -> Mapping[str, float]:
        """Each member's, with its mount in front."""
        return {
            f"{mount}_{name}": value
            for mount, member in self.members.items()
            for name, value in member.gauges().items()
        }

    async def close(self, state: CombinedState) -> None:
        """Release every part, whatever another's release does."""
        await self._close(state)

    async def shutdown(self) -> None:
        """Shut every member down, whatever another's shutdown does."""
        await _all_of({mount: member.shutdown for mount, member in self.members.items()}, "shutdown")

    async def _close(self, state: CombinedState) -> None:
        def closing(mount: str, part: Part) -> Callable[[], Any]:
            return lambda: self.members[mount].close(part.state)

        await _all_of({mount: closing(mount, part) for mount, part in state.parts.items()}, "close")


def member_seed(seed: int, mount: str) -> int:
    """The seed of a member's part: alone under it, and with the same task, the member plays the same."""
    return derive_seed("combined", seed, mount) >> 1


def same_observation(self: CombinedEnvironment, recorded: str, replayed: str) -> bool:
    """Whether two texts count as the same: they are, or a member that is not reproducible says so.

    A prompt is compared part by part. Made a method of the combinations that have such a member.
    """
    inexact = {mount: member for mount, member in self.members.items() if not member.reproducible}

    def same(mount: str | None, old: str, new: str) -> bool:
        asked_of = [*inexact.values()] if mount is None else [inexact[mount]] if mount in inexact else []
        return old == new or any(member.same_observation(old, new) for member in asked_of)

    (before, old), (first, new) = (prompts.sections(text, self.members) for text in (recorded, replayed))
    if not old or list(old) != list(new):
        return same(None, recorded, replayed)
    return before == first and all(same(mount, old[mount], new[mount]) for mount in old)


def _member(
    cls: type[Environment[Any, Any, Any]], config: Any, given: Environment[Any, Any, Any] | None
) -> Environment[Any, Any, Any]:
    return given if given is not None and given.config == config else cls(config)


def _places(members: Mapping[str, type[Environment[Any, Any, Any]]]) -> dict[str, tuple[int, int]]:
    """Of each member, which of the members of its class it is, and how many there are."""
    classes = list(members.values())
    return {
        mount: (classes[:number].count(cls), classes.count(cls)) for number, (mount, cls) in enumerate(members.items())
    }


def _with_info(task: Task, info: Mapping[str, Any]) -> Task:
    return task if dict(task.info) == dict(info) else dataclasses.replace(task, info=info)


async def _all_of(work: Mapping[str, Callable[[], Any]], what: str) -> None:
    """Do all of ``work`` side by side, to the end of each.

    Raises:
        RuntimeError: some of it failed; the text says whose.
    """

    def begun(one: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
        return asked(one)

    results = await asyncio.gather(*(begun(one) for one in work.values()), return_exceptions=True)
    failed = {mount: error for mount, error in zip(work, results, strict=True) if isinstance(error, BaseException)}
    if failed:
        said = "; ".join(f"{what} of {mount}: {type(error).__name__}: {error}" for mount, error in failed.items())
        raise RuntimeError(said) from next(iter(failed.values()))

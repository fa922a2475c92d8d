"""What the process in a virtual environment does: it holds environments and the states of episodes, and asks them.

Methods whose name is a request's answer it. They do what an episode would do here, and leave to it what it keeps: the
log, the turns, the time limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import numbers
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from mcpgym.asking import asked, settle
from mcpgym.calls import CallRecord, answer_text
from mcpgym.conditions import sound_conditions
from mcpgym.environment import Environment
from mcpgym.episode import sound
from mcpgym.errors import ConfigurationError
from mcpgym.isolated.about import about, installed_here, requirements
from mcpgym.isolated.wire import PROTOCOL, encode, encode_error
from mcpgym.messages import Message, Transcript
from mcpgym.registry import configure, environment_class
from mcpgym.tasks import Task, find_task
from mcpgym.threads import ToolThreads

MAX_THREADS = 256

AnyEnvironment = Environment[Any, Any, Any]


@dataclasses.dataclass(slots=True)
class Held:
    """An episode's state, whose it is, and its task."""

    environment: AnyEnvironment
    state: Any
    task: Task


class Host:
    """Answers requests, side by side, in one event loop. ``send`` takes a line."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._instances: dict[tuple[str, str], AnyEnvironment] = {}
        self._policies: dict[tuple[Any, ...], Any] = {}
        self._held: dict[int, Held] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._threads = ToolThreads(MAX_THREADS)
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)

    def hear(self, message: Mapping[str, Any]) -> None:
        """Begin to answer a request, or give one up."""
        if (given_up := message.get("cancel")) is not None:
            if (task := self._running.get(given_up)) is not None:
                task.cancel()
            return
        number = message["id"]
        task = asyncio.get_running_loop().create_task(self._answer(number, message["ask"], message["with"]))
        self._running[number] = task
        task.add_done_callback(lambda _: self._running.pop(number, None))

    async def _answer(self, number: int, ask: str, given: Mapping[str, Any]) -> None:
        try:
            line = encode({"id": number, "result": await getattr(self, f"ask_{ask}")(**given)})
        except BaseException as error:  # also of what exits: no request stays without an answer
            line = encode({"id": number, "error": encode_error(error)})
        self._send(line)

    async def end(self) -> None:
        """Let go of all that is held."""
        for task in list(self._running.values()):
            task.cancel()
        for number in list(self._held):
            with contextlib.suppress(Exception):
                await self.ask_close(number)
        for environment in self._instances.values():
            with contextlib.suppress(Exception):
                await asked(environment.shutdown)

    # About the process and the environments in it.

    async def ask_hello(self) -> Any:
        """Who this is."""
        from mcpgym import __version__

        return {"protocol": PROTOCOL, "mcpgym": __version__}

    async def ask_ping(self) -> Any:
        """Whether the event loop still turns."""
        return None

    async def ask_installed(self, name: str | None) -> Any:
        """The package that was asked for, and every environment that a package registers."""
        return installed_here(name)

    async def ask_describe(self, environment: str, config: Mapping[str, Any]) -> Any:
        """All that is known of an environment without playing."""
        return about(self._instance(environment, config))

    async def ask_requirements(self, environment: str) -> Any:
        """What it needs of this machine."""
        return requirements(environment_class(environment))

    async def ask_check(self, environment: str, config: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        """Whether it keeps the contract."""
        from mcpgym.check import check_environment

        made = configure(environment_class(environment), config)
        report = await asyncio.to_thread(check_environment, made, **options)
        findings = [dataclasses.asdict(finding) for finding in report.findings]
        return {"findings": findings, "notes": list(report.notes), "episodes": report.episodes}

    async def ask_canonical(self, environment: str, config: Mapping[str, Any]) -> Any:
        """The fields in ``config`` as the environment understands them."""
        cls = environment_class(environment)
        try:
            return configure(cls, config).config.model_dump(mode="json", exclude_unset=True)
        except ConfigurationError as error:
            raise ValueError(str(error).removeprefix(f"{cls.name}: ")) from None

    async def ask_reaches(self, environment: str, config: Mapping[str, Any]) -> Any:
        """What it would read or ask outside its package."""
        return list(environment_class(environment).config_class.model_validate(config).reaches())

    async def ask_say(self, environment: str, config: Mapping[str, Any], what: str, given: Sequence[Any]) -> Any:
        """What it says in a method that takes and gives JSON: remarks, gauges, same_observation."""
        assert what in ("remarks", "gauges", "same_observation")
        said = getattr(self._instance(environment, config), what)(*given)
        return said if isinstance(said, bool | Mapping) else [str(text) for text in said]

    async def ask_app(self, environment: str, config: Mapping[str, Any]) -> Any:
        """Its app."""
        app = self._instance(environment, config).app()
        return None if app is None else {"html": app.html, "tools": app.tools, "levels": dict(app.levels)}

    async def ask_tasks(self, environment: str, config: Mapping[str, Any], split: str, start: int, stop: int) -> Any:
        """Some tasks of a split."""
        rows = self._instance(environment, config).tasks(split)
        found = [rows[index] for index in range(start, min(stop, len(rows)))]
        return [{"id": row.id, "messages": list(row.messages), "info": _plain(row.info)} for row in found]

    async def ask_shutdown(self, environment: str, config: Mapping[str, Any]) -> Any:
        """Let go of what an instance holds; whether nothing is held any more."""
        made = self._instances.pop(_key(environment, config), None)
        if made is not None:
            for place in [place for place in self._policies if place[:2] == _key(environment, config)]:
                del self._policies[place]
            await asked(made.shutdown)
        return not self._instances and not self._held

    # Its own policies.

    async def ask_teaches(self, environment: str, config: Mapping[str, Any], skill: float) -> Any:
        """Whether it has a teacher of this skill."""
        return self._policy(environment, config, "teacher", skill) is not None

    async def ask_act(
        self,
        environment: str,
        config: Mapping[str, Any],
        policy: Sequence[Any],
        messages: Sequence[Message],
        random: Sequence[Any],
    ) -> Any:
        """The turn of one of its policies, and where the random generator stands after it."""
        generator = Random()
        generator.setstate((random[0], tuple(random[1]), random[2]))
        turn = await settle(self._policy(environment, config, *policy)(messages, generator))
        return {"message": turn, "random": generator.getstate()}

    def _policy(self, environment: str, config: Mapping[str, Any], kind: str, which: Any) -> Any:
        key = (*_key(environment, config), kind, which)
        if key not in self._policies:
            made = self._instance(environment, config)
            self._policies[key] = made.teacher(which) if kind == "teacher" else made.reference_policies()[which]
        return self._policies[key]

    # An episode, from its first request to its last.

    async def ask_reset(
        self,
        number: int,
        environment: str,
        config: Mapping[str, Any],
        task: Mapping[str, Any],
        seed: int,
    ) -> Any:
        """Begin: the prompt and the conditions, and what the tools are, so that it is seen that they are the same."""
        made = self._instance(environment, config)
        row = _row(made, task)
        state = await asked(made.reset, row, seed)
        held = Held(made, state, row)
        try:
            begun = {
                "messages": sound(made.messages(row, state)),
                "conditions": sound_conditions(made.conditions()),
                "schema_hash": made.schema_hash,
                "after": _after(held),
            }
            encode(begun)
        except BaseException:
            with contextlib.suppress(Exception):
                await asked(made.close, state)
            raise
        self._held[number] = held
        return begun

    async def ask_call(self, number: int, tool: str, arguments: Any) -> Any:
        """Answer a call; arguments that do not fit are answered as the environment wants it."""
        held = self._held[number]
        found = held.environment.tools[tool]
        try:
            parsed = found.parser.parse(arguments)
        except ValueError as problem:
            text = held.environment.invalid_arguments(held.state, tool, str(problem))
            if not isinstance(text, str):
                raise TypeError(
                    f"invalid_arguments gave {type(text).__name__}; it must return what the policy reads"
                ) from None
            return {"text": text, "is_error": True, "after": _after(held)}
        try:
            if found.inline:
                answer = found.handler(held.environment, held.state, **parsed)
            elif found.is_async:
                answer = await found.handler(held.environment, held.state, **parsed)
            else:
                work = await self._threads.start(lambda: found.handler(held.environment, held.state, **parsed))
                answer = await work
            text = answer_text(answer)
        except BaseException as error:  # the state may be another, whatever failed
            return {"error": encode_error(error), "after": _after(held)}
        return {"text": text, "is_error": False, "after": _after(held)}

    async def ask_respond(self, number: int, messages: Sequence[Message]) -> Any:
        """What the environment says as the user."""
        held = self._held[number]
        said = await asked(held.environment.respond, held.state, Transcript(messages))
        return {"messages": None if said is None else sound(said), "after": _after(held)}

    async def ask_reward(
        self, number: int, name: str, calls: Sequence[Sequence[Any]], transcript: Sequence[Message] | None
    ) -> Any:
        """What one reward pays."""
        held = self._held[number]
        item = held.environment.rewards[name]
        inputs: dict[str, Any] = {
            "transcript": None if transcript is None else Transcript(transcript),
            "task": held.task,
            "calls": tuple(CallRecord(*call) for call in calls),
        }
        given = {need: inputs.get(need, held.state) for need in item.needs}
        value = await asked(item.function, held.environment, **given)
        if value is None or isinstance(value, bool):
            return {"value": value}
        return {"value": float(value)} if isinstance(value, numbers.Real) else {"odd": type(value).__name__}

    async def ask_close(self, number: int) -> Any:
        """End it."""
        if (held := self._held.pop(number, None)) is not None:
            await asked(held.environment.close, held.state)

    def _instance(self, environment: str, config: Mapping[str, Any]) -> AnyEnvironment:
        key = _key(environment, config)
        if key not in self._instances:
            self._instances[key] = configure(environment_class(environment), config)
        return self._instances[key]


def _key(environment: str, config: Mapping[str, Any]) -> tuple[str, str]:
    return environment, json.dumps(config, sort_keys=True)


def _row(environment: AnyEnvironment, task: Mapping[str, Any]) -> Task:
    """The task that is meant: at its place, or wherever it has its id; with what is hidden in it changed if so told."""
    split, index, wanted = task["split"], task["index"], task["id"]
    rows = environment.tasks(split)
    found = rows[index] if 0 <= index < len(rows) else None
    if found is None or found.id != wanted:
        found = find_task(rows, split, wanted)
    if found is None:
        raise RuntimeError(f"{split} has no task {wanted!r} any more")
    made: Task = found
    return dataclasses.replace(made, info=task["info"]) if "info" in task else made


def _after(held: Held) -> dict[str, Any]:
    """How the episode stands after what was just done."""
    said: dict[str, Any] = {}
    for name, ask, default in (
        ("done", held.environment.is_done, Environment.is_done),
        ("outcome", held.environment.game_outcome, Environment.game_outcome),
    ):
        if getattr(ask, "__func__", None) is default:
            continue
        try:
            answer = ask(held.state)
            said[name] = answer if isinstance(answer, str | None) else bool(answer)
        except (Exception, SystemExit) as error:
            said[name] = {"error": encode_error(error)}
    return said


def _plain(info: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(dict(info), default=str, skipkeys=True))

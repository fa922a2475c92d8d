"""One episode: its state, its clock, its call log, and the rule that its calls run one at a time, in order."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import anyio.to_thread

from mcpgym.environment import Environment, settle
from mcpgym.errors import EpisodeEnded, EpisodeError, ToolError
from mcpgym.messages import Message, Transcript
from mcpgym.rewards import Score, score
from mcpgym.tasks import Task
from mcpgym.tools import Tool

logger = logging.getLogger(__name__)

MAX_CALLS = 10_000
"""No episode answers more calls than this, whatever its environment allows: its log must stay bounded."""
MAX_KEYS = 1_024
"""How many idempotency keys an episode remembers."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """What the policy reads of one call, and whether the episode is over after it."""

    text: str
    is_error: bool = False
    done: bool = False


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One line of an episode's call log. ``milliseconds`` is the time inside the environment."""

    name: str
    arguments: Mapping[str, Any]
    text: str
    is_error: bool
    milliseconds: float


@dataclass(slots=True)
class _InFlight:
    key: str | None
    task: asyncio.Task[CallResult]
    waiters: int = 0


@dataclass(eq=False, slots=True)
class Episode:
    """One run of one task. Made by :class:`~mcpgym.episodes.Episodes`; a policy reaches it through lanes only."""

    token: str
    environment: Environment[Any, Any, Any]
    task: Task
    seed: int
    state: Any
    messages: tuple[Message, ...]
    threads: anyio.CapacityLimiter
    on_call: Callable[[Episode, CallRecord], None]
    calls: list[CallRecord] = field(default_factory=list)
    turns: int = 0
    stop_reason: str | None = None
    failure: str | None = None
    ended: str | None = None
    last_used: float = field(default_factory=time.monotonic)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _in_flight: dict[tuple[str, str], list[_InFlight]] = field(default_factory=dict)
    _answers: OrderedDict[str, tuple[str, CallResult]] = field(default_factory=OrderedDict)
    _stuck: asyncio.Event | None = None

    @property
    def done(self) -> bool:
        """Whether no more tool calls are answered: the environment's rules or a limit ended it, or it was closed."""
        return self.stop_reason is not None or self.ended is not None

    @property
    def busy(self) -> bool:
        """Whether a call is being answered now."""
        return self._lock.locked() or bool(self._in_flight)

    async def call(self, name: str, arguments: Mapping[str, Any] | None, key: str | None = None) -> CallResult:
        """Answer one tool call; never raises for what a policy sent.

        Calls run in order of arrival. A call equal to one that is still being answered gets that one's answer, unless
        both carry keys and they differ; so does a call that repeats an idempotency ``key``. When every caller of a
        call has gone (its task was cancelled), the call itself is cancelled.
        """
        self.last_used = time.monotonic()
        arguments = {} if arguments is None else arguments
        if key is None and not self._in_flight and not self._lock.locked() and self._stuck is None:
            tool = self.environment.tools.get(name)
            if tool is None or tool.inline:
                return self._call_inline(name, tool, arguments)
        fingerprint = _fingerprint(arguments)
        if key is not None and key in self._answers:
            before, answer = self._answers[key]
            if before != f"{name}\0{fingerprint}":
                return CallResult("this idempotency key belongs to another call; use a new one", is_error=True)
            return answer
        twins = self._in_flight.setdefault((name, fingerprint), [])
        flight = next((f for f in twins if f.key == key or f.key is None or key is None), None)
        if flight is None:
            coroutine = self._call_in_turn(name, arguments, key, fingerprint)
            flight = _InFlight(key, asyncio.get_running_loop().create_task(coroutine))
            twins.append(flight)
            flight.task.add_done_callback(lambda _, made=flight: self._landed((name, fingerprint), made))  # type: ignore[misc]
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            if flight.task.cancelled():
                return CallResult("the call was cancelled", is_error=True, done=self.done)
            raise
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                flight.task.cancel()

    def _landed(self, place: tuple[str, str], flight: _InFlight) -> None:
        twins = self._in_flight.get(place, [])
        if flight in twins:
            twins.remove(flight)
        if not twins:
            self._in_flight.pop(place, None)

    async def _call_in_turn(
        self, name: str, arguments: Mapping[str, Any], key: str | None, fingerprint: str
    ) -> CallResult:
        async with self._lock:
            tool = self.environment.tools.get(name)
            if tool is None or tool.inline:
                result = self._call_inline(name, tool, arguments)
            else:
                result = await self._call_slow(tool, arguments)
            if key is not None:
                self._answers[key] = (f"{name}\0{fingerprint}", result)
                if len(self._answers) > MAX_KEYS:
                    self._answers.popitem(last=False)
            return result

    def _call_inline(self, name: str, tool: Tool | None, arguments: Mapping[str, Any]) -> CallResult:
        if (refused := self._refusal(name, tool, arguments)) is not None:
            return refused
        tool = cast(Tool, tool)
        started = time.perf_counter()
        try:
            parsed = tool.parser.parse(arguments)
        except ValueError as problem:
            return self._invalid(tool, arguments, str(problem), started)
        try:
            answer = tool.handler(self.environment, self.state, **parsed)
        except Exception as error:
            return self._failed(tool, arguments, error, started)
        return self._record(tool.name, arguments, _text(answer), False, started)

    async def _call_slow(self, tool: Tool, arguments: Mapping[str, Any]) -> CallResult:
        if (refused := self._refusal(tool.name, tool, arguments)) is not None:
            return refused
        started = time.perf_counter()
        try:
            parsed = tool.parser.parse(arguments)
        except ValueError as problem:
            return self._invalid(tool, arguments, str(problem), started)
        busy = self._stuck
        try:
            async with asyncio.timeout(tool.timeout):
                if busy is not None:
                    await busy.wait()
                    busy = None
                if tool.is_async:
                    answer = await tool.handler(self.environment, self.state, **parsed)
                else:
                    answer = await self._in_thread(tool, parsed)
        except TimeoutError:
            what = "an earlier call is still running; " if busy is not None else ""
            text = f"{what}{tool.name} did not finish within {tool.timeout:g} s and was stopped"
            return self._record(tool.name, arguments, text, True, started)
        except asyncio.CancelledError:
            self._record(tool.name, arguments, f"{tool.name} was cancelled: its caller went away", True, started)
            raise
        except Exception as error:
            return self._failed(tool, arguments, error, started)
        return self._record(tool.name, arguments, _text(answer), False, started)

    async def _in_thread(self, tool: Tool, parsed: dict[str, Any]) -> Any:
        """Run a plain function beside the loop. One that outlives its time limit keeps later calls waiting: it still
        holds the state, and no thread can be stopped."""
        finished = self._stuck = asyncio.Event()
        loop = asyncio.get_running_loop()

        def run() -> Any:
            try:
                return tool.handler(self.environment, self.state, **parsed)
            finally:
                with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
                    loop.call_soon_threadsafe(self._unstick, finished)

        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=self.threads)

    def _unstick(self, finished: asyncio.Event) -> None:
        finished.set()
        if self._stuck is finished:
            self._stuck = None

    def _refusal(self, name: str, tool: Tool | None, arguments: Mapping[str, Any]) -> CallResult | None:
        if self.ended is not None:
            return CallResult(f"this episode has ended: {self.ended}", is_error=True, done=True)
        if self.stop_reason is not None:
            return CallResult(f"this episode has ended ({self.stop_reason}); no more calls", is_error=True, done=True)
        if tool is None:
            known = ", ".join(self.environment.tools) or "none"
            text = f"there is no tool {name[:100]!r}; there is: {known}"
            return self._record(name, arguments, text, True, time.perf_counter())
        return None

    def _invalid(self, tool: Tool, arguments: Mapping[str, Any], problem: str, started: float) -> CallResult:
        try:
            text = self.environment.invalid_arguments(self.state, tool.name, problem)
        except Exception as error:
            return self._failed(tool, arguments, error, started)
        return self._record(tool.name, arguments, text, True, started)

    def _failed(self, tool: Tool, arguments: Mapping[str, Any], error: Exception, started: float) -> CallResult:
        if isinstance(error, ToolError):
            return self._record(tool.name, arguments, str(error), True, started)
        self.failure = f"{tool.name} failed: {type(error).__name__}: {error}"
        logger.error("%s: task %s: %s", self.environment.name, self.task.id, self.failure, exc_info=error)
        return self._record(tool.name, arguments, f"{tool.name} failed inside the environment", True, started)

    def _record(self, name: str, arguments: Mapping[str, Any], text: str, is_error: bool, started: float) -> CallResult:
        record = CallRecord(name, arguments, text, is_error, (time.perf_counter() - started) * 1e3)
        self.calls.append(record)
        self.on_call(self, record)
        self._count_turn()
        return CallResult(text, is_error, self.stop_reason is not None)

    def _count_turn(self) -> None:
        self.turns += 1
        try:
            if self.environment.is_done(self.state):
                self.stop_reason = "done"
        except Exception as error:
            self.failure = f"is_done failed: {type(error).__name__}: {error}"
            self.stop_reason = "failed"
            logger.exception("%s: task %s: is_done failed", self.environment.name, self.task.id)
            return
        if self.stop_reason is None and self.turns >= min(self.environment.max_turns or MAX_CALLS, MAX_CALLS):
            self.stop_reason = "max_turns"

    async def respond(self, messages: Sequence[Message]) -> list[Message] | None:
        """What the environment says, as the user, to a policy that stopped without a tool call; None ends it.

        Raises:
            EpisodeError: the episode was closed, or the environment failed.
        """
        self.last_used = time.monotonic()
        async with self._lock:
            if self.ended is not None:
                raise EpisodeEnded(f"this episode has ended: {self.ended}")
            if self.stop_reason is not None:
                return None
            try:
                answer = await settle(self.environment.respond(self.state, Transcript(messages)))
            except Exception as error:
                self.failure = f"respond failed: {type(error).__name__}: {error}"
                raise EpisodeError(self.failure) from error
            if answer is None:
                self.stop_reason = "answered"
                return None
            self._count_turn()
            return list(answer)

    async def score(self, transcript: Sequence[Message] | None) -> Score:
        """The episode's score; ``transcript`` is what the policy wrote, where the caller has it.

        Raises:
            EpisodeError: the episode was closed or broke; it has no score.
            RewardError: a reward failed or is out of its range.
        """
        self.last_used = time.monotonic()
        async with self._lock:
            if self.ended is not None:
                raise EpisodeEnded(f"this episode has ended: {self.ended}")
            if self.failure is not None:
                raise EpisodeError(f"no score, the environment broke: {self.failure}")
            made = await score(
                self.environment.rewards,
                self.environment,
                self.state,
                transcript=None if transcript is None else Transcript(transcript),
                task=self.task,
                calls=tuple(self.calls),
            )
            return Score(made.total, made.components, self.environment.game_outcome(self.state))

    async def end(self, why: str) -> None:
        """Cancel what runs, let the environment release the state, and answer nothing more."""
        if self.ended is not None:
            return
        self.ended = why
        for flights in list(self._in_flight.values()):
            for flight in flights:
                flight.task.cancel()
        try:
            await settle(self.environment.close(self.state))
        except Exception:
            logger.exception("%s: task %s: close failed", self.environment.name, self.task.id)


def _fingerprint(arguments: Any) -> str:
    """A text that is equal for equal arguments, whatever a client sent as them."""
    try:
        return json.dumps(arguments, sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        return repr(arguments)


def _text(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    return "" if answer is None else json.dumps(answer, ensure_ascii=False)

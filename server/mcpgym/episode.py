"""One episode: its state, its clock, its call log, and the rule that its calls run one at a time, in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mcpgym.asking import asked
from mcpgym.calls import (
    CallRecord,
    CallResult,
    answer_text,
    fingerprint,
    no_such_tool,
    sendable,
    too_deep,
    too_deep_answer,
    weight,
)
from mcpgym.environment import Environment
from mcpgym.errors import EpisodeEnded, EpisodeError, InfrastructureError, RewardError, ToolError
from mcpgym.messages import Message, Transcript, message_fault
from mcpgym.rewards import Score, score
from mcpgym.tally import Tally
from mcpgym.tasks import Task
from mcpgym.telemetry.sections import NOTHING
from mcpgym.telemetry.watching import Watch
from mcpgym.threads import ToolThreads
from mcpgym.tools import Tool
from mcpgym.twins import InFlight, Twins

logger = logging.getLogger(__name__)

MAX_CALLS = 10_000
"""No episode answers more calls than this, whatever its environment allows: its log must stay bounded."""
MAX_LOG = 16 * 1024 * 1024
"""Nor does one whose calls and answers have more characters than this."""
MAX_IN_FLIGHT = 256
"""How many calls of one episode may wait at once."""
END_GRACE = 5.0
"""Seconds that ending or scoring an episode waits for what still uses its state."""
CLOSE_SECONDS = 30.0
"""Seconds an environment has to release what an episode holds."""
RESPOND_SECONDS = 120.0
"""Seconds an environment has to answer as the user."""
SCORE_SECONDS = 300.0
"""Seconds all rewards of an episode have together."""
MAX_CLIENTS = 8
"""How many different clients of one episode are told apart."""
MAX_CLIENT_NAME = 100
"""Characters of what a client calls itself that are kept."""


@dataclass(eq=False, slots=True)
class Episode:
    """One run of one task. Made by :class:`~mcpgym.episodes.Episodes`; a policy reaches it through lanes only."""

    token: str
    environment: Environment[Any, Any, Any]
    task: Task
    seed: int
    state: Any
    messages: tuple[Message, ...]
    threads: ToolThreads
    tally: Tally
    calls: list[CallRecord] = field(default_factory=list)
    turns: int = 0
    stop_reason: str | None = None
    failure: str | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)
    ended: str | None = None
    last_used: float = field(default_factory=time.monotonic)
    opened: float = field(default_factory=time.time)
    opening: int = 0
    scorings: int = 0
    by_control: bool = False
    max_turns: int | None = None
    watch: Watch | None = None
    _clients: set[tuple[Any, Any]] = field(default_factory=set)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _twins: Twins = field(default_factory=Twins)
    _logged: int = 0
    _stuck: asyncio.Future[Any] | None = None

    @property
    def done(self) -> bool:
        """Whether no more tool calls are answered: the environment's rules or a limit ended it, or it was closed."""
        return self.stop_reason is not None or self.ended is not None

    @property
    def _turns_allowed(self) -> int:
        """The environment's own limit, or the one that it was opened with, whichever is smaller."""
        return min(self.environment.max_turns or MAX_CALLS, self.max_turns or MAX_CALLS, MAX_CALLS)

    @property
    def busy(self) -> bool:
        """Whether a call is being answered now."""
        return self._lock.locked() or bool(self._twins.flights)

    def saw(self, name: Any = None, version: Any = None) -> None:
        """A call came over MCP, or a client introduced itself there. What it calls itself may be anything.

        (A call over the control plane sets ``by_control``: that lane is counted in single microseconds.)
        """
        if type(name) is str and type(version) is str and (name, version) in self._clients:
            return
        if len(self._clients) >= MAX_CLIENTS or (name is None and self._clients):
            return
        texts = [sendable(text[:MAX_CLIENT_NAME]) if isinstance(text, str) else None for text in (name, version)]
        self._clients.add((texts[0], texts[1]))

    def seen(self) -> list[dict[str, str | None]]:
        """Who called, as far as the server itself saw: the lane, and what an MCP client calls itself."""
        rows = sorted(self._clients, key=lambda row: [str(text) for text in row])
        control = [{"lane": "control", "name": None, "version": None}] if self.by_control else []
        return [*control, *({"lane": "mcp", "name": name, "version": version} for name, version in rows)]

    def call_now(self, name: str, arguments: Mapping[str, Any] | None, key: str | None = None) -> CallResult | None:
        """What :meth:`call` answers where that takes no waiting (an inline tool, and nothing else runs); else None."""
        self.last_used = time.monotonic()
        if self._twins.flights or self._stuck is not None or self._lock.locked():
            return None
        tool = self.environment.tools.get(name)
        if tool is not None and not tool.inline:
            return None
        arguments = {} if arguments is None else arguments
        if key is None:
            return self._call_inline(name, tool, arguments)
        what = (name, fingerprint(arguments))
        if (known := self._twins.remembered(key, what)) is not None:
            return known
        return self._twins.remember([key], what, self._call_inline(name, tool, arguments))

    async def call(self, name: str, arguments: Mapping[str, Any] | None, key: str | None = None) -> CallResult:
        """Answer one tool call; never raises for what a policy sent.

        Calls run in order of arrival. A call equal to one that is still being answered gets that one's answer, unless
        both carry keys and they differ; so does a call that repeats an idempotency ``key``. When every caller of a
        call has gone (its task was cancelled), the call itself is cancelled; one that is at work in a thread cannot be,
        and runs to its end or its time limit.
        """
        if (answer := self.call_now(name, arguments, key)) is not None:
            return answer
        arguments = {} if arguments is None else arguments
        what = (name, fingerprint(arguments))
        if key is not None and (known := self._twins.remembered(key, what)) is not None:
            return known
        flight = self._twins.twin(what, key)
        if flight is None:
            if len(self._twins.flights) >= MAX_IN_FLIGHT:
                return CallResult(f"{MAX_IN_FLIGHT} calls are waiting already; send fewer at once", is_error=True)
            flight = InFlight(what, set())
            flight.task = asyncio.get_running_loop().create_task(self._call_in_turn(name, arguments, flight))
            self._twins.flights.append(flight)
            flight.task.add_done_callback(lambda _, landed=flight: self._twins.flights.remove(landed))  # type: ignore[misc]
        if key is not None:
            flight.keys.add(key)
        task = cast("asyncio.Task[CallResult]", flight.task)
        flight.waiters += 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and not cast("asyncio.Task[Any]", asyncio.current_task()).cancelling():
                why = f"this episode has ended: {self.ended}" if self.ended is not None else "the call was cancelled"
                return CallResult(why, is_error=True, done=self.done)
            raise
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.runs_on and not task.done():
                task.cancel()

    async def _call_in_turn(self, name: str, arguments: Mapping[str, Any], flight: InFlight) -> CallResult:
        async with self._lock:
            tool = self.environment.tools.get(name)
            if tool is None or (tool.inline and self._stuck is None):
                result = self._call_inline(name, tool, arguments)
            else:
                result = await self._call_slow(tool, arguments, flight)
                self.last_used = time.monotonic()
            return self._twins.remember(flight.keys, flight.what, result)

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
            text = answer_text(tool.handler(self.environment, self.state, **parsed))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            return self._failed(tool, arguments, error, started)
        return self._record(tool.name, arguments, text, False, started)

    async def _call_slow(self, tool: Tool, arguments: Mapping[str, Any], flight: InFlight) -> CallResult:
        if (refused := self._refusal(tool.name, tool, arguments)) is not None:
            return refused
        started = time.perf_counter()
        work: asyncio.Future[Any] | None = None
        try:
            async with asyncio.timeout(tool.timeout):
                if self._stuck is not None:
                    await asyncio.wait((self._stuck,))
                    if (refused := self._refusal(tool.name, tool, arguments)) is not None:
                        return refused  # what was still running has ended the episode
                try:
                    parsed = tool.parser.parse(arguments)
                except ValueError as problem:
                    return self._invalid(tool, arguments, str(problem), started)
                work = await self._begin(tool, parsed)
                flight.runs_on = not tool.is_async
                await asyncio.wait((work,))
        except TimeoutError:
            what = "an earlier call is still running; " if work is None else ""
            self._leave(work)
            text = f"{what}{tool.name} did not finish within {tool.timeout:g} s and was stopped"
            return self._record(tool.name, arguments, text, True, started)
        except asyncio.CancelledError:
            self._leave(work)
            self._record(tool.name, arguments, f"{tool.name} was cancelled: its caller went away", True, started)
            raise
        try:
            text = answer_text(work.result())
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            return self._failed(tool, arguments, error, started)
        return self._record(tool.name, arguments, text, False, started)

    async def _begin(self, tool: Tool, parsed: dict[str, Any]) -> asyncio.Future[Any]:
        """Start the handler: on the loop in a task of its own if it is ``async``, else in a thread."""
        if tool.is_async:
            return asyncio.get_running_loop().create_task(asked(tool.handler, self.environment, self.state, **parsed))
        return await self.threads.start(lambda: tool.handler(self.environment, self.state, **parsed))

    def _leave(self, work: asyncio.Future[Any] | None) -> None:
        """Give up on what a handler does. Until it really ends, later calls wait: it still holds the state."""
        if work is None or work.done():
            return
        if isinstance(work, asyncio.Task):
            work.cancel()
        self._stuck = work
        work.add_done_callback(self._unstick)

    def _unstick(self, work: asyncio.Future[Any]) -> None:
        if not work.cancelled():
            work.exception()  # looked at, so that the loop does not report it
        if self._stuck is work:
            self._stuck = None
            if not self.done:
                self._look_whether_done()

    def _refusal(self, name: str, tool: Tool | None, arguments: Mapping[str, Any]) -> CallResult | None:
        if self.ended is not None:
            return CallResult(f"this episode has ended: {self.ended}", is_error=True, done=True)
        if self.stop_reason is not None:
            return CallResult(f"this episode has ended ({self.stop_reason}); no more calls", is_error=True, done=True)
        if too_deep(arguments):
            return self._record(name[:100], {}, too_deep_answer(name), True, time.perf_counter())
        if tool is None:
            text = no_such_tool(name, self.environment.tools)
            return self._record(name[:100], arguments, text, True, time.perf_counter())
        return None

    def _invalid(self, tool: Tool, arguments: Mapping[str, Any], problem: str, started: float) -> CallResult:
        try:
            text = self.environment.invalid_arguments(self.state, tool.name, problem)
            if not isinstance(text, str):
                raise TypeError(f"invalid_arguments gave {type(text).__name__}; it must return what the policy reads")
        except (Exception, SystemExit) as error:
            return self._failed(tool, arguments, error, started)
        return self._record(tool.name, arguments, text, True, started)

    def _failed(self, tool: Tool, arguments: Mapping[str, Any], error: BaseException, started: float) -> CallResult:
        if isinstance(error, ToolError):
            return self._record(tool.name, arguments, str(error), True, started)
        problem = f"{tool.name} failed: {type(error).__name__}: {error}"
        self.failure = self.failure or problem
        if isinstance(error, InfrastructureError):  # what it stood on is gone: nobody need play on for no score
            self.stop_reason = self.stop_reason or "failed"
            logger.warning("%s: task %s: %s", self.environment.name, self.task.id, problem)
        else:
            logger.error("%s: task %s: %s", self.environment.name, self.task.id, problem, exc_info=error)
        return self._record(tool.name, arguments, f"{tool.name} failed inside the environment", True, started)

    def _record(self, name: str, arguments: Mapping[str, Any], text: str, is_error: bool, started: float) -> CallResult:
        text = sendable(text)
        record = CallRecord(name, arguments, text, is_error, (time.perf_counter() - started) * 1e3)
        self.calls.append(record)
        self._logged += len(text) + weight(arguments)
        self.tally.add(record.milliseconds, is_error)
        if self.watch is not None:
            self.watch.called(record)
        self._count_turn()
        return CallResult(text, is_error, self.stop_reason is not None)

    def _count_turn(self) -> None:
        self.turns += 1
        if self._stuck is None and self.stop_reason is None:  # else when what still uses the state has ended
            self._look_whether_done()

    def _look_whether_done(self) -> None:
        try:
            if self.environment.is_done(self.state):
                self.stop_reason = "done"
            elif self.turns >= self._turns_allowed or self._logged > MAX_LOG:
                self.stop_reason = "max_turns"
        except (Exception, SystemExit) as error:
            self.failure = self.failure or f"is_done failed: {type(error).__name__}: {error}"
            self.stop_reason = "failed"
            logger.exception("%s: task %s: is_done failed", self.environment.name, self.task.id)

    async def _quiet(self) -> None:
        """Wait until nothing uses the state any more.

        Raises:
            EpisodeError: a call that nothing can stop still does.
        """
        if self._stuck is not None:
            await asyncio.wait((self._stuck,), timeout=END_GRACE)
            if self._stuck is not None:
                raise EpisodeError("a call that ran over its time limit is still running, and nothing can stop it")

    async def respond(self, messages: Sequence[Message]) -> list[Message] | None:
        """What the environment says, as the user, to a policy that stopped without a tool call; None ends it.

        Raises:
            EpisodeEnded: the episode was closed.
            EpisodeError: the environment failed.
        """
        self.last_used = time.monotonic()
        async with self._lock:
            if self.ended is not None:
                raise EpisodeEnded(f"this episode has ended: {self.ended}")
            await self._quiet()
            if self.stop_reason is not None:
                return None
            try:
                async with asyncio.timeout(RESPOND_SECONDS):
                    answer = await asked(self.environment.respond, self.state, Transcript(messages))
                answer = None if answer is None else sound(answer)
            except Exception as error:
                problem = f"respond failed: {type(error).__name__}: {error}"
                self.failure = self.failure or problem
                raise EpisodeError(problem) from error
            if answer is None:
                self.stop_reason = "answered"
                return None
            self._count_turn()
            return answer

    async def score(self, transcript: Sequence[Message] | None) -> Score:
        """The episode's score; ``transcript`` is what the policy wrote, where the caller has it.

        Raises:
            EpisodeEnded: the episode was closed.
            EpisodeError: it broke, so it has no score.
            RewardError: a reward failed or is out of its range.
        """
        self.last_used = time.monotonic()
        async with self._lock:
            if self.ended is not None:
                raise EpisodeEnded(f"this episode has ended: {self.ended}")
            if self.failure is not None:
                raise EpisodeError(f"no score, the environment broke: {self.failure}")
            await self._quiet()
            spanned = None if self.watch is None else self.watch.section(f"score {self.environment.name}")
            with spanned or NOTHING as span:
                made = await self._scored(transcript)
                if span is not None:
                    span.note({} if made.total is None else {"gen_ai.evaluation.score.value": made.total})
            self.scorings += 1
            if self.watch is not None:
                self.watch.scored(made)
            return made

    async def _scored(self, transcript: Sequence[Message] | None) -> Score:
        try:
            async with asyncio.timeout(SCORE_SECONDS):
                made = await score(
                    self.environment.rewards,
                    self.environment,
                    self.state,
                    transcript=None if transcript is None else Transcript(transcript),
                    task=self.task,
                    calls=tuple(self.calls),
                )
            outcome = self.environment.game_outcome(self.state)
        except TimeoutError as error:
            raise RewardError(f"no score within {SCORE_SECONDS:g} s") from error
        except RewardError:
            raise
        except (Exception, SystemExit) as error:
            raise RewardError(f"game_outcome failed: {type(error).__name__}: {error}") from error
        if outcome not in (None, "win", "draw", "loss"):
            raise RewardError(f"game_outcome gave {outcome!r}; it is 'win', 'draw', 'loss' or None")
        return Score(made.total, made.components, outcome)

    async def end(self, why: str) -> None:
        """Cancel what runs, let the environment release the state, and answer nothing more."""
        if self.ended is not None:
            return
        self.ended = why
        try:
            await self._end()
        finally:
            if self.watch is not None:
                self.watch.closed(why)

    async def _end(self) -> None:
        running = [flight.task for flight in self._twins.flights if flight.task is not None]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=END_GRACE)
        if isinstance(self._stuck, asyncio.Task):  # it lets go of what it holds; a thread may need the close to end
            await asyncio.wait((self._stuck,), timeout=END_GRACE)
        held = False
        with contextlib.suppress(TimeoutError):  # a score or an answer that hangs must not keep the state for ever
            async with asyncio.timeout(END_GRACE):
                held = await self._lock.acquire()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await asked(self.environment.close, self.state)
        except Exception:
            logger.exception("%s: task %s: close failed", self.environment.name, self.task.id)
        finally:
            if held:
                self._lock.release()


def sound(messages: Sequence[Message]) -> list[Message]:
    """``messages``, each of which is a chat message with text.

    Raises:
        TypeError: one is not.
    """
    for message in messages:
        if (fault := message_fault(message)) is not None:
            raise TypeError(f"a message {fault}; return a list of messages")
    return list(messages)

"""The rollout: a policy over one episode until it stops. Evaluation, data generation and training all run this loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpgym.control import OpenedEpisode
from mcpgym.errors import ConfigurationError, EpisodeEnded, EpisodeLost, ServerUnavailable
from mcpgym.messages import Message, tool_answer
from mcpgym.tasks import derive_seed
from mcpgym.telemetry.sections import section
from mcpgym_rl.failures import CLEAN_UP_SECONDS, explain, leaves, uninterrupted
from mcpgym_rl.lanes import EpisodeLane, Lane
from mcpgym_rl.parse import MalformedCall, ParsedCall
from mcpgym_rl.policy import ContextFull, EpisodeContext, OwnLoop, Policy, PolicyError, PolicySession, Turn
from mcpgym_rl.record import Record
from mcpgym_rl.rollout_spans import (
    SCORE,
    TURN,
    RolloutSection,
    section_of_call,
    section_of_sample,
    tell_sample,
    tell_score,
    watched,
)
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceCall

logger = logging.getLogger(__name__)

DEFAULT_MAX_TURNS = 100
"""The limit on turns where neither the environment nor the user sets one."""
GONE_SECONDS = 1.0
"""How long a server that did not answer may take to close the episode."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one rollout may use; ``None`` for no limit, except ``max_turns``: None is the environment's own.

    ``max_turns`` counts assistant turns, ``max_calls`` tool calls, malformed ones included, ``max_tokens`` what the
    policy writes in all its turns, and ``seconds`` the wall clock from the opening of the episode to its score.
    """

    max_turns: int | None = None
    max_calls: int | None = 1_000
    max_tokens: int | None = None
    seconds: float | None = 1_800.0

    def __post_init__(self) -> None:
        for name in ("max_turns", "max_calls", "max_tokens", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigurationError(f"the limit {name} must be above 0, not {value}; leave it out for the default")


async def rollout(
    policy: Policy,
    lane: Lane,
    *,
    environment: str,
    task: str | None = None,
    split: str | None = None,
    index: int | None = None,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    repeat: int = 0,
    given: Sequence[Turn] = (),
    temperatures: Sequence[float] = (),
    place: int = 0,
    on_end: Callable[[Trace], None] | None = None,
) -> Trace:
    """Play one episode with ``policy`` and record it.

    Whatever a policy, an environment or a server does wrong ends up in the trace: an infrastructure failure has a stop
    reason and an ``error``, and no score. The episode is closed however the rollout ends.

    Args:
        policy: what produces the turns.
        lane: where the episode is opened.
        environment: its name.
        task: its task's id; or ``split`` and ``index``.
        split: see ``task``.
        index: see ``task``; 0 when only a split is given.
        seed: the episode's seed. The policy's own randomness comes from (seed, task, repeat).
        config: fields of the environment's configuration.
        limits: see :class:`Limits`.
        repeat: which rollout of the same episode this is.
        given: the first turns, played as they are: the policy takes over after them, if the episode lasts so long.
        temperatures: at which a local policy samples the first, second… turn it is asked for; then at its own.
        place: the rollout's position in its run.
        on_end: gets the trace exactly once, also when the rollout is cancelled (which then goes on).

    Raises:
        ConfigurationError: there is no such environment, task or configuration; the message names the fix.
    """
    limits = limits or Limits()
    record = Record(policy.name, environment, task or f"{split}-{index or 0}", split or "", seed, dict(config or {}))
    record.repeat, record.place = repeat, place
    which = {"task": task, "split": split, "index": index, "seed": seed, "config": config}
    with watched(record) as watch:
        trace = await _recorded(policy, lane, which, limits, record, given, temperatures, on_end, watch)
    return trace


async def _recorded(
    policy: Policy,
    lane: Lane,
    which: Mapping[str, Any],
    limits: Limits,
    record: Record,
    given: Sequence[Turn],
    temperatures: Sequence[float],
    on_end: Callable[[Trace], None] | None,
    watch: RolloutSection | None,
) -> Trace:
    """The rollout, and what became of it."""
    try:
        async with _Closing() as closing, asyncio.timeout(limits.seconds) as clock:
            episode = await closing.open(lane, record.environment, which)
            record.opened(episode.opened)
            if watch is not None:
                watch.opened(episode.opened)
            if isinstance(policy, OwnLoop):
                clock.reschedule(None)  # it keeps the limit itself, and running into it is an end of its own
                record.stop_reason = await policy.play(episode, limits, record)
            else:
                session = closing.begin(
                    policy, _context(episode.opened, record.seed, record.repeat, given, temperatures)
                )
                record.stop_reason = await _play(session, episode, limits, record, given)
            if record.stop_reason.scored:
                with section(SCORE) as span:
                    record.score = await episode.score(record.messages)
                    tell_score(span, record.score)
    except asyncio.CancelledError:
        if record.score is None:  # one that is scored already was only being closed
            record.fail(StopReason.CANCELLED, "Cancelled", f"the run was stopped during turn {record.turns + 1}")
        raise
    except PolicyError as error:
        record.fail(StopReason.POLICY_FAILED, _kind(error), explain(error))
    except Exception as error:
        if isinstance(error, ConfigurationError) and not record.began:
            raise
        if isinstance(error, TimeoutError) and clock.expired():
            text = f"the rollout took longer than {limits.seconds:g} s; it was in turn {record.turns + 1}"
            record.fail(StopReason.TIMED_OUT, "TimedOut", text)
        else:
            logger.debug("rollout of %s failed", record.task, exc_info=error)
            record.fail(StopReason.ENVIRONMENT_FAILED, _kind(error), explain(error))
    finally:
        if record.stop_reason is not None:  # a ConfigurationError leaves no trace
            trace = record.trace()
            if on_end is not None:
                on_end(trace)
    return trace


async def _play(
    session: PolicySession, episode: EpisodeLane, limits: Limits, record: Record, given: Sequence[Turn]
) -> StopReason:
    """The loop itself: act, call, answer, until something ends it."""
    max_turns = limits.max_turns or episode.opened.max_turns or DEFAULT_MAX_TURNS
    while record.turns < max_turns:
        await asyncio.sleep(0)  # neither a policy nor a lane that never waits may starve the others, a limit or Ctrl-C
        if limits.max_tokens is not None and record.usage.completion_tokens >= limits.max_tokens:
            return StopReason.TRUNCATED
        with section(TURN) as span:
            if span is not None:
                span.note({"mcpgym.turn": record.turns + 1})
            ended = await _take_turn(session, episode, limits, record, given)
        if ended is not None:
            return ended
    return StopReason.MAX_TURNS


async def _take_turn(
    session: PolicySession, episode: EpisodeLane, limits: Limits, record: Record, given: Sequence[Turn]
) -> StopReason | None:
    """One turn and the calls in it; why it was the last one, if it was."""
    if record.turns < len(given):
        turn = _checked(given[record.turns])
        calls = record.add_turn(turn, given=True)
    else:
        try:
            with section_of_sample(record.policy) as span:
                turn = await _act(session, record.messages)
                tell_sample(span, turn)
        except PolicyError as error:
            record.add_usage(error.usage)
            if isinstance(error, ContextFull):
                return StopReason.TRUNCATED
            raise
        calls = record.add_turn(turn)
    if turn.finish == "length":
        return StopReason.TRUNCATED
    if not calls:
        said = await episode.respond(record.messages)
        if said is None:
            return await why_ended(episode)
        record.messages += said
        return None
    done = False
    for call in calls:
        done |= await _answer(call, episode, limits, record)
    if done:
        return await why_ended(episode)
    if limits.max_calls is not None and record.tried >= limits.max_calls:
        return StopReason.MAX_CALLS
    return None


async def _act(session: PolicySession, messages: list[Message]) -> Turn:
    """One turn. Any failure of the policy's own code is the policy's failure, not the environment's."""
    try:
        turn = await session.act(list(messages))
    except PolicyError:
        raise
    except Exception as error:
        logger.debug("the policy failed", exc_info=error)
        raise PolicyError(f"{_kind(error)}: {explain(error)}") from error
    return _checked(turn)


def _checked(turn: Any) -> Turn:
    message = turn.message if isinstance(turn, Turn) else turn
    if not isinstance(turn, Turn) or not isinstance(message, Mapping) or message.get("role") != "assistant":
        raise PolicyError(f"a turn must be a Turn with an assistant message, not {str(message)[:200]}")
    return turn


async def _answer(call: ParsedCall | MalformedCall, episode: EpisodeLane, limits: Limits, record: Record) -> bool:
    """Run one call and append its answer; whether the episode is over after it."""
    record.tried += 1
    if limits.max_calls is not None and record.tried > limits.max_calls:
        text = f"not run: a rollout may have {limits.max_calls} tool calls"
        record.messages.append(tool_answer(call.call, text, is_error=True))
        return False
    if isinstance(call, MalformedCall):
        record.messages.append(tool_answer(call.call, call.problem, is_error=True))
        return False
    name = call.call["function"]["name"]
    with section_of_call(name, episode) as span:
        started = time.perf_counter()
        result = await episode.call(name, call.arguments)
        waited = (time.perf_counter() - started) * 1e3
        if span is not None and result.is_error:
            span.fail("tool_error")
    record.calls.append(TraceCall(name, call.arguments, result.text, result.is_error, round(waited, 3)))
    record.messages.append(tool_answer(call.call, result.text, is_error=result.is_error))
    return result.done


async def why_ended(episode: EpisodeLane) -> StopReason:
    """Why the episode takes no more calls.

    Raises:
        EpisodeEnded: it broke, was closed under the policy, or was lost, which is no end of a game.
    """
    status = await episode.status()
    if status.ended is not None:
        raise (EpisodeLost if status.lost else EpisodeEnded)(f"this episode has ended: {status.ended}")
    if status.failure is not None or status.stop_reason == "failed":
        raise EpisodeEnded(f"the environment broke: {status.failure}")
    return StopReason(status.stop_reason) if status.stop_reason is not None else StopReason.DONE


def _context(
    opened: OpenedEpisode, seed: int, repeat: int, given: Sequence[Turn], temperatures: Sequence[float]
) -> EpisodeContext:
    own_seed = derive_seed("policy", seed, opened.task, repeat)
    return EpisodeContext(opened.environment, opened.tools, own_seed, given, temperatures)


class _Closing(contextlib.AsyncExitStack):
    """Closes the episode and the policy's session whatever happens, a second Ctrl-C included."""

    patience = CLEAN_UP_SECONDS

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if any(isinstance(leaf, ServerUnavailable) for leaf in leaves(error)):
            self.patience = GONE_SECONDS
        return bool(await super().__aexit__(kind, error, traceback))

    async def open(self, lane: Lane, environment: str, which: Mapping[str, Any]) -> EpisodeLane:
        """Open the episode; one that opens while the rollout is being cancelled is closed too."""

        async def opening() -> EpisodeLane:
            episode = await lane.open(environment, **which)
            self.push_async_callback(self._close, episode.aclose, "the episode")
            return episode

        return await uninterrupted(opening(), None)

    def begin(self, policy: Policy, context: EpisodeContext) -> PolicySession:
        """Begin the policy's session."""
        try:
            session = policy.begin(context)
        except PolicyError:
            raise
        except Exception as error:
            raise PolicyError(f"{_kind(error)}: {explain(error)}") from error
        self.push_async_callback(self._close, session.aclose, "the policy's session")
        return session

    async def _close(self, close: Callable[[], Any], what: str) -> None:
        """Close it; what cannot be closed is logged, for the rollout's result is known by now."""
        try:
            await uninterrupted(close(), self.patience)
        except Exception as error:
            logger.info("%s could not be closed: %s", what, explain(error))


def _kind(error: BaseException) -> str:
    return type(leaves(error)[0]).__name__

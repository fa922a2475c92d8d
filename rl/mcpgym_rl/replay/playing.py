"""Replaying: the recorded turns, played again on a fresh episode by the loop that plays every policy."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

from mcpgym.errors import ConfigurationError, ServerUnavailable
from mcpgym.messages import Message, message_fault
from mcpgym_rl.lanes import Lane
from mcpgym_rl.parse import parse
from mcpgym_rl.policy import ContextFull, EpisodeContext, PolicyError, Turn
from mcpgym_rl.replay.comparing import RECORDING_ENDS, Same, byte_for_byte, compare, same_message, scored, written
from mcpgym_rl.replay.difference import Difference, DifferenceKind, Replayed
from mcpgym_rl.rollout import Limits, rollout
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace

SECONDS = 1_800.0
"""How long one replay may take."""

CONFIGURATION = "the configuration is"
"""How a note begins that says so: an environment has other fields than when the trace was recorded."""

_NOT_RUN = re.compile(r"not run: a rollout may have (\d{1,9}) tool calls")


async def replay(
    traces: Iterable[Trace],
    lane: Lane,
    *,
    rule: Callable[[Trace], Same] | None = None,
    score_tolerance: float = 0.0,
    concurrency: int = 16,
    seconds: float = SECONDS,
) -> AsyncGenerator[Replayed, None]:
    """Replay every trace, ``concurrency`` at a time; the results come in the order of the traces.

    Args:
        traces: what was recorded.
        lane: where episodes are opened; closed by its owner.
        rule: when two texts of a trace's environment are the same; byte for byte without.
        score_tolerance: see :func:`~mcpgym_rl.replay.compare`.
        concurrency: how many replays are under way at once.
        seconds: how long one may take.

    Raises:
        ServerUnavailable: the server of the episodes is gone; the replays under way are cancelled.
        ConfigurationError: what is in ``traces`` is no trace that any rollout could have left.
    """
    waiting: deque[asyncio.Task[Replayed]] = deque()
    numbered = enumerate(traces)
    try:
        while True:
            while len(waiting) < max(concurrency, 1) and (following := next(numbered, None)) is not None:
                number, trace = following
                same = byte_for_byte if rule is None else rule(trace)
                work = replay_trace(
                    trace, lane, number=number, same=same, score_tolerance=score_tolerance, seconds=seconds
                )
                waiting.append(asyncio.create_task(work))
            if not waiting:
                return
            yield await waiting[0]
            waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def replay_trace(
    trace: Trace,
    lane: Lane,
    *,
    number: int = 0,
    same: Same = byte_for_byte,
    score_tolerance: float = 0.0,
    seconds: float = SECONDS,
) -> Replayed:
    """Play the turns of ``trace`` again, on a fresh episode of the same task, and compare what comes back.

    The turns are played as they were written, malformed calls included. The replay stops at the first text that
    differs, for what follows it answers another conversation.

    Args:
        trace: what was recorded.
        lane: where the episode is opened.
        number: the result's ``number``.
        same: when two texts of its environment are the same.
        score_tolerance: by how much a total and a component may differ; 0 for not at all.
        seconds: how long it may take.

    Raises:
        ServerUnavailable: the server of the episodes is gone.
        ConfigurationError: the trace is none that any rollout could have left.
    """
    _must_be_playable(trace, number)
    if not trace.messages and not scored(trace):
        why = "" if trace.error is None else f" ({trace.error.kind})"
        return Replayed(number, trace, None, notes=(f"{trace.stop_reason}{why}: its episode never opened",))
    try:
        again = await rollout(
            _Recording(trace, same),
            lane,
            environment=trace.environment,
            task=trace.task,
            seed=trace.seed,
            config=trace.config,
            limits=_limits(trace, seconds),
            repeat=trace.repeat,
            place=trace.place,
        )
    except ConfigurationError as error:
        return _cannot_open(number, trace, str(error), None)
    if again.error is not None and again.error.kind == ServerUnavailable.__name__:
        raise ServerUnavailable(again.error.message)
    if not again.schema_hash and again.error is not None:  # no episode was opened
        return _cannot_open(number, trace, again.error.message, again)
    differences, observations = compare(trace, again, same=same, score_tolerance=score_tolerance)
    return Replayed(number, trace, again, differences, observations, tuple(_notes(trace, again)))


class _Recording:
    """A policy that writes again what is in a trace."""

    deterministic = True

    def __init__(self, trace: Trace, same: Same) -> None:
        self.trace, self.same = trace, same
        self.name = trace.policy

    def begin(self, context: EpisodeContext) -> _RecordingSession:
        return _RecordingSession(self)

    async def aclose(self) -> None:
        """Nothing is held."""


class _RecordingSession:
    """A trace at work: the turn that stands where the conversation has come to."""

    def __init__(self, recording: _Recording) -> None:
        self._trace, self._same = recording.trace, recording.same
        self._agreed = 0

    async def act(self, messages: Sequence[Message]) -> Turn:
        """The recorded turn after ``messages``.

        Raises:
            ContextFull: the recorded rollout was truncated here.
            PolicyError: there is none, or the conversation is another by now.
        """
        recorded = self._trace.messages
        for at in range(self._agreed, min(len(messages), len(recorded))):
            old, new = recorded[at], messages[at]
            own = self._agreed and old["role"] == new["role"] == "assistant"
            if not own and not same_message(old, new, self._same):
                raise RecordingEnds("the conversation differs from the recorded one")
        self._agreed = at = len(messages)
        if at >= len(recorded):
            if self._trace.stop_reason == StopReason.TRUNCATED and at == len(recorded):
                raise ContextFull("the recorded rollout was truncated here")
            raise RecordingEnds("the recording ends here")
        if recorded[at]["role"] != "assistant":
            raise RecordingEnds("the recorded conversation went on without the policy")
        last = at == len(recorded) - 1
        if last and not scored(self._trace):
            raise RecordingEnds("the recorded rollout was stopped in this turn")
        cut = last and self._trace.stop_reason == StopReason.TRUNCATED
        return Turn(recorded[at], finish="length" if cut else "stop")

    async def aclose(self) -> None:
        """Nothing is held."""


class RecordingEnds(PolicyError):
    """The episode asks for a turn that is not in the recording."""


assert RecordingEnds.__name__ == RECORDING_ENDS


def _limits(trace: Trace, seconds: float) -> Limits:
    """The limits that the recorded rollout ran into; what it did not run into cannot matter."""
    turns = sum(message["role"] == "assistant" for message in trace.messages[trace.prompt_messages :])
    max_turns = turns if trace.stop_reason == StopReason.MAX_TURNS else turns + 1
    return Limits(max_turns=max(max_turns, 1), max_calls=_max_calls(trace), seconds=seconds)


def _max_calls(trace: Trace) -> int | None:
    """How many calls the recorded rollout was allowed, where it wanted as many or more; or how many it came to, where
    it was stopped in the midst of a turn: a call that hung then may hang again, and nothing is known of its answer."""
    answers = [message for message in trace.messages[trace.prompt_messages :] if message["role"] == "tool"]
    for message in reversed(answers):
        refused = _NOT_RUN.fullmatch(message["content"])
        if message.get("is_error") and refused and len(trace.calls) < len(answers):
            return max(int(refused[1]), 1)
    stopped = not scored(trace) and _stopped_within_a_turn(trace)
    return max(len(answers), 1) if stopped or trace.stop_reason == StopReason.MAX_CALLS else None


def _stopped_within_a_turn(trace: Trace) -> bool:
    """Whether the last turn has calls with an answer, and calls without."""
    for answers, message in enumerate(reversed(trace.messages[trace.prompt_messages :])):
        if message["role"] != "tool":
            return message["role"] == "assistant" and 0 < answers < len(parse(message)[1])
    return False


def _must_be_playable(trace: Trace, number: int) -> None:
    """Refuse what no rollout leaves.

    Raises:
        ConfigurationError: it says what and where.
    """
    for place, message in enumerate(trace.messages):
        if (fault := message_fault(message)) is not None:
            raise ConfigurationError(f"trace {number} cannot be replayed: messages[{place}] {fault}")
    if not 0 <= trace.prompt_messages <= len(trace.messages):
        have = len(trace.messages)
        raise ConfigurationError(
            f"trace {number} cannot be replayed: prompt_messages is {trace.prompt_messages}, of {have} messages"
        )


def _cannot_open(number: int, trace: Trace, why: str, again: Trace | None) -> Replayed:
    difference = Difference(DifferenceKind.OPENING, "opening the episode", f"task {trace.task}", why)
    return Replayed(number, trace, again, (difference,))


def _notes(trace: Trace, again: Trace) -> list[str]:
    notes = []
    if trace.environment_version != again.environment_version:
        old, new = trace.environment_version, again.environment_version
        notes.append(f"it was recorded with version {old} of {trace.environment}; this is version {new}")
    if written(trace.config) != written(again.config):
        changed = sorted(
            name for name in {*trace.config, *again.config} if trace.config.get(name) != again.config.get(name)
        )
        notes.append(f"{CONFIGURATION} not stated as it was: {', '.join(changed)}")
    if not scored(trace):
        kind = "" if trace.error is None else f", {trace.error.kind}"
        notes.append(f"it has no score ({trace.stop_reason}{kind}); what there is of it was compared")
    return notes

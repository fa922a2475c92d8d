"""Comparing a recorded rollout with its replay: byte for byte, or by an environment's own rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcpgym.environment import Environment
from mcpgym.errors import EpisodeError
from mcpgym.messages import Message
from mcpgym_rl.replay.difference import Difference, DifferenceKind
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceScore

Same = Callable[[str, str], bool]
"""Whether a recorded text and a replayed one count as the same."""

_MISSING = "nothing"


def byte_for_byte(recorded: str, replayed: str) -> bool:
    """The rule of every reproducible environment."""
    return recorded == replayed


def rule_of(environment: Environment[Any, Any, Any]) -> Same:
    """When two texts of ``environment`` are the same: byte for byte, or as it says itself where it cannot be exact."""
    if environment.reproducible:
        return byte_for_byte

    def same(recorded: str, replayed: str) -> bool:
        try:
            return bool(environment.same_observation(recorded, replayed))
        except Exception as error:
            text = f"{environment.name}: same_observation failed: {type(error).__name__}: {error}"
            raise EpisodeError(text) from error

    return same


def compare(
    recorded: Trace, replayed: Trace, *, same: Same = byte_for_byte, score_tolerance: float = 0.0
) -> tuple[tuple[Difference, ...], int]:
    """Where ``replayed`` differs from ``recorded``, and how many texts of the environment were compared.

    A rollout without a score is compared as far as it goes: it may have been stopped in the middle of a turn.

    Args:
        recorded: the trace.
        replayed: the rollout of the same messages on a fresh episode.
        same: when two texts of the environment are the same.
        score_tolerance: by how much a total and a component may differ; 0 for not at all.
    """
    found: list[Difference] = []
    if recorded.schema_hash != replayed.schema_hash:
        kind, where = DifferenceKind.TOOLS, "the tools, by their schema hash"
        found.append(Difference(kind, where, recorded.schema_hash, replayed.schema_hash))
    prompt = replayed.prompt_messages
    observations, at = 0, 0
    for at, (old, new) in enumerate(zip(recorded.messages, replayed.messages, strict=False)):
        if at >= prompt and old["role"] == new["role"] == "assistant":
            continue
        observations += 1
        if not same_message(old, new, same):
            found.append(_message_differs(recorded, replayed, at))
            return tuple(found), observations
    later = _end(recorded, replayed) or _calls(recorded, replayed, same)
    if later is None and recorded.score is not None:
        assert replayed.score is not None  # else the ends differ
        later = _score(recorded.score, replayed.score, score_tolerance)
    return (*found, *(() if later is None else (later,))), observations


def same_message(old: Message, new: Message, same: Same) -> bool:
    """Whether two messages of an environment say the same: their texts by ``same``, the rest to the letter."""
    rest = [{key: value for key, value in message.items() if key != "content"} for message in (old, new)]
    alike = old["content"] == new["content"] or same(old["content"], new["content"])
    return alike and written(rest[0]) == written(rest[1])


def written(value: Any) -> str:
    """``value`` as JSON text that is equal for equal values only: 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)


def scored(trace: Trace) -> bool:
    """Whether the rollout came to an end of its own, with a score."""
    return trace.score is not None


def where(trace: Trace, at: int) -> tuple[str, int | None]:
    """What ``messages[at]`` of a trace is, in words; and which call it answers, from 1."""
    message = trace.messages[at] if at < len(trace.messages) else None
    if at < trace.prompt_messages:
        return f"the prompt's message {at + 1}", None
    call = sum(message["role"] == "tool" for message in trace.messages[:at])
    turn = sum(message["role"] == "assistant" for message in trace.messages[trace.prompt_messages : at])
    if message is None or message["role"] != "tool":
        return f"after turn {turn}", None
    name, arguments = _asked(trace.messages[:at])
    return f"call {call + 1}, {name}({_short(arguments)}), of turn {turn}", call + 1


def _asked(before: Sequence[Message]) -> tuple[str, str]:
    """Name and arguments of the call that the next tool answer belongs to."""
    for answers, message in enumerate(reversed(before)):
        if message["role"] == "assistant":
            calls: Any = message.get("tool_calls")
            if isinstance(calls, list) and answers < len(calls) and isinstance(calls[answers], Mapping):
                function = calls[answers].get("function")
                if isinstance(function, Mapping):
                    return str(function.get("name")), str(function.get("arguments"))
            break
    return "?", ""


def _message_differs(recorded: Trace, replayed: Trace, at: int) -> Difference:
    old, new = recorded.messages[at], replayed.messages[at]
    if at < replayed.prompt_messages:
        kind = DifferenceKind.PROMPT
    elif "tool" in (old["role"], new["role"]):
        kind = DifferenceKind.OBSERVATION
    else:
        kind = DifferenceKind.REPLY
    place, call = where(replayed, at)
    return Difference(kind, place, _told(old, new), _told(new, old), at, call)


def _told(message: Message, other: Message) -> str:
    """A message's text, with all else of it that the other has not."""
    keys = ("role", "is_error", "name", "tool_call_id")
    plain = {"is_error": False}
    extra = {key: message.get(key, plain.get(key)) for key in keys if message.get(key) != other.get(key)}
    unknown = {key: message[key] for key in message if key not in (*keys, "content")}  # type: ignore[literal-required]
    extra |= {key: value for key, value in unknown.items() if other.get(key) != value}
    if not extra:
        return message["content"]
    return f"[{', '.join(f'{key}: {written(value)}' for key, value in extra.items())}] {message['content']}"


def _end(recorded: Trace, replayed: Trace) -> Difference | None:
    """A difference in where or why the rollouts ended, whose common messages are equal."""
    have, got = len(recorded.messages), len(replayed.messages)
    partial = not scored(recorded)
    if partial and have and recorded.messages[-1]["role"] == "assistant":
        have -= 1  # nothing came back
    if got < have or (got > have and not partial):
        at = min(have, got)
        longer = replayed if got > have else recorded
        place, call = where(longer, at)
        kind = DifferenceKind.REPLY if longer.messages[at]["role"] == "user" else DifferenceKind.END
        return Difference(_failed(replayed, kind), place, _next(recorded, at), _next(replayed, at), at, call)
    if partial:
        return None
    if replayed.score is None or recorded.stop_reason != replayed.stop_reason:
        place, _ = where(recorded, have)
        kind = _failed(replayed, DifferenceKind.END)
        return Difference(kind, f"the end, {place}", _ending(recorded), _ending(replayed), have)
    return None


def _next(trace: Trace, at: int) -> str:
    if at == len(trace.messages):
        return _ending(trace)
    message = trace.messages[at]
    if message["role"] == "assistant":
        return "the policy's next turn"
    return message["content"]


def _ending(trace: Trace) -> str:
    if trace.error is not None:
        if trace.error.kind == RECORDING_ENDS:
            return "the episode goes on"
        return f"{trace.stop_reason}: {trace.error.message}"
    return f"the rollout ended: {trace.stop_reason}"


RECORDING_ENDS = "RecordingEnds"
"""The kind of error of a replay whose episode goes on after the last recorded turn."""


def _failed(replayed: Trace, kind: DifferenceKind) -> DifferenceKind:
    """``kind``, or that the environment broke where it did."""
    broke = replayed.stop_reason in (StopReason.ENVIRONMENT_FAILED, StopReason.TIMED_OUT)
    return DifferenceKind.FAILURE if broke else kind


def _calls(recorded: Trace, replayed: Trace, same: Same) -> Difference | None:
    """A difference between the lists of calls."""
    for number, (old, new) in enumerate(zip(recorded.calls, replayed.calls, strict=False), 1):
        what = f"call {number} in the list of calls"
        for name, mine, theirs in (
            ("name", old.name, new.name),
            ("arguments", old.arguments, new.arguments),
            ("is_error", old.is_error, new.is_error),
        ):
            if (before := written(mine)) != (now := written(theirs)):
                return Difference(DifferenceKind.CALLS, f"{what}, {name}", before, now, call=number)
        if old.result != new.result and not (isinstance(old.result, str) and same(old.result, new.result)):
            return Difference(DifferenceKind.CALLS, f"{what}, result", str(old.result), new.result, call=number)
    have, got = len(recorded.calls), len(replayed.calls)
    if got < have or (got > have and scored(recorded)):
        return Difference(DifferenceKind.CALLS, "the list of calls", f"{have} calls", f"{got} calls")
    return None


def _score(old: TraceScore, new: TraceScore, tolerance: float) -> Difference | None:
    """The first part of the score that differs: a component, for it says why, then the total, then the outcome."""
    before = old.components if isinstance(old.components, Mapping) else {}
    parts = [(f"the component {name}", before.get(name, _MISSING), new.components.get(name, _MISSING))
             for name in [*before, *(name for name in new.components if name not in before)]]  # fmt: skip
    parts += [("the total", old.total, new.total), ("the game's outcome", old.game_outcome, new.game_outcome)]
    for what, mine, theirs in parts:
        if not _same_value(mine, theirs, tolerance):
            return Difference(DifferenceKind.SCORE, what, _value(mine), _value(theirs))
    return None


def _same_value(old: Any, new: Any, tolerance: float) -> bool:
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (old, new))
    if numbers:
        return bool(old == new or abs(old - new) <= tolerance)
    return type(old) is type(new) and bool(old == new)


def _value(value: Any) -> str:
    return _MISSING if value is _MISSING else written(value)


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"

"""What is told of one episode while it is played: spans, and lines in the log. Made only where somebody asked."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextvars import Token
from typing import TYPE_CHECKING, Any, cast

from mcpgym.telemetry import switch
from mcpgym.telemetry.calls import CallKind
from mcpgym.telemetry.context import CURRENT, Context, Way, new_span, new_trace
from mcpgym.telemetry.sections import Section, Template, named
from mcpgym.telemetry.spans import Kind, Owner, Shape, Value, digest

if TYPE_CHECKING:
    from mcpgym.calls import CallRecord
    from mcpgym.episode import Episode
    from mcpgym.rewards import Score
    from mcpgym.telemetry.recorder import Recorder

events = logging.getLogger("mcpgym.events")
_UNKNOWN = "_unknown"
"""In place of a tool's name that is none: a policy may have written anything there."""


class Watch:
    """What is told of ``episode``: by its ``called``, ``scoring``, ``scored`` and ``closed``."""

    __slots__ = (
        "_episode",
        "_is_error",
        "_kind",
        "_known",
        "_owner",
        "_parent",
        "_recorder",
        "_started",
        "_tool",
        "_whose",
        "caller",
        "name",
    )

    def __init__(self, episode: Episode, recorder: Recorder | None) -> None:
        self._episode, self._recorder = episode, recorder
        self.name = digest(episode.token)
        self._started = time.time_ns()
        self._known: dict[tuple[str, bool, Way], CallKind] = {}
        self._owner: Owner | None = None
        self._parent: Context | None = None
        self._kind: CallKind | None = None
        """Of the last call, and of those like it; None where it is not a recorded child of the episode's span."""
        self._tool: str | None = None
        self._is_error = False
        self._whose: Context | None = None
        self.caller: Context | None = None
        """Who makes the call that is answered now, where ``CURRENT`` is not set for it."""
        if recorder is not None:
            self._begin(recorder)
        if switch.events:
            self._log("episode_opened", task=episode.task.id)

    def _begin(self, recorder: Recorder) -> None:
        caller = CURRENT.get()
        self._parent = caller if caller is not None and caller.trace else recorder.outside()
        trace = new_trace() if self._parent is None else self._parent.trace
        sampled = recorder.samples(self._parent, trace, "episode")
        self._owner = Owner({"mcpgym.episode": self.name}, Context(trace, new_span(), sampled))

    def called(self, record: CallRecord) -> None:
        """A call was answered. (Most are like the one before; what is read here is not in the processor's caches.)"""
        if (recorder := self._recorder) is not None:
            name, _, _, is_error, milliseconds = record
            caller = self.caller or CURRENT.get()
            if name is not self._tool or is_error is not self._is_error or caller is not self._whose:
                self._tool, self._is_error, self._whose = name, is_error, caller
                self._kind = self._kind_of(name, is_error, caller)
            if self._kind is None:
                self._child(record, caller)
            elif len(recorder.calls) < recorder.many or recorder.has_room():
                recorder.calls.extend((self._kind, milliseconds, time.time_ns()))
        if switch.events:
            known = record.name in self._episode.environment.tools
            self._log(
                "call",
                tool=record.name if known else _UNKNOWN,
                milliseconds=round(record.milliseconds, 3),
                outcome="error" if record.is_error else "ok",
            )

    def _kind_of(self, name: str, is_error: bool, caller: Context | None) -> CallKind | None:
        """Such calls, if they are children of the episode's span that are recorded."""
        owner = self._owner
        if owner is None or not owner.span.sampled or (caller is not None and caller.trace):
            return None
        way: Way = "" if caller is None else caller.way
        kind = self._known.get((name, is_error, way))
        if kind is None and name not in self._episode.environment.tools:
            name = _UNKNOWN
            kind = self._known.get((name, is_error, way))
        if kind is None:
            kind = self._known[name, is_error, way] = CallKind(owner, self._shape(name, is_error, way))
        return kind

    def _child(self, record: CallRecord, caller: Context | None) -> None:
        """A child of its caller's span, if it has one."""
        recorder = self._recorder
        if recorder is None or caller is None or not caller.trace:
            return
        name, _, _, is_error, milliseconds = record
        if caller.sampled if not caller.remote else recorder.samples(caller, caller.trace, "tools/call"):
            end = time.time_ns()
            shape = self._shape(name, is_error, caller.way)
            start = end - int(milliseconds * 1e6)
            recorder.end((caller.trace, new_span(), caller, start, end, shape, self._owner, None))

    def _shape(self, name: str, is_error: bool, way: Way) -> Shape:
        """The shape of such a call, which all episodes of the environment share."""
        environment, shapes = self._episode.environment, cast("Recorder", self._recorder).shapes
        key = (environment.name, name if name in environment.tools else _UNKNOWN, is_error, way)
        return shapes.get(key) or shapes.setdefault(key, _call_shape(*key))

    def section(self, name: str) -> Section | None:
        """A span of this episode around a ``with`` block."""
        if self._recorder is None or self._owner is None:
            return None
        return EpisodeSection(self._recorder, named(name), self._owner)

    def scored(self, score: Score) -> None:
        """The episode was scored."""
        if switch.events:
            self._log("episode_scored", score=score.total, outcome="incomplete" if score.total is None else "ok")

    def closed(self, why: str) -> None:
        """The episode has ended."""
        episode, reason = self._episode, why.split(" ")[0]
        if self._owner is not None and self._recorder is not None and self._owner.span.sampled:
            own: dict[str, Value] = {
                "mcpgym.task": episode.task.id,
                "mcpgym.split": episode.task.split,
                "mcpgym.calls": len(episode.calls),
                "mcpgym.stop_reason": episode.stop_reason or "",
                "mcpgym.ended": reason,
            }
            key = (episode.environment.name, episode.failure is not None)
            shape = self._recorder.shapes.get(key)
            if shape is None:
                shape = self._recorder.shapes[key] = _episode_shape(episode, failed=key[1])
            span = self._owner.span
            ended = (span.trace, span.span, self._parent, self._started, time.time_ns(), shape, self._owner, own)
            self._recorder.end(ended)
        if switch.events:
            outcome = "failed" if episode.failure is not None else episode.stop_reason or reason
            self._log("episode_ended", calls=len(episode.calls), ended=reason, outcome=outcome)

    def _log(self, event: str, **fields: Any) -> None:
        about = {"episode": self.name, "environment": self._episode.environment.name, **fields}
        events.info(event, extra={"event": about})


class EpisodeSection(Section):
    """A section whose parent is the episode's span where no caller named one."""

    __slots__ = ("_before",)

    def __init__(self, recorder: Recorder, template: Template, owner: Owner) -> None:
        super().__init__(recorder, template, owner=owner)
        self._before: Token[Context | None] | None = None

    def __enter__(self) -> Section:
        current = CURRENT.get()
        if current is not None and current.trace:
            return super().__enter__()
        assert self.owner is not None
        self._before = CURRENT.set(self.owner.span)
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        if self._before is not None:
            CURRENT.reset(self._before)


def watch(episode: Episode) -> Watch | None:
    """What is told of ``episode``; None where nobody asked."""
    if switch.recorder is None and not switch.events:
        return None
    return Watch(episode, switch.recorder)


def _call_shape(environment: str, tool: str, is_error: bool, way: str) -> Shape:
    about: Mapping[str, Value] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "mcpgym.environment": environment,
        **({"error.type": "tool_error"} if is_error else {}),
    }
    if way != "mcp":
        return Shape(f"execute_tool {tool}", Kind.SERVER if way else Kind.INTERNAL, about, failed=is_error)
    return Shape(f"tools/call {tool}", Kind.SERVER, {"mcp.method.name": "tools/call", **about}, failed=is_error)


def _episode_shape(episode: Episode, *, failed: bool) -> Shape:
    made = episode.environment
    about: dict[str, Value] = {"mcpgym.environment": made.name, "mcpgym.environment.version": made.version}
    if failed:
        about["error.type"] = "environment"
    return Shape(f"episode {made.name}", Kind.INTERNAL, about, failed=failed)

"""Spans around a piece of code: ``with section("turn"):``. Free of charge, almost, while telemetry is off."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING

from mcpgym.telemetry import switch
from mcpgym.telemetry.context import CURRENT, Context, new_span, new_trace
from mcpgym.telemetry.spans import Attributes, Ended, Kind, Owner, Shape, Value

if TYPE_CHECKING:
    from mcpgym.telemetry.recorder import Recorder

_SHAPES: dict[tuple[str, Kind, bool], Shape] = {}
_MAX_SHAPES = 1024


class Section:
    """A span under way. Others that begin within it, here or in a server that is called, are its children.

    With ``shared``, OpenTelemetry's own context names it as well: for instrumented libraries that are used within.
    """

    def __init__(self, recorder: Recorder, name: str, kind: Kind, *, shared: bool, owner: Owner | None = None) -> None:
        self._recorder, self.name, self.kind, self._shared = recorder, name, kind, shared
        self.owner = owner
        self._own: dict[str, Value] = {}

    def note(self, attributes: Attributes) -> None:
        """Say more of it."""
        self._own |= attributes

    def fail(self, kind: str) -> None:
        """It failed: ``error.type``, never an error's text."""
        self._own["error.type"] = kind

    def __enter__(self) -> Section:
        parent = CURRENT.get()
        self.parent = (parent if parent.trace else None) if parent is not None else self._recorder.outside()
        trace = new_trace() if self.parent is None else self.parent.trace
        sampled = self._recorder.samples(self.parent, trace, self.name)
        self.context = Context(trace, new_span(), sampled)
        self._token: Token[Context | None] = CURRENT.set(self.context)
        self._attached = self._recorder.attach(self.context) if self._shared else None
        self._start = time.time_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        end = time.time_ns()
        if self._attached is not None:
            self._recorder.detach(self._attached)
        CURRENT.reset(self._token)
        if not self.context.sampled:
            return
        if kind is not None:
            self._own.setdefault("error.type", kind.__name__)
        shape = _shape(self.name, self.kind, "error.type" in self._own)
        ended = Ended(
            self.context.trace, self.context.span, self.parent, self._start, end, shape, self.owner, self._own or None
        )
        self._recorder.end(ended)


class _Nothing:
    """In the place of a section while telemetry is off."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


NOTHING = _Nothing()


def section(name: str, kind: Kind = Kind.INTERNAL, *, shared: bool = False) -> Section | _Nothing:
    """A span around a ``with`` block, which gets the :class:`Section`; None while telemetry is off."""
    recorder = switch.recorder
    return NOTHING if recorder is None else Section(recorder, name, kind, shared=shared)


@contextlib.contextmanager
def shared(context: Context | None) -> Iterator[None]:
    """Make ``context`` OpenTelemetry's current span meanwhile: for what passes that on by itself."""
    recorder = switch.recorder
    if recorder is None or context is None or not context.trace:
        yield
        return
    token = recorder.attach(context)
    try:
        yield
    finally:
        recorder.detach(token)


def _shape(name: str, kind: Kind, failed: bool) -> Shape:
    key = (name, kind, failed)
    if (known := _SHAPES.get(key)) is None:
        if len(_SHAPES) >= _MAX_SHAPES:
            _SHAPES.clear()
        known = _SHAPES[key] = Shape(name, kind, {}, failed=failed)
    return known

"""Spans around a piece of code: ``with section(TURN):``. Almost free of charge while telemetry is off."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import Token
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mcpgym.telemetry import switch
from mcpgym.telemetry.context import CURRENT, Context, new_span, new_trace
from mcpgym.telemetry.spans import Attributes, Kind, Owner, Shape, Value

if TYPE_CHECKING:
    from mcpgym.telemetry.recorder import Recorder


class Template:
    """What all sections of one kind have in common."""

    __slots__ = ("failed", "fine", "name")

    def __init__(self, name: str, kind: Kind = Kind.INTERNAL, attributes: Attributes | None = None) -> None:
        self.name = name
        self.fine, self.failed = (Shape(name, kind, attributes or {}, failed=failed) for failed in (False, True))


class Section:
    """A span under way. Others that begin within it, here or in a server that is called, are its children.

    With ``shared``, OpenTelemetry's own context names it as well: for instrumented libraries that are used within.
    """

    __slots__ = (
        "_attached",
        "_error",
        "_own",
        "_recorder",
        "_shared",
        "_start",
        "_token",
        "context",
        "owner",
        "parent",
        "template",
    )

    def __init__(
        self, recorder: Recorder, template: Template, *, shared: bool = False, owner: Owner | None = None
    ) -> None:
        self._recorder, self.template, self._shared, self.owner = recorder, template, shared, owner
        self._own: dict[str, Value] | None = None
        self._error: str | None = None
        self._attached: Token[Any] | None = None

    def note(self, attributes: Attributes) -> None:
        """Say more of it."""
        self._own = {**(self._own or {}), **attributes}

    def fail(self, kind: str) -> None:
        """It failed: ``error.type``, never an error's text."""
        self._error = kind

    def __enter__(self) -> Section:
        recorder, parent = self._recorder, CURRENT.get()
        if parent is None:
            parent = recorder.outside()
        elif not parent.trace:
            parent = None
        trace = new_trace() if parent is None else parent.trace
        self.parent = parent
        self.context = context = Context(trace, new_span(), recorder.samples(parent, trace, self.template.name))
        self._token: Token[Context | None] = CURRENT.set(context)
        if self._shared and recorder.others():
            self._attached = recorder.attach(context)
        self._start = time.time_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        end = time.time_ns()
        if self._attached is not None:
            self._recorder.detach(self._attached)
        CURRENT.reset(self._token)
        context, shape = self.context, self.template.fine
        if not context.sampled:
            return
        if self._error is not None or kind is not None:
            shape = self.template.failed
            self.note({"error.type": self._error or kind.__name__})  # type: ignore[union-attr]
        self._recorder.end((context.trace, context.span, self.parent, self._start, end, shape, self.owner, self._own))


class Nothing:
    """In the place of a section while telemetry is off."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


NOTHING = Nothing()


def section(template: Template, *, shared: bool = False) -> Section | Nothing:
    """A span around a ``with`` block, which gets the :class:`Section`; None while telemetry is off."""
    recorder = switch.recorder
    return NOTHING if recorder is None else Section(recorder, template, shared=shared)


@lru_cache(1024)
def named(name: str, kind: Kind = Kind.INTERNAL, about: tuple[tuple[str, Value], ...] = ()) -> Template:
    """The template of that name and those attributes, made once."""
    return Template(name, kind, dict(about))


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

"""The way out of spans: sampled when they begin, queued when they end, exported in batches by a thread.

Imports OpenTelemetry's API; its SDK only where spans are exported.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from itertools import chain
from typing import TYPE_CHECKING, Any

from opentelemetry import context as shared_context
from opentelemetry import trace as shared_trace

from mcpgym.telemetry import otlp
from mcpgym.telemetry.calls import FIELDS, Calls
from mcpgym.telemetry.context import Context
from mcpgym.telemetry.spans import Attributes, Ended, Kind, Shape

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.sdk.trace.sampling import Sampler

logger = logging.getLogger(__name__)

SCOPE = "mcpgym"
MAX_QUEUE = 16_384
MAX_BATCH = 2_048
"""More than the SDK's 512: a request costs a collector and us the same whatever is in it. About half a megabyte."""
DELAY_SECONDS = 5.0
COMPLAIN_SECONDS = 60.0


class Recorder:
    """Samples, keeps and exports spans.

    Args:
        exporters: the SDK's, or anybody's; each gets every batch.
        sampler: the SDK's, or anybody's. It is asked where a trace begins, and about callers elsewhere; the rest of a
            trace follows its beginning.
        resource: what the spans are of (``service.name`` and so on).
    """

    def __init__(self, exporters: Sequence[SpanExporter], sampler: Sampler, resource: Resource) -> None:
        from opentelemetry.sdk.trace.sampling import Decision, ParentBased

        self._sends = [_sending(exporter, resource) for exporter in exporters]
        self._exporters = exporters
        self._sampler, self._recorded = sampler, Decision.RECORD_AND_SAMPLE
        self._follows_callers = isinstance(sampler, ParentBased)
        self._most = _number("OTEL_BSP_MAX_QUEUE_SIZE", MAX_QUEUE)
        self.batch = min(_number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", min(MAX_BATCH, self._most)), self._most)
        """How many spans are exported at once."""
        self._delay = _number("OTEL_BSP_SCHEDULE_DELAY", round(DELAY_SECONDS * 1e3)) / 1e3
        self._queue: deque[Ended] = deque()
        self.calls: list[Any] = []
        """Calls that are no spans yet, each with its ``FIELDS``: who adds one asks first whether there is room."""
        self.many = self.batch * FIELDS
        """How long ``calls`` is when :meth:`has_room` must be asked."""
        self._wake, self._over = threading.Event(), threading.Event()
        self._exporting = threading.Lock()
        self._lost = 0
        self._quiet_until = 0.0
        self.shapes: dict[Any, Shape] = {}
        """Shapes of spans that are made again and again, for those who make them."""
        self._thread = threading.Thread(target=self._run, name="mcpgym telemetry", daemon=True)
        self._thread.start()

    def end(self, span: Ended) -> None:
        """Take a span that is over. With the queue full it is lost, which the log says."""
        queue = self._queue
        if len(queue) >= self._most:
            self._lost += 1
            return
        queue.append(span)
        if len(queue) == self.batch:
            self._wake.set()

    def has_room(self) -> bool:
        """Whether one more call can wait, now that ``many`` do, which are exported soon. Else it counts as lost."""
        if len(self.calls) >= self._most * FIELDS:
            self._lost += 1
            return False
        if not self._wake.is_set():
            self._wake.set()
        return True

    def samples(self, parent: Context | None, trace: bytes, name: str) -> bool:
        """Whether a span is recorded. Where the sampler fails it is not, which the log says."""
        if parent is not None and (not parent.remote or self._follows_callers):
            return parent.sampled
        above = shared_context.Context()
        if parent is not None:
            above = shared_trace.set_span_in_context(_as_shared(parent), above)
        try:
            found = self._sampler.should_sample(above, int.from_bytes(trace, "big"), name)
        except Exception as error:  # somebody's: no call fails for it
            self._complain("spans could not be sampled: %s", type(error).__name__)
            return False
        return found.decision is self._recorded

    def outside(self) -> Context | None:
        """The span that OpenTelemetry says is current: whoever uses us as a library may have one."""
        current = shared_trace.get_current_span().get_span_context()
        if not current.is_valid:
            return None
        trace, span = current.trace_id.to_bytes(16, "big"), current.span_id.to_bytes(8, "big")
        return Context(trace, span, current.trace_flags.sampled, current.is_remote)

    def others(self) -> bool:
        """Whether anybody else in this process makes spans, whose parents ours may be."""
        return not isinstance(shared_trace.get_tracer_provider(), shared_trace.ProxyTracerProvider)

    def attach(self, context: Context) -> Token[Any]:
        """Make it OpenTelemetry's current span as well."""
        return shared_context.attach(shared_trace.set_span_in_context(_as_shared(context)))

    def detach(self, token: Token[Any]) -> None:
        """Undo :meth:`attach`."""
        shared_context.detach(token)

    def flush(self) -> None:
        """Export what there is; returns when it has been tried."""
        self._export(all_of_it=True)

    def shutdown(self, seconds: float) -> None:
        """Export what is left, within ``seconds``, and end."""
        self._over.set()
        self._wake.set()
        self._thread.join(seconds)
        if self._thread.is_alive():
            logger.warning("the telemetry backend did not take the last spans within %g s", seconds)
        for exporter in self._exporters:
            try:
                exporter.shutdown()
            except Exception as error:
                logger.warning("a span exporter could not be shut down: %s", type(error).__name__)

    def _run(self) -> None:
        token = shared_context.attach(shared_context.set_value("suppress_instrumentation", True))
        try:
            while not self._over.is_set():
                full = self._wake.wait(self._delay)
                self._wake.clear()
                self._export(all_of_it=not full)
            self._export(all_of_it=True)
        finally:
            shared_context.detach(token)

    def _export(self, *, all_of_it: bool) -> None:
        least = 1 if all_of_it else self.batch
        with self._exporting:
            while max(len(self._queue), len(self.calls) // FIELDS) >= least:
                spans, calls = self._taken()
                for send in self._sends:
                    try:
                        send(spans, calls)
                    except Exception as error:
                        self._complain("spans could not be exported: %s", type(error).__name__)
            if self._lost:
                lost, self._lost = self._lost, 0
                self._complain("%d spans were lost: more came than the backend took", lost)

    def _taken(self) -> tuple[list[Ended], Calls]:
        """A batch. (Others add to it meanwhile, each in one step of the interpreter.)"""
        spans = [self._queue.popleft() for _ in range(min(self.batch, len(self._queue)))]
        waited = self.calls[: (self.batch - len(spans)) * FIELDS]
        del self.calls[: len(waited)]
        return spans, Calls(waited)

    def _complain(self, text: str, what: object) -> None:
        if (now := time.monotonic()) >= self._quiet_until:
            self._quiet_until = now + COMPLAIN_SECONDS
            logger.warning(text, what)


def _sending(exporter: SpanExporter, resource: Resource) -> Callable[[Sequence[Ended], Calls], object]:
    """How ``exporter`` gets a batch: OTLP over HTTP as bytes, any other as the SDK's read-only spans."""
    kind = type(exporter)
    client = getattr(exporter, "_client", None)
    if kind.__module__ == "opentelemetry.exporter.otlp.proto.http.trace_exporter" and callable(
        getattr(client, "export", None)
    ):
        what = otlp.attributes(_plain(resource.attributes), 1)
        scope = otlp.field(1, SCOPE.encode()) + otlp.field(2, _version().encode())
        return lambda spans, calls: client.export(otlp.request(what, scope, spans, calls))  # type: ignore[union-attr]
    return lambda spans, calls: exporter.export([_readable(span, resource) for span in chain(spans, calls.spans())])


def _readable(span: Ended, resource: Resource) -> ReadableSpan:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode

    kinds = {Kind.INTERNAL: SpanKind.INTERNAL, Kind.SERVER: SpanKind.SERVER, Kind.CLIENT: SpanKind.CLIENT}
    trace, own_id, parent, start, end, shape, owner, own = span
    common = {} if owner is None else owner.attributes
    elsewhere = owner is not None and owner.span.trace != trace
    links = [Link(_as_shared(owner.span).get_span_context())] if owner is not None and elsewhere else []
    return ReadableSpan(
        name=shape.name,
        context=_as_shared(Context(trace, own_id, True)).get_span_context(),
        parent=None if parent is None else _as_shared(parent).get_span_context(),
        resource=resource,
        attributes={**shape.attributes, **common, **(own or {})},
        links=links,
        kind=kinds[shape.kind],
        status=Status(StatusCode.ERROR if shape.failed else StatusCode.UNSET),
        start_time=start,
        end_time=end,
        instrumentation_scope=InstrumentationScope(SCOPE, _version()),
    )


def _as_shared(context: Context) -> shared_trace.Span:
    flags = shared_trace.TraceFlags(shared_trace.TraceFlags.SAMPLED if context.sampled else 0)
    trace, span = int.from_bytes(context.trace, "big"), int.from_bytes(context.span, "big")
    return shared_trace.NonRecordingSpan(shared_trace.SpanContext(trace, span, context.remote, flags))


def _plain(given: Mapping[str, Any]) -> Attributes:
    known = (str, bool, int, float)
    return {
        name: value if isinstance(value, known) else tuple(str(item) for item in value)
        for name, value in given.items()
        if isinstance(value, (*known, list, tuple))
    }


def _number(variable: str, default: int) -> int:
    """A positive number from the environment; what is none counts as not given, as the SDK has it."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if text.isdigit() and int(text) > 0:
        return int(text)
    logger.warning("%s is no number above 0; %d is taken", variable, default)
    return default


def _version() -> str:
    from mcpgym import __version__

    return __version__

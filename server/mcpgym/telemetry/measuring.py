"""OpenTelemetry metrics of the episodes of a process: counted where they are counted anyway, read when exported."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricReader,
    MetricsData,
    PeriodicExportingMetricReader,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from mcpgym.tally import BOUNDS

if TYPE_CHECKING:
    from mcpgym.episodes import Episodes
    from mcpgym.metrics import LoopLag

logger = logging.getLogger(__name__)

SCOPE = "mcpgym"
DURATION = "mcpgym.tool_call.duration"


class Measuring:
    """Exports metrics now and then (``OTEL_METRIC_EXPORT_INTERVAL``)."""

    def __init__(self, exporters: Sequence[MetricExporter | MetricReader], resource: Resource) -> None:
        self._watched: WeakSet[Episodes] = WeakSet()
        self._lags: WeakSet[LoopLag] = WeakSet()
        self._began = time.time_ns()
        readers: list[MetricReader] = [
            exporter
            if isinstance(exporter, MetricReader)
            else PeriodicExportingMetricReader(_WithDurations(exporter, self._durations, resource))
            for exporter in exporters
        ]
        self._provider = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        meter = self._provider.get_meter(SCOPE)

        def counter(name: str, unit: str, what: str, read: Callable[[Episodes], Iterable[Observation]]) -> None:
            def observed(_: CallbackOptions) -> Iterable[Observation]:
                return [seen for episodes in list(self._watched) for seen in read(episodes)]

            make: Any = meter.create_observable_up_down_counter if name.endswith("live") else None
            (make or meter.create_observable_counter)(name, [observed], unit, what)

        counter("mcpgym.episodes.live", "{episode}", "Episodes that are open now.", _live)
        counter("mcpgym.episodes.opened", "{episode}", "Episodes opened.", lambda e: [Observation(e.counters.opened)])
        counter("mcpgym.episodes.scored", "{score}", "Scores given.", lambda e: [Observation(e.counters.scored)])
        counter("mcpgym.episodes.ended", "{episode}", "Episodes ended, by reason.", _ended)
        counter("mcpgym.tool_call.errors", "{call}", "Tool calls answered with an error.", _errors)
        meter.create_observable_gauge(
            "mcpgym.event_loop.lag",
            [lambda _: [Observation(lag.latest) for lag in list(self._lags)]],
            "s",
            "How late the event loop ran last.",
        )

    def watch(self, episodes: Episodes) -> None:
        """Count these episodes too, for as long as they are there."""
        self._watched.add(episodes)

    def watch_lag(self, lag: LoopLag) -> None:
        """Tell of this event loop's lag."""
        self._lags.add(lag)

    def flush(self) -> None:
        """Export what there is."""
        self._provider.force_flush(5_000)

    def shutdown(self, seconds: float) -> None:
        """Export a last time, within ``seconds``, and end."""
        last = threading.Thread(target=self._shut_down, name="mcpgym telemetry end", daemon=True)
        last.start()
        last.join(seconds)  # the SDK's own limit does not hold while a backend is tried again

    def _shut_down(self) -> None:
        try:
            self._provider.shutdown(5_000)
        except Exception as error:
            logger.warning("the last metrics could not be exported: %s", type(error).__name__)

    def _durations(self) -> Metric | None:
        points = []
        now = time.time_ns()
        for episodes in list(self._watched):
            for name, tally in list(episodes.counters.tallies.items()):
                counts, total = tally.snapshot()
                if not any(counts):
                    continue
                points.append(
                    HistogramDataPoint(
                        {"mcpgym.environment": name, "gen_ai.operation.name": "execute_tool"},
                        self._began, now, sum(counts), total, counts, BOUNDS, tally.least, tally.most,
                    )
                )  # fmt: skip
        if not points:
            return None
        data = Histogram(points, AggregationTemporality.CUMULATIVE)
        return Metric(DURATION, "Time inside the environment of a tool call.", "s", data)


class _WithDurations(MetricExporter):
    """An exporter that gets the durations of calls as well: recording each in an instrument would cost a whole call."""

    def __init__(self, exporter: MetricExporter, durations: Callable[[], Metric | None], resource: Resource) -> None:
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self._exporter, self._durations, self._resource = exporter, durations, resource

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **more: Any) -> MetricExportResult:
        """All that the SDK collected, and the durations."""
        if (found := self._durations()) is not None:
            scopes = [scope for resource in metrics_data.resource_metrics for scope in resource.scope_metrics]
            ours = [metric for scope in scopes if scope.scope.name == SCOPE for metric in scope.metrics]
            others = [scope for scope in scopes if scope.scope.name != SCOPE]
            whole = ScopeMetrics(InstrumentationScope(SCOPE), [*ours, found], "")  # exporters take a scope once
            metrics_data = MetricsData([ResourceMetrics(self._resource, [*others, whole], "")])
        return self._exporter.export(metrics_data, timeout_millis, **more)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """The exporter's own."""
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **more: Any) -> None:
        """The exporter's own."""
        self._exporter.shutdown(timeout_millis, **more)


def _live(episodes: Episodes) -> Iterable[Observation]:
    return [Observation(t.live, {"mcpgym.environment": name}) for name, t in list(episodes.counters.tallies.items())]


def _errors(episodes: Episodes) -> Iterable[Observation]:
    return [Observation(t.errors, {"mcpgym.environment": name}) for name, t in list(episodes.counters.tallies.items())]


def _ended(episodes: Episodes) -> Iterable[Observation]:
    return [Observation(n, {"mcpgym.ended": reason}) for reason, n in list(episodes.counters.ended.items())]

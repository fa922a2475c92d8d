"""Telemetry from the standard ``OTEL_*`` variables: whether, where to, how much.

It is on where a variable names an exporter or an OTLP endpoint, and ``OTEL_SDK_DISABLED`` is not ``true``. Where
nothing says otherwise, OTLP goes over HTTP, as the specification has it. ``OTEL_TRACES_SAMPLER``, ``OTEL_BSP_*``,
``OTEL_EXPORTER_OTLP_*``, ``OTEL_METRIC_EXPORT_*``, ``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES`` mean what
they mean everywhere.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from mcpgym.telemetry import switch

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.sdk.trace.sampling import Sampler

logger = logging.getLogger(__name__)

EXTRA = "pip install 'mcpgym[otel]'"
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
SHUTDOWN_SECONDS = 5.0
"""How long a backend may take for what is left at the end."""
Signal = Literal["traces", "metrics"]


@contextmanager
def telemetry(service: str, instance: str | None = None) -> Iterator[None]:
    """Telemetry while inside, if the environment asks for it; what is left goes out on leaving, however that comes.

    What is wrong with a setting is said in the log, and the work goes on without telemetry.

    Args:
        service: ``service.name``, where ``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES`` name none.
        instance: ``service.instance.id``, which keeps the metrics of processes of one service apart.
    """
    wanted: dict[Signal, list[str]] = {signal: exporter_names(signal) for signal in ("traces", "metrics")}
    if not any(wanted.values()) or switch.recorder is not None or switch.measuring is not None:
        yield
        return
    try:
        spans = [_made("traces", name) for name in wanted["traces"]]
        metrics = [_made("metrics", name) for name in wanted["metrics"]]
    except ModuleNotFoundError as error:
        logger.warning("OTEL_* variables ask for telemetry; there is none, %s is missing: %s", error.name, EXTRA)
        yield
        return
    except LookupError as error:
        logger.warning("there is no telemetry: %s", error)
        yield
        return
    begin(spans, metrics, service=service, instance=instance)
    try:
        yield
    finally:
        end()


def begin(
    spans: Sequence[SpanExporter],
    metrics: Sequence[MetricExporter] = (),
    *,
    service: str = "mcpgym",
    instance: str | None = None,
    sampler: Sampler | None = None,
) -> None:
    """Switch telemetry on, for this process.

    Args:
        spans: where spans go; none of them are made without.
        metrics: where metrics go.
        service: ``service.name``, where the environment names none.
        instance: ``service.instance.id``, where it names none.
        sampler: the environment's (``OTEL_TRACES_SAMPLER``) unless given.
    """
    from opentelemetry.sdk.trace import TracerProvider

    from mcpgym.telemetry.measuring import Measuring
    from mcpgym.telemetry.recorder import Recorder

    resource = _resource(service, instance)
    if spans:
        chosen = sampler or TracerProvider(resource=resource, shutdown_on_exit=False).sampler
        switch.recorder = Recorder(spans, chosen, resource)
    if metrics:
        switch.measuring = Measuring(metrics, resource)


def end(seconds: float = SHUTDOWN_SECONDS) -> None:
    """Export what is left, within about ``seconds``, and switch telemetry off."""
    recorder, switch.recorder = switch.recorder, None
    measuring, switch.measuring = switch.measuring, None
    if recorder is not None:
        recorder.shutdown(seconds)
    if measuring is not None:
        measuring.shutdown(seconds)


def flush() -> None:
    """Export what there is now."""
    if switch.recorder is not None:
        switch.recorder.flush()
    if switch.measuring is not None:
        switch.measuring.flush()


def exporter_names(signal: Signal, variables: Mapping[str, str] | None = None) -> list[str]:
    """The exporters that the environment asks for; none is none."""
    given = os.environ if variables is None else variables
    if given.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    names = given.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip()
    if names:
        return [name.strip() for name in names.split(",") if name.strip() not in ("", "none")]
    places = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return ["otlp"] if any(given.get(place, "").strip() for place in places) else []


def _made(signal: Signal, name: str) -> Any:
    if name == "otlp":
        variables = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
        protocols = [os.environ.get(variable, "").strip() for variable in variables]
        protocol = next(filter(None, protocols), "http/protobuf")
        if protocol not in _OTLP:
            raise LookupError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}; there is: {', '.join(_OTLP)}")
        name = _OTLP[protocol]
        if name == "otlp_proto_grpc" and not entry_points(group=f"opentelemetry_{signal}_exporter", name=name):
            raise LookupError("OTLP over grpc needs: pip install opentelemetry-exporter-otlp-proto-grpc")
    group = f"opentelemetry_{signal}_exporter"
    found = entry_points(group=group, name=name)
    if not found:
        import opentelemetry.sdk  # noqa: F401  (a ModuleNotFoundError says what is missing)

        known = ", ".join(sorted({entry.name for entry in entry_points(group=group)} | {"otlp"}))
        raise LookupError(f"OTEL_{signal.upper()}_EXPORTER names {name!r}; installed are: {known}")
    made = next(iter(found)).load()
    if name == "console":
        import sys

        return made(out=sys.stderr)  # standard output is for results, and for MCP
    return made()


def _resource(service: str, instance: str | None) -> Resource:
    from opentelemetry.sdk.resources import Resource

    from mcpgym import __version__

    found = Resource.create({"service.version": __version__})
    if str(found.attributes.get("service.name", "unknown_service")).startswith("unknown_service"):
        found = found.merge(Resource({"service.name": service}))
    if instance is not None and "service.instance.id" not in found.attributes:
        found = found.merge(Resource({"service.instance.id": instance}))
    return found

"""An OTLP receiver on loopback that keeps all it gets, as bytes and decoded by the official messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Backend:
    """What has come so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[tuple[str, bytes]] = []

    @property
    def raw(self) -> bytes:
        """Every byte that came."""
        return b"\n".join(body for _, body in list(self.bodies))

    @property
    def spans(self) -> list[Any]:
        """Every span."""
        found = []
        for path, body in list(self.bodies):
            if path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    found += [span for scope in resource.scope_spans for span in scope.spans]
        return found

    @property
    def services(self) -> set[str]:
        """The ``service.name`` of whoever sent spans."""
        return {
            attributes(resource.resource)["service.name"]
            for path, body in list(self.bodies)
            if path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        }

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics by name, as they came last."""
        found = {}
        for path, body in list(self.bodies):
            if path == "/v1/metrics":
                for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    found |= {one.name: one for scope in resource.scope_metrics for one in scope.metrics}
        return found


def attributes(message: Any) -> dict[str, Any]:
    """The attributes of a span, resource or data point."""
    found = {}
    for pair in message.attributes:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        found[pair.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return found


@contextmanager
def backend() -> Iterator[Backend]:
    """A receiver, for as long as one is inside."""
    kept: Backend

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            kept.bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept = Backend(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)

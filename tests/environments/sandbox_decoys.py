"""What an attack would find or hurt, were it to get out: secret files, listeners, a victim, secrets in memory."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

VARIABLE = "MCPGYM_TEST_SECRET"


def token() -> str:
    """A word that stands nowhere else."""
    return f"SECRET-{secrets.token_hex(12)}"


def planted() -> Path | None:
    """A file of an installed package that a session has no business to read, and that can be covered."""
    from importlib.metadata import PackageNotFoundError, files

    for name in ("pytest", "pip", "pydantic", "mcp"):
        with contextlib.suppress(PackageNotFoundError):
            for file in files(name) or ():
                if file.name.upper().startswith(("LICENSE", "COPYING")):
                    path = Path(str(file.locate()))
                    if path.is_file():
                        return path
    return None


def names_in(folder: Path) -> list[str]:
    """What is in a folder, but for what the interpreter and the server may make there."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("mcpgym-"))


class Decoys:
    """Everything that a session must neither see nor touch. ``harm`` says what it did."""

    def __init__(self, folder: Path) -> None:
        self.in_environment = os.environ.setdefault(VARIABLE, token())
        self.in_memory = bytearray(token(), "ascii")
        self.in_neighbour = token()
        self.in_neighbours_file = token()
        self._contents: dict[Path, bytes] = {}
        hidden = folder / "hidden"
        hidden.mkdir(mode=0o755)
        for name, mode in (
            ("hidden_test.py", 0o644),
            ("reward.json", 0o644),
            ("secret.key", 0o600),
            ("solution.py", 0o666),
        ):
            path = hidden / name
            path.write_text(f"# {token()}\n")
            path.chmod(mode)
            self._contents[path] = path.read_bytes()
        if cover := os.environ.get("MCPGYM_TEST_PLANTED"):
            self._contents[Path(cover)] = Path(cover).read_bytes()
        self.abstract = f"mcpgym-test-{secrets.token_hex(6)}"
        self.unix = str(folder / "listener")
        self._listeners = self._listen()
        self._names = {path: names_in(path) for path in (hidden, folder, Path(sys.prefix))}
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import time\nwhile True: time.sleep(60)"], start_new_session=True
        )
        self._limits = {pid: Path(f"/proc/{pid}/limits").read_text() for pid in (os.getpid(), self.victim.pid)}

    def _listen(self) -> list[socket.socket]:
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("127.0.0.1", self.port))
        unnamed, named = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        unnamed.bind("\0" + self.abstract)
        named.bind(self.unix)
        Path(self.unix).chmod(0o777)
        for listener in (unnamed, named):
            listener.listen()
        made = [tcp, unnamed, named, datagrams]
        for listener in made:
            listener.setblocking(False)
        return made

    def as_json(self) -> dict[str, Any]:
        """What the cases know of it."""
        return {
            "paths": [str(path) for path in self._contents],
            "port": self.port,
            "abstract": self.abstract,
            "unix": self.unix,
            "pids": [os.getpid(), self.victim.pid],
            "venv": sys.prefix,
        }

    @property
    def secrets(self) -> list[bytes]:
        """Every word that must not come out."""
        words = [self.in_environment, self.in_memory.decode(), self.in_neighbour, self.in_neighbours_file]
        found = [word.encode() for word in words]
        found += [content.split()[-1] for content in self._contents.values()]
        return found

    def told(self, text: bytes) -> bool:
        """Whether a secret is in this, plainly, backwards or in hexadecimal."""
        forms = [form for word in self.secrets for form in (word, word[::-1], word.hex().encode())]
        return any(form in text for form in forms)

    def harm(self) -> list[str]:
        """What has been touched since the last question."""
        found = []
        for path, content in self._contents.items():
            try:
                if path.read_bytes() != content:
                    found.append(f"{path} was changed")
            except OSError as error:
                found.append(f"{path} is gone: {error}")
        for folder, names in self._names.items():
            if (now := names_in(folder)) != names:
                found.append(f"{folder} has got or lost {sorted(set(now) ^ set(names))}")
        for listener in self._listeners:
            with contextlib.suppress(BlockingIOError):
                listener.recv(100) if listener.type == socket.SOCK_DGRAM else listener.accept()
                found.append(f"somebody spoke to the listener {listener.getsockname()!r}")
        for pid, limits in self._limits.items():
            with contextlib.suppress(FileNotFoundError):
                if Path(f"/proc/{pid}/limits").read_text() != limits:
                    found.append(f"the limits of process {pid} were changed")
        if self.victim.poll() is not None:
            return [*found, "the victim is dead"]
        state = Path(f"/proc/{self.victim.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return [*found, "the victim was stopped"] if state in "Tt" else found

    def close(self) -> None:
        """End the victim and the listeners."""
        self.victim.kill()
        self.victim.wait()
        for listener in self._listeners:
            listener.close()

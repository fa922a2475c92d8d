"""What a sub-model answered, kept in a file: a replay asks nobody, and gets the same answers."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import NamedTuple

from mcpgym.errors import ConfigurationError


class Key(NamedTuple):
    """Which answer it is: task and seed, the prompt, and how often that was asked before in the episode."""

    task: str
    seed: int
    prompt: str
    time: int


def digest(prompt: str) -> str:
    """What a prompt is known by."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


class Record:
    """A file with an answer on each line, as JSON: ``task``, ``seed``, ``prompt`` (its SHA-256), ``time``, ``answer``.

    Args:
        path: read if it is there; new answers are added to its end.

    Raises:
        ConfigurationError: it is there, and is no record.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path).expanduser()
        self._lock = threading.Lock()
        self._known: dict[Key, str] = {}
        try:
            lines = self._path.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"record={path}: it cannot be read: {error}") from None
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                key = Key(str(row["task"]), int(row["seed"]), str(row["prompt"]), int(row["time"]))
                self._known[key] = str(row["answer"])
            except (ValueError, KeyError, TypeError):
                raise ConfigurationError(f"record={path}: line {number} is no answer of a sub-model") from None

    def find(self, key: Key) -> str | None:
        """The answer that was kept; None where there is none."""
        return self._known.get(key)

    def keep(self, key: Key, answer: str) -> None:
        """Keep an answer, in the file as well."""
        with self._lock:
            self._known[key] = answer
            line = json.dumps({**key._asdict(), "answer": answer})
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

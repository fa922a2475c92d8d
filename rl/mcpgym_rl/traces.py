"""Traces: the record of a rollout, and the JSONL files that hold them, one rollout a line (see docs/traces.md)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message
from mcpgym_rl.syncing import BackgroundSync
from mcpgym_rl.trace_faults import trace_fault

SCHEMA = "mcpgym.trace/1"


@dataclass(frozen=True, slots=True)
class TraceCall:
    """One tool call that crossed to the environment. ``milliseconds`` is what the caller waited for its answer."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    is_error: bool
    milliseconds: float


@dataclass(frozen=True, slots=True)
class TraceScore:
    """The score. ``total`` is null when a part of it is unknown, and the whole is null where there is none.

    ``game_outcome`` is ``win``, ``draw`` or ``loss`` for finished games; ``receipt`` is there when the server signs.
    """

    total: float | None
    components: Mapping[str, float | None] = field(default_factory=dict)
    game_outcome: str | None = None
    receipt: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TraceError:
    """Whose failure left the rollout unscored, and what it was."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class TraceTokens:
    """What a local policy sampled: ids of the whole context, which of them it sampled, and their log-probabilities.

    ``temperatures`` is there when not all turns were sampled at the policy's one temperature: one for each token.
    """

    ids: Sequence[int]
    mask: Sequence[bool]
    logprobs: Sequence[float]
    temperatures: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class TraceUsage:
    """Tokens of all turns together: those given to the policy, and those it wrote; turns that came to nothing too.

    ``cached_tokens`` of those given were in the policy's cache; it is there where the policy says so.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One rollout. ``place`` is its position in its run, whatever the order in which rollouts ended.

    The first ``given_turns`` of its ``turns`` were given: played, but not by the policy. ``conditions`` are facts of
    the machine it was played on, where its environment says any. ``agent`` is there where an agent product played: its
    ``name``, ``version`` and ``model``, and how it ended (see docs/agents.md).
    """

    environment: str
    environment_version: str
    task: str
    split: str
    seed: int
    config: Mapping[str, Any]
    schema_hash: str
    policy: str
    messages: Sequence[Message]
    calls: Sequence[TraceCall]
    stop_reason: str
    score: TraceScore | None = None
    error: TraceError | None = None
    tokens: TraceTokens | None = None
    repeat: int = 0
    place: int = 0
    prompt_messages: int = 0
    turns: int = 0
    given_turns: int = 0
    usage: TraceUsage = field(default_factory=TraceUsage)
    seconds: float = 0.0
    conditions: Mapping[str, Any] = field(default_factory=dict)
    agent: Mapping[str, Any] = field(default_factory=dict)
    schema: str = SCHEMA

    @property
    def scored(self) -> bool:
        """Whether there is a total to average."""
        return self.score is not None and self.score.total is not None

    @property
    def fingerprint(self) -> str:
        """Equal for rollouts in which the same happened: prompt, calls and results, and what was said without a call.

        Count these, not rollouts: a thousand games of two deterministic players are one game. Thoughts beside a call
        make no difference, for the environment never acts on them.
        """
        said = [
            [message["role"], message["content"]]
            for message in self.messages[self.prompt_messages :]
            if message["role"] == "user" or (message["role"] == "assistant" and not message.get("tool_calls"))
        ]
        prompt = [[message["role"], message["content"]] for message in self.messages[: self.prompt_messages]]
        calls = [[call.name, call.arguments, call.result, call.is_error] for call in self.calls]
        text = json.dumps([self.environment, prompt, calls, said], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The trace as it stands in a file."""
        order = ("schema", *(item.name for item in fields(self) if item.name != "schema"))
        made = {name: _plain(getattr(self, name)) for name in order}
        if made["tokens"] is None:
            del made["tokens"]  # only local policies have them
        if not made["conditions"]:
            del made["conditions"]  # only environments that depend on their machine have them
        if not made["agent"]:
            del made["agent"]  # only agent products have it
        return made

    def to_json(self) -> str:
        """One line of JSON, without its newline. ASCII, so that no file system, pipe or half character can hurt it."""
        return json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The trace that ``data`` is; fields this version does not know are left out.

        Raises:
            ConfigurationError: it is not one; the message says what is missing or wrong.
        """
        if not isinstance(data, dict):
            raise ConfigurationError("a trace is a JSON object")
        if data.get("schema") != SCHEMA:
            raise ConfigurationError(f"its schema is {str(data.get('schema'))[:60]!r}; this version reads {SCHEMA!r}")
        values = {name: _checked(name, data) for name in _KINDS if name in data or name in _REQUIRED}
        if (fault := trace_fault(values)) is not None:
            raise ConfigurationError(fault)
        for name, made in _PARTS.items():
            if values.get(name) is not None:
                values[name] = _part(name, made, values[name])
        values["calls"] = [_part("calls", TraceCall, call) for call in values["calls"]]
        return cls(**values)


_WHERE_THERE = frozenset({"receipt", "temperatures", "cached_tokens"})
"""What stands in a file only where there is one."""
_NULLABLE = {"score": dict, "error": dict, "tokens": dict}
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("environment", "environment_version", "task", "split", "schema_hash", "policy"), str),
    "stop_reason": str,
    **dict.fromkeys(("seed", "repeat", "place", "prompt_messages", "turns", "given_turns"), int),
    **dict.fromkeys(("config", "usage", "conditions", "agent"), dict),
    **dict.fromkeys(("messages", "calls"), list),
    "seconds": (int, float),
    **_NULLABLE,
}
_REQUIRED = frozenset(
    {"environment", "environment_version", "task", "split", "seed", "config", "schema_hash", "policy", "messages"}
    | {"calls", "stop_reason", "score", "error"}
)
_PARTS: dict[str, Any] = {"score": TraceScore, "error": TraceError, "tokens": TraceTokens, "usage": TraceUsage}


def _checked(name: str, data: Mapping[str, Any]) -> Any:
    if name not in data:
        raise ConfigurationError(f"{name!r} is missing")
    value, kind = data[name], _KINDS[name]
    if (value is None and name in _NULLABLE) or (isinstance(value, kind) and not isinstance(value, bool)):
        return value
    raise ConfigurationError(f"{name!r} cannot be {json.dumps(value)[:80]}")


def _part(name: str, made: Any, data: Any) -> Any:
    try:
        return made(**{item.name: data[item.name] for item in fields(made) if item.name in data})
    except (TypeError, KeyError) as error:
        raise ConfigurationError(f"{name!r} is not as it should be: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {
            item.name: _plain(getattr(value, item.name))
            for item in fields(value)
            if item.name not in _WHERE_THERE or getattr(value, item.name) is not None
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_plain(item) for item in value]
    return repr(value)


class TraceWriter:
    """Appends traces to a file, each as one write of one line: a run killed at any moment loses no finished line.

    A torn last line, left by an earlier run that was killed, is cut off when the file is opened.

    Args:
        path: the file; it and its folder are made when missing.
        sync: what a power cut may take. True: nothing, each line waits for the disk, milliseconds; a number: what was
            written in so many seconds before it, and nobody waits; False: whatever the system had not yet written.
    """

    def __init__(self, path: str | Path, *, sync: bool | float = False) -> None:
        self.path = Path(path)
        self.sync = sync is True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file: int | None = os.open(self.path, flags, 0o644)
        self._mend()
        background = sync is not True and sync is not False
        self._background = BackgroundSync(self._file, sync) if background else None

    def _mend(self) -> None:
        """Leave the file empty or ending with a newline."""
        assert self._file is not None
        size = end = os.fstat(self._file).st_size
        tail = b""
        with self.path.open("rb") as file:
            while end and b"\n" not in tail:
                start = max(end - 65536, 0)
                file.seek(start)
                tail = file.read(end - start) + tail
                end = start
        torn = tail[tail.rfind(b"\n") + 1 :]
        if not torn:
            return
        try:
            json.loads(torn)
        except ValueError:
            os.ftruncate(self._file, size - len(torn))
        else:
            os.write(self._file, b"\n")  # whole but for its newline

    def write(self, trace: Trace) -> None:
        """Append one trace.

        Raises:
            OSError: the disk did not take the whole line.
            ValueError: the file has been closed.
        """
        self.write_line(trace.to_json().encode())

    def write_line(self, line: bytes) -> None:
        """Append a line that holds a trace, as it stands in a file; as :meth:`write` in all else."""
        if self._file is None:
            raise ValueError(f"{self.path} has been closed")
        line = line.rstrip(b"\n") + b"\n"
        if (written := os.write(self._file, line)) != len(line):
            end = os.lseek(self._file, 0, os.SEEK_CUR)
            if end == os.fstat(self._file).st_size:  # nobody wrote after us
                os.ftruncate(self._file, end - written)  # the next line must not be appended to half a one
            raise OSError(
                f"{self.path}: only {written} of {len(line)} bytes of a trace were written; is the disk full?"
            )
        if self.sync:
            os.fsync(self._file)
        elif self._background is not None:
            self._background.dirty()

    def close(self) -> None:
        """Close the file; closing twice does nothing.

        Raises:
            OSError: the disk did not take what was written.
        """
        if self._file is None:
            return
        try:
            if self._background is not None:
                self._background.close()
        finally:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Traces(list[Trace]):
    """The traces of a file, in its order. ``torn`` is empty, or says that the last line is incomplete and left out."""

    torn: str = ""


def read_traces(path: str | Path) -> Traces:
    """The traces in the file at ``path``; a torn last line is left out, and ``torn`` of the result says so.

    Raises:
        ConfigurationError: there is no such file, or another line is no trace; the message names it.
    """
    traces = Traces()

    def torn(text: str) -> None:
        traces.torn = text

    traces.extend(trace for _, trace in read_lines(path, torn))
    return traces


def read_lines(path: str | Path, torn: Callable[[str], None] = lambda text: None) -> Iterator[tuple[bytes, Trace]]:
    """Each whole line of the file at ``path`` and the trace it holds, one at a time: for files of any length.

    Args:
        path: the file.
        torn: is told, at the end, of a torn last line.

    Raises:
        ConfigurationError: as :func:`read_traces`.
    """
    try:
        file = Path(path).open("rb")  # noqa: SIM115  # closed by the with below
    except OSError as error:
        raise ConfigurationError(f"cannot read traces: {error}") from None
    with file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line, parse_constant=_no_constant)
            except (ValueError, RecursionError) as error:
                if not line.endswith(b"\n"):  # the last
                    torn(f"{path}: line {number} is incomplete (its run was killed while writing) and was left out")
                    return
                raise ConfigurationError(f"{path}: line {number} is no JSON: {error}") from None
            try:
                trace = Trace.from_dict(value)
            except ConfigurationError as error:
                raise ConfigurationError(f"{path}: line {number} is no trace: {error}") from None
            yield line, trace


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")

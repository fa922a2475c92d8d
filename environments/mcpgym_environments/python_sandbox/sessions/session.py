"""A session: code runs, functions are called and files are moved in one sandbox, over whatever stream a back-end gave.

How its requests and their answers go over that stream is in ``exchange.py``. One call at a time: others wait for their
turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.answers import (
    Entry,
    Odd,
    checked_entries,
    checked_facts,
    flag_of,
    value_of,
)
from mcpgym_environments.python_sandbox.sessions.asking import Broker
from mcpgym_environments.python_sandbox.sessions.backend import (
    JSON,
    MAX_SEED,
    SandboxLimits,
    SandboxSpec,
    Stream,
)
from mcpgym_environments.python_sandbox.sessions.exchange import Exchange
from mcpgym_environments.python_sandbox.sessions.outcomes import (
    MISSING,
    Counters,
    Entries,
    Evaluation,
    FileFault,
    Missing,
    Outcome,
    outcome_of,
)
from mcpgym_environments.python_sandbox.sessions.turns import Turn, Turns

__all__ = ["MISSING", "Counters", "Entry", "Evaluation", "FileFault", "Missing", "Outcome", "Session"]

GRACE_SECONDS = 0.5
"""How long the agent gives code that it has interrupted before it kills it."""
SLACK_SECONDS = 3.0
"""How much later than the agent's own limit an answer may come: ending what holds much memory takes it up to two."""
FILE_SECONDS = 10.0
"""How long an agent may take for what runs no code of a policy's: a file, a listing, a fresh worker."""
MOST_SECONDS = 86_400
"""The most that one call may take: a day, as in the limits."""
MAX_VALUE = 1 << 20
"""Bytes of JSON of a value that a function returned; beyond, it counts as not returned."""
OUTPUT_SLACK = 4_096
"""Bytes that an agent may add to the output that the limits allow."""
EXPORT_SLACK = 2_048
"""Bytes of a tar beside the contents of a file in it."""


class Session:
    """One sandbox. Made by :class:`~mcpgym_environments.python_sandbox.sessions.pool.Pool`.

    Every method raises :class:`SessionLost` when the session is gone or goes (:class:`SessionSpent` where it had taken
    a machine's memory), and waits for its turn.

    Args:
        stream: to the agent.
        limits: what the session may use.
        turns: lets so many calls at once execute; waiting for it counts towards no limit.
        on_end: is called once when the session has ended, from whatever thread.
        slack: seconds that an answer may come late, beyond what the agent itself may take.
        counters: are kept up.
        owner: what must not be forgotten while this session is not.
        broker: answers what its code asks; None where it may ask nothing.
    """

    def __init__(
        self,
        stream: Stream,
        limits: SandboxLimits,
        *,
        turns: Turns | None = None,
        on_end: Callable[[], None] | None = None,
        slack: float = SLACK_SECONDS,
        counters: Counters | None = None,
        owner: object = None,
        broker: Broker | None = None,
    ) -> None:
        self.stream = stream
        self.limits = limits
        self.python = ""
        self.packages: Mapping[str, str] = {}
        counters = counters if counters is not None else Counters()
        self._exchange = Exchange(stream, slack, counters, on_end, broker)
        self._turns = turns
        self._own_turn = Turns(1)
        self._owner = owner
        self._broker = broker

    @property
    def ended(self) -> str | None:
        """Why it is gone, if it is."""
        return self._exchange.ended

    async def hello(self, spec: SandboxSpec) -> None:
        """The first call of a session: tell it its limits, packages and seed, and learn what it runs.

        One that has been told all but its seed is told that with its first call that runs code.
        """
        greeting = self.stream.greeting
        if greeting is not None and self._broker is None:
            if not self.stream.is_quiet():
                self._exchange.lose("it ended before it was used")
            self.python, self.packages = greeting["python"], greeting["packages"]
            self._exchange.seed = spec.seed or None
            return
        asked = spec.as_json() | ({} if self._broker is None else {"asks": self._broker.offer.as_json()})
        header, _ = await self._call({"op": "hello", "spec": asked}, seconds=2 * FILE_SECONDS)
        facts = self._exchange.checked(lambda: checked_facts(header))
        if header["status"] != "ok":
            self._exchange.lose(f"it did not begin: {header['why'] or header['status']}")
        self.python, self.packages = facts["python"], facts["packages"]
        if self._broker is not None and header.get("asks") is not True:
            self.kill("its code cannot ask")
            raise ConfigurationError("with this back-end, code in the sandbox cannot ask a model; take another")

    async def run(self, code: str, seconds: float | None = None, cpu_seconds: float | None = None) -> Outcome:
        """Run code as a cell of a notebook.

        Args:
            code: Python.
            seconds: wall time it may take; the session's limit by default.
            cpu_seconds: processor time, likewise.

        Raises:
            SessionLost: the session is gone.
            ConfigurationError: the code is longer than a frame takes, or seconds are none.
        """
        wall = self.limits.seconds if seconds is None else float(seconds)
        cpu = self.limits.cpu_seconds if cpu_seconds is None else float(cpu_seconds)
        header, blob = await self._execute({"op": "run"}, code.encode("utf-8", "surrogatepass"), wall, cpu)
        return outcome_of(header, blob)

    async def evaluate(
        self,
        function: str,
        arguments: Sequence[JSON],
        seconds: float | None = None,
        cpu_seconds: float | None = None,
    ) -> Evaluation:
        """Call a function that the session has defined.

        The value is what its JSON says, type for type; what the code returned has no other way out.

        Args:
            function: its name.
            arguments: what it is called with, as JSON.
            seconds: wall time it may take; the session's limit by default.
            cpu_seconds: processor time, likewise.

        Raises:
            SessionLost: the session is gone.
            ConfigurationError: the arguments are no JSON, or longer than a frame takes, or seconds are none.
        """
        wall = self.limits.seconds if seconds is None else float(seconds)
        cpu = self.limits.cpu_seconds if cpu_seconds is None else float(cpu_seconds)
        try:
            given = json.dumps(list(arguments), allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"arguments of {function}: no JSON: {error}") from None
        header, blob = await self._execute({"op": "evaluate", "function": function}, given, wall, cpu)
        if header["status"] != "ok":
            return Evaluation(outcome_of(header, blob), MISSING)
        try:  # the worker wrote it, and that is the policy's: what is no value is a failed call, and no lost session
            if len(blob) > MAX_VALUE:
                raise Odd(f"the value has {len(blob)} bytes of JSON; {MAX_VALUE} at most")
            value = value_of(blob)
        except Odd as odd:
            return Evaluation(outcome_of({**header, "status": "error", "why": f"not JSON: {odd}"}, b""), MISSING)
        return Evaluation(outcome_of(header, b""), value)

    async def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a file of the workspace, from ``offset``; at most ``limit``, and at most the session's limit.

        Raises:
            FileFault: there is no such file, or it cannot be read.
            SessionLost: the session is gone.
        """
        data, _ = await self.read_part(path, offset, limit)
        return data

    async def read_part(self, path: str, offset: int = 0, limit: int | None = None) -> tuple[bytes, int]:
        """As :meth:`read`; and how many bytes of the file come after those.

        Raises:
            FileFault, SessionLost: as :meth:`read`.
        """
        most = self.limits.read_bytes if limit is None else max(0, min(limit, self.limits.read_bytes))
        header, blob = await self._file({"op": "read", "path": path, "offset": offset, "limit": most}, most=most)
        return blob, header["omitted"]

    async def write(self, path: str, data: bytes) -> None:
        """Write a file of the workspace; folders on the way are made, and a file that is there is replaced.

        Raises:
            FileFault: it cannot be written.
            SessionLost: the session is gone.
            ConfigurationError: it is longer than a frame takes.
        """
        await self._file({"op": "write", "path": path}, data)

    async def list(self, path: str = ".", depth: int = 8) -> Entries:
        """What is in a folder of the workspace, and in the folders in it down to ``depth``.

        Raises:
            FileFault: there is no such folder.
            SessionLost: the session is gone.
        """
        entries, _ = await self.list_part(path, depth)
        return entries

    async def list_part(self, path: str = ".", depth: int = 8) -> tuple[Entries, int]:
        """As :meth:`list`; and how many entries were left out.

        Raises:
            FileFault, SessionLost: as :meth:`list`.
        """
        header, blob = await self._file({"op": "list", "path": path, "depth": depth}, most=frames.MAX_BLOB)
        return self._exchange.checked(lambda: checked_entries(blob)), header["omitted"]

    async def export(self) -> bytes:
        """The whole workspace as a tar.

        Raises:
            FileFault: it cannot be read.
            SessionLost: the session is gone, or gives more than a workspace can hold.
        """
        most = self.limits.workspace_bytes + EXPORT_SLACK * (self.limits.workspace_files + 8)
        made = bytearray()
        while True:
            header, part = await self._file({"op": "export", "offset": len(made)}, most=frames.MAX_BLOB)
            more = self._exchange.checked(lambda header=header: flag_of(header, "more"))  # type: ignore[misc]
            made += part
            if len(made) > most or (more and not part):
                self._exchange.lose(f"its tar has {len(made)} bytes and no end; its workspace may have {most}")
            if not more:
                return bytes(made)

    async def reset(self, seed: int | None = None) -> None:
        """A fresh worker and an empty workspace, with the same seed or another.

        Raises:
            SessionLost: the session is gone.
            ConfigurationError: the seed is out of range.
        """
        if seed is not None and (type(seed) is not int or not 0 <= seed <= MAX_SEED):
            raise ConfigurationError(f"sandbox seed {seed!r} is no whole number in 0 to 2**63 - 1")
        header, _ = await self._call({"op": "reset", **({} if seed is None else {"seed": seed})}, seconds=FILE_SECONDS)
        if header["status"] != "ok":
            self._exchange.lose(f"it could not be reset: {header['why'] or header['status']}")

    def kill(self, why: str = "it was closed", *, spent: bool = False) -> None:
        """End it at once, from any thread; who waits for an answer gets :class:`SessionLost`. Twice does nothing.

        With ``spent`` it was what took a machine's memory: then that is :class:`SessionSpent`.
        """
        self._exchange.kill(why, spent=spent)

    async def _execute(
        self, asked: dict[str, Any], blob: bytes, wall: float, cpu: float
    ) -> tuple[dict[str, Any], bytes]:
        """A call that runs code of a policy's."""
        for name, value in (("seconds", wall), ("cpu_seconds", cpu)):
            if not 0 < value <= MOST_SECONDS:  # not a number, too
                raise ConfigurationError(
                    f"{asked['op']}: {name}={value!r} does not lie above 0 and up to {MOST_SECONDS}"
                )
        asked |= {"seconds": wall, "cpu_seconds": cpu}
        most = self.limits.output_bytes + OUTPUT_SLACK
        if asked["op"] == "evaluate":
            most = max(most, 4 * MAX_VALUE)
        if self._turns is None:
            return await self._call(asked, blob, seconds=wall + GRACE_SECONDS, most=most)
        if self._broker is None:
            async with self._own_turn, self._turns:
                return await self._exchange.call(asked, blob, wall + GRACE_SECONDS, most)
        async with self._own_turn, Turn(self._turns) as turn:
            return await self._exchange.call(asked, blob, wall + GRACE_SECONDS, most, turn)

    async def _file(self, asked: dict[str, Any], blob: bytes = b"", *, most: int = 0) -> tuple[dict[str, Any], bytes]:
        header, found = await self._call(asked, blob, seconds=FILE_SECONDS, most=most)
        if header["status"] == "error":
            raise FileFault(header["why"] or "it cannot be done")
        if header["status"] != "ok":
            self._exchange.lose(f"a file operation was {header['status']}: {header['why']}")
        return header, found

    async def _call(
        self, asked: dict[str, Any], blob: bytes = b"", *, seconds: float, most: int = 0
    ) -> tuple[dict[str, Any], bytes]:
        async with self._own_turn:
            return await self._exchange.call(asked, blob, seconds, most)

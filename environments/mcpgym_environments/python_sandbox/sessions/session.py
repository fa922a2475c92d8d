"""A session: code runs, functions are called and files are moved in one sandbox, over whatever stream a back-end gave.

The agent at the other end is taken for hostile: it shares a user id, a memory and a kernel with code that a policy
wrote. Every answer is checked in full before anything of it is used, what it announces is refused before memory is set
aside, and it has a deadline of ours beside its own. Whatever is odd ends the session: :class:`SessionLost`.

One call at a time: others wait for their turn. **A call that is cancelled** leaves the session in step: if its request
was sent whole, the code runs on to its end or limit, and the next call first reads and drops the answer that is owed
(it is known by its number); if it was sent in part, the session is killed. No call is ever answered with another's
answer.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, NoReturn

from mcpgym.errors import ConfigurationError, InfrastructureError
from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.answers import (
    Entry,
    Odd,
    checked_answer,
    checked_entries,
    checked_facts,
    flag_of,
    value_of,
)
from mcpgym_environments.python_sandbox.sessions.asking import Broker, ask_of, told, told_frame
from mcpgym_environments.python_sandbox.sessions.backend import (
    JSON,
    MAX_SEED,
    SandboxLimits,
    SandboxSpec,
    SessionLost,
    SessionSpent,
    Stream,
)
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
_SEEDED = frozenset(("run", "evaluate", "reset"))
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
        self.ended: str | None = None
        """Why it is gone, if it is."""
        self.python = ""
        self.packages: Mapping[str, str] = {}
        self._spent = False
        self._turns = turns
        self._on_end = on_end
        self._ending = threading.Lock()
        self._slack = slack
        self._counters = counters if counters is not None else Counters()
        self._own_turn = Turns(1)
        self._asked = 0
        self._counted = False
        self._owner = owner
        self._seed: int | None = None  # still to be told
        self._owed: tuple[int, int, float] | None = None  # number, longest blob and deadline of an answer to come
        self._announced: tuple[int, int] | None = None  # the lengths of a frame whose rest is to come
        self._broker = broker
        self._runs_code = False  # in the call that goes on: only then may its code ask
        self._asks = 0
        self._asked_now = 0  # questions of the call that goes on
        self._allowed = 0.0  # seconds that it may take, with the time that its answer may be late
        self._asking: float | None = None  # since when a question has waited for its answer
        self._turn: Turn | None = None

    async def hello(self, spec: SandboxSpec) -> None:
        """The first call of a session: tell it its limits, packages and seed, and learn what it runs.

        One that has been told all but its seed is told that with its first call that runs code.
        """
        greeting = self.stream.greeting
        if greeting is not None and self._broker is None:
            if not self.stream.is_quiet():
                self._lose("it ended before it was used")
            self.python, self.packages = greeting["python"], greeting["packages"]
            self._seed = spec.seed or None
            return
        asked = spec.as_json() | ({} if self._broker is None else {"asks": self._broker.offer.as_json()})
        header, _ = await self._call({"op": "hello", "spec": asked}, seconds=2 * FILE_SECONDS)
        facts = self._checked(lambda: checked_facts(header))
        if header["status"] != "ok":
            self._lose(f"it did not begin: {header['why'] or header['status']}")
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
        return self._checked(lambda: checked_entries(blob)), header["omitted"]

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
            more = self._checked(lambda header=header: flag_of(header, "more"))  # type: ignore[misc]
            made += part
            if len(made) > most or (more and not part):
                self._lose(f"its tar has {len(made)} bytes and no end; its workspace may have {most}")
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
            self._lose(f"it could not be reset: {header['why'] or header['status']}")

    def kill(self, why: str = "it was closed", *, spent: bool = False) -> None:
        """End it at once, from any thread; who waits for an answer gets :class:`SessionLost`. Twice does nothing.

        With ``spent`` it was what took a machine's memory: then that is :class:`SessionSpent`.
        """
        with self._ending:
            if self.ended is not None:
                return
            self.ended, self._spent = why, spent
        self.stream.kill()
        if self._on_end is not None:
            self._on_end()

    # The exchange.

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
                return await self._exchange(asked, blob, wall + GRACE_SECONDS, most)
        async with self._own_turn, Turn(self._turns) as self._turn:
            return await self._exchange(asked, blob, wall + GRACE_SECONDS, most)

    async def _file(self, asked: dict[str, Any], blob: bytes = b"", *, most: int = 0) -> tuple[dict[str, Any], bytes]:
        header, found = await self._call(asked, blob, seconds=FILE_SECONDS, most=most)
        if header["status"] == "error":
            raise FileFault(header["why"] or "it cannot be done")
        if header["status"] != "ok":
            self._lose(f"a file operation was {header['status']}: {header['why']}")
        return header, found

    async def _call(
        self, asked: dict[str, Any], blob: bytes = b"", *, seconds: float, most: int = 0
    ) -> tuple[dict[str, Any], bytes]:
        async with self._own_turn:
            return await self._exchange(asked, blob, seconds, most)

    async def _exchange(
        self, asked: dict[str, Any], blob: bytes, seconds: float, most: int
    ) -> tuple[dict[str, Any], bytes]:
        """One request and its answer, both parts checked; the agent may take ``seconds``, and a little more."""
        self._alive()
        if self._owed is not None:
            await self._settle()
        self._asked += 1
        number = self._asked
        asked["n"] = number
        if self._seed is not None and asked["op"] in _SEEDED:
            asked.setdefault("seed", self._seed)
        try:
            frame = frames.encode(asked, blob)
        except frames.FrameError as error:
            self._asked -= 1
            raise ConfigurationError(f"{asked['op']}: {error}") from None
        if "seed" in asked:
            self._seed = None
        self._counters.calls += 1
        allowed = seconds + self._slack
        deadline = monotonic() + allowed
        try:
            if self._broker is None:
                await self._sent(frame, allowed)
                self._owed = number, most, deadline
                return await self._answer(allowed)
            self._runs_code, self._asked_now = asked["op"] in ("run", "evaluate"), 0
            self._allowed = allowed
            async with asyncio.timeout(allowed) as limit:
                await self._sent(frame)
                self._owed = number, most, deadline
                header, found = await self._answer()
                while "ask" in header:
                    header, found = await self._attend(number, found, limit, allowed)
                return header, found
        except TimeoutError:
            self._lose(f"it gave no answer within {allowed:g} s")
        except (EOFError, OSError) as error:
            self._lose(f"its connection ended: {error}" if str(error) else "its connection ended")

    async def _sent(self, frame: bytes, seconds: float | None = None) -> None:
        try:
            await self.stream.send(frame, seconds)
        except asyncio.CancelledError:
            self.kill("a call was cancelled while its request was being sent")
            raise

    async def _answer(self, seconds: float | None = None) -> tuple[dict[str, Any], bytes]:
        """The answer that is owed. Cancelled or out of time at any point, it can be asked for again."""
        assert self._owed is not None
        number, most, deadline = self._owed
        if self._announced is None:
            head = await self.stream.receive(frames.HEAD_BYTES, seconds)
            try:
                self._announced = frames.lengths(head)
            except frames.FrameError as error:
                self._lose(str(error))
        json_length, blob_length = self._announced
        may_ask = self._runs_code and self._broker is not None
        if blob_length > (max(most, self._broker.offer.bytes) if self._broker is not None and may_ask else most):
            self._lose(f"its answer has {blob_length} bytes beside its header; {most} at most")
        left = None if seconds is None else max(0.0, deadline - monotonic())
        rest = await self.stream.receive(json_length + blob_length, left)
        self._announced = None
        if may_ask and self._is_question(rest[:json_length], blob_length):
            return {"ask": self._asks}, rest[json_length:]
        self._owed = None
        try:
            return checked_answer(rest[:json_length], number), rest[json_length:]
        except Odd as odd:
            self._lose(str(odd))

    def _is_question(self, text: bytes, blob_length: int) -> bool:
        """Whether a frame is the next question of the call that runs."""
        assert self._owed is not None
        assert self._broker is not None
        number, most, _ = self._owed
        if not self._checked(lambda: ask_of(text, number, self._asks + 1)):
            if blob_length > most:
                self._lose(f"its answer has {blob_length} bytes beside its header; {most} at most")
            return False
        if self._asking is not None:
            self._lose("it asked again before it was answered")
        if blob_length > self._broker.offer.bytes:
            self._lose(f"its question has {blob_length} bytes; {self._broker.offer.bytes} at most")
        self._asked_now += 1
        if self._asked_now > self._broker.offer.asks:
            self._lose(f"it asked more than {self._broker.offer.asks} questions in a call")
        self._asks += 1
        self._asking = monotonic()
        return True

    async def _attend(
        self, number: int, question: bytes, limit: asyncio.Timeout, allowed: float
    ) -> tuple[dict[str, Any], bytes]:
        """Have a question answered while the clock stands still; the next frame. That may come first: the call ended.

        Nobody else's turn is kept meanwhile. The agent keeps the clock of what its code does between two questions;
        ours begins anew with each answer, for it cannot tell that from the time that frames take, and an agent must
        not be lost because its code asks often.
        """
        assert self._broker is not None
        assert self._owed is not None
        assert self._asking is not None
        limit.reschedule(None)
        if self._turn is not None:
            self._turn.leave()
        answering = asyncio.ensure_future(told(self._broker, question))
        watching = asyncio.ensure_future(self._answer())
        try:
            await asyncio.wait((answering, watching), return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                self._asking = None
                return watching.result()
        finally:
            for task in (answering, watching):
                task.cancel()
            await asyncio.wait((answering, watching))
            _ = [task.cancelled() or task.exception() for task in (answering, watching)]
        try:
            said = answering.result()
        except InfrastructureError as error:
            self.kill(f"what its code asked could not be answered: {error}")
            raise
        if watching.done() and not watching.cancelled():  # it came just now
            self._asking = None
            return watching.result()
        if self._turn is not None:
            await self._turn.come_back()
        limit.reschedule(asyncio.get_running_loop().time() + allowed)
        self._owed = (*self._owed[:2], monotonic() + allowed)
        await self._tell(number, said)
        return await self._answer()

    async def _tell(self, number: int, said: Mapping[str, Any]) -> None:
        self._asking = None
        try:
            await self.stream.send(told_frame(number, self._asks, said))
        except asyncio.CancelledError:
            self.kill("a call was cancelled while an answer was being sent")
            raise

    async def _settle(self) -> None:
        """Read and drop the answer to a call that was cancelled; it must come by that call's own deadline."""
        assert self._owed is not None
        number, most, deadline = self._owed
        try:
            async with asyncio.timeout(max(0.0, deadline - monotonic()) if self._asking is None else None) as limit:
                while True:
                    if self._asking is not None:  # its clock has stood still since
                        limit.reschedule(asyncio.get_running_loop().time() + self._allowed)
                        self._owed = number, most, monotonic() + self._allowed
                        await self._tell(number, {"refused": "the call was cancelled"})
                    header, _ = await self._answer()
                    if "ask" not in header:
                        break
        except TimeoutError:
            self._lose("it gave no answer to a call that was cancelled")
        except (EOFError, OSError):
            self._lose("its connection ended after a call that was cancelled")

    def _alive(self) -> None:
        if self.ended is not None:
            raise self._gone()

    def _checked(self, check: Callable[[], Any]) -> Any:
        """What ``check`` gives; an answer that is odd ends the session."""
        try:
            return check()
        except Odd as odd:
            self._lose(str(odd))

    def _lose(self, why: str) -> NoReturn:
        """The session is gone, and this is why, unless it was killed before.

        Raises:
            SessionLost: always.
        """
        self.kill(why)
        self._counters.lost += not self._counted and not self._spent
        self._counted = True
        raise self._gone()

    def _gone(self) -> SessionLost:
        return (SessionSpent if self._spent else SessionLost)(f"the sandbox session is gone: {self.ended}")

"""The exchange with a session's init: a request goes out as a frame, and its answer comes in.

The agent at the other end is taken for hostile: it shares a user id, a memory and a kernel with code that a policy
wrote. Every answer is checked in full before anything of it is used, what it announces is refused before memory is set
aside, and it has a deadline of ours beside its own. Whatever is odd ends the session: :class:`SessionLost`.

**A call that is cancelled** leaves the session in step: if its request was sent whole, the code runs on to its end or
limit, and the next call first reads and drops the answer that is owed (it is known by its number); if it was sent in
part, the session is killed. No call is ever answered with another's answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, NoReturn

from mcpgym.errors import ConfigurationError, InfrastructureError
from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.answers import Odd, checked_answer
from mcpgym_environments.python_sandbox.sessions.asking import Broker, ask_of, told, told_frame
from mcpgym_environments.python_sandbox.sessions.backend import SessionLost, SessionSpent, Stream
from mcpgym_environments.python_sandbox.sessions.outcomes import Counters
from mcpgym_environments.python_sandbox.sessions.turns import Turn

_SEEDED = frozenset(("run", "evaluate", "reset"))


class Exchange:
    """Requests and answers over one stream, one at a time: whoever calls sees to that.

    Args:
        stream: to the agent.
        slack: seconds that an answer may come late, beyond what the agent itself may take.
        counters: are kept up.
        on_end: is called once when the session has ended, from whatever thread.
        broker: answers what its code asks; None where it may ask nothing.
    """

    def __init__(
        self,
        stream: Stream,
        slack: float,
        counters: Counters,
        on_end: Callable[[], None] | None,
        broker: Broker | None,
    ) -> None:
        self.ended: str | None = None
        """Why the session is gone, if it is."""
        self.seed: int | None = None
        """Is still to be told, with the first call that runs code."""
        self._stream = stream
        self._slack = slack
        self._counters = counters
        self._on_end = on_end
        self._broker = broker
        self._ending = threading.Lock()
        self._spent = False
        self._counted = False
        self._asked = 0
        self._owed: tuple[int, int, float] | None = None  # number, longest blob and deadline of an answer to come
        self._announced: tuple[int, int] | None = None  # the lengths of a frame whose rest is to come
        self._runs_code = False  # in the call that goes on: only then may its code ask
        self._asks = 0
        self._asked_now = 0  # questions of the call that goes on
        self._allowed = 0.0  # seconds that it may take, with the time that its answer may be late
        self._asking: float | None = None  # since when a question has waited for its answer

    async def call(
        self, asked: dict[str, Any], blob: bytes, seconds: float, most: int, turn: Turn | None = None
    ) -> tuple[dict[str, Any], bytes]:
        """One request and its answer, both parts checked; the agent may take ``seconds``, and a little more.

        Args:
            asked: the request; its number and, once, the seed are put in.
            blob: the bytes that go with it.
            seconds: what the agent may take by itself.
            most: bytes that may come with the answer.
            turn: is left to others while a question of this call waits for its answer.

        Raises:
            SessionLost: the session is gone.
            ConfigurationError: the request is longer than a frame takes.
        """
        self._alive()
        if self._owed is not None:
            await self._settle()
        self._asked += 1
        number = self._asked
        asked["n"] = number
        if self.seed is not None and asked["op"] in _SEEDED:
            asked.setdefault("seed", self.seed)
        try:
            frame = frames.encode(asked, blob)
        except frames.FrameError as error:
            self._asked -= 1
            raise ConfigurationError(f"{asked['op']}: {error}") from None
        if "seed" in asked:
            self.seed = None
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
                    header, found = await self._attend(number, found, limit, allowed, turn)
                return header, found
        except TimeoutError:
            self.lose(f"it gave no answer within {allowed:g} s")
        except (EOFError, OSError) as error:
            self.lose(f"its connection ended: {error}" if str(error) else "its connection ended")

    def kill(self, why: str, *, spent: bool = False) -> None:
        """End the session; see :meth:`~mcpgym_environments.python_sandbox.sessions.session.Session.kill`."""
        with self._ending:
            if self.ended is not None:
                return
            self.ended, self._spent = why, spent
        self._stream.kill()
        if self._on_end is not None:
            self._on_end()

    def checked(self, check: Callable[[], Any]) -> Any:
        """What ``check`` gives; an answer that is odd ends the session."""
        try:
            return check()
        except Odd as odd:
            self.lose(str(odd))

    def lose(self, why: str) -> NoReturn:
        """The session is gone, and this is why, unless it was killed before.

        Raises:
            SessionLost: always.
        """
        self.kill(why)
        self._counters.lost += not self._counted and not self._spent
        self._counted = True
        raise self._gone()

    async def _sent(self, frame: bytes, seconds: float | None = None) -> None:
        try:
            await self._stream.send(frame, seconds)
        except asyncio.CancelledError:
            self.kill("a call was cancelled while its request was being sent")
            raise

    async def _answer(self, seconds: float | None = None) -> tuple[dict[str, Any], bytes]:
        """The answer that is owed. Cancelled or out of time at any point, it can be asked for again."""
        assert self._owed is not None
        number, most, deadline = self._owed
        if self._announced is None:
            head = await self._stream.receive(frames.HEAD_BYTES, seconds)
            try:
                self._announced = frames.lengths(head)
            except frames.FrameError as error:
                self.lose(str(error))
        json_length, blob_length = self._announced
        may_ask = self._runs_code and self._broker is not None
        if blob_length > (max(most, self._broker.offer.bytes) if self._broker is not None and may_ask else most):
            self.lose(f"its answer has {blob_length} bytes beside its header; {most} at most")
        left = None if seconds is None else max(0.0, deadline - monotonic())
        rest = await self._stream.receive(json_length + blob_length, left)
        self._announced = None
        if may_ask and self._is_question(rest[:json_length], blob_length):
            return {"ask": self._asks}, rest[json_length:]
        self._owed = None
        try:
            return checked_answer(rest[:json_length], number), rest[json_length:]
        except Odd as odd:
            self.lose(str(odd))

    def _is_question(self, text: bytes, blob_length: int) -> bool:
        """Whether a frame is the next question of the call that runs."""
        assert self._owed is not None
        assert self._broker is not None
        number, most, _ = self._owed
        if not self.checked(lambda: ask_of(text, number, self._asks + 1)):
            if blob_length > most:
                self.lose(f"its answer has {blob_length} bytes beside its header; {most} at most")
            return False
        if self._asking is not None:
            self.lose("it asked again before it was answered")
        if blob_length > self._broker.offer.bytes:
            self.lose(f"its question has {blob_length} bytes; {self._broker.offer.bytes} at most")
        self._asked_now += 1
        if self._asked_now > self._broker.offer.asks:
            self.lose(f"it asked more than {self._broker.offer.asks} questions in a call")
        self._asks += 1
        self._asking = monotonic()
        return True

    async def _attend(
        self, number: int, question: bytes, limit: asyncio.Timeout, allowed: float, turn: Turn | None
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
        if turn is not None:
            turn.leave()
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
        if turn is not None:
            await turn.come_back()
        limit.reschedule(asyncio.get_running_loop().time() + allowed)
        self._owed = (*self._owed[:2], monotonic() + allowed)
        await self._tell(number, said)
        return await self._answer()

    async def _tell(self, number: int, said: Mapping[str, Any]) -> None:
        self._asking = None
        try:
            await self._stream.send(told_frame(number, self._asks, said))
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
            self.lose("it gave no answer to a call that was cancelled")
        except (EOFError, OSError):
            self.lose("its connection ended after a call that was cancelled")

    def _alive(self) -> None:
        if self.ended is not None:
            raise self._gone()

    def _gone(self) -> SessionLost:
        return (SessionSpent if self._spent else SessionLost)(f"the sandbox session is gone: {self.ended}")

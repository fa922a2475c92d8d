"""What code may ask a model: ``llm`` and ``llm_batch``, which hand texts to init and wait for the answers.

They run in the process of the code that calls them, which may do with them what it likes. Nothing here is a boundary:
what may be asked, how much of it and how often is decided by who answers. Here it is only said early and in words.
"""

from __future__ import annotations

import _thread
import builtins
import json
import os
import select
import signal
from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import Any

globals()["__builtins__"] = dict(vars(builtins))

ASK = 2
"""In place of whether it went well, in a reply that is none: a question, to be answered while the call goes on."""
TELL = 4
"""The operation by which init hands over the answer."""
PIECE = 1 << 18
LOOK_MS = 500
"""How often a thread that waits looks whether its run has ended without it."""

_read, _write, _getpid, _exit = os.read, os.write, os.getpid, os._exit
_mask, _SET, _BLOCK = signal.pthread_sigmask, signal.SIG_SETMASK, signal.SIG_BLOCK
_ALL = signal.valid_signals()
_encode = json.JSONEncoder(ensure_ascii=False).encode
_decode = json.JSONDecoder().decode


class Asking:
    """The asking side of a worker.

    Args:
        channel: descriptor of the channel to init.
        offered: the most ``prompts`` of one question, ``characters`` of one prompt and ``bytes`` of one question.
        request: how what init sends begins.
        reply: how what init is sent begins.
    """

    def __init__(self, channel: int, offered: Mapping[str, int], request: Struct, reply: Struct) -> None:
        self._channel = channel
        self._prompts, self._characters = offered["prompts"], offered["characters"]
        self._bytes = offered["bytes"]
        self._request, self._reply = request, reply
        self._here = _getpid()
        self._call = 0
        self._owed = 0  # the call in which a question was left unanswered, as by a handler of signals that raised
        self._turn = _thread.allocate_lock()
        self._reading = _thread.allocate_lock()
        self._ready = select.poll()
        self._ready.register(channel, select.POLLIN)
        self.held = bytearray()
        """What has come through the channel and nobody has taken yet."""

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What code calls, by name."""

        def llm(prompt: str) -> str:
            """The answer of the model to ``prompt``: all that it is told."""
            return self._answers([prompt])[0]

        def llm_batch(prompts: Iterable[str]) -> list[str]:
            """The model's answers to several prompts, in their order; several are answered at once."""
            return self._answers(list(prompts))

        return {"llm": llm, "llm_batch": llm_batch}

    def begin(self, call: int) -> None:
        """A call begins; only while it goes on may its code ask."""
        self._call = call

    def end(self) -> None:
        """It has ended; a thread of it that still waits for an answer touches the channel no more."""
        with self._reading:
            self._call = 0

    def _answers(self, prompts: list[str]) -> list[str]:
        parts: list[bytes] = []
        for number, prompt in enumerate(prompts):
            if not isinstance(prompt, str):
                raise TypeError(f"a prompt is a str, and number {number} is of type {type(prompt).__name__}")
            if len(prompt) > self._characters:
                raise ValueError(
                    f"a prompt may have {self._characters:,} characters; number {number} has {len(prompt):,}"
                )
            parts.append(_encode(str(prompt)).encode())
            if len(parts[-1]) + 2 > self._bytes:
                raise ValueError(f"prompt number {number} takes {len(parts[-1]):,} bytes; {self._bytes:,} at most")
        answers: list[str] = []
        while parts:
            count = size = 0
            while count < len(parts) and count < self._prompts and size + len(parts[count]) + 2 <= self._bytes:
                size += len(parts[count]) + 1
                count += 1
            answers += self._asked(b"[" + b",".join(parts[:count]) + b"]")
            del parts[:count]
        return answers

    def _asked(self, question: bytes) -> list[str]:
        if _getpid() != self._here:
            raise RuntimeError("only the notebook's own process can ask the model; ask there, or in a thread of it")
        with self._turn:
            call = self._call
            if self._owed and self._owed == call:
                self._told(call)
            self._send(call, self._reply.pack(ASK, call, 0, len(question)) + question)
            said = _decode(self._told(call).decode())
        if "refused" in said:
            raise RuntimeError(said["refused"])
        return list(said["answers"])

    def _send(self, call: int, data: bytes) -> None:
        """Send the whole of it, whatever signals come meanwhile: half a question would put the channel out of step."""
        before = _mask(_BLOCK, ())
        try:
            _mask(_BLOCK, _ALL)
            if not call or call != self._call:
                raise RuntimeError("the run that asks has ended")
            self._owed = call
            rest = memoryview(data)
            while rest:
                rest = rest[_write(self._channel, rest) :]
        finally:
            _mask(_SET, before)

    def _told(self, call: int) -> bytes:
        """The answer to what was asked last in ``call``."""
        size = self._request.size
        while True:
            while len(self.held) >= size:
                _, of, _, length = self._request.unpack_from(self.held)
                if len(self.held) < size + length:
                    break
                told = bytes(self.held[size : size + length])
                del self.held[: size + length]
                if of == call:
                    self._owed = 0
                    return told
            self._ready.poll(LOOK_MS)  # here signals may end the waiting, and nothing is lost
            self._take(call)

    def _take(self, call: int) -> None:
        before = _mask(_BLOCK, ())
        try:
            _mask(_BLOCK, _ALL)
            with self._reading:
                if self._call != call:  # what is there now is the next call's
                    raise RuntimeError("the run that asked has ended")
                if self._ready.poll(0):
                    data = _read(self._channel, PIECE)
                    if not data:
                        _exit(0)
                    self.held += data
        finally:
            _mask(_SET, before)

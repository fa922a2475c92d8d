"""Init's part in a question that code asks: it goes on to the server as a frame, and the answer comes back as one.

What the question says is the server's business. Init sees to its length, that there is one at a time, and that there
are not too many of them in a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcpgym_environments.python_sandbox.jail import frames

NUMBERS = ("prompts", "characters", "bytes", "asks")


class Forwarding:
    """The questions of a session.

    Args:
        offered: what the first frame says of them.
        send: sends a frame to the server.
        receive: waits for a frame of the server's; its header and blob.

    Raises:
        FrameError: what is offered is no offer.
    """

    def __init__(
        self, offered: Any, send: Callable[[bytes], None], receive: Callable[[], tuple[dict[str, Any], bytes]]
    ) -> None:
        if type(offered) is not dict or any(type(offered.get(name)) is not int for name in NUMBERS):
            raise frames.FrameError(f"asks has the whole numbers {', '.join(NUMBERS)}")
        self.offered: Mapping[str, int] = {name: offered[name] for name in NUMBERS}
        self.most_bytes = min(offered["bytes"], frames.MAX_BLOB)
        self.most_asks = offered["asks"]
        """How many questions one call may ask."""
        self.number: Any = None
        """The number of the server's request that is being answered."""
        self._send, self._receive = send, receive
        self._asked = 0

    def ask(self, question: bytes) -> None:
        """Hand a question to the server."""
        self._asked += 1
        self._send(frames.encode({"n": self.number, "ask": self._asked}, question))

    def told(self) -> bytes | None:
        """The answer, once there is something to read; None where it is one to an earlier question.

        Raises:
            FrameError: the server sends something else in the middle of a call.
        """
        header, blob = self._receive()
        if header.get("op") != "told":
            raise frames.FrameError("during a call the server answers questions, and asks for nothing more")
        return blob if header.get("ask") == self._asked else None

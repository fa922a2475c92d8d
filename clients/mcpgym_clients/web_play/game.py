"""A game on the page: what every kind of it can be asked, and the table of those that are open."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from mcpgym.errors import ConfigurationError

Part = Literal["policy", "opponent", "nobody"]
"""Whose moves the person makes."""
Result = TypeVar("Result")
MAX_GAMES = 64
"""Games kept open; the one that was not looked at for longest is left when another begins."""


@dataclass(slots=True)
class Said:
    """One entry of what the page shows as said: by whom, and what; ``call`` is the call that it is, or answers."""

    who: Literal["system", "user", "you", "policy", "tool", "note"]
    text: str
    call: str = ""
    wrong: bool = False

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return {"who": self.who, "text": self.text, "call": self.call, "wrong": self.wrong}


@dataclass(slots=True)
class Game:
    """What all games have. ``version`` counts what happened, so that a page which is behind changes nothing."""

    part: Part
    title: str
    said: list[Said] = field(default_factory=list)
    version: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def view(self) -> dict[str, Any]:
        """All that the page shows of it, save what moves are worth."""
        return {
            "part": self.part,
            "title": self.title,
            "said": [entry.as_json() for entry in self.said],
            "version": self.version,
            "turn": "over",
            "tools": [],
            "words": False,
            "choices": None,
            "board": "",
            "verdict": "",
            "score": None,
            "again": "",
        }

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool for the person; the MCP result."""
        raise ConfigurationError("in this game nobody calls a tool from the page")

    async def say(self, text: str) -> None:
        """Answer in words for the person."""
        raise ConfigurationError("in this game nobody answers in words from the page")

    async def choose(self, act: str) -> None:
        """Make a move for the person who has the opponent's part."""
        raise ConfigurationError("in this game there is no move to choose")

    async def step(self) -> None:
        """Let the policy whose turn it is take it."""
        raise ConfigurationError("in this game no policy plays")

    async def values(self) -> dict[str, Any]:
        """``moves``: what may be done now and what each is worth to who moves; or none, and a ``note``."""
        return {"moves": [], "note": "the values of moves are known where an environment gives its game tree"}

    async def aclose(self) -> None:
        """Let go of what it holds."""


class Games:
    """The open games, by an id that nobody can guess."""

    def __init__(self, make: Callable[[str], Awaitable[Game]]) -> None:
        self._make = make
        self._open: OrderedDict[str, Game] = OrderedDict()
        self._stopped = asyncio.Event()

    async def new(self, level: str) -> tuple[str, Game]:
        """Begin one.

        Raises:
            McpgymError: it cannot be begun.
        """
        game = await self._make(level)
        number = secrets.token_urlsafe(12)
        self._open[number] = game
        while len(self._open) > MAX_GAMES:
            _, oldest = self._open.popitem(last=False)
            await oldest.aclose()
        return number, game

    def get(self, number: str) -> Game:
        """An open game.

        Raises:
            LookupError: there is none of this id.
        """
        if number not in self._open:
            raise LookupError("this game is not there any more; begin a new one")
        self._open.move_to_end(number)
        return self._open[number]

    async def unless_stopped(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of ``work``, which is cancelled when the games are stopped: a policy may think for minutes.

        Raises:
            ConfigurationError: they were.
        """
        doing, stopped = asyncio.ensure_future(work), asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait({doing, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise ConfigurationError("mcpgym play was stopped")
            return doing.result()
        finally:
            stopped.cancel()
            doing.cancel()

    def stop(self) -> None:
        """Cancel what goes on in them."""
        self._stopped.set()

    async def aclose(self) -> None:
        """Leave all of them."""
        while self._open:
            _, game = self._open.popitem()
            await game.aclose()

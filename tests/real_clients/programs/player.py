"""The model of a client under test, without the client: what it calls next, from what it has read so far.

The programs here run with whichever MCP SDK their client wants, so nothing in this folder imports mcpgym.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

START, PLAY = "start_episode", "play"
PATIENCE_SECONDS = 10.0


def next_call(way: str, task: str, cells: Sequence[int], texts: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """The tool and the arguments of the next call, after results with these ``texts``; None once the game is over.

    It remembers nothing but what it reads. The tool's name is ours, without whatever prefix a client gives it.
    """
    if way == "bare" and not texts:
        return START, {"environment": "tic-tac-toe", "task": task}
    if texts and "Game over" in texts[-1]:
        return None
    handle, answers = ({"episode": texts[0].split()[1]}, texts[1:]) if way == "bare" else ({}, texts)
    if not answers:
        return PLAY, {**handle, "position": cells[0]}
    (free,) = re.findall(r"free ([0-8 ]+)", answers[-1])
    return PLAY, {**handle, "position": next(cell for cell in cells if str(cell) in free)}


class InStep:
    """Lets several games go on only together, so that their calls are truly interleaved.

    Args:
        games: their names.
    """

    def __init__(self, games: Sequence[str]) -> None:
        self._moves = dict.fromkeys(games, 0)
        self._changed = asyncio.Condition()

    async def move(self, game: str) -> None:
        """Wait until every other game that goes on has made as many moves as ``game``, or seems to be stuck."""
        async with self._changed:
            together = self._changed.wait_for(lambda: min(self._moves.values()) >= self._moves[game])
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(together, PATIENCE_SECONDS)
            self._moves[game] += 1
            self._changed.notify_all()

    async def leave(self, game: str) -> None:
        """``game`` is over: nobody waits for it any more."""
        async with self._changed:
            self._moves.pop(game, None)
            self._changed.notify_all()


class Seat:
    """A game that a program plays without a model of its own: see ``mcpgym``'s tests, clients.Seat."""

    def __init__(self, given: Mapping[str, Any], steps: InStep) -> None:
        self.name: str = given["name"]
        self.way: str = given["way"]
        self.url: str = given["url"]
        self.command: list[str] = given["command"]
        self.home: str = given["home"]
        self.task: str = given["task"]
        self.cells: list[int] = given["cells"]
        self.texts: list[str] = []
        self._steps = steps

    async def play(self, call: Callable[[str, dict[str, Any]], Awaitable[str]]) -> None:
        """Play to the end; ``call`` calls a tool and returns the text of its result, an error's too."""
        while (wanted := next_call(self.way, self.task, self.cells, self.texts)) is not None:
            await self._steps.move(self.name)
            self.texts.append(await call(*wanted))

    async def leave(self) -> None:
        """It is over, however it ended."""
        await self._steps.leave(self.name)


Play = Callable[[Seat, str], Awaitable["list[dict[str, Any]] | None"]]
"""Plays one game, given the base URL of a model; the tools, where the program itself is what a model would be."""


def seats_taken() -> tuple[list[Seat], str]:
    """The seats that standard input names, those of one way in step, and the base URL of the model."""
    asked = json.loads(sys.stdin.readline())
    ways: dict[str, list[str]] = {}
    for seat in asked["seats"]:
        ways.setdefault(seat["way"], []).append(seat["name"])
    steps = {way: InStep(names) for way, names in ways.items()}
    return [Seat(given, steps[given["way"]]) for given in asked["seats"]], asked["model"]


async def play_all(play: Play) -> None:
    """Play on the seats that standard input names, all at once, and tell of each."""
    seats, model = seats_taken()

    async def one(seat: Seat) -> dict[str, Any]:
        try:
            return {"tools": await play(seat, model), "texts": seat.texts}
        except Exception as error:
            return {"error": "; ".join(leaves(error))}
        finally:
            await seat.leave()

    tell(await asyncio.gather(*map(one, seats)))


def tell(games: Sequence[Mapping[str, Any]]) -> None:
    """Write what came of each game to standard output, in the order of the seats."""
    for game in games:
        print(json.dumps(game), flush=True)


def leaves(error: BaseException) -> list[str]:
    """What went wrong, out of the groups it is wrapped in."""
    if isinstance(error, BaseExceptionGroup):
        return [text for inner in error.exceptions for text in leaves(inner)]
    return [f"{type(error).__name__}: {error}"]

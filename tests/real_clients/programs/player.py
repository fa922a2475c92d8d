"""The model of a client under test, without the client: what it calls next, from what it has read so far.

The programs here run with whichever MCP SDK their client wants, so nothing in this folder imports mcpgym.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

START, PLAY = "start_episode", "play"


def next_call(texts: Sequence[str], bare: bool, task: str, cells: Sequence[int]) -> tuple[str, dict[str, Any]] | None:
    """The name and the arguments of the next call, after results with these ``texts``; None once the game is over.

    A board shows a free cell as its number, so a cell is free while it was neither played nor answered: the model
    remembers only what it reads. The tool's name is ours, without whatever prefix a client gives it.
    """
    if bare and not texts:
        return START, {"task": task}
    if texts and "Game over" in texts[-1]:
        return None
    handle = {"episode": texts[0].split()[1]} if bare else {}
    free = re.findall(r"free ([0-8 ]+)", texts[-1]) if texts else []
    open_cells = {int(cell) for cell in free[-1].split()} if free else set(range(9))
    return PLAY, {"position": next(cell for cell in cells if cell in open_cells), **handle}


class InStep:
    """Lets several games go on only together, so that their calls are truly interleaved.

    Args:
        games: how many there are.
    """

    def __init__(self, games: int) -> None:
        self._moves = dict.fromkeys(range(games), 0)
        self._changed = asyncio.Condition()

    async def move(self, game: int) -> None:
        """Wait until every other game that goes on has made as many moves as ``game``."""
        async with self._changed:
            await self._changed.wait_for(lambda: min(self._moves.values()) >= self._moves[game])
            self._moves[game] += 1
            self._changed.notify_all()

    async def leave(self, game: int) -> None:
        """``game`` is over: nobody waits for it any more."""
        async with self._changed:
            self._moves.pop(game, None)
            self._changed.notify_all()


def named(tool: str, offered: Sequence[Mapping[str, Any]]) -> str:
    """The name under which ``offered`` has ``tool``: its own, or that with a client's prefix."""
    return next(str(other["name"]) for other in offered if str(other["name"]).endswith(tool))

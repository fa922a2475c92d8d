"""The real clients that play our environments in tests: what each of them has to be able to do.

To add a client: write an asynchronous function that plays on all the seats it is given, those of one way at once, each
to its end, with the client as it came from its registry, and that says what reached the model; then add it to the list
in :mod:`tests.real_clients.all_clients`. ``python -m tests.real_clients NAME`` measures it and writes its rows into
docs/clients.md; ``test_clients_play.py`` measures it anew and compares. No cell there is written by hand.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Way = Literal["episode", "bare", "stdio"]
"""How a client reaches its game: the URL of an episode, ``/mcp`` with ``start_episode``, a process that is one task."""
WAYS: tuple[Way, ...] = ("episode", "bare", "stdio")


@dataclass(frozen=True)
class Seat:
    """One game of tic-tac-toe to be played to its end.

    What the model calls next is in :func:`tests.real_clients.programs.player.next_call`: by the way ``bare`` it calls
    ``start_episode`` first and gives the handle that it reads there to every ``play``.

    Attributes:
        way: how the game is reached.
        url: where, for ``episode`` and ``bare``; empty for ``stdio``.
        command: the program and its arguments, for ``stdio``; empty for the others.
        task: the id of the task (``test-3``); only ``bare`` has to give it.
        cells: the cells in the order in which the model likes them. Its first move is the first of them, free or not
            (9 is none at all: an error that the model has to read); then it plays the first that is free.
        home: a folder of this seat alone, for configuration files and logs.
    """

    way: Way
    url: str
    command: Sequence[str]
    task: str
    cells: Sequence[int]
    home: Path


@dataclass(frozen=True)
class Played:
    """What reached the model in one game.

    Attributes:
        tools: the tools on offer, each with ``name``, ``description`` and ``inputSchema`` (whatever the client calls
            them) as the client gave them to the model; other members, such as ``strict``, are what the client adds.
            Tools that are the client's own are left out.
        texts: the texts of the results of all calls, in order.
    """

    tools: Sequence[Mapping[str, Any]]
    texts: Sequence[str]


class CannotPlay(Exception):
    """The client tried and could not; the text says what came of it, in a few words that the table repeats."""


@dataclass(frozen=True)
class Client:
    """A client under test.

    Attributes:
        name: as the table has it.
        version: its package and the version of that, as they say themselves: ``fastmcp 4.2.3``.
        play: plays on all seats and answers in their order: what was played, or what went wrong. Seats of one way are
            played at once; the ways may come one after another.
        missing: why it cannot be run on this machine at all, or None. Such a row says so.
    """

    name: str
    version: Callable[[], str]
    play: Callable[[Sequence[Seat]], Awaitable[Sequence[Played | Exception]]]
    missing: Callable[[], str | None] = lambda: None

"""The real clients that play our environments in tests: what each of them has to be able to do.

To add a client: write an asynchronous function that sits on all the :class:`Seat` s it is given *at once*, plays each to
its end with the client as it came from its registry, and says what reached the model; then add it to the list in :mod:`tests.real_clients.all_clients`.
``python -m tests.real_clients NAME`` measures it and writes its row into docs/clients.md;
``test_clients_play.py`` measures it anew and compares. Nothing in that table is written by hand.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Way = Literal["episode", "bare", "stdio"]
"""How a client reaches its game: the URL of an episode, ``/mcp`` with ``start_episode``, a process that is one task."""
WAYS: tuple[Way, ...] = ("episode", "bare", "stdio")


@dataclass(frozen=True)
class Seat:
    """One game of tic-tac-toe to be played to its end.

    By the way ``bare`` the first call is ``start_episode`` with ``task``, whose answer begins ``episode: HANDLE``; every
    ``play`` then has that handle as its argument ``episode``. By the other ways ``play`` takes the position alone.

    Attributes:
        way: how the game is reached.
        url: where, for ``episode`` and ``bare``; None for ``stdio``.
        command: the program and its arguments, for ``stdio``; None for the others.
        task: the id of the task (``test-3``); only ``bare`` has to give it.
        cells: all nine cells in the order in which the model likes them: each turn it plays the first that is free.
            :mod:`tests.real_clients.programs.player` does that.
        home: a folder of this seat alone, for configuration files and logs.
    """

    way: Way
    url: str | None
    command: Sequence[str] | None
    task: str
    cells: Sequence[int]
    home: Path


@dataclass(frozen=True)
class Played:
    """What reached the model in one game, as the client showed it.

    Attributes:
        tools: the tools on offer, each with ``name``, ``description`` and ``inputSchema`` (whatever the client calls that
            member), unchanged; further members, such as ``strict``, are what the client adds. Tools that are the
            client's own are left out.
        texts: the texts of the results of all calls, in order.
        version: the client's version, as its package says.
    """

    tools: Sequence[Mapping[str, Any]]
    texts: Sequence[str]
    version: str


class CannotPlay(Exception):
    """The client tried and could not; the text is what it measured, in a few words that the table repeats."""


@dataclass(frozen=True)
class Client:
    """A client under test.

    Attributes:
        name: as the table has it.
        play: plays on all seats at once and answers in their order. It raises :class:`CannotPlay`, or whatever went wrong.
        missing: why it cannot be run on this machine at all, or None. Such a row says "not run".
    """

    name: str
    play: Callable[[Sequence[Seat]], Awaitable[Sequence[Played]]]
    missing: Callable[[], str | None] = field(default=lambda: None)

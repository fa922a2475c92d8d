"""Lets a client play three games at once by each way, and judges them by what the servers know.

What must have reached the model is no opinion: the same task, seed and moves are played once more in this process, and
the control plane scores them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real_clients.clients import WAYS, CannotPlay, Client, Played, Seat, Way
from tests.real_clients.listing_toy import ListingToy
from tests.real_clients.programs.player import next_call
from tests.real_clients.remembering import Remembering
from tests.real_clients.schema_differences import additions, differences, prefix_of

from mcpgym.control import Call, LocalControl, OpenedEpisode
from mcpgym.episodes import Episodes, listings
from mcpgym.registry import load_environment
from mcpgym.rewards import Score
from mcpgym.schema import schema_hash
from mcpgym.serving import serving
from mcpgym.wire.bare import BarePlayer, Handles
from mcpgym_environments.tic_tac_toe import TicTacToe

GAMES: tuple[tuple[str, int, tuple[int, ...]], ...] = (
    ("test-0", 5, (4, 0, 8, 2, 6, 1, 3, 5, 7)),
    ("test-1", 6, (9, 7, 5, 1, 3, 4, 2, 0, 8, 6)),
    ("test-2", 7, (4, 2, 6, 0, 7, 1, 8, 5, 3)),
)
"""Task, seed and the model's liking for each of the three. They are short: some clients start a process for each call.

The second begins with an error that the model must read, the third is won, and the others are lost.
"""
SECRET = "a-secret-of-the-tests"
OVER = "\n(This episode is over; start_episode begins another.)"


@dataclass(frozen=True)
class Cell:
    """What was measured of one client by one way.

    Attributes:
        plays: every game was played to its end, by the score.
        isolated: each of the three was its own: board, answers, score.
        same_hash: the model's tools have the hash that the server's have, a prefix of all names set aside.
        cannot: why the client cannot play this way, where it said so itself; else empty.
        problem: what went wrong, for whoever looks why.
    """

    plays: bool
    isolated: bool
    same_hash: bool | None
    cannot: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Row:
    """A client's line of the table, and how what the model sees differs from what we send."""

    name: str
    version: str
    cells: Mapping[Way, Cell]
    changes: Sequence[str]
    answers: Sequence[str]


async def measure(client: Client, home: Path) -> Row:
    """Let ``client`` play all games by all ways. What it did wrong is in the row; nothing is raised for it."""
    episodes = Remembering({"tic-tac-toe": load_environment("tic-tac-toe"), "listing-toy": ListingToy()})
    listing: dict[Way, Sequence[Mapping[str, Any]]] = {
        "episode": listings(TicTacToe()),
        "bare": BarePlayer(episodes, Handles(episodes), list(episodes.environments)).tools(),
        "stdio": listings(TicTacToe()),
    }
    async with serving(episodes, secret=SECRET) as server:
        opened = [await server.control.open("tic-tac-toe", task=task, seed=seed) for task, seed, _ in GAMES]
        seats = [seat for way in WAYS for seat in _seats(way, server.url, opened, home)]
        try:
            done = await client.play(seats)
        except Exception as error:  # then no seat was played
            done = [error] * len(seats)
        assert SECRET not in repr(done), f"{client.name} was shown the control plane's secret"
        cells: dict[Way, Cell] = {}
        changes: set[str] = set()
        answers: set[str] = set()
        seen: list[Mapping[str, Any]] = []
        prefixes: set[str] = set()
        for place, way in enumerate(WAYS):
            games = [_bare_names(game, listing[way], prefixes) for game in done[3 * place : 3 * place + 3]]
            truths = [await _truth(way, number, server.control, episodes) for number in range(3)]
            cells[way] = _judge(way, games, truths, listing[way])
            for game, (expected, _) in zip(games, truths, strict=True):
                if isinstance(game, Played):
                    seen += game.tools
                    changes |= {*differences(listing[way], game.tools)}
                    answers |= set(_answer_changes(expected, _without_handles(way, game.texts)))
    names = [f"names begin with `{prefix}`" for prefix in sorted(prefixes)]
    changed = [*names, *sorted(changes), *additions(seen)]
    return Row(client.name, client.version(), cells, changed, _as_one(answers))


def _seats(way: Way, base: str, opened: Sequence[OpenedEpisode], home: Path) -> list[Seat]:
    seats = []
    for (task, seed, cells), episode in zip(GAMES, opened, strict=True):
        folder = home / f"{way} {task}"
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "mcpgym_clients", "serve", "tic-tac-toe", "--stdio"]
        seats.append(
            Seat(
                way,
                {"episode": episode.url or "", "bare": f"{base}/mcp", "stdio": ""}[way],
                [*command, "--task", task, "--seed", str(seed)] if way == "stdio" else [],
                task,
                cells,
                folder,
            )
        )
    return seats


async def _truth(way: Way, number: int, control: LocalControl, episodes: Remembering) -> tuple[list[str], Score | None]:
    """The answers that the model of a game must have read, and the score of the episode that was played.

    Over stdio there is no control plane: there the score is that of the repetition, whose answers must be the same.
    """
    task, seed, cells = GAMES[number]
    played = None
    if way != "stdio":
        mine = [episode for episode in episodes.opened if episode.task.id == task]
        mine = [episode for episode in mine if (way == "bare") == (episode.seed not in {s for _, s, _ in GAMES})]
        if len(mine) != 1:
            return [], None
        (played,) = mine
        seed = played.seed
    repeated = LocalControl(Episodes.of("tic-tac-toe"))
    token = (await repeated.open("tic-tac-toe", task=task, seed=seed)).token
    texts: list[str] = []
    while (wanted := next_call("episode", task, cells, texts)) is not None:
        (answer,) = await repeated.step([Call(token, *wanted)])
        texts.append(answer.text)
    score = await repeated.score(token)
    await repeated.aclose()
    if played is not None and await control.score(played.token) != score:
        return texts, None
    return texts, score


def _bare_names(
    game: Played | Exception, listing: Sequence[Mapping[str, Any]], prefixes: set[str]
) -> Played | Exception:
    """``game`` with the names of tools as we sent them; a prefix that all of them had is noted in ``prefixes``."""
    if not isinstance(game, Played) or not (prefix := prefix_of(listing, game.tools)):
        return game
    prefixes.add(prefix)
    return Played([tool | {"name": tool["name"].removeprefix(prefix)} for tool in game.tools], game.texts)


def _judge(
    way: Way,
    games: Sequence[Played | Exception],
    truths: Sequence[tuple[list[str], Score | None]],
    listing: Sequence[Mapping[str, Any]],
) -> Cell:
    problems = [str(game) for game in games if isinstance(game, Exception)]
    if problems:
        cannot = next((str(game) for game in games if isinstance(game, CannotPlay)), "")
        return Cell(False, False, None, cannot, problems[0])
    played = [game for game in games if isinstance(game, Played)]
    read = [_without_handles(way, game.texts) for game in played]
    ended = [bool(texts) and "Game over" in texts[-1] for texts in read]
    scored = [score is not None and score.game_outcome is not None for _, score in truths]
    own = [
        len(texts) == len(expected) and all(_place(true, text) for text, true in zip(texts, expected, strict=True))
        for texts, (expected, _) in zip(read, truths, strict=True)
    ]
    hashes = {schema_hash(game.tools) for game in played}
    problem = "" if all([*ended, *scored, *own]) else f"ended {ended}, scored {scored}, its own {own}: {read}"
    return Cell(all(ended) and all(scored), all(own) and all(scored), hashes == {schema_hash(listing)}, problem=problem)


def _without_handles(way: Way, texts: Sequence[str]) -> list[str]:
    """The answers of ``play`` alone, as they are where there are no handles."""
    return [text.replace(OVER, "") for text in texts[1:]] if way == "bare" else list(texts)


def _answer_changes(expected: Sequence[str], read: Sequence[str]) -> list[str]:
    """What a client puts around the texts of results. Numbers in it are not told: they are others each time."""
    found = []
    for true, text in zip(expected, read, strict=False):
        if (place := _place(true, text)) is not None and place != ("", ""):
            kind = "an error" if "Nothing was played" in true else "a result"
            found.append(f"{kind} reads `{re.sub('[0-9]+', '#', f'{place[0]}…{place[1]}')}`")
    return found


def _as_one(answers: set[str]) -> list[str]:
    """What is done to errors and to other results alike, told once."""
    results = {text.partition(" reads ")[2] for text in answers if text.startswith("a result")}
    errors = {text.partition(" reads ")[2] for text in answers if text.startswith("an error")}
    alike = {f"an answer reads {shape}" for shape in results & errors}
    return sorted(alike | {text for text in answers if text.partition(" reads ")[2] not in results & errors})


def _place(true: str, text: str) -> tuple[str, str] | None:
    """What stands before and after an answer in what the model read, be it there as it is or as a string in JSON."""
    for spelt in (true, json.dumps(true)[1:-1], json.dumps(true, ensure_ascii=False)[1:-1]):
        before, found, after = text.partition(spelt)
        if found:
            return " ".join(before.split()), " ".join(after.split())
    return None

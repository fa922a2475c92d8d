"""Every game of TextArena's that can be played here, played by trying moves: all that a policy reads, as digests.

``python tests/environments/textarena_plays.py > tests/environments/textarena_plays.json`` writes them anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from random import Random

from episode_driver import open_episode

from mcpgym_environments.imported.textarena import TextArena, TextArenaConfig
from mcpgym_environments.imported.textarena.games import AGAINST, ALONE
from mcpgym_environments.imported.textarena.moves import candidates
from mcpgym_environments.imported.textarena.package import EXTRA

GAMES = (*AGAINST, *ALONE)
STEPS = 5


def plans(games: Sequence[str]) -> list[list[str]]:
    """The moves of a policy that tries any, for each game."""
    return [[candidates(game, None, Random(f"{game} {step}"))[0] for step in range(STEPS)] for game in games]


async def texts(games: Sequence[str], interleaved: bool) -> list[list[str]]:
    """All that is read of each game, their moves taken in turn or one game after the other."""
    environments = [TextArena(TextArenaConfig(game=f"{game}-v0")) for game in games]
    steps = [(place, number) for number in range(len(games)) for place in range(-1, STEPS)]
    moves = plans(games)
    episodes = {}
    read: list[list[str]] = [[] for _ in games]
    for place, number in sorted(steps) if interleaved else sorted(steps, key=lambda step: step[::-1]):
        if place < 0:
            episodes[number] = await open_episode(environments[number], "test", number)
            read[number] += [message["content"] for message in episodes[number].messages]
        else:
            read[number].append((await episodes[number].call("act", {"action": moves[number][place]})).text)
    for number, episode in episodes.items():
        read[number].append(str((await episode.score([])).total))
    return read


def digests(read: Sequence[Sequence[str]]) -> dict[str, str]:
    """A digest of what is read of each game, and the version of TextArena."""
    found = {
        game: hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16]
        for game, lines in zip(GAMES, read, strict=True)
    }
    return {"textarena": EXTRA.version, **found}


if __name__ == "__main__":
    print(json.dumps(digests(asyncio.run(texts(GAMES, True))), indent=1))

"""Plays the expert in one episode, then in 256 at once; prints the peak memory after each, in KiB."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from random import Random

from episode_driver import drive

from mcpgym import Environment
from mcpgym.episodes import Episodes
from mcpgym.registry import configure
from mcpgym_environments.wiki_search.environment import WikiSearch


async def main() -> None:
    environment: Environment = configure(WikiSearch, {"pages": int(sys.argv[1])})
    episodes = Episodes({environment.name: environment})
    act = environment.reference_policies()["expert"]

    async def one(index: int) -> float | None:
        episode = await episodes.open(environment.name, split="test", index=index, seed=0)
        return (await episode.score(await drive(episode, act, Random(index)))).total

    peaks = []
    for count in (1, 256):
        totals = await asyncio.gather(*(one(index) for index in range(count)))
        assert totals == [1.0] * count, totals
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    print(json.dumps(peaks))


asyncio.run(main())

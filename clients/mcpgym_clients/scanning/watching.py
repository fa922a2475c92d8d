"""Episodes whose tokens and seeds are canaries from the moment they are opened, whoever opens them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpgym.environment import Environment
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym_clients.scanning.canaries import Canaries, Kind


class WatchedEpisodes(Episodes):
    """Episodes as a server has them; each one's token and seed are looked for in what players are answered."""

    def __init__(self, environments: Mapping[str, Environment[Any, Any, Any]], canaries: Canaries) -> None:
        super().__init__(environments)
        self._canaries = canaries

    async def open(self, name: str, **which: Any) -> Episode:
        """A new episode; see :meth:`~mcpgym.episodes.Episodes.open`."""
        episode = await super().open(name, **which)
        self._canaries.watch(Kind.TOKEN, "the token of an episode", episode.token, owner=episode.token)
        self._canaries.watch(Kind.SEED, "the episode's seed", episode.seed)
        return episode

"""Guests: the episodes that players started themselves. Anyone may start one, so they keep nobody out for long."""

from __future__ import annotations

import time

from mcpgym.episode import Episode

IDLE_SECONDS = 60.0
"""How long a guest may be idle before it makes room for another."""


class Guests:
    """The live ones, and which of them makes room when a server is full."""

    def __init__(self) -> None:
        self._live: dict[str, Episode] = {}

    def add(self, episode: Episode) -> None:
        """One more."""
        self._live[episode.token] = episode

    def has(self, token: str) -> bool:
        """Whether a live guest has this token."""
        return token in self._live

    def forget(self, token: str) -> None:
        """It has ended; a token of another kind of episode is no matter."""
        self._live.pop(token, None)

    def who_leaves(self, *, for_guest: bool) -> Episode | None:
        """One that is over, else the one that has been idle for longest; None when there is nobody.

        Another guest takes the place only of one that is over or has been idle for ``IDLE_SECONDS``; an episode that
        the control plane opens takes it from any.
        """
        found = min(self._live.values(), key=lambda guest: (guest.busy, not guest.done, guest.last_used), default=None)
        if found is None or not for_guest:
            return found
        idle = time.monotonic() - found.last_used > IDLE_SECONDS
        return found if not found.busy and (found.done or idle) else None

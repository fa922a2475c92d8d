"""Episodes that tests can look up by task, also those that players started."""

from __future__ import annotations

from typing import Any

from mcpgym.episode import Episode
from mcpgym.episodes import Episodes


class Remembering(Episodes):
    """Keeps what it opened, in order."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.opened: list[Episode] = []

    async def open(self, *given: Any, **named: Any) -> Episode:
        """As always, and it is kept."""
        self.opened.append(await super().open(*given, **named))
        return self.opened[-1]

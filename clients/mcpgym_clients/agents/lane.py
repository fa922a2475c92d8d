"""Where agents' episodes are opened: by the control plane, with a limit on calls that the server keeps itself."""

from __future__ import annotations

from typing import Any

from mcpgym.control import ControlPlane
from mcpgym_rl.lanes import ControlEpisode, ControlLane, EpisodeLane
from mcpgym_rl.rollout import DEFAULT_MAX_TURNS


class AgentLane(ControlLane):
    """Opens episodes that somebody else plays, at their URL.

    Args:
        control: the control plane of a server that states URLs for players.
        max_turns: calls an episode may have; None for the environment's own limit, and where it has none, for that of
            our own loop.
    """

    def __init__(self, control: ControlPlane, max_turns: int | None) -> None:
        super().__init__(control)
        self.max_turns = max_turns
        self._own: dict[str, int | None] = {}

    async def open(self, environment: str, **task: Any) -> EpisodeLane:
        """Open an episode."""
        if not self._own:
            self._own = {item.name: item.max_turns for item in await self.control.environments()}
        limit = self.max_turns or (DEFAULT_MAX_TURNS if self._own.get(environment) is None else None)
        opened = await self.control.open(environment, max_turns=limit, **task)
        return ControlEpisode(self.control, opened, self.claims)

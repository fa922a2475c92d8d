"""The state of an episode: the APIs as the policy has made them, and as the solution would have."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcpgym_environments.imported.bfcl.apis import Apis
from mcpgym_environments.imported.bfcl.data import Row


@dataclass(eq=False, slots=True)
class Session:
    """``turn`` is the user's, from 0; ``results`` are the answers of all calls so far, ``answered`` those of this turn.

    ``right`` says of each turn that is over whether it went as BFCL's checker wants it. ``broken`` says why nothing
    more can be done, where it is so.
    """

    row: Row
    mine: Apis
    gold: Apis
    turn: int = 0
    calls: int = 0
    results: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    broken: str = ""

    @property
    def over(self) -> bool:
        """Whether the user has nothing more to say."""
        return self.turn >= len(self.row.turns)

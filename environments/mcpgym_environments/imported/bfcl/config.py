"""What can be chosen of BFCL."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from mcpgym import Config
from mcpgym.errors import UnknownNameError

APIS = (
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "TwitterAPI",
    "VehicleControlAPI",
)
"""The APIs of the multi-turn tasks, as BFCL calls them."""


class BfclConfig(Config):
    """Which tasks, and which tools beside them."""

    category: Literal["base", "miss_param", "miss_func", "long_context"] = "base"
    """Which of BFCL's multi-turn categories; each has 200 tasks."""
    apis: str = ""
    """APIs by commas: only the tasks that involve exactly these, and no tools but theirs. Empty for all tasks, and the
    tools of all APIs, of which those that a task does not involve refuse to work."""
    calls_per_turn: int = Field(default=40, ge=1, le=200)
    """How many calls one turn of the user may take; the episode ends unsolved with the next one. BFCL stops after 20
    answers of a model, each with any number of calls; its longest solution takes 34."""

    @field_validator("apis")
    @classmethod
    def _known(cls, value: str) -> str:
        names = sorted({name.strip() for name in value.split(",") if name.strip()})
        for name in names:
            if name not in APIS:
                raise ValueError(str(UnknownNameError("API of BFCL", name, APIS)))
        return ",".join(names)

    @property
    def api_names(self) -> tuple[str, ...]:
        """The APIs whose tools there are."""
        return tuple(self.apis.split(",")) if self.apis else APIS

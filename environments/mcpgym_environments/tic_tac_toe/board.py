"""The board that people click on, in clients that render MCP Apps and in ``mcpgym play --web``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mcpgym import App

_STRENGTHS = {
    "perfect": (0.0, 0.0),
    "strong": (0.1, 0.1),
    "middling": (0.4, 0.4),
    "weak": (0.7, 0.7),
    "random": (1.0, 1.0),
}
"""The least and the largest share of random moves of an opponent that people choose by name."""


@cache
def board_app() -> App:
    """The page, and the opponents that one may ask for."""
    levels = {
        name: {"min_random_move_prob": least, "max_random_move_prob": most}
        for name, (least, most) in _STRENGTHS.items()
    }
    html = (Path(__file__).parent / "static" / "board.html").read_text(encoding="utf-8")
    return App(html, tools=["play", "start_episode"], levels=levels)

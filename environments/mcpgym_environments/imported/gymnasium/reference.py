"""The policies: any action, and the best one where the environment says how it moves (``P``), or everybody knows it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from mcpgym import Message
from mcpgym.messages import assistant, tool_call
from mcpgym_environments.imported.gymnasium.config import GymnasiumConfig
from mcpgym_environments.imported.gymnasium.making import action_names, family, make

_NAMED = re.compile(r"The actions are: (.*?)\. In every turn", re.DOTALL)
_NUMBER = re.compile(r"^observation: (\d+)$", re.MULTILINE)
_CARDS = re.compile(r"^observation: \((\d+), (\d+), (\d+)\)$", re.MULTILINE)
_TABULAR = ("FrozenLake", "Taxi", "CliffWalking")
_DISCOUNT = 0.999
_SWEEPS = 3_000


def has_expert(config: GymnasiumConfig) -> bool:
    """Whether there is a best policy to compare with."""
    return family(config.id) in (*_TABULAR, "Blackjack")


def random_action(messages: Sequence[Message], random: Random) -> Message:
    """Any action of those that the prompt names."""
    named = _NAMED.search(messages[0]["content"] if messages else "")
    return _step(messages, random.choice(named[1].split(", ")) if named else "0")


class Expert:
    """The best action for what was seen last; the environment is looked at once, when it is first asked."""

    def __init__(self, config: GymnasiumConfig) -> None:
        self._config = config
        self._best: list[str] | None = None

    def __call__(self, messages: Sequence[Message], random: Random) -> Message:
        """The next step."""
        seen = next((m["content"] for m in reversed(messages) if "observation: " in m["content"]), "")
        if family(self._config.id) == "Blackjack":
            return _step(messages, _card_play(seen))
        if self._best is None:
            self._best = _solved(self._config)
        cell = _NUMBER.search(seen)
        return _step(messages, self._best[int(cell[1])] if cell and int(cell[1]) < len(self._best) else "0")


def _step(messages: Sequence[Message], action: str) -> Message:
    return assistant("", [tool_call(f"call-{len(messages)}", "step", json.dumps({"action": action}))])


def _solved(config: GymnasiumConfig) -> list[str]:
    """The best action in each cell, by value iteration over the environment's own transitions."""
    made = make(config)
    try:
        names = action_names(config.id, made)
        table: Any = made.unwrapped.P
        cells, actions = len(table), len(names)
        most = max(len(outcomes) for moves in table.values() for outcomes in moves.values())
        share, gain, on = np.zeros((3, cells, actions, most))
        to = np.zeros((cells, actions, most), dtype=int)
        for cell, moves in table.items():
            for action, outcomes in moves.items():
                for place, (chance, there, reward, over) in enumerate(outcomes):
                    where = cell, action, place
                    share[where], to[where], gain[where], on[where] = chance, there, reward, not over
        value = np.zeros(cells)
        for _ in range(_SWEEPS):
            worth = (share * (gain + _DISCOUNT * on * value[to])).sum(axis=2)
            if np.abs(worth.max(axis=1) - value).max() < 1e-10:
                break
            value = worth.max(axis=1)
        return [names[action] for action in worth.argmax(axis=1)]
    finally:
        made.close()


def _card_play(seen: str) -> str:
    """Basic strategy, as far as hit and stick go."""
    if (cards := _CARDS.search(seen)) is None:
        return "stick"
    mine, dealer, ace = map(int, cards.groups())
    if ace:
        return "hit" if mine < 18 or (mine == 18 and dealer in (1, 9, 10)) else "stick"
    if mine < 12 or (mine < 17 and dealer in (1, 7, 8, 9, 10)):
        return "hit"
    return "hit" if mine == 12 and dealer in (2, 3) else "stick"

"""Randomness of its own for each episode, and no prints of its games.

TextArena's games draw from Python's shared generator, so that two games in one process would disturb each other, and
the rest of the program. Here the name ``random`` in its modules means the generator of the episode at hand, and nothing
that is shared is touched. Some print, too: the name ``print`` does nothing there while an episode is at hand. (To
redirect the output of the process would not do: games are played in threads.) Outside of an episode both mean what
they always did.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from random import Random
from types import ModuleType
from typing import Any

_at_hand: ContextVar[Random | None] = ContextVar("generator of the game at hand", default=None)


class _Drawn:
    """What ``random`` is to a module of TextArena's."""

    def __getattr__(self, name: str) -> Any:
        generator = _at_hand.get()
        found = getattr(random if generator is None else generator, name, None)
        return getattr(random, name) if found is None else found  # Random itself, and other classes


def _printed(*values: object, **options: Any) -> None:
    """What ``print`` is to a module of TextArena's."""
    if _at_hand.get() is None:
        print(*values, **options)


_drawn = _Drawn()
_modules = 0
"""How many modules there were when they were last looked through."""


@contextlib.contextmanager
def drawing_from(generator: Random) -> Iterator[None]:
    """Let TextArena's games draw from ``generator``, here and in what is called from here."""
    if len(sys.modules) != _modules:  # thousands in a large process, and games draw thousands of times
        take_over()
    token = _at_hand.set(generator)
    try:
        yield
    finally:
        _at_hand.reset(token)


def copied(generator: Random) -> Random:
    """Another generator that goes on as this one would."""
    made = Random()
    made.setstate(generator.getstate())
    return made


def take_over() -> None:
    """Modules of TextArena's are imported game by game: this is for those that were."""
    global _modules
    _modules = len(sys.modules)
    for name, module in list(sys.modules.items()):
        if not name.startswith("textarena"):
            continue
        vars(module)["print"] = _printed
        if isinstance(vars(module).get("random"), ModuleType):
            vars(module)["random"] = _drawn

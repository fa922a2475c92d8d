"""Two datasets whose scorers pay for what is no answer, and what is asked of one here beside their word.

``puzzle24`` takes any four numbers that make 24, and not only those of the question, so that one answer solves all;
and 24 and a half is 24 to it. ``game_of_life_halting`` takes any text but an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from mcpgym_environments.imported.reasoning_gym.safe import arithmetic


def is_answer(answer: str, entry: Mapping[str, Any]) -> bool:
    """Whether ``answer`` may be paid for in full; true of all that no dataset of :data:`STRICTER` asks."""
    ask = STRICTER.get(str(entry["metadata"].get("source_dataset")))
    return ask is None or ask(answer, entry)


def _makes_24(answer: str, entry: Mapping[str, Any]) -> bool:
    numbers = [int(number) for number in re.findall("[0-9]+", answer)]
    return sorted(numbers) == sorted(entry["metadata"]["numbers"]) and bool(arithmetic(answer) == 24)


def _says_so(answer: str, entry: Mapping[str, Any]) -> bool:
    return answer.strip().lower() == str(entry["answer"]).lower()


STRICTER: Mapping[str, Callable[[str, Mapping[str, Any]], bool]] = {
    "puzzle24": _makes_24,
    "game_of_life_halting": _says_so,
}

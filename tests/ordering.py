"""In which order tests run on several workers: the longest units first, so that none begins when all others are done.

A unit runs on one worker, in the order of its file: a module, so that what it shares is made once; or, of the modules
named in ``APART``, a single test. ``seconds.txt`` says how long each unit took when somebody last looked
(``pytest -n 3 --record-seconds tests``); a unit that it does not know counts as ``UNKNOWN`` seconds, so that it begins
early. Nothing depends on its numbers but the order. Without ``-n`` tests run as pytest orders them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

SECONDS = Path(__file__).with_name("seconds.txt")
APART = ("tests/test_documents.py", "tests/clients/test_scan.py", "tests/real_clients/test_clients_play.py")
"""Modules whose tests take long, and share nothing that takes long to make."""
UNKNOWN = 60.0


def unit(test: str) -> str:
    """The unit of a test, by its id."""
    module = test.split("::", 1)[0]
    return test if module in APART else module


def recorded(file: Path = SECONDS) -> dict[str, float]:
    """Seconds by unit; a line is the seconds and the unit's name."""
    lines = (line.split(" ", 1) for line in file.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def longest_first(units: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """The units, the longest first; the unknown by name among them."""
    return sorted(units, key=lambda name: (-seconds.get(name, UNKNOWN), name))


def record(durations: Iterable[tuple[str, float]], file: Path = SECONDS) -> None:
    """Write how long units took, of the durations of their tests' parts; those of a second and more to a second."""
    sums: defaultdict[str, float] = defaultdict(float)
    for test, seconds in durations:
        sums[unit(test)] += seconds
    rounded = {name: round(seconds, 0 if seconds >= 1 else 1) for name, seconds in sums.items()}
    lines = [f"{rounded[name]:g} {name}\n" for name in longest_first(rounded, rounded)]
    file.write_text("".join(lines), encoding="utf-8")

"""A program that measures the regions of a map."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from mcpgym_environments.python_sandbox.problems.debug.making import Bug, Program, broken
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_SOURCE = '''
"""Finds the regions of a map: cells of one letter that hang together."""

from collections import deque

STEPS = NEIGHBOURS


def region(grid, row, column, seen):
    """All cells of the region of one of its cells."""
    letter = grid[row][column]
    cells = []
    waiting = deque([(row, column)])
    seen.add((row, column))
    while waiting:
        r, c = waiting.popleft()
        cells.append((r, c))
        for down, right in STEPS:
            place = (r + down, c + right)
            if place in seen:
                continue
            if not (0 <= place[0] < len(grid) and 0 <= place[1] < len(grid[0])):
                continue
            if grid[place[0]][place[1]] != letter:
                continue
            seen.add(place)
            waiting.append(place)
    return cells


def border(cells):
    """How many sides of cells are not shared with another cell of the region."""
    inside = set(cells)
    sides = 0
    for r, c in cells:
        for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if (r + down, c + right) not in inside:
                sides += 1
    return sides


def FUNCTION(grid):
    seen = set()
    found = []
    for row in range(len(grid)):
        for column in range(len(grid[row])):
            if (row, column) in seen or grid[row][column] == "EMPTY":
                continue
            cells = region(grid, row, column, seen)
            rows = [r for r, _ in cells]
            columns = [c for _, c in cells]
            box = (max(rows) - min(rows) + 1) * (max(columns) - min(columns) + 1)
            found.append([grid[row][column], len(cells), border(cells), box])
    found.sort(key=lambda entry: (-entry[1], entry[0], entry[2]))
    return found
'''

_FOUR = ((1, 0), (-1, 0), (0, 1), (0, -1))
_EIGHT = (*_FOUR, (1, 1), (1, -1), (-1, 1), (-1, -1))


def _bugs(steps: tuple[tuple[int, int], ...], empty: str) -> tuple[Bug, ...]:
    return (
        Bug(f"STEPS = {steps!r}", f"STEPS = {(_EIGHT if steps == _FOUR else _FOUR)!r}", 2),
        Bug(f"STEPS = {steps!r}", f"STEPS = {steps[:1] + steps[2:]!r}", 1),
        Bug("place[1] < len(grid[0])", "place[1] < len(grid)", 2),
        Bug("0 <= place[0] < len(grid) and", "place[0] < len(grid) and", 2),
        Bug("sides += 1", "sides = sides or 1", 1),
        Bug("!= letter", f'== "{empty}"', 2),
        Bug("max(rows) - min(rows) + 1", "max(rows) - min(rows)", 1),
        Bug("(max(columns) - min(columns) + 1)", "(columns[-1] - columns[0] + 1)", 3),
        Bug("(-entry[1], entry[0], entry[2])", "(entry[1], entry[0], entry[2])", 1),
        Bug("(-entry[1], entry[0], entry[2])", "(-entry[1], entry[2], entry[0])", 3),
        Bug("(r + down, c + right) not in inside", "(r + down, c - right) not in inside", 3),
        Bug("range(len(grid[row]))", "range(len(grid))", 1),
        Bug("found.append([grid[row][column],", "found.append([grid[row - 1][column],", 2),
        Bug("    return cells\n\n\ndef border", "    return cells[1:] or cells\n\n\ndef border", 2),
    )


def _grid(random: Random, height: int, width: int, letters: str) -> list[str]:
    rows: list[str] = []
    for row in range(height):
        line = ""
        for column in range(width):
            near = [*([line[-1]] if line else []), *([rows[row - 1][column]] if row else [])]
            line += random.choice(near) if near and random.random() < 0.5 else random.choice(letters)
        rows.append(line)
    return rows


def _make(random: Random, level: int) -> Problem:
    function, empty = random.choice(("measure", "find_regions", "survey", "regions_of")), random.choice(".~ #")
    steps = random.choice((_FOUR, _EIGHT))
    letters = "".join(random.sample("ABCGKMT", 3)) + empty

    def inputs(random: Random) -> Iterator[Arguments]:
        yield ([],)
        yield ([letters[0]],)
        yield ([empty * 4],)
        yield ([letters[0] + letters[1] + letters[0], letters[1] + letters[0] + letters[1]],)
        while True:
            yield (_grid(random, random.randint(1, 9), random.randint(1, 9), letters),)

    touch = "a side" if steps == _FOUR else "a side or a corner"
    program = Program(
        function,
        {"grid": "a list of strings of the same length, a character for each cell"},
        f"""
        A region is a greatest set of cells with the same letter that hang together: from each one can go to each
        other over
        cells of the set, each of which shares {touch} with the next. Cells with {empty!r} are empty and belong to none.

        For each region the result has [letter, size, border, box]: how many cells it has, how many sides of its cells
        are
        not sides of another cell of the region too, and how many cells the smallest upright rectangle around it has.
        The list is sorted by size, greatest first; equal sizes by letter, and then by border, smallest first. What is
        equal in all of these stays in the order of the topmost, and of those the leftmost, cell of the regions.
        """,
        _SOURCE.replace("FUNCTION", function).replace("EMPTY", empty).replace("NEIGHBOURS", repr(steps)),
        _bugs(steps, empty),
        inputs,
        lambda random: (_grid(random, random.randint(2, 4), random.randint(2, 5), letters),),
    )
    return broken("broken-surveyor", level, random, program)


GENERATOR = Made("broken-surveyor", "debug", "a program that measures the regions of a map", _make)

"""A walker on a grid that turns by the cell it stands on and changes it: a grid machine with drawn rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_TURNS = ("left", "right", "back", "not at all")
_QUARTERS = {"left": -1, "right": 1, "back": 2, "not at all": 0}
_NAMES = "NESW"
_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))

_SOLUTION = """
RULES = {rules!r}

def {function}(grid, {start}, steps):
    cells = {{(r, c): cell for r, line in enumerate(grid) for c, cell in enumerate(line)}}
    height, width = len(grid), len(grid[0])
    walkers = [[row, column, "NESW".index(facing)] for row, column, facing in {walkers}]
    for step in range(steps):
        walker = walkers[step % len(walkers)]
        row, column, facing = walker
        quarter, after, length = RULES[cells[row, column]]
        facing = (facing + quarter) % 4
        cells[row, column] = after
        for _ in range(length):
            r = row + (facing == 2) - (facing == 0)
            c = column + (facing == 1) - (facing == 3)
{border}
            {occupied}
            row, column = r, c
        walker[:] = row, column, facing
    lines = ["".join(cells[r, c] for c in range(width)) for r in range(height)]
    return [lines, {result}]
"""

_BORDERS = {
    "round": (
        "The grid has no border: whoever leaves it on one side comes in on the opposite side.",
        "            r, c = r % height, c % width",
    ),
    "stop": (
        "At the border a walker that would leave the grid stays where it is, and looks on in the same direction.",
        "            if (r, c) not in cells: break",
    ),
    "turn": (
        "At the border a walker that would leave the grid stays where it is and turns back (the opposite direction); "
        "if "
        "it had more than one cell to go in this step, the rest is left out.",
        "            if (r, c) not in cells: facing = (facing + 2) % 4; break",
    ),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """The rules: per kind of cell the turn (quarters to the right), what it becomes, and how far one goes."""

    rules: dict[str, tuple[int, str, int]]
    border: str

    def run(self, grid: list[str], walkers: list[list[object]], steps: int) -> tuple[list[str], list[list[object]]]:
        """The grid and the walkers after ``steps`` steps, which they take in turns."""
        cells = [list(line) for line in grid]
        height, width = len(cells), len(cells[0])
        places = [(int(str(row)), int(str(column)), _NAMES.index(str(facing))) for row, column, facing in walkers]
        for step in range(steps):
            index = step % len(places)
            row, column, facing = places[index]
            others = {place[:2] for other, place in enumerate(places) if other != index}
            quarters, becomes, length = self.rules[cells[row][column]]
            cells[row][column] = becomes
            facing = (facing + quarters) % 4
            while length:
                down, right = _MOVES[facing]
                to_row, to_column = row + down, column + right
                if self.border == "round":
                    to_row, to_column = to_row % height, to_column % width
                elif not (0 <= to_row < height and 0 <= to_column < width):
                    facing = (facing + 2) % 4 if self.border == "turn" else facing
                    break
                if (to_row, to_column) in others:
                    break
                row, column = to_row, to_column
                length -= 1
            places[index] = row, column, facing
        return ["".join(line) for line in cells], [[row, column, _NAMES[facing]] for row, column, facing in places]


def _grid(random: Random, kinds: str, height: int, width: int) -> list[str]:
    weights = [4, *[1] * (len(kinds) - 1)]
    return ["".join(random.choices(kinds, weights, k=width)) for _ in range(height)]


def _make(random: Random, level: int) -> Problem:
    kinds = "".join(random.sample(".#o+=xw", min(level + 1, 5)))
    border = random.choice(("round", "stop")) if level <= 2 else random.choice(tuple(_BORDERS))
    jumps = level >= 4
    two = level == 5
    turns = [random.choice(_TURNS[:2]), *random.sample(_TURNS, 4)][: len(kinds)]
    order = random.sample(kinds, len(kinds))
    following = dict(zip(order, order[1:] + order[:1], strict=True))
    lengths = [random.randint(1, 3) if jumps else 1 for _ in kinds]
    machine = Machine(
        {kind: (_QUARTERS[turn], following[kind], length)
         for kind, turn, length in zip(kinds, turns, lengths, strict=True)},
        border,
    )  # fmt: skip
    function = random.choice(("walk", "run_machine", "wander", "simulate"))

    def one(grid: list[str], start: list[object], steps: int) -> list[object]:
        lines, places = machine.run(grid, [start], steps)
        return [lines, places[0]]

    def several(grid: list[str], starts: list[list[object]], steps: int) -> list[object]:
        return list(machine.run(grid, starts, steps))

    def arguments(random: Random, height: int, width: int, steps: int) -> Arguments:
        places = random.sample(
            [(row, column) for row in range(height) for column in range(width)], min(2, height * width)
        )
        walkers = [[*place, random.choice(_NAMES)] for place in places]
        return (_grid(random, kinds, height, width), walkers if two else walkers[0], steps)

    def inputs(random: Random) -> Iterator[Arguments]:
        yield ([kinds[0]], [[0, 0, "N"]] if two else [0, 0, "N"], 5)
        yield arguments(random, 3, 4, 0)
        yield arguments(random, 3, 4, 1)
        yield arguments(random, 1, 9, 40)
        yield arguments(random, 9, 1, 40)
        yield arguments(random, 2, 2, 50)
        while True:
            yield arguments(random, random.randint(3, 9), random.randint(3, 9), random.randint(5, 400))

    table = "\n".join(
        f"- on {kind}: turn {turn}, then the cell becomes {following[kind]}"
        + (f", then go {length} cell{'s' * (length > 1)}" if jumps else "")
        for kind, turn, length in zip(kinds, turns, lengths, strict=True)
    )
    rules = (
        "A walker stands on a cell of a grid and looks N (up, to smaller rows), E (right), S (down) or W (left). In "
        "each "
        "step it does what the cell on which it stands says (turns are by a quarter, back is half a turn)"
        + (":\n" if jumps else ", then goes one cell forward:\n")
        + table
        + "\n"
        + _BORDERS[border][0]
    )
    if two:
        rules += (
            "\nThere are one or two walkers, which take the steps in turns, the first begins: steps counts the steps "
            "of all "
            "together. A walker does not enter a cell where another stands: it stays in front of it and looks on in "
            "the "
            "same direction; the rest of its way in this step is left out."
        )
    elif jumps:
        rules += "\nCells that are passed on the way do not change."
    start = "starts" if two else "start"
    each = "[row, column, direction], rows and columns counted from 0"
    wanted = Wanted(
        function,
        {
            "grid": "a list of strings of one length, a character for each cell",
            start: f"the walkers, a list of {each}" if two else each,
            "steps": "how many steps are taken (0 or more)",
        },
        rules,
        f"[grid, {start}] as they are after the steps, in the same form.",
        several if two else one,
        inputs,
        [arguments(random, 3, 4, random.randint(3, 9)), arguments(random, 4, 5, random.randint(10, 30))],
        _SOLUTION.format(
            rules={kind: (quarters % 4, after, length) for kind, (quarters, after, length) in machine.rules.items()},
            function=function, start=start, walkers="starts" if two else "[start]", border=_BORDERS[border][1],
            occupied="if any(w[:2] == [r, c] for w in walkers if w is not walker): break" if two else "pass",
            result='[[r, c, "NESW"[f]] for r, c, f in walkers]' if two
            else '[walkers[0][0], walkers[0][1], "NESW"[walkers[0][2]]]',
        ),
        ("(facing == 1) - (facing == 3)", "(facing == 3) - (facing == 1)"),
    )  # fmt: skip
    return written("grid-machine", level, wanted)


GENERATOR = Made("grid-machine", "function", "a walker that turns by the cells of a grid and changes them", _make)

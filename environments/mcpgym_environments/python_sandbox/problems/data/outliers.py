"""What is left of measurements when outliers are taken out by a stated rule."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, file_name, mistaken, pick, program, whole

_ROWS = (21, 90, 300, 800, 2_000)
_CODE = """
import json
from fractions import Fraction


def quantile(values, share):
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


groups = {}
with open(path, encoding="utf-8") as file:
    for line in file:
        if not line.strip():
            continue
        record = json.loads(line)
        value = record.get("value")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            groups.setdefault(record["machine"] if grouped else "", []).append(value)
total = 0
for values in groups.values():
    while True:
        values.sort()
        low, high = quantile(values, Fraction(1, 4)), quantile(values, Fraction(3, 4))
        reach = factor * (high - low)
        kept = [value for value in values if low - reach <= value <= high + reach]
        done = len(kept) == len(values) or not repeated
        values = kept
        if done:
            break
    total += sum(values)
print(total)
"""


def kept(values: list[int], factor: Fraction, repeated: bool) -> list[int]:
    """``values`` without outliers, in whole numbers: everything is multiplied by what makes it whole."""
    values = sorted(values)
    while values:
        quarters = []
        for share in (1, 3):
            below, part = divmod(share * (len(values) - 1), 4)
            above = values[min(below + 1, len(values) - 1)]
            quarters.append(4 * values[below] + part * (above - values[below]))
        low, high = quarters
        reach = factor.numerator * (high - low)
        size = factor.denominator
        left = [value for value in values if low * size - reach <= 4 * value * size <= high * size + reach]
        if len(left) == len(values) or not repeated:
            return left
        values = left
    return values


def _make(random: Random, level: int) -> Problem:
    grouped, repeated = level >= 3, level >= 4
    factor = random.choice((Fraction(3, 2), Fraction(2), Fraction(3, 2), Fraction(5, 4)))
    machines = [f"M{number}" for number in random.sample(range(10, 99), 1 + level if grouped else 2)]
    while True:
        lines, groups = [], dict[str, list[int]]()
        centres = {machine: random.randint(300, 9_000) for machine in machines}
        for number in range(_ROWS[level - 1] + random.randrange(8)):
            machine = random.choice(machines)
            centre = centres[machine] if grouped else 2_000
            value = round(random.gauss(centre, 60))
            if random.random() < 0.08:
                value = centre + random.choice((-1, 1)) * random.randint(120, 1_500)
            shown: str = str(value)
            missing = level >= 2 and random.random() < 0.05
            if missing:
                shown = random.choice(("null", '"error"', "null", "true"))
            if missing and random.random() < 0.3:
                lines.append(f'{{"id": {number}, "machine": "{machine}"}}')
            else:
                lines.append(f'{{"id": {number}, "machine": "{machine}", "value": {shown}}}')
            if not missing:
                groups.setdefault(machine if grouped else "", []).append(value)
        total = sum(sum(kept(values, factor, repeated)) for values in groups.values())
        if level <= 2:
            other = sum(sum(kept(values, factor * 2, repeated)) for values in groups.values())
        elif level == 3:
            other = sum(kept([value for values in groups.values() for value in values], factor, repeated))
        else:
            other = sum(sum(kept(values, factor, False)) for values in groups.values())
        if total != other:
            break
    path = file_name(random, "jsonl", "values", "machines", "tests")
    scope = "For each machine by itself, take its values and call" if grouped else "Call"
    again = (
        " Where outliers were taken out, the same is done again with what is left (with new quartiles), until there "
        "are none."
        if repeated
        else ""
    )
    rule = (
        f"{scope} Q1 and Q3 their quartiles: the quantile p of n sorted values v[0] to v[n-1] is found at the place "
        f"p*(n-1), with linear interpolation between the two values next to it. A value is an outlier if it is below "
        f"Q1 - {float(factor):g}*(Q3 - Q1) or above Q3 + {float(factor):g}*(Q3 - Q1); values on these bounds are kept."
    )
    ask = "What is the sum of all values that are kept" + (" (over all machines)?" if grouped else "?")
    absent = " Records whose value is missing or is not a number are passed over." if level >= 2 else ""
    text = pick(
        random,
        f"Each line of {path} is a JSON object with id, machine and value (a whole number).{absent} Outliers are to be "
        f"taken out. {rule}{again} {ask}",
        f"{path} holds one measurement on each line, as JSON: id, machine, value.{absent} {rule} Outliers are taken "
        f"out.{again} {ask}",
    )
    values = {"path": path, "grouped": grouped, "repeated": repeated}
    fixed = _CODE.replace("factor * (", f"Fraction({factor.numerator}, {factor.denominator}) * (")
    if level <= 2:
        double = factor * 2
        code = _CODE.replace("factor * (", f"Fraction({double.numerator}, {double.denominator}) * (")
    elif level == 3:
        code = mistaken(fixed, 'record["machine"] if grouped else ""', '""')
    else:
        code = mistaken(fixed, " or not repeated", " or True")
    return Problem(
        "outliers",
        "data",
        level,
        f"{text} {ask_whole(random)}",
        whole(total),
        files={path: ("\n".join(lines) + "\n").encode()},
        solution=program(fixed, **values),
        wrong=program(code, **values),
    )


OUTLIERS = Made("outliers", "data", "measurements without outliers, by quartiles and a stated rule", _make)

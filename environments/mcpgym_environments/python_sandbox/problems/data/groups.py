"""The highest average of several groups, in a table where values are missing."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from mcpgym_environments.python_sandbox.problems.data.tables import (
    PRODUCTS,
    REGIONS,
    cents,
    clear_of_ties,
    csv_text,
    rounded,
)
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import file_name, listed, mistaken, pick, program

_ROWS = (25, 120, 400, 900, 1_600)
_MARKS = ("", "NA", "n/a", "-", "?")
_CODE = """
import csv
from fractions import Fraction

groups = {}
with open(path, encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        key = tuple(row[name].strip().lower() for name in keys)
        price = row["price"].strip()
        if price in marks:
            continue
        total, count = groups.get(key, (0, 0))
        groups[key] = total + Fraction(price.replace(",", "")), count + 1
best = max(Fraction(total, count) for total, count in groups.values() if count >= least)
print(f"{float(best):.2f}")
"""


def _make(random: Random, level: int) -> Problem:
    regions = random.sample(REGIONS, min(len(REGIONS), 2 + level))
    products = random.sample(PRODUCTS, 2 + level)
    marks = list(_MARKS[: (0, 1, 3, 4, 5)[level - 1]])
    keys = ["region"] if level < 4 else ["region", "product"]
    least = 1 if level < 4 else 3 + level
    while True:
        rows: list[tuple[object, ...]] = []
        sums: dict[tuple[str, ...], tuple[int, int, int]] = {}
        for number in range(1, _ROWS[level - 1] + random.randrange(9)):
            region, product = random.choice(regions), random.choice(products)
            price = random.randint(500, 250_000)
            missing = bool(marks) and random.random() < 0.12
            key = (region,) if level < 4 else (region, product)
            total, count, lines = sums.get(key, (0, 0, 0))
            sums[key] = (total, count, lines + 1) if missing else (total + price, count + 1, lines + 1)
            text = random.choice(marks) if missing else cents(price)
            if level >= 4:
                text = text if missing else f"{price // 100:,}.{price % 100:02}"
                region = random.choice((region, region.capitalize(), region.upper(), f" {region}", f"{region} "))
            rows.append((f"S{number:05}", region, product, random.randint(1, 9), text))
        means = [Fraction(total, 100 * count) for total, count, _ in sums.values() if count >= least]
        # A mistake: missing prices taken as 0, or (where none is missing) the mean over all lines of all groups.
        as_zero = [Fraction(total, 100 * lines) for total, _, lines in sums.values() if lines >= least]
        if means and clear_of_ties(max(means), 2):
            wrong = max(as_zero) if level > 1 else min(means)
            if round(wrong * 100) != round(max(means) * 100):
                break
    path = file_name(random, "csv", "sales", "prices", "orders")
    group = "region" if level < 4 else "pair of region and product"
    rules = []
    if marks:
        shown = [repr(mark) if mark else "an empty field" for mark in marks]
        rules.append(
            f"Where {listed(shown, 'or')} stands for the price, it is missing: such a row plays no part in the mean."
        )
    if level >= 4:
        rules.append(
            "Regions are the same whatever the case of their letters and the spaces around them. Commas in prices "
            f"separate thousands. Only pairs with at least {least} rows that have a price are considered."
        )
    text = pick(
        random,
        f"The file {path} is a CSV with the columns sale, region, product, quantity and price. Work out the mean price "
        f"of each {group} (the mean over rows; the quantity does not matter). How high is the highest of these means?",
        f"{path} has a row for each sale. Group the rows by {' and '.join(keys)} and take the arithmetic mean of the "
        "column price in each group, each row counting once. What is the greatest mean?",
    )
    values = {"path": path, "keys": keys, "marks": marks, "least": least}
    if level > 1:
        code = mistaken(_CODE, "            continue\n", '            price = "0"\n')
    else:
        code = mistaken(_CODE, "best = max(", "best = min(")
    return Problem(
        "group-means",
        "data",
        level,
        " ".join([text, *rules, "Submit it rounded to two decimals."]),
        rounded(max(means), 2),
        files={path: csv_text(("sale", "region", "product", "quantity", "price"), rows).encode()},
        solution=program(_CODE, **values),
        wrong=program(code, **values),
    )


GROUPS = Made("group-means", "data", "the highest mean of groups, with missing values", _make)

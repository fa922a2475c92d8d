"""Questions about files: pandas gives the same answers, and a mistake another."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import pytest
from tests.environments.sandbox_problems import check_guesses, check_solutions, check_texts, made, parameters

from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer, answer_text, judge
from mcpgym_environments.python_sandbox.problems.data import GENERATORS
from mcpgym_environments.python_sandbox.problems.data.tables import cents, clear_of_ties, rounded
from mcpgym_environments.python_sandbox.problems.problem import LEVELS, Problem

pandas = pytest.importorskip("pandas")


def test_there_are_enough() -> None:
    assert len(GENERATORS) >= 6
    assert all(generator.family == "data" and list(generator.levels) == list(LEVELS) for generator in GENERATORS)


def test_solutions_are_right_and_mistakes_wrong() -> None:
    check_solutions(GENERATORS)


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
def test_texts_are_varied_and_do_not_hold_the_answer(generator) -> None:  # type: ignore[no-untyped-def]
    check_texts(generator)


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
def test_answers_cannot_be_guessed(generator) -> None:  # type: ignore[no-untyped-def]
    check_guesses(generator)


def frame(problem: Problem, name: str, **options: Any) -> Any:
    return pandas.read_csv(io.BytesIO(problem.files[name]), dtype=str, keep_default_na=False, **options)


def group_means(problem: Problem, said: dict[str, Any]) -> Decimal:
    table = frame(problem, said["path"])
    table["region"] = table.region.str.strip().str.lower()
    table = table[~table.price.isin(said["marks"])]
    table = table.assign(price=table.price.str.replace(",", "").map(Decimal))
    groups = table.groupby(said["keys"]).price.agg(["sum", "count"])
    groups = groups[groups["count"] >= said["least"]]
    return (groups["sum"] / groups["count"].map(Decimal)).max().quantize(Decimal("0.01"), ROUND_HALF_UP)


def table_joins(problem: Problem, said: dict[str, Any]) -> int:
    customers = frame(problem, f"customers{said['tail']}.csv").drop_duplicates("customer", keep="last")
    orders = frame(problem, f"orders{said['tail']}.csv").merge(customers, on="customer")
    if said["level"] >= 3:
        products = pandas.DataFrame(json.loads(problem.files[f"products{said['tail']}.json"])["products"])
        orders = orders.merge(products, left_on="product", right_on="name", suffixes=("_customer", ""))
    orders["left"] = orders.quantity.astype(int)
    if said["level"] >= 5:
        back = frame(problem, f"returns{said['tail']}.csv").astype({"quantity": int}).groupby("order").quantity.sum()
        orders["left"] -= orders.order.map(back).fillna(0).astype(int)
    chosen = orders[
        (orders.status != "cancelled") & (orders.segment == said["segment"]) & orders.country.isin(said["countries"])
    ]
    return int((chosen.price.str.replace(".", "").astype(int) * chosen.left).sum())


def sensor_gaps(problem: Problem, said: dict[str, Any]) -> Decimal:
    table = frame(problem, said["path"])
    table["time"] = pandas.to_datetime(table.time, utc=True, format="ISO8601")
    table = table.drop_duplicates("time", keep="last")
    table = table[table.value != ""].assign(value=lambda rows: rows.value.map(Decimal))
    hours = table.groupby(table.time.dt.floor("h")).value.agg(["sum", "count"])
    return sum(hours[hours["count"] == 60 // said["every"]]["sum"], Decimal(0))


def nested_json(problem: Problem, said: dict[str, Any]) -> int:
    total = 0
    stack = [(json.loads(problem.files[said["path"]]), None, 1)]
    while stack:
        node, owner, rate = stack.pop()
        if node.get("archived"):
            continue
        owner, rate = node.get("owner", owner) or owner, node.get("rate", rate)
        stack += [(child, owner, rate) for child in node.get("children", ())]
        tasks = pandas.DataFrame(node["tasks"] or [], columns=["hours", "tags"])
        if owner == said["wanted"] and len(tasks):
            tagged = tasks[tasks.tags.map(lambda tags: isinstance(tags, list) and said["tag"] in tags)]
            hours = tagged.hours.dropna().map(lambda value: int(str(value).removesuffix(".0").replace(",", "")))
            total += sum(hours) * (rate if said["priced"] else 1)
    return total


def duplicate_people(problem: Problem, said: dict[str, Any]) -> int:
    table, level = frame(problem, said["path"]), said["level"]
    mail = table.mail.str.strip().str.lower()
    if level >= 2:
        mail = mail.str.replace(r"\+[^@]*", "", regex=True)
    if level >= 3:
        free = mail.str.endswith("@" + said["free"])
        mail = mail.where(~free, mail.str.split("@").str[0].str.replace(".", "") + "@" + said["free"])
    table["group"] = range(len(table))
    keys = [mail]
    if level >= 4:
        keys.append(table.phone.str.replace(r"\D", "", regex=True).str[-9:])
    while True:  # the least number of a group spreads until nothing changes
        before = table.group.copy()
        for key in keys:
            there = key != ""
            least = table[there].groupby(key[there]).group.transform("min")
            table.loc[there, "group"] = least
        if (before == table.group).all():
            return int(table.group.nunique())


def mixed_units(problem: Problem, said: dict[str, Any]) -> Decimal:
    table = frame(problem, said["path"], sep=";")
    table = table[(table.country == said["country"]) & ~table.weight.isin(["", "unknown"])]
    pound = Decimal("0.45359237")
    kilograms = {"kg": Decimal(1), "g": Decimal("0.001"), "": Decimal("0.001"), "t": Decimal(1_000), "lb": pound}
    kilograms["oz"] = pound / 16
    if said["decimal_comma"]:
        table["weight"] = table.weight.str.replace(",", ".")
    parts = table.weight.str.lower().str.extractall(r"(?P<number>[0-9.]+) ?(?P<unit>[a-z]*)")
    sizes = parts.number.map(Decimal) * parts.unit.fillna("").map(kilograms)
    pieces = table.pieces.replace("", "1").map(Decimal)
    return sum(sizes.groupby(level=0).sum() * pieces, Decimal(0)).quantize(Decimal("0.001"), ROUND_HALF_UP)


def outliers(problem: Problem, said: dict[str, Any]) -> int:
    table = pandas.read_json(io.BytesIO(problem.files[said["path"]]), lines=True, dtype=False)
    number = table.value.map(lambda value: isinstance(value, (int, float)) and not isinstance(value, bool))
    table = table[number & table.value.notna()].astype({"value": int})
    above, below = re.search(r"Fraction\((\d+), (\d+)\) \* \(high", problem.solution).groups()  # type: ignore[union-attr]
    total = 0
    for _, group in table.groupby("machine" if said["grouped"] else lambda row: 0):
        values = group.value
        while True:
            low, high = values.quantile(0.25), values.quantile(0.75)
            reach = int(above) / int(below) * (high - low)
            left = values[values.between(low - reach, high + reach)]
            if len(left) == len(values) or not said["repeated"]:
                break
            values = left
        total += int(left.sum())
    return total


def messy_csv(problem: Problem, said: dict[str, Any]) -> int:
    table = frame(problem, said["path"], sep=said["delimiter"], encoding=said["encoding"])
    chosen = table[(table.city == said["city"]) & table.note.str.contains(said["word"])]
    return int(chosen.amount.str.replace(r"\s", "", regex=True).astype(int).sum())


def web_visits(problem: Problem, said: dict[str, Any]) -> int:
    lines = pandas.Series(problem.files[said["path"]].decode().splitlines())
    line = r'^(?P<client>[\d.]+) .*\[(?P<time>.*)\] ".*" (?P<status>\d+) \d+ "(?P<agent>.*)"$'
    table = lines.str.extract(line).dropna()
    table["time"] = pandas.to_datetime(table.time, format="%d/%b/%Y:%H:%M:%S %z", utc=True)
    if said["without_bots"]:
        table = table[~table.agent.str.contains("bot", case=False)]
    if said["without_errors"]:
        table = table[table.status.astype(int) < 400]
    keys = ["client", "agent"] if said["by_agent"] else ["client"]
    pauses = table.sort_values("time").groupby(keys).time.diff()
    return int((pauses.isna() | (pauses > pandas.Timedelta(minutes=said["pause"]))).sum())


SECOND: dict[str, Callable[[Problem, dict[str, Any]], int | Decimal]] = {
    "group-means": group_means,
    "table-joins": table_joins,
    "sensor-gaps": sensor_gaps,
    "nested-json": nested_json,
    "duplicate-people": duplicate_people,
    "mixed-units": mixed_units,
    "outliers": outliers,
    "messy-csv": messy_csv,
    "web-visits": web_visits,
}


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
def test_pandas_comes_to_the_same(generator) -> None:  # type: ignore[no-untyped-def]
    for level in LEVELS:
        for seed in range(2):
            problem = made(generator, level, seed)
            assert isinstance(problem.answer, NumberAnswer)
            found = SECOND[generator.name](problem, parameters(problem))
            assert Fraction(found) == problem.answer.value, f"level {level}, seed {seed}"
            assert judge(problem.answer, str(found)).correct


def test_what_could_be_rounded_in_two_ways_is_not_asked_for() -> None:
    assert not clear_of_ties(Fraction("1.125"), 2)
    assert not clear_of_ties(Fraction("-1.1250001"), 2)
    assert clear_of_ties(Fraction("1.126"), 2)
    assert rounded(Fraction("1.126"), 2) == NumberAnswer(Fraction("1.13"))
    assert answer_text(rounded(Fraction("-0.004"), 3)) == "-0.004"
    assert cents(5) == "0.05"

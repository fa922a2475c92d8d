"""What customers of a kind paid, over two to four files that belong together."""

from __future__ import annotations

import json
from random import Random

from mcpgym_environments.python_sandbox.problems.data.tables import COUNTRIES, FIRST, LAST, PRODUCTS, cents, csv_text
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, mistaken, pick, program, whole

_SIZES = ((8, 30), (30, 150), (60, 400), (120, 900), (200, 1_800))
_SEGMENTS = ("retail", "trade", "public", "school")
_CODE = """
import csv
import json


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


customers = {row["customer"]: row for row in rows(f"customers{tail}.csv")}
if level >= 3:
    with open(f"products{tail}.json", encoding="utf-8") as file:
        prices = {item["name"]: round(float(item["price"]) * 100) for item in json.load(file)["products"]}
returned = {}
if level >= 5:
    for row in rows(f"returns{tail}.csv"):
        returned[row["order"]] = returned.get(row["order"], 0) + int(row["quantity"])
total = 0
for order in rows(f"orders{tail}.csv"):
    customer = customers.get(order["customer"])
    if customer is None or customer["segment"] != segment or customer["country"] not in countries:
        continue
    if order["status"] == "cancelled":
        continue
    price = prices[order["product"]] if level >= 3 else round(float(order["price"]) * 100)
    total += price * (int(order["quantity"]) - returned.get(order["order"], 0))
print(total)
"""


def _make(random: Random, level: int) -> Problem:
    while True:
        made = _tables(random, level)
        if made is not None:
            break
    plain, segment, countries, total = made
    tail = f"-{random.randint(1_000, 999_999)}"
    files = {name.replace(".", f"{tail}."): content for name, content in plain.items()}
    names = " and ".join(sorted(files)) if len(files) == 2 else ", ".join(sorted(files))
    rules = ["Orders with the status cancelled do not count."]
    if level >= 2:
        rules.append(f"Orders whose customer is not in customers{tail}.csv do not count either.")
    if level >= 3:
        rules.append(f"The price of one piece is in products{tail}.json.")
    if level >= 4:
        rules.append(f"A customer who is in customers{tail}.csv more than once is what the last such row says.")
    if level >= 5:
        rules.append(
            f"returns{tail}.csv says how many pieces of an order were sent back, perhaps in several rows; "
            "they are not paid."
        )
    who = f"customers of the segment {segment} in {' or '.join(countries)}"
    text = pick(
        random,
        f"The workspace has {names}. What do the orders of {who} come to, quantity times price, in cents?",
        f"Join the files {names} and work out how many cents {who} pay for their orders altogether (each order costs "
        "its quantity times the price of a piece).",
    )
    values = {"tail": tail, "level": level, "segment": segment, "countries": countries}
    slip = ('    if order["status"] == "cancelled":\n        continue\n', "")
    if level >= 4:
        slip = (
            'in rows(f"customers{tail}.csv")}',
            'in reversed(rows(f"customers{tail}.csv"))}',
        )
    return Problem(
        "table-joins",
        "data",
        level,
        f"{text} {' '.join(rules)} {ask_whole(random)}",
        whole(total),
        files=files,
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, *slip), **values),
    )


def _tables(random: Random, level: int) -> tuple[dict[str, bytes], str, list[str], int] | None:
    """The files, the question's segment and countries, and the sum; None where a mistake would not show."""
    people, orders = _SIZES[level - 1]
    ids = [f"C{number}" for number in random.sample(range(1_000, 9_999), people)]
    places = random.sample(COUNTRIES, 3 + level // 2)
    customers = [
        (person, f"{random.choice(FIRST)} {random.choice(LAST)}", random.choice(_SEGMENTS), random.choice(places))
        for person in ids
    ]
    if level >= 4:
        for person in random.sample(ids, people // 6):
            name = f"{random.choice(FIRST)} {random.choice(LAST)}"
            customers.append((person, name, random.choice(_SEGMENTS), random.choice(places)))
        random.shuffle(customers)
    first = {person: (segment, country) for person, _, segment, country in reversed(customers)}
    last = {person: (segment, country) for person, _, segment, country in customers}
    prices = {product: random.randint(150, 40_000) for product in PRODUCTS}
    segment, countries = random.choice(_SEGMENTS), sorted(random.sample(places, 1 + level // 3))
    total = other = 0
    rows: list[tuple[object, ...]] = []
    returns: list[tuple[object, ...]] = []
    for number in range(orders):
        person = random.choice(ids) if level < 2 or random.random() > 0.05 else f"C{random.randint(10_000, 10_999)}"
        product, quantity, order = random.choice(PRODUCTS), random.randint(1, 12), f"O{number + 1:05}"
        price = prices[product] if level >= 3 else random.randint(150, 40_000)
        cancelled = random.random() < 0.12
        paid = quantity
        if level >= 5 and random.random() < 0.1:
            for _ in range(random.randint(1, 2)):
                back = random.randint(0, paid)
                if back:
                    returns.append((order, back))
                    paid -= back
        status = "cancelled" if cancelled else random.choice(("paid", "sent"))
        rows.append((order, person, product, quantity, *(() if level >= 3 else (cents(price),)), status))
        segment_, country = last.get(person, ("", ""))
        if segment_ == segment and country in countries:
            total += 0 if cancelled else price * paid
            other += price * paid if level < 4 else 0
        if level >= 4:
            segment_, country = first.get(person, ("", ""))
            if segment_ == segment and country in countries and not cancelled:
                other += price * paid
    if total == other or total < 10_000:
        return None
    header = ("order", "customer", "product", "quantity", *(() if level >= 3 else ("price",)), "status")
    files = {
        "customers.csv": csv_text(("customer", "name", "segment", "country"), customers).encode(),
        "orders.csv": csv_text(header, rows).encode(),
    }
    if level >= 3:
        items = [{"name": name, "price": cents(price)} for name, price in prices.items()]
        files["products.json"] = json.dumps({"currency": "EUR", "products": items}, indent=1).encode()
    if level >= 5:
        random.shuffle(returns)
        files["returns.csv"] = csv_text(("order", "quantity"), returns).encode()
    return files, segment, countries, total


JOINS = Made("table-joins", "data", "what some customers paid, over files that must be joined", _make)

"""Exports in which fields hold the delimiter, quotes and line ends, in several encodings."""

from __future__ import annotations

from random import Random

from mcpgym_environments.python_sandbox.problems.data.tables import FIRST, LAST, csv_text
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, file_name, pick, program, whole

_ROWS = (14, 70, 250, 600, 1_200)
_CODE = r"""
import csv

total = 0
with open(path, encoding=encoding, newline="") as file:
    for row in csv.DictReader(file, delimiter=delimiter):
        if row["city"] == city and word in row["note"]:
            total += int(row["amount"].replace(" ", "").replace("\u00a0", ""))
print(total)
"""
_NAIVE = r"""
total = 0
with open(path, encoding=encoding, newline="") as file:
    for line in file:
        fields = line.rstrip("\r\n").split(delimiter)
        if len(fields) == 4 and fields[1].strip('"') == city and word in fields[2]:
            total += int(fields[3].replace(" ", "").replace("\u00a0", ""))
print(total)
"""
_CITIES = ("Zürich", "Malmö", "Besançon", "Núria", "Graz", "Odense", "São Vito", "Orléans", "Düren", "Genève")
_WORDS = ("late", "gift", "fragile", "return", "urgent", "paid", "broken", "phone")


def _note(random: Random, level: int, delimiter: str, words: list[str]) -> str:
    """Words, with what makes quoting necessary between them."""
    between = [" ", " ", f"{delimiter} "]
    if level >= 2:
        between += [' "', '" ']
    if level >= 3:
        between += ["\n", "\r\n" if level >= 5 else "\n"]
    note = words[0]
    for word in words[1:]:
        note += random.choice(between) + word
    return note


def _make(random: Random, level: int) -> Problem:
    delimiter = random.choice((",", ";", "\t") if level >= 2 else (",",))
    encoding, said = random.choice(
        (("utf-8", "UTF-8"),)
        if level < 3
        else (("latin-1", "ISO 8859-1 (Latin-1)"), ("utf-8-sig", "UTF-8 with a byte order mark"))
        if level == 3
        else (
            ("utf-16", "UTF-16 with a byte order mark"),
            ("cp1252", "Windows-1252"),
            ("latin-1", "ISO 8859-1 (Latin-1)"),
            ("utf-8-sig", "UTF-8 with a byte order mark"),
        )
    )
    while True:
        cities = random.sample(_CITIES, 2 + level // 2)
        city, word = cities[0], random.choice(_WORDS)
        rows, total, plain = [], 0, 0
        for _ in range(_ROWS[level - 1] + random.randrange(9)):
            where = random.choice(cities)
            note = _note(random, level, delimiter, random.sample(_WORDS, random.randint(1, 4)))
            amount = random.randint(1, 99_000)
            if where == city and word in note:
                total += amount
                plain += amount if not any(mark in note for mark in (delimiter, "\n", '"')) else 0
            shown = str(amount)
            if level >= 4 and amount >= 1_000:
                shown = f"{amount // 1000}{random.choice((' ', chr(160)))}{amount % 1000:03}"
            rows.append((f"{random.choice(LAST)}{delimiter} {random.choice(FIRST)}", where, note, shown))
        if total != plain:
            break
    path = file_name(random, "csv", "export", "orders", "notes")
    mark = {",": "commas", ";": "semicolons", "\t": "tabs"}[delimiter]
    spaced = " Spaces (also no-break spaces) in an amount separate thousands." if level >= 4 else ""
    lines = " Fields may hold line ends." if level >= 3 else ""
    text = pick(
        random,
        f"{path} is a CSV file with {mark} between the fields, quoted as usual where needed (a quote inside a quoted "
        f"field is doubled), in the encoding {said}; the columns are name, city, note and amount.{lines}{spaced} "
        f"What is the sum of the amounts in the rows whose city is {city} and whose note has the word {word!r} in it?",
        f"Read {path} (encoding {said}; columns name, city, note, amount, separated by {mark}; standard quoting with "
        f"doubled quotes).{lines}{spaced} Add up the amounts of the rows for {city} whose note contains {word!r}.",
    )
    values = {"path": path, "encoding": encoding, "delimiter": delimiter, "city": city, "word": word}
    return Problem(
        "messy-csv",
        "data",
        level,
        f"{text} {ask_whole(random)}",
        whole(total),
        files={path: csv_text(("name", "city", "note", "amount"), rows, delimiter).encode(encoding)},
        solution=program(_CODE, **values),
        wrong=program(_NAIVE, **values),
    )


QUOTING = Made("messy-csv", "data", "a CSV file with quoted delimiters and lines, in some encoding", _make)

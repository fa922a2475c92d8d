"""How many people are behind a list of contacts that has most of them several times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from mcpgym_environments.python_sandbox.problems.data.tables import FIRST, LAST, csv_text
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, file_name, mistaken, pick, program, whole

Row = tuple[str, str, str]
"""Name, mail, phone."""

_PEOPLE = (15, 110, 200, 300, 420)
_CODE = """
import csv

groups = {}


def find(key):
    groups.setdefault(key, key)
    while groups[key] != key:
        groups[key] = groups[groups[key]]
        key = groups[key]
    return key


def mail_key(text):
    name, _, host = text.strip().lower().partition("@")
    if level >= 2:
        name = name.partition("+")[0]
    if level >= 3 and host == free:
        name = name.replace(".", "")
    return f"{name}@{host}"


with open(path, encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
for number, row in enumerate(rows):
    find(number)
    keys = [("mail", mail_key(row["mail"]))] if row["mail"].strip() else []
    if level >= 4 and row["phone"].strip():
        keys.append(("phone", "".join(c for c in row["phone"] if c.isdigit())[-9:]))
    for key in keys:
        groups[find(key)] = find(number)
print(len({find(number) for number in range(len(rows))}))
"""


def _make(random: Random, level: int) -> Problem:
    free = random.choice(("freemail.example", "post.example", "inbox.example"))
    hosts = (free, "work.example", "uni.example")
    while True:
        people = _PEOPLE[level - 1] + random.randrange(max(20, _PEOPLE[level - 1] // 4))
        used: set[str] = set()
        rows = [row for _ in range(people) for row in _rows(random, level, hosts, used)]
        random.shuffle(rows)
        found = count_people(rows, level, free)
        # The mistake is to forget the last rule that the level brings.
        if count_people(rows, min(level, 4) - 1, free) != found:
            break
    rules = ["the case of letters and spaces around it do not matter"]
    if level >= 2:
        rules.append("what stands from a + up to the @ does not matter")
    if level >= 3:
        rules.append(f"at {free}, and only there, dots in front of the @ do not matter either")
    same = f"the same mail address, where {'; '.join(rules)}"
    phone = (
        " They also belong to one person if they have the same phone number, which is its last nine digits (signs and "
        "country codes do not matter). This goes on: if A and B are one person, and B and C, then so are A and C. An "
        "empty field is the same as no other."
        if level >= 4
        else ""
    )
    exactly = "" if level >= 4 else "exactly "
    path = file_name(random, "csv", "contacts", "members", "people")
    text = pick(
        random,
        f"{path} lists contacts (name, mail, phone), many of them more than once. How many different people are there? "
        f"Two rows belong to one person if they have {same}.{phone} Names say nothing: two people may share one, and "
        "one person may use several.",
        f"Count the different people in {path} (columns name, mail and phone). Rows are of one person {exactly}if they "
        f"have {same}.{phone} The name is of no importance.",
    )
    values = {"path": path, "level": level, "free": free}
    if level >= 4:
        slip = ("if level >= 4 and", "if False and")
    elif level == 3:
        slip = ("host == free", "host == free and False")
    elif level == 2:
        slip = ("if level >= 2", "if level >= 9")
    else:
        slip = ("text.strip().lower()", "text.strip()")
    return Problem(
        "duplicate-people",
        "data",
        level,
        f"{text} {ask_whole(random)}",
        whole(found),
        files={path: csv_text(("name", "mail", "phone"), rows).encode()},
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, *slip), **values),
    )


def count_people(rows: Sequence[Row], level: int, free: str) -> int:
    """How many people there are by the rules of ``level`` (with 0, not even the case of letters is forgiven).

    A walk over the graph in which a row is joined to what it has: a mail address, a phone number.
    """
    holders: dict[str, list[int]] = {}
    marks: list[list[str]] = []
    for number, (_, mail, phone) in enumerate(rows):
        mine = []
        if mail.strip():
            local, host = (mail.strip().lower() if level else mail.strip()).split("@")
            local = local.split("+")[0] if level >= 2 else local
            mine.append((local.replace(".", "") if level >= 3 and host == free else local) + "@" + host)
        if level >= 4 and phone:
            mine.append(re.sub(r"\D", "", phone)[-9:])
        marks.append(mine)
        for mark in mine:
            holders.setdefault(mark, []).append(number)
    seen = [False] * len(rows)
    people = 0
    for first in range(len(rows)):
        people += not seen[first]
        waiting = [first]
        while waiting:
            number = waiting.pop()
            if not seen[number]:
                seen[number] = True
                waiting += [other for mark in marks[number] for other in holders.pop(mark, [])]
    return people


def _rows(random: Random, level: int, hosts: tuple[str, ...], used: set[str]) -> list[Row]:
    """The rows of one person, and sometimes one of somebody who looks alike."""
    first, last = random.choice(FIRST), random.choice(LAST)
    while True:
        host = random.choice(hosts)
        mail = f"{first.lower()}.{last.lower()}{random.randint(1, 99_999)}"
        if mail not in used:
            used.add(mail)
            break
    while True:
        digits = f"{random.randint(100_000_000, 999_999_999)}"
        if digits not in used:
            used.add(digits)
            break
    name = f"{first} {last}"
    group = [(name, f"{mail}@{host}", _phone(random, digits, level))]
    for _ in range(random.choice((0, 0, 1, 2))):
        written, where = mail, host
        if level >= 3 and host == hosts[0] and random.random() < 0.5:
            written = mail.replace(".", "") if random.random() < 0.5 else f"{mail[:2]}.{mail[2:]}"
        if level >= 2 and random.random() < 0.5:
            written += random.choice(("+news", "+shop", "+a.b"))
        if random.random() < 0.6:
            forms = ((written.upper(), where), (f" {written}", where.capitalize()), (written.title(), f"{where} "))
            written, where = random.choice(forms)
        phone = _phone(random, digits, level)
        if level >= 4:
            kind = random.random()
            if kind < 0.3:
                phone = ""  # held together by the mail
            elif kind < 0.6:
                written, where = f"{last.lower()}{random.randint(10**6, 10**7)}", hosts[1]  # ... by the phone
        shown = name if random.random() < 0.7 else f"{first[0]}. {last}"
        group.append((shown, f"{written}@{where}" if random.random() < 0.95 or not phone or level < 4 else "", phone))
    if level >= 3 and host != hosts[0] and random.random() < 0.2:  # dots do matter there: somebody else
        phone = _phone(random, str(random.randint(10**8, 10**9 - 1)), level)
        group.append((name, f"{mail.replace('.', '')}@{host}", phone))
    return group


def _phone(random: Random, digits: str, level: int) -> str:
    if level < 4:
        return f"0{random.randint(100_000_000, 999_999_999)}"
    return random.choice(
        (f"+49 {digits[:3]} {digits[3:]}", f"0{digits}", f"(0{digits[:3]}) {digits[3:6]}-{digits[6:]}", f"0049{digits}")
    )


PEOPLE = Made("duplicate-people", "data", "how many people are in a list with near duplicates", _make)

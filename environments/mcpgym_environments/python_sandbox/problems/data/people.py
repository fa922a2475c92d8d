"""How many people are behind a list of contacts that has most of them several times."""

from __future__ import annotations

from random import Random

from mcpgym_environments.python_sandbox.problems.data.tables import FIRST, LAST, csv_text
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, mistaken, pick, program, whole

_PEOPLE = (12, 60, 200, 400, 700)
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
        people = _PEOPLE[level - 1] + random.randrange(_PEOPLE[level - 1] // 4)
        rows: list[tuple[str, str, str]] = []
        used: set[str] = set()
        found = 0
        for _ in range(people):
            person = _rows(random, level, hosts, used)
            found += len(person)
            rows += [row for group in person for row in group]
        random.shuffle(rows)
        if len({mail.strip().lower() for _, mail, _ in rows}) != found:
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
    path = pick(random, "contacts.csv", "members.csv", "people.csv")
    text = pick(
        random,
        f"{path} lists contacts (name, mail, phone), many of them more than once. How many different people are there? "
        f"Two rows belong to one person if they have {same}.{phone} Names say nothing: two people may share one, and "
        "one person may use several.",
        f"Count the different people in {path} (columns name, mail and phone). Rows are of one person exactly if they "
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


def _rows(random: Random, level: int, hosts: tuple[str, ...], used: set[str]) -> list[list[tuple[str, str, str]]]:
    """The rows of one person, in one group; rows that look like theirs and are not are groups of their own."""
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
            written, where = random.choice(((written.upper(), where), (f" {written}", where.capitalize()), (written.title(), f"{where} ")))
        phone = _phone(random, digits, level)
        if level >= 4:
            kind = random.random()
            if kind < 0.3:
                phone = ""  # held together by the mail
            elif kind < 0.6:
                written, where = f"{last.lower()}{random.randint(10**6, 10**7)}", hosts[1]  # ... by the phone
        shown = name if random.random() < 0.7 else f"{first[0]}. {last}"
        group.append((shown, f"{written}@{where}" if random.random() < 0.95 or not phone or level < 4 else "", phone))
    groups = [group]
    if level >= 3 and host != hosts[0] and random.random() < 0.2:  # dots do matter there: somebody else
        groups.append([(name, f"{mail.replace('.', '')}@{host}", _phone(random, str(random.randint(10**8, 10**9 - 1)), level))])
    return groups


def _phone(random: Random, digits: str, level: int) -> str:
    if level < 4:
        return f"0{random.randint(100_000_000, 999_999_999)}"
    return random.choice(
        (f"+49 {digits[:3]} {digits[3:]}", f"0{digits}", f"(0{digits[:3]}) {digits[3:6]}-{digits[6:]}", f"0049{digits}")
    )


PEOPLE = Made("duplicate-people", "data", "how many people are in a list with near duplicates", _make)

"""Visits in the log of a web server: what one client asks for without a long pause."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, file_name, mistaken, pick, program, whole

_VISITS = (12, 50, 120, 180, 290)
_CODE = r"""
import re
from datetime import datetime

LINE = re.compile(r'(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+) [^"]*" (\d{3}) (\S+) "([^"]*)"')
seen = {}
for line in open(path, encoding="utf-8"):
    found = LINE.fullmatch(line.strip())
    if found is None:
        continue
    client, time, method, target, status, size, agent = found.groups()
    if without_bots and "bot" in agent.lower():
        continue
    if without_errors and status[0] in "45":
        continue
    moment = datetime.strptime(time, "%d/%b/%Y:%H:%M:%S %z").timestamp()
    seen.setdefault((client, agent) if by_agent else client, []).append(moment)
visits = 0
for moments in seen.values():
    moments.sort()
    visits += 1 + sum(later - earlier > pause * 60 for earlier, later in zip(moments, moments[1:]))
print(visits)
"""
_AGENTS = ("Firefox/140.0", "Safari/18.2", "Chrome/139.0", "Edge/138.0")
_BOTS = ("ExampleBot/2.1", "indexbot", "PreviewBOT/1.0")
_PATHS = ("/", "/about", "/shop", "/shop/cart", "/news/17", "/img/logo.svg", "/search?q=lamp", "/contact")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _stamp(moment: datetime) -> str:
    offset = moment.utcoffset() or timedelta(0)
    minutes = int(offset.total_seconds()) // 60
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
    return f"{moment.day:02}/{_MONTHS[moment.month - 1]}/{moment.year}:{moment:%H:%M:%S} {zone}"


def _make(random: Random, level: int) -> Problem:
    pause = random.choice((10, 15, 20, 30))
    bots, errors, by_agent = level >= 3, level >= 4, level >= 5
    zones = [UTC] if level < 4 else [timezone(timedelta(hours=hours)) for hours in (0, 1, -4)]
    while True:
        groups = _VISITS[level - 1] + random.randrange(max(30, _VISITS[level - 1] // 4))
        clients = [f"203.0.{random.randint(100, 119)}.{random.randint(1, 254)}" for _ in range(2 + groups // 4)]
        records: list[tuple[datetime, str]] = []
        counted: dict[tuple[str, str], list[int]] = {}
        start = datetime(random.randint(2015, 2030), random.randint(1, 12), random.randint(1, 27), tzinfo=UTC)
        for _ in range(groups):
            moment = start + timedelta(seconds=random.randrange(86_400 * (1 if level < 4 else 3)))
            client, agent = random.choice(clients), random.choice(_AGENTS[: 1 + level // 2])
            if bots and random.random() < 0.15:
                agent = random.choice(_BOTS)
            for step in range(random.randint(1, 6)):
                if step:  # some pauses are as long as allowed, to the second: they do not end the visit
                    moment += timedelta(seconds=random.choice((random.randint(1, pause * 60), pause * 60)))
                status = random.choice((200, 200, 200, 304, 404, 500)) if level >= 2 else 200
                time, target = _stamp(moment.astimezone(random.choice(zones))), random.choice(_PATHS)
                request = f'"GET {target} HTTP/1.1" {status} {random.randint(100, 60_000)}'
                records.append((moment, f'{client} - - [{time}] {request} "{agent}"'))
                if not (bots and "bot" in agent.lower()) and not (errors and status >= 400):
                    key = (client, agent if by_agent else "")
                    counted.setdefault(key, []).append(round((moment - start).total_seconds()))
        right, strict = (_visits(counted, pause * 60 + more) for more in (0, -1))
        if right != strict and right > 2 * level:
            break
    if level >= 3:
        random.shuffle(records)
    else:
        records.sort(key=lambda record: record[0])
    lines = [line for _, line in records]
    if level >= 4:
        for _ in range(len(lines) // 40):
            lines.insert(random.randrange(len(lines)), random.choice(("", "-- rotated --", "# log continues")))
    client = "client address and user agent (the last field)" if by_agent else "client address (the first field)"
    rules = [
        f"A visit is a series of requests of one {client} in which no request comes more than {pause} minutes after "
        f"the one before; a pause of exactly {pause} minutes does not end it."
    ]
    if bots:
        rules.append("Requests whose user agent has 'bot' in it, in whatever case, are left out before anything else.")
        rules.append("Lines are in no particular order.")
    if errors:
        rules.append("Requests with a status of 400 or above are left out, too. Lines that are no requests are noise.")
        rules.append("Mind the UTC offsets.")
    path = file_name(random, "log", "access", "web", "server")
    text = pick(
        random,
        f"{path} is the log of a web server. {' '.join(rules)} How many visits were there?",
        f"Count the visits in the web server's log {path}. {' '.join(rules)}",
    )
    values = {
        "path": path, "pause": pause, "without_bots": bots, "without_errors": errors, "by_agent": by_agent,
    }  # fmt: skip
    return Problem(
        "web-visits",
        "data",
        level,
        f"{text} {ask_whole(random)}",
        whole(right),
        files={path: ("\n".join(lines) + "\n").encode()},
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, "> pause * 60", ">= pause * 60"), **values),
    )


def _visits(counted: dict[tuple[str, str], list[int]], longest: int) -> int:
    """Visits whose pauses are at most ``longest`` seconds, walked through moment by moment."""
    visits = 0
    for moments in counted.values():
        last = None
        for moment in sorted(moments):
            visits += last is None or moment - last > longest
            last = moment
    return visits


VISITS = Made("web-visits", "data", "visits in a web server's log, with pauses, bots and time zones", _make)

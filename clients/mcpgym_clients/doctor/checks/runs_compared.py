"""Runs of equal calls by several clients, and what in their answers proves that the clients are not apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from mcpgym_clients.doctor.calls import PlannedCall
from mcpgym_clients.doctor.wire import Answer, Connection, brief, call

ROUNDS = 3
"""How often each call is made by each client: state shows when equal calls get unequal answers."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


async def run(client: Connection, calls: Sequence[PlannedCall]) -> list[Answer]:
    """Each call, by one client, in order."""
    return [await call(client, planned.tool, dict(planned.arguments)) for planned in calls]


async def in_turn(clients: Sequence[Connection], calls: Sequence[PlannedCall]) -> list[list[Answer]]:
    """Each call by every client, one client after the other."""
    answers: list[list[Answer]] = [[] for _ in clients]
    for planned in calls:
        for client, own in zip(clients, answers, strict=True):
            own.append(await call(client, planned.tool, dict(planned.arguments)))
    return answers


def proof(runs: Sequence[list[Answer]], solo: list[Answer] | None) -> str:
    """Why ``runs`` of equal calls cannot be of clients that are apart; empty if nothing proves it.

    ``runs`` were made by fresh clients: the first two in turn, the others after them.
    """
    if solo is not None:  # several clients that were apart read exactly this
        for answers in runs:
            if seen(answers) != seen(solo):
                return f"alone a client reads something else: {where(solo, answers)}"
    width = len(runs[0]) // ROUNDS
    for place in range(width):
        first = runs[0][place].seen
        later = {answers[place].seen for answers in runs[1:]}
        continued = [answer.seen for answer in runs[0][place + width :: width]]
        if first not in later and len(later) == 1 and set(continued) == later:
            return f"only the first client ever read {short(runs[0][place])}; all others {short(runs[1][place])}"
    return ""


def counts_on(texts: Sequence[str]) -> bool:
    """Whether the texts are equal but for one number that grows by the same step each time."""
    numbers = [_NUMBER.findall(text) for text in texts]
    if len({_NUMBER.sub("#", text) for text in texts}) != 1 or not numbers or not numbers[0]:
        return False
    for column in zip(*([float(each) for each in found] for found in numbers), strict=True):
        steps = {round(after - before, 9) for before, after in pairwise(column)}
        if len(steps) == 1 and steps != {0.0}:
            return True
    return False


def stateful(answers: list[Answer]) -> bool:
    """Whether equal calls got unequal answers from one client."""
    width = len(answers) // ROUNDS
    return any(len({each.seen for each in answers[place::width]}) > 1 for place in range(width))


def visible(alone: list[Answer]) -> str:
    """Words for a report where no state shows; empty where some does."""
    return "" if stateful(alone) else " (no call changed what a later one reads, so there was no state to see)"


def seen(answers: Sequence[Answer]) -> str:
    """All that a client read, as one text to compare."""
    return "\n".join(answer.seen for answer in answers)


def where(*runs: list[Answer]) -> str:
    """The first place where runs differ, and what each read there."""
    for place, answers in enumerate(zip(*runs, strict=True)):
        if len({answer.seen for answer in answers}) > 1:
            return f"call {place + 1}: " + " | ".join(short(answer) for answer in answers)
    return "nowhere"


def short(answer: Answer) -> str:
    """An answer in a few words."""
    return brief(answer.text or answer.shown(), 50)

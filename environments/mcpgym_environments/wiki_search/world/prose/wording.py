"""The templates of every sentence, read from the tables beside it.

A table's line ``+ …`` holds predicates (``was born in {v}``), ``- …`` whole sentences, ``^ …`` openings (``Born in
{v}``); forms stand between bars, and those behind a double bar are held out. In them ``{v}`` is the value (``{an}`` with its
article, ``{V}`` at the beginning of a sentence), ``{S}``/``{s}`` the subject, ``{o}`` the same as an object, ``{P}``/``{p}`` its
possessive, ``{be}`` is or was, and ``{noun}`` what it is (town, battle).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from . import land, makings, people

Choice = Literal["all", "train", "test"]


@dataclass(frozen=True, slots=True)
class Wording:
    """How a fact is told. ``first`` are the sentences that name their subject, and so can begin a section."""

    label: str
    predicates: tuple[str, ...]
    sentences: tuple[str, ...]
    first: tuple[str, ...]
    openings: tuple[str, ...]


def wordings(choice: Choice = "all") -> dict[str, Wording]:
    """The wording of every relation: all forms, those not held out (``train``), or those held out (``test``)."""
    found: dict[str, Wording] = {}
    for table in (people.CLAUSES, land.CLAUSES, makings.CLAUSES):
        for block in table.strip().split("\n\n"):
            head, *lines = block.splitlines()
            name, _, label = head.partition(": ")
            forms = {line[0]: _forms(line[2:], choice) for line in lines}
            sentences = tuple(_referring(form) for form in forms["-"])
            found[name] = Wording(
                label,
                tuple(form.replace("{p}", "{q}") for form in forms["+"]),
                sentences,
                tuple(form for form in sentences if re.search(r"\{[SPso]\}", form)),
                tuple(form.replace("{p}", "{q}") for form in forms.get("^", ())),
            )
    return found


def fillers() -> dict[tuple[str, int], tuple[str, ...]]:
    """Sentences without any fact, by kind and number of the section."""
    found = {}
    for table in (people.FILLERS, land.FILLERS, makings.FILLERS):
        for block in table.strip().split("\n\n"):
            head, *lines = block.splitlines()
            kind, _, number = head.partition(" ")
            found[kind, int(number)] = tuple(_referring(line) for line in lines)
    return found


def _forms(line: str, choice: Choice) -> tuple[str, ...]:
    known, _, held_out = (part.split(" | ") for part in line.partition(" || "))
    forms = {"all": [*known, *held_out], "train": known, "test": [form for form in held_out if form] or known}[choice]
    return tuple(form.strip() for form in forms if form.strip())


def _referring(sentence: str) -> str:
    """``It`` and ``Its`` as places for the subject; a subject named once is a pronoun in the rest of the sentence."""
    if sentence.startswith("Its "):
        sentence = "{P} " + sentence[4:]
    elif sentence.startswith("It ") and not re.match(r"It (is|was) \{v\}|It all ", sentence):
        sentence = "{S} " + sentence[3:]
    sentence = re.sub(r"\bits\b", "{p}", sentence)
    sentence = re.sub(r"(?<=[ ,])it (?=\w)", "{s} ", sentence) if "{S}" not in sentence else sentence
    if "{S}" in sentence or "{P}" in sentence:
        return sentence.replace("{s}", "{t}").replace("{o}", "{r}").replace("{p}", "{q}")
    return sentence.replace("{p}", "{q}")

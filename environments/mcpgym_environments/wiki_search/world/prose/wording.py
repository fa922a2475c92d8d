"""The templates of every sentence, read from the tables beside it.

A table's line ``+ …`` holds predicates (``was born in {v}``), ``- …`` whole sentences, ``^ …`` openings (``Born in
{v}``); forms stand between bars, and those behind a double bar are held out. Remarks state no fact; of words in
brackets one is said. ``{v}`` is the value (``{an}`` with its article, ``{V}`` at the beginning of a sentence),
``{S}`` and ``{s}`` the subject, ``{o}`` the same as an object, ``{P}`` and ``{p}`` its possessive, ``{be}`` is or was,
and ``{noun}`` what it is (town, battle). ``{t}``, ``{r}`` and ``{q}`` are always pronouns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Literal

from mcpgym_environments.wiki_search.world.prose import land, makings, nature, people

Choice = Literal["all", "train", "test"]
_TABLES = (people, land, nature, makings)


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
    for table in _TABLES:
        for block in table.CLAUSES.strip().split("\n\n"):
            head, *lines = block.splitlines()
            name, _, label = head.partition(": ")
            forms = {line[0]: _forms(line[2:], choice) for line in lines}
            thing = not name.startswith("person")
            sentences = tuple(_referring(form, thing) for form in forms["-"])
            found[name] = Wording(
                label,
                tuple(_own(form) for form in forms["+"]),
                sentences,
                tuple(form for form in sentences if re.search(r"\{[SPso]\}", form)),
                tuple(_own(form) for form in forms.get("^", ())),
            )
    return found


def remarks() -> dict[tuple[str, int], tuple[tuple[str, ...], ...]]:
    """Remarks by kind and number of the section, each with all its variants."""
    found = {}
    for table in _TABLES:
        for block in table.REMARKS.strip().split("\n\n"):
            head, *lines = block.splitlines()
            kind, _, number = head.partition(" ")
            thing = kind != "person"
            found[kind, int(number)] = tuple(
                tuple(_referring(each, thing) for each in _variants(line)) for line in lines
            )
    return found


def _variants(line: str) -> list[str]:
    parts = re.split(r"\[([^]]*)\]", line)
    choices = [part.split("|") if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(chosen) for chosen in product(*choices)]


def _forms(line: str, choice: Choice) -> tuple[str, ...]:
    known, _, held_out = line.partition(" || ")
    forms = {"all": f"{known} | {held_out}", "train": known, "test": held_out or known}[choice]
    return tuple(form for part in forms.split(" | ") if (form := part.strip()))


def _own(predicate: str) -> str:
    """In a predicate the subject has just been named: what refers to it is a pronoun."""
    return re.sub(r"\bits\b", "{q}", predicate.replace("{p}", "{q}").replace("{s}", "{t}").replace("{o}", "{r}"))


def _referring(sentence: str, thing: bool) -> str:
    """A subject named once is a pronoun in the rest of the sentence; ``it`` and ``its`` are places for a ``thing``."""
    if thing and sentence.startswith("Its "):
        sentence = "{P} " + sentence[4:]
    elif thing and sentence.startswith("It ") and not re.match(r"It (is|was) \{v\}|It all ", sentence):
        sentence = "{S} " + sentence[3:]
    if "{S}" in sentence or "{P}" in sentence:
        return _own(sentence)
    if thing:
        sentence = re.sub(r"\bit\b", "{s}", re.sub(r"\bits\b", "{p}", sentence))
    first = re.search(r"\{[sop]\}", sentence)
    return sentence[: first.end()] + _own(sentence[first.end() :]) if first else sentence

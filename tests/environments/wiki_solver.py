"""Answers generated questions from their text alone, over every way to read it: what a question is checked against.

It shares the wordings with the generator and nothing else: names are looked up among all names of the knowledge base,
phrases are taken apart from the outside, and every reading that comes to an answer counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any

from mcpgym_environments.wiki_search.knowledge import Entity, Knowledge, Quantity, Relation, Value
from mcpgym_environments.wiki_search.questions import grouping, makers
from mcpgym_environments.wiki_search.questions.wording import in_unit

NOTHING = "nothing is known"


def slots(template: str, text: str) -> Iterator[dict[str, str]]:
    """Every way in which ``text`` is ``template`` with something in its slots."""
    pieces: list[tuple[str, str]] = []
    rest = template
    literal, _, rest = rest.partition("{")
    while rest:
        name, _, rest = rest.partition("}")
        behind, _, rest = rest.partition("{")
        pieces.append((name, behind))
    if not text.startswith(literal):
        return
    yield from _fill(pieces, text[len(literal) :], {})


def _fill(pieces: Sequence[tuple[str, str]], text: str, found: dict[str, str]) -> Iterator[dict[str, str]]:
    if not pieces:
        if not text:
            yield found
        return
    (name, behind), *left = pieces
    ends = [len(text) - len(behind)] if not left else [at for at in range(len(text)) if text.startswith(behind, at)]
    if left and not behind:
        ends = list(range(len(text) + 1))
    for end in ends:
        if end >= 0 and text[end : end + len(behind)] == behind and found.get(name, text[:end]) == text[:end]:
            yield from _fill(left, text[end + len(behind) :], {**found, name: text[:end]})


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


class Solver:
    """Reads questions over one knowledge base."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.relations = list(knowledge.relations.values())
        self.names: defaultdict[str, list[Entity]] = defaultdict(list)
        for kind in knowledge.kinds:
            for entity in knowledge.entities(kind):
                for name in {entity.name, *entity.aliases}:
                    self.names[name].append(entity)
        self.entities = lru_cache(100_000)(self._entities)
        self.facts = lru_cache(100_000)(self._facts)
        self.groups = lru_cache(100_000)(self._groups)
        self._wordings: dict[tuple[bool, bool], list[tuple[str, str, Relation]]] = defaultdict(list)
        for relation in self.relations:
            for questions in (False, True):
                for wording in dict.fromkeys(relation.questions if questions else relation.phrases):
                    before, _, behind = (capital(wording) if questions else wording).partition("{}")
                    self._wordings[relation.functional, questions].append((before, behind, relation))

    # What a piece of text names

    def _entities(self, text: str) -> frozenset[Entity]:
        found = {*self.names.get(text, ())}
        found |= {entity for entity in self.names.get(text.removeprefix("the "), ()) if entity.article == "the"}
        return frozenset(found | {value for _, value in self.facts(text) if isinstance(value, Entity)})

    def _facts(self, text: str) -> list[tuple[Relation, Value]]:
        """What ``text`` names as the value of a relation of something: *the birthplace of X*."""
        return [
            (relation, value)
            for relation, subject in self._readings(text, functional=True)
            for value in self.knowledge.values(subject, relation.name)
        ]

    def _readings(self, text: str, functional: bool, questions: bool = False) -> Iterator[tuple[Relation, Entity]]:
        for before, behind, relation in self._wordings[functional, questions]:
            if text.startswith(before) and text.endswith(behind) and len(text) > len(before) + len(behind):
                for entity in self.entities(text[len(before) : len(text) - len(behind)]):
                    if entity.kind == relation.subject:
                        yield relation, entity

    def _groups(self, text: str) -> list[tuple[Entity, ...]]:
        """The groups that ``text`` may name: *the natives of X*."""
        return [
            tuple(one for one in self.knowledge.values(entity, relation.name) if isinstance(one, Entity))
            for relation, entity in self._readings(text, functional=False)
        ]

    def noun(self, text: str, kind: str) -> list[Relation]:
        """The relations of a kind of thing whose value ``text`` is a noun for."""
        wanted = f"the {text} of {{}}"
        return [one for one in self.relations if one.subject == kind and one.functional and wanted in one.phrases]

    def one(self, entity: Entity, relation: Relation) -> Value | None:
        values = self.knowledge.values(entity, relation.name)
        assert len(values) <= 1
        return values[0] if values else None

    # What a question asks

    def answers(self, kind: str, text: str) -> set[Any]:
        """Every answer that some reading of ``text`` comes to."""
        return set(getattr(self, "_" + kind.replace(" ", "_"))(text))

    def _chain(self, text: str) -> Iterator[Any]:
        for relation, entity in self._readings(text, functional=True, questions=True):
            value = self.one(entity, relation)
            yield NOTHING if value is None else value

    _not_answerable = _chain

    def _comparison(self, text: str) -> Iterator[Any]:
        for template in makers._COMPARED:
            for found in slots(template + " {3}", text):
                word, _, noun = found["2"].partition(" ")
                if word not in ("later", "earlier", "greater", "smaller"):
                    continue
                for one in self.entities(found["0"]):
                    for other in self.entities(found["1"]):
                        for relation in self.noun(noun, one.kind):
                            first, second = self.one(one, relation), self.one(other, relation)
                            if one.kind != other.kind or first is None or second is None:
                                continue
                            more = word in ("later", "greater")
                            winner = one if (size(first) > size(second)) == more else other
                            asked = f"that {winner.kind.replace('_', ' ')}"
                            for final in self.relations:
                                wordings = final.questions if final.functional and final.subject == winner.kind else ()
                                if any(capital(wording.format(asked)) == found["3"] for wording in wordings):
                                    yield self.one(winner, final) or NOTHING

    def _superlative(self, text: str) -> Iterator[Any]:
        for template in grouping._WHICH:
            for found in slots(template, text):
                if found["1"] not in ("latest", "earliest", "greatest", "smallest"):
                    continue
                for members, values in self._measured(found["0"], found["2"]):
                    best = (max if found["1"] in ("latest", "greatest") else min)(values, key=size)
                    yield from (one for one, value in zip(members, values, strict=True) if value == best)

    def _measured(self, group: str, noun: str) -> Iterator[tuple[tuple[Entity, ...], list[Value]]]:
        for members in self.groups(group):
            for relation in self.noun(noun, members[0].kind) if members else ():
                values = [self.one(member, relation) for member in members]
                if all(value is not None for value in values):
                    yield members, [value for value in values if value is not None]

    def _aggregation(self, text: str) -> Iterator[Any]:
        for template in grouping._HOW_MANY:
            for found in slots(template, text):
                for relation in self.relations:
                    for phrase in relation.phrases if not relation.functional else ():
                        for inner in slots(phrase, "the " + found["0"]):
                            for members in self.groups(inner[""]):
                                if members and members[0].kind == relation.subject:
                                    everyone = {
                                        one.key  # type: ignore[union-attr]
                                        for member in members
                                        for one in self.knowledge.values(member, relation.name)
                                    }
                                    yield Fraction(len(everyone))
        for templates in (grouping._TOTAL, grouping._RANGE):
            for template in templates:
                for found in slots(template, text):
                    for _, values in self._measured(found["1"], found["0"]):
                        sizes = [size(value) for value in values]
                        if isinstance(values[0], Quantity) and unit_fits(found["2"], values[0]):
                            yield sum(sizes) if templates is grouping._TOTAL else max(sizes) - min(sizes)
        for template in grouping._TIME_RANGE:
            for found in slots(template, text):
                for _, values in self._measured(found["2"], found["1"]):
                    sizes = [size(value) for value in values]
                    if found["0"] == ("days" if isinstance(values[0], date) else "years"):
                        yield max(sizes) - min(sizes)

    def _list(self, text: str) -> Iterator[Any]:
        for ending in grouping._ALL:
            if text.endswith(" " + ending):
                asked = text.removesuffix(" " + ending)
                for relation, entity in self._readings(asked, functional=False, questions=True):
                    yield frozenset(one.name for one in self.knowledge.values(entity, relation.name))  # type: ignore[union-attr]

    def _negation(self, text: str) -> Iterator[Any]:
        for template in grouping._NOT_AMONG:
            for found in slots(template, text):
                for members in self.groups(found["0"]):
                    for others in self.groups(found["1"]):
                        if {one.kind for one in members} & {one.kind for one in others}:
                            yield frozenset(one.name for one in members if one not in others)
        for template in grouping._OTHER_THAN:
            for found in slots(template, text):
                noun = found["1"].partition(" ")[2]
                named = {entity.key for entity in self.entities(found["2"])} | {found["2"]}
                for members in self.groups(found["0"]):
                    for relation in self.noun(noun, members[0].kind) if members else ():
                        values = [self.one(member, relation) for member in members]
                        keys = [value.key if isinstance(value, Entity) else value for value in values]
                        if None not in values and named & set(keys):
                            yield frozenset(
                                one.name for one, key in zip(members, keys, strict=True) if key not in named
                            )

    def _date_arithmetic(self, text: str) -> Iterator[Any]:
        for template in makers._SHIFTED:
            for found in slots(template, text):
                for _, value in self.facts(found["2"]) if found["0"].isdecimal() else ():
                    if isinstance(value, date):
                        yield value + timedelta(int(found["0"]) * (1 if found["1"] == "after" else -1))
        for templates in (makers._DAYS_BETWEEN, makers._FULL_YEARS, makers._YEARS_BETWEEN):
            for template in templates:
                for found in slots(template, text):
                    for _, first in self.facts(found["0"]):
                        for _, second in self.facts(found["1"]):
                            if isinstance(first, date) and isinstance(second, date):
                                early, late = sorted((first, second))
                                if templates is makers._DAYS_BETWEEN:
                                    yield Fraction((late - early).days)
                                elif templates is makers._FULL_YEARS:
                                    years = late.year - early.year
                                    yield Fraction(years - ((late.month, late.day) < (early.month, early.day)))
                            elif (
                                isinstance(first, Quantity)
                                and isinstance(second, Quantity)
                                and templates is makers._YEARS_BETWEEN
                                and first.unit == second.unit == "year"
                            ):
                                yield abs(first.number - second.number)

    def _number_arithmetic(self, text: str) -> Iterator[Any]:
        for templates in (makers._SUMS, makers._DIFFERENCES):
            for template in templates:
                for found in slots(template, text):
                    for relation, first in self.facts(found["0"]):
                        for again, second in self.facts(found["1"]):
                            if relation != again or not isinstance(first, Quantity) or not isinstance(second, Quantity):
                                continue
                            if unit_fits(found["2"], first):
                                total = first.number + second.number
                                yield total if templates is makers._SUMS else abs(first.number - second.number)

    def _yes_or_no(self, text: str) -> Iterator[Any]:
        for template in makers._IS_IT:
            for found in slots(template, text):
                for said in self.entities(found["0"]):
                    for _, value in self.facts(found["1"]):
                        if isinstance(value, Entity) and value.kind == said.kind:
                            yield value == said
        for template in makers._IS_GREATER:
            for found in slots(template, text):
                for one in self.entities(found["1"]):
                    for other in self.entities(found["3"]):
                        for relation in self.noun(found["0"], one.kind):
                            first, second = self.one(one, relation), self.one(other, relation)
                            if one.kind == other.kind and first is not None and second is not None:
                                yield (size(first) > size(second)) == (found["2"] in ("later", "greater"))


def size(value: Value) -> Fraction:
    return value.number if isinstance(value, Quantity) else Fraction(value.toordinal())  # type: ignore[union-attr]


def unit_fits(told: str, value: Quantity) -> bool:
    """The unit is named behind the question, or (in phrases such as *the number of days …*) within it."""
    return told in ("", in_unit(value.unit))

"""Writes pages: facts first, each in one section only, then what makes them harder to find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from random import Random

from ...knowledge import Entity
from ...pages import Page, Section
from .. import vocabulary
from ..columns import PRESENT
from ..headings import PARTS, part_heading
from ..knowledge import WorldKnowledge
from ..relations import FACTS, KINDS
from .subjects import Subject, capital, subject
from .values import UNITS, day_texts, in_a_row, with_article
from .wording import Choice, Wording, fillers, wordings

SHORTEST, LONGEST = 200, 900
"""About how many characters a section has; long lists go beyond."""

_ALIASES = {
    "country": "Officially {s} is called the {v}.",
    "settlement": "{P} former name was {v}.",
    "person": "{P} name in full was {v}.",
    "river": "On many maps {s} appears as {v}.",
    "species": "{P} scientific name is {v}.",
}
_CONTRASTS = ("by contrast,", "for comparison,", "on the other hand,", "for its part,")


@dataclass(frozen=True, slots=True)
class Dials:
    """How hard the pages are to read, each from 0 to 1.

    ``distractors``: the share of sections with facts of other things, or figures marked as wrong. ``paraphrase``: how
    often another wording than the first is used, names vary, and facts share a sentence. ``tables``: the share of
    sections that state their facts as a table. ``wording``: all sentences, those for training, or those held out.
    """

    distractors: float = 0.4
    paraphrase: float = 0.8
    tables: float = 0.15
    wording: Choice = "all"


@dataclass(frozen=True, slots=True)
class _Told:
    """A fact about to be told: its relation and its value in words."""

    relation: str
    text: str
    several: bool


class Writer:
    """Writes the page of any thing of a world, without the pages of others."""

    def __init__(self, knowledge: WorldKnowledge, dials: Dials) -> None:
        self._knowledge = knowledge
        self._columns = knowledge.columns.of
        self._titles = knowledge.titles
        self._dials = dials
        self._wordings = wordings(dials.wording)
        self._fillers = fillers()
        self._kinds = {kind: number for number, kind in enumerate(KINDS)}
        self._people = self._columns["woman"], knowledge.columns.living

    def page(self, entity: Entity) -> Page:
        """The page of ``entity``."""
        kind, row = entity.kind, self._knowledge.row(entity)
        random = Random((self._knowledge.seed * 11 + self._kinds[kind]) * 4_294_967_296 + row).random
        links: dict[str, None] = {}
        who = self._subject(kind, row)
        sections = []
        for number, part in enumerate(PARTS[kind]):
            told = [fact for name in part.relations if (fact := self._told(name, kind, row, random, links))]
            if told:
                text = self._section(told, who, kind, row, number, random, links)
                title = part_heading(self._knowledge.seed, entity, number)
                sections.append(Section(title, 2 if number else 1, text))
        if random() < 0.4:
            sections.append(self._see_also(kind, row, random, links))
        links.pop(entity.name, None)
        return Page(entity.key, entity.name, tuple(sections), entity.aliases, self._redirects(entity), tuple(links))

    def _subject(self, kind: str, row: int) -> Subject:
        name, noun, person, living = self._titles.names[kind][row], kind, "", kind != "ship"
        if kind == "person":
            women, lives = self._people
            person, living = "she" if women[row] else "he", bool(lives[row])
            name = name.partition(" (")[0]
        elif kind == "settlement":
            people = self._columns["settlement_population"][row]
            noun = "village" if people < 2000 else "town" if people < 60_000 else "city"
        elif kind == "institution":
            noun = self._titles.institution_kinds[row].split()[-1]
        elif kind == "event":
            noun, living = vocabulary.CLASHES[self._columns["event_type"][row]].lower(), False
        elif kind == "ship":
            noun = vocabulary.VESSELS[self._columns["ship_type"][row]]
        elif kind == "species":
            noun = self._titles.creatures[row]
        return subject(self._mention(kind, row) if kind != "person" else name, noun, person, living)

    def _mention(self, kind: str, row: int) -> str:
        name = self._titles.names[kind][row]
        return f"the {name}" if kind in ("river", "species", "event", "ship") else name

    # Facts in words

    def _told(
        self, name: str, kind: str, row: int, random: Callable[[], float], links: dict[str, None]
    ) -> _Told | None:
        fact = FACTS[name]
        if name == "country_neighbours":
            rows = list(self._knowledge.columns.neighbours[row])
        elif fact.inverse:
            rows = self._knowledge.sources(fact.inverse, row)
        else:
            number = int(self._columns[name][row])
            return None if number < 0 else _Told(name, self._text(name, number, random, links), False)
        if not rows:
            return None
        names = [self._name(fact.relation.object, each, random, links) for each in rows]
        return _Told(name, in_a_row(names), len(names) > 1)

    def _text(self, name: str, number: int, random: Callable[[], float], links: dict[str, None]) -> str:
        known = FACTS[name].relation
        if known.value == "entity":
            return self._name(known.object, number, random, links)
        if known.value == "number":
            forms = UNITS[known.unit]
            return forms[int(random() * len(forms))].format(number)
        if known.value == "date":
            return day_texts(date.fromordinal(number))[random() < 0.25 * self._dials.paraphrase]
        return self._knowledge.words(name)[number]

    def _name(self, kind: str, row: int, random: Callable[[], float], links: dict[str, None]) -> str:
        links[self._titles.names[kind][row]] = None
        aliases = self._titles.aliases[kind].get(row)
        if aliases and kind != "settlement" and random() < 0.15 * self._dials.paraphrase:
            return f"the {aliases[0]}" if kind == "country" else aliases[0]
        return self._mention(kind, row)

    # Sentences

    def _section(
        self,
        told: list[_Told],
        who: Subject,
        kind: str,
        row: int,
        number: int,
        random: Callable[[], float],
        links: dict[str, None],
    ) -> str:
        dials = self._dials
        first = (
            [_spoken(random, "{S} is not to be confused with {v}.", who.named, self._alike(kind, row, links))]
            if number == 0 and row in self._titles.similar[kind]
            else []
        )
        table = ""
        if random() < dials.tables:
            table = "\n".join(f"{self._wordings[fact.relation].label} | {capital(fact.text)}" for fact in told)
            sentences = []
        else:
            sentences = self._sentences(list(told), who, random)
        extra = []
        if number == 0 and (aliases := self._titles.aliases[kind].get(row)):
            extra.append(_ALIASES[kind].format_map((who.named if table else who.pronoun) | {"v": aliases[0]}))
        length = sum(map(len, sentences)) + len(table)
        spare = list(self._fillers[kind, number])
        while spare and (length < SHORTEST + 60 * random() or (random() < 0.3 and length < LONGEST // 2)):
            filler = spare.pop(int(random() * len(spare)))
            extra.append(filler.format_map(who.short if random() < 0.3 or table else who.pronoun))
            length += len(extra[-1])
        if random() < dials.distractors:
            extra.append(self._distractor(told, kind, row, random, links))
            if random() < dials.distractors / 2:
                extra.append(self._distractor(told, kind, row, random, links))
        for sentence in extra:
            if sentence:
                sentences.insert(1 + int(random() * len(sentences)) if sentences else 0, sentence)
        text = " ".join(first + sentences)
        return f"{text}\n\n{table}" if table and text else text or table

    def _sentences(self, told: list[_Told], who: Subject, random: Callable[[], float]) -> list[str]:
        sentences: list[str] = []
        paraphrase = self._dials.paraphrase
        if len(told) > 1 and random() < paraphrase * 0.4:
            told[0], told[1] = told[1], told[0]
        while told:
            fact = told.pop(0)
            wording = self._wordings[fact.relation]
            words = who.named if not sentences else who.short if random() < 0.25 else who.pronoun
            follower = next((other for other in told if not other.several), None)
            if follower and not fact.several and random() < paraphrase * 0.6:
                told.remove(follower)
                sentences.append(self._joined(fact, follower, who, words, random))
                continue
            place = random()
            if place < 0.5 or (not sentences and not wording.first):
                template = "{S} " + self._chosen(wording.predicates, random) + "."
            else:
                template = self._chosen(wording.sentences if sentences else wording.first, random)
            sentences.append(_spoken(random, template, words, fact.text))
        return sentences

    def _joined(
        self, fact: _Told, other: _Told, who: Subject, words: dict[str, str], random: Callable[[], float]
    ) -> str:
        """Two facts in one sentence: an opening, a relative clause, or two predicates."""
        wording, further = self._wordings[fact.relation], self._wordings[other.relation]
        predicate = _filled(self._chosen(further.predicates, random), words, other.text)
        if wording.openings and random() < 0.5:
            opening = _filled(self._chosen(wording.openings, random), words, fact.text)
            return f"{opening}, {words['s']} {predicate}."
        own = _filled(self._chosen(wording.predicates, random), words, fact.text)
        if words is not who.pronoun and random() < 0.5:
            return f"{words['S']}, {who.relative} {own}, {predicate}."
        return f"{words['S']} {own} and {predicate}."

    def _chosen(self, forms: tuple[str, ...], random: Callable[[], float]) -> str:
        return forms[int(random() * len(forms))] if random() < self._dials.paraphrase else forms[0]

    # What makes it harder

    def _alike(self, kind: str, row: int, links: dict[str, None]) -> str:
        other = self._titles.similar[kind][row]
        links[self._titles.names[kind][other]] = None
        return self._mention(kind, other)

    def _distractor(
        self, told: list[_Told], kind: str, row: int, random: Callable[[], float], links: dict[str, None]
    ) -> str:
        """A fact of another thing of the kind, or a value that is said to be wrong; empty where none fits."""
        fact = told[int(random() * len(told))]
        known = FACTS[fact.relation].relation
        if not known.functional:
            return ""
        size = self._knowledge.columns.counts[kind]
        other = self._titles.similar[kind].get(row)
        confused = other is not None and random() < 0.7
        if not confused or other is None:
            other = (row + 1 + int(random() * (size - 1))) % size
        number = int(self._columns[fact.relation][other])
        if number < 0 or number == int(self._columns[fact.relation][row]):
            return ""
        text = self._text(fact.relation, number, random, links)
        wording = self._wordings[fact.relation]
        if not confused and random() < 0.4:
            return self._mistaken(fact.relation, wording, text, number, row, random)
        whose = self._subject(kind, other)
        name = self._titles.names[kind][other]
        links[name] = None
        aside = (
            f"often confused with {'this one' if kind != 'person' else 'the subject of this page'},"
            if confused
            else _CONTRASTS[int(random() * (3 if kind == "person" else 4))]
        )
        predicate = _filled(self._chosen(wording.predicates, random), whose.pronoun, text)
        return f"{capital(self._mention(kind, other))}, {aside} {predicate}."

    def _mistaken(
        self, relation: str, wording: Wording, text: str, number: int, row: int, random: Callable[[], float]
    ) -> str:
        label = wording.label[0].lower() + wording.label[1:]
        if relation.endswith("_population"):
            older = int(self._columns[relation][row]) * (45 + int(random() * 45)) // 100
            return f"A count in {PRESENT - 20 - int(random() * 90)} had found {older:,} inhabitants."
        shape = int(random() * 3)
        if shape == 0:
            return f"Older books give {text} for the {label}, which is an error."
        if shape == 1:
            return f"The statement that the {label} is {text} has been shown to be false."
        return f"As to the {label}, {text} is named in some places, but wrongly."

    def _see_also(self, kind: str, row: int, random: Callable[[], float], links: dict[str, None]) -> Section:
        size = self._knowledge.columns.counts[kind]
        rows = dict.fromkeys((row + 1 + int(random() * (size - 1))) % size for _ in range(2 + int(random() * 3)))
        names = [self._titles.names[kind][each] for each in rows]
        links.update(dict.fromkeys(names))
        return Section("See also", 2, "\n".join(f"- {name}" for name in names))

    def _redirects(self, entity: Entity) -> tuple[str, ...]:
        used = self._titles.pool.used
        if entity.kind == "person" and "(" not in entity.name:
            given, _, surname = entity.name.rpartition(" ")
            return (f"{surname}, {given}",)
        if entity.kind == "river" and (bare := entity.name.removesuffix(" River")) not in used:
            return (bare,)
        return ()


def _filled(template: str, words: dict[str, str], text: str) -> str:
    words["v"] = text
    if "{V}" in template or "{an}" in template:
        words["V"], words["an"] = capital(text), with_article(text)
    return template.format_map(words)


def _spoken(random: Callable[[], float], template: str, words: dict[str, str], text: str) -> str:
    return capital(_filled(template, words, text))

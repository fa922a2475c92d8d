"""The facts of a thing in words: names, numbers with units, dates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from mcpgym_environments.wiki_search.world import vocabulary
from mcpgym_environments.wiki_search.world.knowledge import WorldKnowledge
from mcpgym_environments.wiki_search.world.prose.subjects import Subject, subject
from mcpgym_environments.wiki_search.world.prose.values import UNITS, day_texts, in_a_row
from mcpgym_environments.wiki_search.world.relations import FACTS
from mcpgym_environments.wiki_search.world.titles import ARTICLES

Links = dict[str, None]
Random = Callable[[], float]


class Told(NamedTuple):
    """A fact about to be told: its relation, its value in words, and whether that is a list."""

    relation: str
    text: str
    several: bool = False


class Teller:
    """Puts what is known into words; ``paraphrase`` is how often a value stands in another form than the usual one."""

    def __init__(self, knowledge: WorldKnowledge, paraphrase: float) -> None:
        self.knowledge = knowledge
        self._titles = knowledge.titles
        # Rows of a memory view are read three times faster than those of an array.
        self._columns = {name: column.data for name, column in knowledge.columns.of.items()}
        self._living = knowledge.columns.living.data
        self._paraphrase = paraphrase
        self._aliased = 0.15 * paraphrase
        self._shapes = {
            name: (fact.relation.value, fact.relation.object, UNITS.get(fact.relation.unit, ()), fact.inverse)
            for name, fact in FACTS.items()
        }

    def number(self, relation: str, row: int) -> int:
        """What stands in the column of ``relation``; -1 where nothing is known."""
        return int(self._columns[relation][row])

    def told(self, relation: str, row: int, random: Random, links: Links) -> Told | None:
        """The fact, or nothing where it is not known; titles of what it names are added to ``links``."""
        inverse = self._shapes[relation][3]
        if not inverse:
            number = self._columns[relation][row]
            return None if number < 0 else Told(relation, self.text(relation, number, random, links))
        knowledge = self.knowledge
        if relation == "country_neighbours":
            rows = list(knowledge.columns.neighbours[row])
        else:
            rows = knowledge.sources(inverse, row)
        if not rows:
            return None
        kind = self._shapes[relation][1]
        return Told(relation, in_a_row([self.name(kind, each, random, links) for each in rows]), len(rows) > 1)

    def text(self, relation: str, number: int, random: Random, links: Links) -> str:
        """One value of ``relation`` in words."""
        value, kind, forms, _ = self._shapes[relation]
        if value == "entity":
            return self.name(kind, number, random, links)
        if value == "number":
            return forms[int(random() * len(forms))].format(number)
        if value == "date":
            return day_texts(date.fromordinal(number))[random() < 0.25 * self._paraphrase]
        return self.knowledge.words(relation)[number]

    def name(self, kind: str, row: int, random: Random, links: Links) -> str:
        """A thing as it is named within a sentence, now and then by its other name."""
        name = self._titles.names[kind][row]
        links[name] = None
        if random() < self._aliased and kind != "settlement" and (aliases := self._titles.aliases[kind].get(row)):
            return f"the {aliases[0]}" if kind == "country" else aliases[0]
        return f"the {name}" if kind in ARTICLES else name

    def mention(self, kind: str, row: int) -> str:
        """A thing as it is named within a sentence."""
        name = self._titles.names[kind][row]
        return f"the {name}" if kind in ARTICLES else name

    def subject(self, kind: str, row: int) -> Subject:
        """The words for a thing as the subject of sentences."""
        name, noun, person, living = self.mention(kind, row), kind, "", kind not in ("ship", "event")
        if kind == "person":
            person, living = "she" if self.number("woman", row) else "he", bool(self._living[row])
            name = name.partition(" (")[0]
        elif kind == "settlement":
            people = self.number("settlement_population", row)
            noun = "village" if people < 2000 else "town" if people < 60_000 else "city"
        elif kind == "institution":
            noun = self._titles.institution_kinds[row].split()[-1]
        elif kind == "event":
            noun = vocabulary.CLASHES[self.number("event_type", row)].lower()
        elif kind == "ship":
            noun = vocabulary.VESSELS[self.number("ship_type", row)]
        elif kind == "species":
            noun = self._titles.creatures[row]
        return subject(name, noun, person, living)

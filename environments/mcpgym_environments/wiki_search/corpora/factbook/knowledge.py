"""What the Factbook states cleanly, as facts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from mcpgym_environments.wiki_search.corpora.factbook import parsing
from mcpgym_environments.wiki_search.corpora.factbook.facts import FACTS, Fact
from mcpgym_environments.wiki_search.corpora.factbook.layout import heading_of
from mcpgym_environments.wiki_search.corpora.factbook.reading import Country
from mcpgym_environments.wiki_search.knowledge import Entity, Evidence, Quantity, Relation, Value

_NO_COUNTRIES = frozenset({"ee", "xx"})
_HOLDERS = ("UK", "US", "France", "Australia", "New Zealand", "Netherlands", "Norway", "Denmark", "China", "Finland")
_PLURALS = ("Islands", "Bahamas", "Netherlands", "Philippines", "Maldives", "Comoros", "Seychelles", "Refuges", "Lands")


class FactbookKnowledge:
    """Facts of one kind of entity, ``country`` (territories among them), each read from a phrase that says just that.

    What is said with conditions, for several places or years, or not at all, is no fact here.
    """

    def __init__(self, countries: Sequence[Country]) -> None:
        self._countries = {country.code: country for country in countries if country.code not in _NO_COUNTRIES}
        self._entities = {code: _entity(country) for code, country in self._countries.items()}
        self._by_name: dict[str, Entity] = {}
        for code, country in self._countries.items():
            for name in (country.title, *country.aliases):
                self._by_name.setdefault(_folded(name), self._entities[code])
        self._values: dict[str, dict[str, tuple[Value, ...]]] = {name: {} for name in FACTS}
        self._subjects: dict[tuple[str, Value], list[Entity]] = {}
        for name, fact in FACTS.items():
            for code, country in self._countries.items():
                values = self._read(fact, country)
                if values:
                    self._values[name][code] = values
                for value in values:
                    self._subjects.setdefault((name, value), []).append(self._entities[code])

    @cached_property
    def relations(self) -> Mapping[str, Relation]:
        """Every relation by its name; whether each value belongs to one subject only is counted."""
        return {
            name: replace(
                fact.relation,
                inverse_functional=all(
                    len(self._subjects[name, value]) == 1 for values in self._values[name].values() for value in values
                ),
            )
            for name, fact in FACTS.items()
        }

    @property
    def kinds(self) -> Mapping[str, str]:
        """The only kind."""
        return {"country": "countries and territories"}

    def entities(self, kind: str) -> Sequence[Entity]:
        """Every country and territory, by name."""
        return list(self._entities.values()) if kind == "country" else []

    def values(self, entity: Entity, relation: str) -> Sequence[Value]:
        """What is known of ``entity``."""
        return self._values.get(relation, {}).get(entity.key, ())

    def subjects(self, relation: str, value: Value) -> Sequence[Entity]:
        """Every country that has this value."""
        return tuple(self._subjects.get((relation, value), ()))

    def evidence(self, entity: Entity, relation: str) -> Evidence:
        """The section that states it."""
        fact = FACTS[relation]
        return Evidence(entity.key, heading_of(self._countries[entity.key], fact.category, fact.field))

    def silent(self, entity: Entity, relation: str) -> bool:
        """Whether the Factbook has no text at all where the fact would stand: in the field, or for its year."""
        fact, country = FACTS[relation], self._countries[entity.key]
        if re.search(r"\b\d{4}$", fact.part):
            return not country.text(fact.category, fact.field, fact.part)
        return not country.fields.get(fact.category, {}).get(fact.field)

    def _read(self, fact: Fact, country: Country) -> tuple[Value, ...]:
        text = country.text(fact.category, fact.field, fact.part)
        if not text or "\n" in text:
            return ()
        found: Value | None = None
        match fact.reader:
            case "figure":
                number = parsing.figure(text, fact.pattern)
                found = None if number is None else Quantity(number, fact.relation.unit)
            case "name":
                found = parsing.single_name(text)
            case "title":
                found = parsing.quoted_title(text)
            case "code":
                found = parsing.code(text)
            case "currency":
                found = parsing.currency_code(text)
            case "peak" if (peak := parsing.peak(text)) is not None:
                found = peak[0]
            case "peak height" if (peak := parsing.peak(text)) is not None:
                found = Quantity(peak[1], fact.relation.unit)
            case "day" if (day := parsing.day_of_independence(text)) is not None:
                found = day[0]
            case "from" if (day := parsing.day_of_independence(text)) is not None:
                found = self._by_name.get(_folded(day[1]))
            case "holder":
                names = [name for name in _HOLDERS if f"of {name}" in text or f"of the {name}" in text]
                found = self._by_name.get(_folded(names[0])) if len(names) == 1 else None
            case "borders" | "longest" | "only":
                return self._neighbours(text, fact.reader)
        return () if found is None else (found,)

    def _neighbours(self, text: str, which: str) -> tuple[Value, ...]:
        parts = parsing.border_parts(text) or []
        known = [(self._by_name.get(_folded(name)), length) for name, length in parts]
        entities = [(entity, length) for entity, length in known if entity is not None]
        if len(entities) != len(known) or len({entity.key for entity, _ in entities}) != len(entities):
            return ()
        if which == "borders":
            return tuple(entity for entity, _ in entities)
        if which == "only":
            return (entities[0][0],) if len(entities) == 1 else ()
        longest = max((length for _, length in entities), default=None)
        top = [entity for entity, length in entities if length == longest]
        return (top[0],) if len(top) == 1 and len(entities) > 1 else ()


def _entity(country: Country) -> Entity:
    name = country.title
    the = name.endswith(_PLURALS) or name.startswith(("United ", "Democratic Republic", "Republic of", "Federated "))
    the = the or f"The {name}" in country.aliases or name in ("Central African Republic", "Czech Republic", "Holy See")
    the = the or name.endswith((" Republic", " Ocean Territory", " Strip"))
    return Entity(country.code, "country", name, country.aliases, "the" if the else "")


def _folded(name: str) -> str:
    text = unicodedata.normalize("NFKD", name).casefold().replace("’", "'")
    return "".join(character for character in text if not unicodedata.combining(character))

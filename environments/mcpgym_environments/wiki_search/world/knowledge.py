"""The knowledge base of a generated world: what every page says, before a word of it is written."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.knowledge import Entity, Evidence, Quantity, Relation, Value
from mcpgym_environments.wiki_search.world.columns import SMALLEST, Columns
from mcpgym_environments.wiki_search.world.headings import heading
from mcpgym_environments.wiki_search.world.relations import FACTS, KINDS, RELATIONS
from mcpgym_environments.wiki_search.world.titles import ARTICLES, Titles


class _Entities(Sequence[Entity]):
    """Every thing of a kind, made when asked for: a million of them take no memory before."""

    def __init__(self, knowledge: WorldKnowledge, kind: str) -> None:
        self._knowledge, self._kind = knowledge, kind

    def __len__(self) -> int:
        return self._knowledge.columns.counts[self._kind]

    def __getitem__(self, row):  # type: ignore[no-untyped-def]
        if isinstance(row, slice):
            return [self._knowledge.entity(self._kind, each) for each in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(f"there are {len(self)} {KINDS[self._kind]}, and none has number {row}")
        return self._knowledge.entity(self._kind, int(row) % len(self))

    def __iter__(self) -> Iterator[Entity]:
        return (self._knowledge.entity(self._kind, row) for row in range(len(self)))

    def __contains__(self, entity: object) -> bool:
        return isinstance(entity, Entity) and entity.kind == self._kind and entity.key in self._knowledge


class WorldKnowledge:
    """A :class:`~mcpgym_environments.wiki_search.knowledge.Knowledge` kept as columns of numbers.

    A thing's key is its kind and its row (``river-12``). ``near_duplicates``, from 0 to 1, is the share of things whose
    names are nearly those of others.
    """

    def __init__(self, seed: int, pages: int, near_duplicates: float = 0.1) -> None:
        if pages < SMALLEST:
            raise ConfigurationError(f"a world needs at least {SMALLEST} pages, not {pages}")
        self.columns = Columns(seed, pages)
        self.titles = Titles(seed, self.columns, near_duplicates)
        self.seed = seed
        self._entity = lru_cache(maxsize=200_000)(self._make)
        self._inverse: dict[str, tuple[memoryview, memoryview | None]] = {}
        self._rows: dict[str, dict[str, int]] = {}

    def __contains__(self, key: object) -> bool:
        kind, _, row = str(key).partition("-")
        return kind in KINDS and row.isdecimal() and int(row) < self.columns.counts[kind]

    @property
    def relations(self) -> Mapping[str, Relation]:
        """Every relation by its name."""
        return RELATIONS

    @property
    def kinds(self) -> Mapping[str, str]:
        """Every kind of entity, with its plural noun."""
        return KINDS

    def entity(self, kind: str, row: int) -> Entity:
        """The thing of a kind in a row."""
        return self._entity(kind, row)

    def _make(self, kind: str, row: int) -> Entity:
        titles = self.titles
        name = titles.names[kind][row]
        return Entity(f"{kind}-{row}", kind, name, titles.aliases[kind].get(row, ()), ARTICLES.get(kind, ""))

    def entities(self, kind: str) -> Sequence[Entity]:
        """Every entity of a kind."""
        return _Entities(self, kind)

    def row(self, entity: Entity) -> int:
        """The row of an entity within its kind."""
        return int(entity.key[len(entity.kind) + 1 :])

    def values(self, entity: Entity, relation: str) -> Sequence[Value]:
        """What is known of ``entity``; nothing for what is not stated, or not said of its kind."""
        fact = FACTS[relation]
        known = fact.relation
        if known.subject != entity.kind:
            return ()
        row = self.row(entity)
        if relation == "country_neighbours":
            return [self.entity("country", each) for each in self.columns.neighbours[row]]
        if fact.inverse:
            return [self.entity(known.object, each) for each in self.sources(fact.inverse, row)]
        number = int(self.columns.of[relation][row])
        return () if number < 0 else (self._value(relation, number),)

    def _value(self, relation: str, number: int) -> Value:
        known = RELATIONS[relation]
        if known.value == "entity":
            return self.entity(known.object, number)
        if known.value == "date":
            return date.fromordinal(number)
        if known.value == "number":
            return Quantity(Fraction(number), known.unit)
        return self.words(relation)[number]

    def words(self, relation: str) -> Sequence[str]:
        """Every value of a relation whose values are words."""
        own = {
            "country_currency": self.titles.coins,
            "country_language": self.titles.languages,
            "mountain_range": self.titles.ranges,
        }
        return own.get(relation, FACTS[relation].vocabulary)

    def sources(self, relation: str, number: int) -> list[int]:
        """The rows of the subjects that have ``number`` in the column of ``relation``."""
        rows, starts = self._inverse.get(relation) or self._inverted(relation)
        if starts is not None:
            return rows[starts[number] : starts[number + 1]].tolist()
        column = self.columns.of[relation]
        first, last = bisect_left(rows, number, key=column.item), bisect_right(rows, number, key=column.item)
        return rows[first:last].tolist()

    def _inverted(self, relation: str) -> tuple[memoryview, memoryview | None]:
        """Rows in order of their value, and, where values are things, where each thing's rows begin."""
        column = self.columns.of[relation]
        order = np.argsort(column, kind="stable")
        starts = None
        if RELATIONS[relation].value == "entity":
            size = self.columns.counts[RELATIONS[relation].object]
            starts = np.searchsorted(column, np.arange(size + 1), side="left", sorter=order).data
        self._inverse[relation] = order.data, starts
        return self._inverse[relation]

    def subjects(self, relation: str, value: Value) -> Sequence[Entity]:
        """Every entity that has this value."""
        fact = FACTS[relation]
        known = fact.relation
        if relation == "country_neighbours":
            beside = self.columns.neighbours[self.row(value)] if isinstance(value, Entity) else ()
            return [self.entity("country", each) for each in beside]
        if fact.inverse:
            found = self.values(value, fact.inverse) if isinstance(value, Entity) else ()
            return [each for each in found if isinstance(each, Entity)]
        number = self._number(relation, value)
        return () if number is None else [self.entity(known.subject, row) for row in self.sources(relation, number)]

    def _number(self, relation: str, value: Value) -> int | None:
        """What stands in the column of ``relation`` for ``value``; nothing where no subject can have it."""
        known = RELATIONS[relation]
        if isinstance(value, Entity):
            return self.row(value) if known.value == "entity" and known.object == value.kind else None
        if isinstance(value, date):
            return value.toordinal() if known.value == "date" else None
        if isinstance(value, Quantity):
            fits = known.value == "number" and value.unit == known.unit and value.number.denominator == 1
            return int(value.number) if fits and value.number >= 0 else None
        if relation not in self._rows:
            words = self.words(relation) if known.value == "text" else ()
            self._rows[relation] = {word: number for number, word in enumerate(words)}
        return self._rows[relation].get(value)

    def evidence(self, entity: Entity, relation: str) -> Evidence:
        """Where the values of ``relation`` of ``entity`` stand."""
        return Evidence(entity.key, heading(self.seed, entity, relation))

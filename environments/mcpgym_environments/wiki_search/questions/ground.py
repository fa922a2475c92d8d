"""What questions can be made of: entities of a split, and walks along facts that have one value."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from mcpgym_environments.wiki_search.knowledge import Entity, Evidence, Knowledge, PartlyKnown, Relation, Value
from mcpgym_environments.wiki_search.questions.question import Step
from mcpgym_environments.wiki_search.questions.splits import split_of, wordings
from mcpgym_environments.wiki_search.questions.wording import CLOSED, NAME, NESTED, fitting, phrases, value_text

_SAMPLE = 300
"""How many entities tell how often a fact is stated, and how easily its value is guessed."""
_DRAWS = 30
_RARELY_STATED = 0.35
"""What fewer entities than this state is not asked for where it is missing: that it is missing would be the guess."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An entity as a question speaks of it: by its name, or by ``hops`` facts that lead to it from a named one.

    ``seen`` are the keys of all entities on the way, the entity's own the last; ``form`` is what the text
    is: ``NAME``, ``NESTED`` or ``CLOSED``.
    """

    entity: Entity
    text: str
    hops: int = 0
    steps: tuple[Step, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    seen: tuple[str, ...] = ()
    form: int = NAME


@dataclass(frozen=True, slots=True)
class Field:
    """The values of a relation over a split.

    ``stated``: how often there is one; ``asked``: how often there is one that an answer may be; ``guess``: how often
    the most frequent one is right.
    """

    stated: float
    asked: float
    guess: float


class Ground:
    """A knowledge base as questions are made from it.

    Args:
        knowledge: what is known.
        guess: no answer is asked for that the most frequent value of its relation gives more often than this.
        aliases: how often an entity is spoken of by another of its names.
    """

    def __init__(self, knowledge: Knowledge, guess: float, aliases: float) -> None:
        self.knowledge = knowledge
        self.guess = guess
        self._aliases = aliases
        self._fields: dict[tuple[str, str], Field] = {}
        self.counts: dict[tuple[str, str], float] = {}
        """For two relations to groups, one after the other: how often the most frequent count is right."""
        facts: defaultdict[str, list[Relation]] = defaultdict(list)
        groups: defaultdict[str, list[Relation]] = defaultdict(list)
        into: defaultdict[str, list[Relation]] = defaultdict(list)
        for relation in knowledge.relations.values():
            if not relation.phrases or not relation.questions:
                continue
            if relation.functional:
                facts[relation.subject].append(relation)
            elif relation.value == "entity":
                groups[relation.subject].append(relation)
                into[relation.object].append(relation)
        self.facts = dict(facts)
        """For each kind, its relations with one value."""
        self._ways = {kind: [one for one in known if one.value == "entity"] for kind, known in facts.items()}
        self.groups = dict(groups)
        """For each kind, its relations to several entities."""
        self.into = dict(into)
        """For each kind, the relations whose values are several entities of it."""
        kinds = [
            kind for kind in knowledge.kinds if len(knowledge.entities(kind)) and (kind in facts or kind in groups)
        ]
        self._kinds = kinds
        self._weights = [len(knowledge.entities(kind)) ** 0.5 for kind in kinds]

    @staticmethod
    def shuffled(random: Random, relations: Sequence[Relation]) -> Iterator[Relation]:
        """``relations`` in any order; those that nobody looks at cost nothing."""
        left = list(relations)
        while left:
            place = int(random.random() * len(left))
            left[place], left[-1] = left[-1], left[place]
            yield left.pop()

    def draw(self, random: Random, split: str, kind: str = "") -> Entity | None:
        """An entity of ``split``, of a kind if one is given; nothing if none was met."""
        if not self._kinds:
            return None
        entities = self.knowledge.entities(kind or random.choices(self._kinds, self._weights)[0])
        for _ in range(_DRAWS if entities else 0):
            entity = entities[random.randrange(len(entities))]
            if split_of(entity.key) == split:
                return entity
        return None

    def named(self, random: Random, entity: Entity) -> Subject:
        """``entity``, spoken of by a name."""
        name = entity.mention
        if self._aliases and entity.aliases and random.random() < self._aliases:
            name = random.choice(entity.aliases)
            name = f"{entity.article} {name}" if entity.article else name
        return Subject(entity, name, seen=(entity.key,))

    def value(self, entity: Entity, relation: Relation) -> Value | None:
        """The one value of a relation, or nothing."""
        values = self.knowledge.values(entity, relation.name)
        return values[0] if len(values) == 1 else None

    def missing(self, entity: Entity) -> list[Relation]:
        """The relations with one value that the page of ``entity`` says nothing about."""
        known = self.knowledge
        return [
            relation
            for relation in self.facts.get(entity.kind, ())
            if not known.values(entity, relation.name)
            and (not isinstance(known, PartlyKnown) or known.silent(entity, relation.name))
        ]

    def fact(self, entity: Entity, relation: Relation, value: Value) -> tuple[Step, Evidence]:
        """A fact as a step of a path, and where it stands."""
        step = Step(entity.key, relation.name, value_text(value))
        return step, self.knowledge.evidence(entity, relation.name)

    def walk(self, random: Random, split: str, hops: int) -> Subject | None:
        """Somebody or something that ``hops`` facts lead to, all of ``split``; nothing if the way ended before."""
        start = self.draw(random, split)
        subject = self.named(random, start) if start else None
        for _ in range(hops):
            if subject is None:
                return None
            subject = self._onward(random, split, subject)
        return subject

    def _onward(self, random: Random, split: str, subject: Subject) -> Subject | None:
        for relation in self.shuffled(random, self._ways.get(subject.entity.kind, ())):
            value = self.value(subject.entity, relation)
            if not isinstance(value, Entity) or value.key in subject.seen or split_of(value.key) != split:
                continue
            options = fitting(phrases(relation, split), subject.form)
            if not options:
                continue
            wording = random.choice(options)
            step, evidence = self.fact(subject.entity, relation, value)
            return Subject(
                value,
                wording.format(subject.text),
                subject.hops + 1,
                (*subject.steps, step),
                (*subject.evidence, evidence),
                (*subject.seen, value.key),
                NESTED if wording.endswith("{}") else CLOSED,
            )
        return None

    def asked(
        self, random: Random, split: str, entity: Entity, seen: Sequence[str], form: int = NAME, doubtful: bool = False
    ) -> tuple[Relation, Value, str] | None:
        """Something to ask of ``entity`` whose answer is hard to guess: its value, and a wording of the question.

        ``doubtful``: only of that which is in doubt (see :meth:`in_doubt`).
        """
        for relation in self.shuffled(random, self.facts.get(entity.kind, ())):
            if doubtful and not self.in_doubt(relation, split):
                continue
            value = self.value(entity, relation)
            if value is None or (isinstance(value, Entity) and (value.key in seen or split_of(value.key) != split)):
                continue
            questions = fitting(wordings(relation.questions, split), form)
            if questions and self.field(relation, split).guess <= self.guess:
                return relation, value, random.choice(questions)
        return None

    def in_doubt(self, relation: Relation, split: str) -> bool:
        """Whether one may ask for ``relation`` both where it is stated and where it is not."""
        field = self.field(relation, split)
        return field.guess <= self.guess and _RARELY_STATED <= field.stated < 1

    def mistaken(self, random: Random, split: str, value: Entity) -> Entity | None:
        """Another entity that one may take ``value`` for: they share a fact, as two rivers of one country do.

        Nothing where there is none; any other of its kind where such a kind has no facts to share. Names from another
        part of the world would tell a wrong answer by their sound.
        """
        ways = [way for way in self._ways.get(value.kind, ()) if not way.inverse_functional]
        for way in self.shuffled(random, ways):
            shared = self.value(value, way)
            near = self.knowledge.subjects(way.name, shared) if shared is not None else ()
            near = [one for one in near if one != value and split_of(one.key) == split]
            if near:
                return random.choice(near)
        other = None if ways else self.draw(random, split, value.kind)
        return None if other == value else other

    def measured(self, random: Random, entity: Entity, kinds: Sequence[str] = ("number", "date")) -> Iterator[Relation]:
        """The relations of ``entity`` that have a number or date, in any order."""
        for relation in self.shuffled(random, self.facts.get(entity.kind, ())):
            if relation.value in kinds and self.value(entity, relation) is not None:
                yield relation

    def field(self, relation: Relation, split: str) -> Field:
        """How often a relation is stated in ``split``, and how often its most frequent value is."""
        known = self._fields.get((relation.name, split))
        if known is None:
            known = self._fields[relation.name, split] = self._measure(relation, split)
        return known

    def _measure(self, relation: Relation, split: str) -> Field:
        entities = self.knowledge.entities(relation.subject)
        stride = max(1, len(entities) // (_SAMPLE * 5))
        met, asked, counts = 0, 0, Counter[Value]()
        for row in range(0, len(entities), stride):
            entity = entities[row]
            if split_of(entity.key) == split:
                met += 1
                values = self.knowledge.values(entity, relation.name)[:1]
                counts.update(values)
                asked += any(not isinstance(value, Entity) or split_of(value.key) == split for value in values)
                if met == _SAMPLE:
                    break
        total = counts.total()
        if not total:
            return Field(0.0, 0.0, 1.0)
        return Field(total / met, asked / met, max(counts.values()) / total)

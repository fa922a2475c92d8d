"""What a corpus is known to say, as facts: what questions are made from and answers are checked against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Literal, Protocol, runtime_checkable

ValueKind = Literal["entity", "number", "date", "text"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit; the unit is empty for a bare count, and ``year`` for a calendar year."""

    number: Fraction
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that has a page: ``key`` is the page's, ``kind`` what it is (``person``, ``river``).

    ``article`` is ``the`` for names that have it within a sentence (``the Battle of Hastings``) and empty otherwise.
    """

    key: str
    kind: str
    name: str
    aliases: tuple[str, ...] = ()
    article: str = ""

    @property
    def mention(self) -> str:
        """The name as it stands within a sentence: fill the ``{}`` of phrases and questions with it."""
        return f"{self.article} {self.name}" if self.article else self.name


Value = Entity | Quantity | date | str


@dataclass(frozen=True, slots=True)
class Relation:
    """A kind of fact: subjects of ``subject`` kind have values of ``value`` kind (``object`` says of which entities).

    ``functional``: every subject has at most one value. ``inverse_functional``: every value belongs to at most one
    subject. ``phrases`` are ways to name the value of a subject, with ``{}`` for the subject (``the birthplace of
    {}``); ``questions`` are ways to ask for it (``Where was {} born?``). The last of each are held out for tests.
    """

    name: str
    subject: str
    value: ValueKind
    object: str = ""
    unit: str = ""
    functional: bool = True
    inverse_functional: bool = False
    phrases: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a fact stands: the page's key and the heading of its section."""

    page: str
    heading: str


class Knowledge(Protocol):
    """A knowledge base. All sequences have a fixed order; nothing depends on the process."""

    @property
    def relations(self) -> Mapping[str, Relation]:
        """Every relation by its name."""
        ...

    @property
    def kinds(self) -> Mapping[str, str]:
        """Every kind of entity, with its plural noun (``river`` → ``rivers``)."""
        ...

    def entities(self, kind: str) -> Sequence[Entity]:
        """Every entity of a kind."""
        ...

    def values(self, entity: Entity, relation: str) -> Sequence[Value]:
        """What is known of ``entity``; nothing for what is not stated."""
        ...

    def subjects(self, relation: str, value: Value) -> Sequence[Entity]:
        """Every entity that has this value."""
        ...

    def evidence(self, entity: Entity, relation: str) -> Evidence:
        """Where the values of ``relation`` of ``entity`` stand."""
        ...


@runtime_checkable
class PartlyKnown(Protocol):
    """A knowledge base whose pages say more than it knows: a value that is unknown may be stated all the same."""

    def silent(self, entity: Entity, relation: str) -> bool:
        """Whether the page of ``entity`` says nothing at all about ``relation``."""
        ...

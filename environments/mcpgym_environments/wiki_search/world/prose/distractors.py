"""Sentences that lead astray without lying: facts of other things, and figures that are said to be old or wrong."""

from __future__ import annotations

from mcpgym_environments.wiki_search.world.columns import PRESENT
from mcpgym_environments.wiki_search.world.prose.facts import Links, Random, Teller, Told
from mcpgym_environments.wiki_search.world.prose.subjects import capital
from mcpgym_environments.wiki_search.world.prose.wording import Wording
from mcpgym_environments.wiki_search.world.relations import FACTS

_CONTRASTS = ("by contrast,", "for comparison,", "on the other hand,", "to take another case,")
_ALIKE = (
    "not to be mistaken for {},",
    "often mixed up with {},",
    "nearly of the same name,",
    "a name that only sounds alike,",
)
_NAMESAKES = ("not to be mistaken for {},", "a different person from {},")
_MISTAKEN = (
    "Older books give {v} for the {label}, which is an error.",
    "The statement that the {label} is {v} has been shown to be false.",
    "As to the {label}, {v} is named in some places, but wrongly.",
    "A misprint in an early handbook made {v} the {label}; it has been corrected since.",
    "That {v} should be the {label} is a legend without any foundation.",
    "One traveller's report of {v} as the {label} rests on a mistake.",
)


class Distractors:
    """Makes distractors for sections; every one is true, or says of itself that it is not."""

    def __init__(self, teller: Teller, wordings: dict[str, Wording]) -> None:
        self._teller = teller
        self._wordings = wordings
        self._counts = teller.knowledge.columns.counts
        self._similar = teller.knowledge.titles.similar

    def make(self, told: list[Told], kind: str, row: int, random: Random, links: Links) -> str:
        """A sentence beside the facts that a section tells of a thing; empty where none fits."""
        fact = told[int(random() * len(told))]
        relation = fact.relation
        if not FACTS[relation].relation.functional:
            return ""
        if relation.endswith("_population") and random() < 0.5:
            older = self._teller.number(relation, row) * (45 + int(random() * 45)) // 100
            return f"A count in {PRESENT - 20 - int(random() * 90)} had found {older:,} inhabitants."
        like = self._similar[kind].get(row)
        confused = like is not None and random() < 0.7
        size = self._counts[kind]
        other = like if confused and like is not None else (row + 1 + int(random() * (size - 1))) % size
        number = self._teller.number(relation, other)
        if number < 0 or number == self._teller.number(relation, row):
            return ""
        text = self._teller.text(relation, number, random, links)
        wording = self._wordings[relation]
        if not confused and random() < 0.4:
            label = wording.label[0].lower() + wording.label[1:]
            return _MISTAKEN[int(random() * len(_MISTAKEN))].format(v=text, label=label)
        name = self._teller.mention(kind, other)
        links[self._teller.knowledge.titles.names[kind][other]] = None
        title = self._teller.knowledge.titles.names[kind][row]
        asides: tuple[str, ...] = _ALIKE if confused else _CONTRASTS
        if confused and name.partition(" (")[0] == title.partition(" (")[0]:
            asides = _NAMESAKES
        aside = asides[int(random() * len(asides))].format(self._teller.mention(kind, row))
        whose = self._teller.subject(kind, other)
        predicate = whose.fill(wording.predicates[int(random() * len(wording.predicates))], whose.pronoun, text)
        return f"{capital(name)}, {aside} {predicate}."

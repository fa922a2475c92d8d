"""Writes pages: every fact in one section only, and around it what makes it harder to find."""

from __future__ import annotations

import random as generators
import re
from dataclasses import dataclass
from typing import NamedTuple

from mcpgym_environments.wiki_search.knowledge import Entity
from mcpgym_environments.wiki_search.pages import Page, Section
from mcpgym_environments.wiki_search.world.headings import PARTS, part_heading
from mcpgym_environments.wiki_search.world.knowledge import WorldKnowledge
from mcpgym_environments.wiki_search.world.prose.distractors import Distractors
from mcpgym_environments.wiki_search.world.prose.facts import Links, Random, Teller, Told
from mcpgym_environments.wiki_search.world.prose.subjects import Subject, capital
from mcpgym_environments.wiki_search.world.prose.wording import Choice, remarks, wordings
from mcpgym_environments.wiki_search.world.relations import KINDS

SHORTEST = 250
"""About how many characters a section has at least."""

_ALIASES = {
    "country": "Officially {s} is called the {v}.",
    "settlement": "{P} former name was {v}.",
    "person": "{P} name in full {be} {v}.",
    "river": "On many maps {s} appears as {v}.",
    "species": "{P} scientific name is {v}.",
}


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


class _Planned(NamedTuple):
    """A sentence before it is known how it will call its subject: one or two facts, a remark, or words about others."""

    fact: Told | None = None
    further: Told | None = None
    remark: str = ""
    other: str = ""


class Writer:
    """Writes the page of any thing of a world, without the pages of others."""

    def __init__(self, knowledge: WorldKnowledge, dials: Dials) -> None:
        self._knowledge = knowledge
        self._titles = knowledge.titles
        self._dials = dials
        self._wordings = wordings(dials.wording)
        self._remarks = remarks()
        self._teller = Teller(knowledge, dials.paraphrase)
        self._distractors = Distractors(self._teller, self._wordings)
        self._kinds = {kind: number for number, kind in enumerate(KINDS)}

    def page(self, entity: Entity) -> Page:
        """The page of ``entity``."""
        kind, row = entity.kind, self._knowledge.row(entity)
        random = generators.Random((self._knowledge.seed * 11 + self._kinds[kind]) * 4_294_967_296 + row).random
        links: Links = {}
        who = self._teller.subject(kind, row)
        sections = []
        for number, part in enumerate(PARTS[kind]):
            told = [fact for name in part.relations if (fact := self._teller.told(name, row, random, links))]
            if told:
                text = self._section(told, who, kind, row, number, random, links)
                title = part_heading(self._knowledge.seed, entity, number)
                sections.append(Section(title, 2 if number else 1, text))
        if random() < 0.4:
            sections.append(self._see_also(kind, row, random, links))
        links.pop(entity.name, None)
        return Page(entity.key, entity.name, tuple(sections), entity.aliases, self._redirects(entity), tuple(links))

    def _section(
        self, told: list[Told], who: Subject, kind: str, row: int, number: int, random: Random, links: Links
    ) -> str:
        dials, table, plan = self._dials, "", list[_Planned]()
        if random() < dials.tables:
            table = "\n".join(f"{self._wordings[fact.relation].label} | {fact.text}" for fact in told)
        else:
            plan = self._plan(list(told), random)
        added = list[_Planned]()
        if number == 0 and (aliases := self._titles.aliases[kind].get(row)):
            added.append(_Planned(Told("", aliases[0]), remark=_ALIASES[kind]))
        if random() < dials.distractors:
            for _ in range(1 + (random() < dials.distractors / 2)):
                other = self._distractors.make(told, kind, row, random, links)
                if other and not (added and added[-1].other[:12] == other[:12]):
                    added.append(_Planned(other=other))
        length = 30 * len(added) - SHORTEST
        for fact in told:
            length += len(fact.text) + 24
        for planned in added:
            length += len(planned.other)
        choices = self._remarks[kind, number]
        place = int(random() * len(choices))
        # As many remarks as it takes, and now and then one more; those side by side in the table never meet.
        for _ in range(min(len(choices) // 2, max(bool(table), -length // 48, 0) + int(random() * 2.3))):
            variants = choices[place]
            added.append(_Planned(remark=variants[int(random() * len(variants))]))
            place = (place + 2) % len(choices)
        for each in added:
            plan.insert(1 + int(random() * len(plan)) if plan else 0, each)
        if plan and plan[0].other:
            plan.append(plan.pop(0))
        sentences = self._spoken(plan, who, random)
        if number == 0 and row in self._titles.similar[kind]:
            alike = self._titles.similar[kind][row]
            links[self._titles.names[kind][alike]] = None
            name, other = capital(self._teller.mention(kind, row)), self._teller.mention(kind, alike)
            sentences.insert(0, f"{name} is not to be confused with {other}.")
        text = " ".join(sentences)
        return f"{text}\n\n{table}" if table and text else text or table

    def _plan(self, told: list[Told], random: Random) -> list[_Planned]:
        """The facts, some two to a sentence."""
        paraphrase, plan = self._dials.paraphrase, list[_Planned]()
        if len(told) > 1 and random() < paraphrase * 0.4:
            told[0], told[1] = told[1], told[0]
        while told:
            fact, further = told.pop(0), None
            if told and not fact.several and random() < paraphrase * 0.6:
                further = next((other for other in told if not other.several), None)
                if further:
                    told.remove(further)
            plan.append(_Planned(fact, further))
        return plan

    def _spoken(self, plan: list[_Planned], who: Subject, random: Random) -> list[str]:
        """The sentences: the subject by name first and after words about others, else mostly as a pronoun."""
        sentences = list[str]()
        named = False
        for planned in plan:
            if planned.other:
                sentences.append(planned.other)
                named = False
                continue
            chance = random()
            if not named:
                words = who.named if not sentences or chance < 0.5 else who.short
            else:
                words = who.short if chance < 0.25 else who.pronoun
            if planned.remark:
                sentence = who.fill(planned.remark, words, planned.fact.text if planned.fact else "")
                named = named or "{S}" in planned.remark or "{P}" in planned.remark
            elif planned.fact and planned.further:
                sentence = self._joined(planned.fact, planned.further, who, words, random)
                named = True
            elif planned.fact:
                sentence = self._alone(planned.fact, who, words, named, random)
                named = True
            sentences.append(capital(sentence))
        return sentences

    def _alone(self, fact: Told, who: Subject, words: dict[str, str], named: bool, random: Random) -> str:
        wording = self._wordings[fact.relation]
        sentences = wording.sentences if named else wording.first
        if not sentences or random() < 0.45:
            return who.fill("{S} " + self._chosen(wording.predicates, random) + ".", words, fact.text)
        return who.fill(self._chosen(sentences, random), words, fact.text)

    def _joined(self, fact: Told, further: Told, who: Subject, words: dict[str, str], random: Random) -> str:
        """Two facts in one sentence: an opening, a relative clause, or two predicates."""
        wording = self._wordings[fact.relation]
        predicate = who.fill(self._chosen(self._wordings[further.relation].predicates, random), words, further.text)
        if wording.openings and random() < 0.5:
            return f"{who.fill(self._chosen(wording.openings, random), words, fact.text)}, {words['s']} {predicate}."
        own = who.fill(self._chosen(wording.predicates, random), words, fact.text)
        # “was founded by Anna” and “was founded in 1620”: said once.
        shared = _shared(own, predicate)
        if shared:
            return f"{words['S']} {own} {predicate[shared:]}."
        if words is not who.pronoun and random() < 0.5:
            return f"{words['S']}, {who.relative} {own}, {predicate}."
        return f"{words['S']} {own} and {predicate}."

    def _chosen(self, forms: tuple[str, ...], random: Random) -> str:
        return forms[int(random() * len(forms))] if random() < self._dials.paraphrase else forms[0]

    def _see_also(self, kind: str, row: int, random: Random, links: Links) -> Section:
        size = self._knowledge.columns.counts[kind]
        rows = dict.fromkeys((row + 1 + int(random() * (size - 1))) % size for _ in range(2 + int(random() * 3)))
        names = [self._titles.names[kind][each] for each in rows]
        links.update(dict.fromkeys(names))
        return Section("See also", 2, "\n".join(f"- {name}" for name in names))

    def _redirects(self, entity: Entity) -> tuple[str, ...]:
        if entity.kind == "person" and "(" not in entity.name:
            given, _, surname = entity.name.rpartition(" ")
            return (f"{surname}, {given}",)
        if entity.kind == "river":
            bare = entity.name.removesuffix(" River")
            return () if bare in self._titles.pool.used else (bare,)
        return ()


def _shared(own: str, predicate: str) -> int:
    """How many letters two passive predicates begin with in common, verb included; none for others."""
    if not own.startswith("was "):
        return 0
    verb = re.match(r"was (?:first )?(?:\w+ed|born|built) ", predicate)
    return len(verb[0]) if verb and own.startswith(verb[0]) else 0

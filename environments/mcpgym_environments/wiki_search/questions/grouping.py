"""Draft questions over several entities that a fact leads to: which of them, all of them, how many, how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random

from mcpgym_environments.wiki_search.knowledge import Entity, Relation, Value
from mcpgym_environments.wiki_search.questions.ground import Ground, Subject
from mcpgym_environments.wiki_search.questions.makers import Draft, drafted, is_time, size_of
from mcpgym_environments.wiki_search.questions.splits import split_of, wordings
from mcpgym_environments.wiki_search.questions.wording import (
    CLOSED,
    fitting,
    in_unit,
    nouns,
    phrases,
    sentence,
    with_article,
)
from mcpgym_environments.wiki_search.scoring.answers import EntityAnswer, ListAnswer, NumberAnswer

_FEWEST, _MOST = 3, 10
"""How many members a group may have that something is asked over."""
_LONGEST_LIST = 6
_COUNT_GUESS = 0.12
"""How often the most frequent count may be right: counts are small numbers."""
_ADDABLE = frozenset(("", "people", "inhabitants", "km²", "km2", "sq km", "ha", "t", "US dollars", "$"))


def superlative(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """Which member of a group has the greatest, smallest, earliest or latest value."""
    found = _group(ground, random, split, hops - 2, _FEWEST, _MOST)
    if found is None:
        return None
    anchor, group, members = found
    most = random.random() < 0.5
    for relation, values in _measured(ground, random, split, members):
        best = (max if most else min)(values, key=size_of)
        winner = members[values.index(best)]
        if values.count(best) > 1 or split_of(winner.key) != split:
            continue
        words = ("latest", "earliest") if is_time(relation) else ("greatest", "smallest")
        told = random.choice(fitting(phrases(group, split), anchor.form)).format(anchor.text)
        noun = random.choice(nouns(relation, split))
        text = random.choice(wordings(_WHICH, split)).format(told, words[0] if most else words[1], noun)
        answer = EntityAnswer(winner.name, winner.aliases)
        return _over(ground, text, answer, anchor, group, members, relation, values)
    return None


_WHICH = (
    "Which of {0} has the {1} {2}?",
    "Among {0}, which has the {1} {2}?",
    "Of {0}, which one has the {1} {2}?",
    "Look at {0}: which one has the {1} {2}?",
)


def aggregation(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """A total or a range over the members of a group, or how many belong to all of them."""
    if random.random() < 0.3:
        return _count(ground, random, split, hops)
    found = _group(ground, random, split, hops - 2, _FEWEST, _MOST)
    measured = next(_measured(ground, random, split, found[2]), None) if found else None
    if found is None or measured is None:
        return None
    (anchor, group, members), (relation, values) = found, measured
    told = random.choice(fitting(phrases(group, split), anchor.form)).format(anchor.text)
    noun = random.choice(nouns(relation, split))
    sizes = [size_of(value) for value in values]
    unit = in_unit(relation.unit)
    if is_time(relation):
        spread, unit = max(sizes) - min(sizes), "days" if relation.value == "date" else "years"
        text = random.choice(wordings(_TIME_RANGE, split)).format(unit, noun, told)
        answer = NumberAnswer(spread, unit)
    elif relation.unit in _ADDABLE and random.random() < 0.6:
        text = random.choice(wordings(_TOTAL, split)).format(noun, told, unit)
        answer = NumberAnswer(sum(sizes, Fraction(0)), relation.unit)
    else:
        text = random.choice(wordings(_RANGE, split)).format(noun, told, unit)
        answer = NumberAnswer(max(sizes) - min(sizes), relation.unit)
    if answer.number == 0:
        return None
    return _over(ground, text, answer, anchor, group, members, relation, values)


_TOTAL = (
    "What is the combined {0} of {1}{2}?",
    "What is the {0} of {1} taken together{2}?",
    "Add up the {0} of each of {1}. What is the total{2}?",
    "For each of {1}, take the {0}. What do they sum to{2}?",
)
_RANGE = (
    "What is the difference between the greatest and the smallest {0} among {1}{2}?",
    "Among {1}, how far apart are the greatest and the smallest {0}{2}?",
    "Over {1}, by how much does the greatest {0} exceed the smallest{2}?",
)
_TIME_RANGE = (
    "How many {0} lie between the earliest and the latest {1} among {2}?",
    "Among {2}, how many {0} are there between the earliest and the latest {1}?",
    "Over {2}, how many {0} separate the earliest {1} from the latest?",
)


def _count(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """How many are in the groups of a group: the people born in the settlements of a region."""
    found = _group(ground, random, split, hops - 2, _FEWEST, _MOST + 5)
    if found is None:
        return None
    anchor, group, members = found
    inner = [one for one in ground.groups.get(group.object, ()) if one.inverse_functional and phrases(one, split)]
    if not inner:
        return None
    relation = random.choice(inner)
    if _count_guess(ground, group, relation) > _COUNT_GUESS:
        return None
    sizes = [len(ground.knowledge.values(member, relation.name)) for member in members]
    if not sum(sizes):
        return None
    told = random.choice(fitting(phrases(group, split), anchor.form)).format(anchor.text)
    options = fitting(phrases(relation, split), CLOSED)
    if not options:
        return None
    counted = random.choice(options).format(told).removeprefix("the ")
    text = random.choice(wordings(_HOW_MANY, split)).format(counted)
    facts = [ground.fact(anchor.entity, group, member) for member in members]
    for member in members:
        facts += [ground.fact(member, relation, value) for value in ground.knowledge.values(member, relation.name)]
    return drafted(text, NumberAnswer(Fraction(sum(sizes)), ground.knowledge.kinds[relation.object]), (anchor,), facts)


_HOW_MANY = (
    "How many {0} are there?",
    "How many {0} are there altogether?",
    "What is the total number of {0}?",
)


def _count_guess(ground: Ground, group: Relation, relation: Relation) -> float:
    """How often the most frequent count of a group's groups is right."""
    known = ground.counts.get((group.name, relation.name))
    if known is None:
        entities = ground.knowledge.entities(group.subject)
        counts = Counter[int]()
        for row in range(0, len(entities), max(1, len(entities) // 100)):
            members = ground.knowledge.values(entities[row], group.name)
            if _FEWEST <= len(members) <= _MOST + 5:
                inner = (ground.knowledge.values(one, relation.name) for one in members if isinstance(one, Entity))
                counts[sum(len(values) for values in inner)] += 1
        known = max(counts.values()) / counts.total() if counts else 1.0
        ground.counts[group.name, relation.name] = known
    return known


def listing(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """All members of a group."""
    found = _group(ground, random, split, hops - 1, 2, _LONGEST_LIST)
    if found is None:
        return None
    anchor, group, members = found
    questions = fitting(wordings(group.questions, split), anchor.form)
    if not questions:
        return None
    text = f"{sentence(random.choice(questions).format(anchor.text))} {random.choice(wordings(_ALL, split))}"
    facts = [ground.fact(anchor.entity, group, member) for member in members]
    return drafted(text, _names(members), (anchor,), facts)


_ALL = ("Name all of them.", "List them all.", "Give every one.")


def negation(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """The members of a group that something is not so of."""
    found = _group(ground, random, split, hops - 1, 2, _MOST)
    if found is None:
        return None
    anchor, group, members = found
    told = random.choice(fitting(phrases(group, split), anchor.form)).format(anchor.text)
    pivot = random.choice(members)
    for relation in ground.shuffled(random, ground.into.get(pivot.kind, ()) if random.random() < 0.4 else ()):
        owners = [one for one in ground.knowledge.subjects(relation.name, pivot) if split_of(one.key) == split]
        owners = [one for one in owners if one.key not in anchor.seen]
        if relation == group or not owners or not phrases(relation, split):
            continue
        other = ground.named(random, random.choice(owners))
        inside = [one for one in ground.knowledge.values(other.entity, relation.name) if isinstance(one, Entity)]
        left = [member for member in members if member not in inside]
        if 1 <= len(left) <= _LONGEST_LIST:
            second = random.choice(phrases(relation, split)).format(other.text)
            text = random.choice(wordings(_NOT_AMONG, split)).format(told, second)
            facts = [ground.fact(anchor.entity, group, member) for member in members]
            facts += [ground.fact(other.entity, relation, one) for one in inside]
            return drafted(text, _names(left), (anchor,), facts)
    for relation in ground.shuffled(random, ground.facts.get(pivot.kind, ())):
        if relation.value not in ("entity", "text") or not nouns(relation, split):
            continue
        stated = [each for member in members if (each := ground.value(member, relation)) is not None]
        value = ground.value(pivot, relation)
        if value is None or len(stated) < len(members):
            continue
        if isinstance(value, Entity) and (split_of(value.key) != split or value in members):
            continue
        left = [member for member, each in zip(members, stated, strict=True) if each != value]
        if 1 <= len(left) <= _LONGEST_LIST:
            name = value.mention if isinstance(value, Entity) else str(value)
            noun = with_article(random.choice(nouns(relation, split)))
            text = random.choice(wordings(_OTHER_THAN, split)).format(told, noun, name)
            facts = [ground.fact(anchor.entity, group, member) for member in members]
            facts += [ground.fact(member, relation, each) for member, each in zip(members, stated, strict=True)]
            return drafted(text, _names(left), (anchor,), facts)
    return None


_NOT_AMONG = (
    "Which of {0} are not among {1}? Name all of them.",
    "Leaving out {1}, who or what is left of {0}? Name all of them.",
    "Name all of {0} that are not among {1}.",
    "Which of {0} do not belong to {1}? List every one.",
)
_OTHER_THAN = (
    "Which of {0} have {1} other than {2}? Name all of them.",
    "Name all of {0} that have {1} other than {2}.",
    "Among {0}, which do not have {2} as {1}? Name all of them.",
    "Of {0}, list every one that has {1} other than {2}.",
)


def _names(members: Sequence[Entity]) -> ListAnswer:
    return ListAnswer(tuple(EntityAnswer(member.name, member.aliases) for member in members))


def _group(
    ground: Ground, random: Random, split: str, hops: int, fewest: int, most: int
) -> tuple[Subject, Relation, list[Entity]] | None:
    """Somebody or something behind ``hops`` facts, and a group that belongs to it."""
    anchor = ground.walk(random, split, hops)
    if anchor is None:
        return None
    for group in ground.shuffled(random, ground.groups.get(anchor.entity.kind, ())):
        if not fitting(phrases(group, split), anchor.form):
            continue
        members = [one for one in ground.knowledge.values(anchor.entity, group.name) if isinstance(one, Entity)]
        if fewest <= len(members) <= most and not any(member.key in anchor.seen for member in members):
            return anchor, group, members
    return None


def _measured(
    ground: Ground, random: Random, split: str, members: Sequence[Entity]
) -> Iterator[tuple[Relation, list[Value]]]:
    """The relations of which every member of a group has a number or date, with these."""
    for relation in ground.measured(random, members[0]):
        stated = [value for member in members if (value := ground.value(member, relation)) is not None]
        if len(stated) == len(members) and nouns(relation, split):
            yield relation, stated


def _over(
    ground: Ground,
    text: str,
    answer: EntityAnswer | NumberAnswer,
    anchor: Subject,
    group: Relation,
    members: Sequence[Entity],
    relation: Relation,
    values: Sequence[Value],
) -> Draft:
    facts = [ground.fact(anchor.entity, group, member) for member in members]
    facts += [ground.fact(member, relation, value) for member, value in zip(members, values, strict=True)]
    return drafted(text, answer, (anchor,), facts)

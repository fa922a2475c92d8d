"""Draft questions of one entity: chains, comparisons, arithmetic, yes or no, and those without an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from random import Random

from mcpgym_environments.wiki_search.knowledge import Entity, Evidence, Quantity, Relation, Value
from mcpgym_environments.wiki_search.questions.ground import Ground, Subject
from mcpgym_environments.wiki_search.questions.question import Step
from mcpgym_environments.wiki_search.questions.splits import split_of, wordings
from mcpgym_environments.wiki_search.questions.wording import (
    fitting,
    in_unit,
    kind_noun,
    nouns,
    phrases,
    sentence,
    value_answer,
)
from mcpgym_environments.wiki_search.scoring.answers import (
    UNANSWERABLE,
    Answer,
    DateAnswer,
    NumberAnswer,
    YesNoAnswer,
)

_DOUBTFUL = 0.85
"""How often a chain tries to ask for what is missing elsewhere (it mostly ends in something else): so that what is
asked does not tell whether there is an answer."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question before it has been checked."""

    text: str
    answer: Answer
    steps: tuple[Step, ...]
    evidence: tuple[Evidence, ...]


Maker = Callable[[Ground, Random, str, int], Draft | None]


def chain(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """Facts in a row, and the last one's value."""
    subject = ground.walk(random, split, hops - 1)
    if subject is None:
        return None
    doubtful = random.random() < _DOUBTFUL
    asked = ground.asked(random, split, subject.entity, subject.seen, subject.form, doubtful)
    if asked is None:
        return None
    relation, value, question = asked
    step, evidence = ground.fact(subject.entity, relation, value)
    text = question.format(subject.text)
    return Draft(sentence(text), value_answer(value), (*subject.steps, step), (*subject.evidence, evidence))


def comparison(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """Which of two is greater or earlier, and then a fact of that one: the two themselves would be easy to guess."""
    pair = _pair(ground, random, split, hops - 2, ("number", "date"))
    if pair is None:
        return None
    one, other, relation, first, second = pair
    noun = nouns(relation, split)
    if not noun or first == second:
        return None
    more = random.random() < 0.5
    winner = one if (size_of(first) > size_of(second)) == more else other
    asked = ground.asked(random, split, winner.entity, (*one.seen, *other.seen))
    if asked is None or asked[0] == relation:
        return None
    final, value, question = asked
    words = ("later", "earlier") if is_time(relation) else ("greater", "smaller")
    told = f"{words[0] if more else words[1]} {random.choice(noun)}"
    both = [one.text, other.text]
    random.shuffle(both)
    opening = random.choice(wordings(_COMPARED, split)).format(*both, told)
    asking = question.format(f"that {kind_noun(winner.entity.kind)}")
    facts = [
        ground.fact(one.entity, relation, first),
        ground.fact(other.entity, relation, second),
        ground.fact(winner.entity, final, value),
    ]
    return drafted(f"{opening} {sentence(asking)}", value_answer(value), (one, other), facts)


_COMPARED = (
    "Take {0} or {1}, whichever has the {2}.",
    "Of {0} and {1}, consider the one with the {2}.",
    "Compare {0} and {1}, and choose the one with the {2}.",
    "There are {0} and {1}; look at the one with the {2}.",
)


def date_arithmetic(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """Days or years between two dates, or the date some days away from one."""
    one = ground.walk(random, split, hops - 1)
    timed = (each for each in ground.measured(random, one.entity) if is_time(each)) if one else iter(())
    relation = next(timed, None)
    if one is None or relation is None:
        return None
    first, options = ground.value(one.entity, relation), fitting(phrases(relation, split), one.form)
    if first is None or not options:
        return None
    told = random.choice(options).format(one.text)
    fact = ground.fact(one.entity, relation, first)
    if isinstance(first, date) and random.random() < 0.3:
        days = random.randrange(10, 1000)
        after = random.random() < 0.5
        then = first + timedelta(days if after else -days)
        text = random.choice(wordings(_SHIFTED, split)).format(days, "after" if after else "before", told)
        return drafted(text, DateAnswer(then.year, then.month, then.day), (one,), [fact])
    other = ground.draw(random, split, random.choice([one.entity.kind, ""]))
    if hops == 1 and random.random() < 0.3:
        other = one.entity
    if other is None or (other != one.entity and other.key in one.seen):
        return None
    same = [
        each
        for each in ground.facts.get(other.kind, ())
        if (each.value, each.unit) == (relation.value, relation.unit)
        and phrases(each, split)
        and (other != one.entity or each != relation)
    ]
    if not same:
        return None
    again = random.choice(same)
    second = ground.value(other, again)
    if second is None or second == first:
        return None
    subject = one if other == one.entity else ground.named(random, other)
    told_too = random.choice(phrases(again, split)).format(subject.text)
    early, late = (first, second) if size_of(first) < size_of(second) else (second, first)
    templates, answer = _YEARS_BETWEEN, NumberAnswer(size_of(late) - size_of(early), "years")
    if isinstance(early, date) and isinstance(late, date):
        if random.random() < 0.5:
            templates, answer = _DAYS_BETWEEN, NumberAnswer(Fraction((late - early).days), "days")
        else:
            years = late.year - early.year - ((late.month, late.day) < (early.month, early.day))
            templates, answer = _FULL_YEARS, NumberAnswer(Fraction(years), "years")
            if years < 2:
                return None
    asking = random.choice(wordings(templates, split)).format(told, told_too)
    return drafted(asking, answer, (one, subject), [fact, ground.fact(other, again, second)])


_SHIFTED = (
    "What date was {0} days {1} {2}?",
    "Which date is {0} days {1} {2}?",
    "Which day came {0} days {1} {2}?",
    "Give the date that lies {0} days {1} {2}.",
)
_DAYS_BETWEEN = (
    "How many days passed between {0} and {1}?",
    "How many days lie between {0} and {1}?",
    "What is the number of days between {0} and {1}?",
    "Count the days from the earlier to the later of two dates: {0}, and {1}. How many are there?",
)
_FULL_YEARS = (
    "How many full years passed between {0} and {1}?",
    "How many complete years lie between {0} and {1}?",
    "What is the number of full years between {0} and {1}?",
    "From the earlier to the later of two dates, {0} and {1}, how many full years went by?",
)
_YEARS_BETWEEN = (
    "How many years lie between {0} and {1}?",
    "What is the difference in years between {0} and {1}?",
    "How many years apart are {0} and {1}?",
    "By how many years do {0} and {1} differ?",
)


def number_arithmetic(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """The sum or the difference of two numbers of one kind."""
    pair = _pair(ground, random, split, hops - 1, ("number",))
    if pair is None:
        return None
    one, other, relation, first, second = pair
    options = fitting(phrases(relation, split), one.form)
    if is_time(relation) or not options or first == second:
        return None
    wording = random.choice(options)
    told, told_too = wording.format(one.text), wording.format(other.text)
    unit = in_unit(relation.unit)
    if unit.removeprefix(",") in wording:
        unit = ""
    if random.random() < 0.5:
        text, number = _SUMS, size_of(first) + size_of(second)
    else:
        text, number = _DIFFERENCES, abs(size_of(first) - size_of(second))
    asking = random.choice(wordings(text, split)).format(told, told_too, unit)
    facts = [ground.fact(one.entity, relation, first), ground.fact(other.entity, relation, second)]
    return drafted(asking, NumberAnswer(number, relation.unit), (one, other), facts)


_SUMS = (
    "What is the sum of {0} and {1}{2}?",
    "What do {0} and {1} add up to{2}?",
    "What do you get when you add {0} to {1}{2}?",
    "Taken together, what are {0} and {1}{2}?",
)
_DIFFERENCES = (
    "What is the difference between {0} and {1}{2}?",
    "How far apart are {0} and {1}{2}?",
    "By how much do {0} and {1} differ{2}?",
    "What is left when the smaller of {0} and {1} is taken from the greater{2}?",
)


def yes_or_no(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """Whether a fact is so, or which of two numbers is greater; as often yes as no."""
    yes = random.random() < 0.5
    if random.random() < 0.4:
        pair = _pair(ground, random, split, hops - 1, ("number", "date"))
        if pair is None or pair[3] == pair[4]:
            return None
        one, other, relation, first, second = pair
        noun = nouns(relation, split)
        if not noun:
            return None
        greater = size_of(first) > size_of(second)
        words = ("later", "earlier") if is_time(relation) else ("greater", "smaller")
        word = words[0] if greater == yes else words[1]
        text = random.choice(wordings(_IS_GREATER, split)).format(random.choice(noun), one.text, word, other.text)
        facts = [ground.fact(one.entity, relation, first), ground.fact(other.entity, relation, second)]
        return drafted(sentence(text), YesNoAnswer(yes), (one, other), facts)
    subject = ground.walk(random, split, hops - 1)
    if subject is None:
        return None
    for relation in ground.shuffled(random, ground.facts.get(subject.entity.kind, ())):
        value = ground.value(subject.entity, relation)
        if not isinstance(value, Entity) or split_of(value.key) != split or value.key in subject.seen:
            continue
        told = fitting(phrases(relation, split), subject.form)
        wrong = ground.mistaken(random, split, value)  # looked for with yes, too, so that it tells nothing
        if not told or wrong is None or wrong.key in subject.seen:
            continue
        said = value if yes else wrong
        text = random.choice(wordings(_IS_IT, split)).format(said.mention, random.choice(told).format(subject.text))
        return drafted(sentence(text), YesNoAnswer(yes), (subject,), [ground.fact(subject.entity, relation, value)])
    return None


_IS_GREATER = (
    "Is the {0} of {1} {2} than that of {3}?",
    "Compared with that of {3}, is the {0} of {1} {2}?",
    "Is it true that the {0} of {1} is {2} than that of {3}?",
)
_IS_IT = (
    "Is {0} {1}?",
    "Is it true that {0} is {1}?",
    "Does the encyclopedia say that {0} is {1}?",
)


def not_answerable(ground: Ground, random: Random, split: str, hops: int) -> Draft | None:
    """Something that is known of many others of its kind, and not of this one.

    Each relation comes about as often as chains ask for it: nobody can tell by what is asked that there is no answer.
    """
    subject = ground.walk(random, split, hops - 1)
    if subject is None:
        return None
    missing = [relation for relation in ground.missing(subject.entity) if ground.in_doubt(relation, split)]
    if not missing:
        return None
    relation = random.choice(missing)
    field = ground.field(relation, split)
    if random.random() * (1 - field.stated) > field.asked:
        return None
    questions = fitting(wordings(relation.questions, split), subject.form)
    if not questions:
        return None
    text = random.choice(questions).format(subject.text)
    where = Evidence(subject.entity.key, subject.entity.name)
    return Draft(sentence(text), UNANSWERABLE, subject.steps, (*subject.evidence, where))


def _pair(
    ground: Ground, random: Random, split: str, hops: int, kinds: tuple[str, ...]
) -> tuple[Subject, Subject, Relation, Value, Value] | None:
    """Two of one kind and a relation with a number or date of both; the first is ``hops`` facts away, one is named."""
    one = ground.walk(random, split, hops)
    entity = ground.draw(random, split, one.entity.kind) if one else None
    if one is None or entity is None or entity.key in one.seen:
        return None
    for relation in ground.measured(random, one.entity, kinds):
        first, second = ground.value(one.entity, relation), ground.value(entity, relation)
        if first is not None and second is not None:
            return one, ground.named(random, entity), relation, first, second
    return None


def drafted(text: str, answer: Answer, subjects: tuple[Subject, ...], facts: list[tuple[Step, Evidence]]) -> Draft:
    """A draft whose path leads to its subjects first, and then over ``facts``."""
    steps = [step for subject in subjects for step in subject.steps] + [step for step, _ in facts]
    evidence = [where for subject in subjects for where in subject.evidence] + [where for _, where in facts]
    return Draft(text, answer, tuple(dict.fromkeys(steps)), tuple(evidence))


def is_time(relation: Relation) -> bool:
    """Whether the values of a relation are dates or years."""
    return relation.value == "date" or relation.unit == "year"


def size_of(value: Value) -> Fraction:
    """What numbers and dates are ordered by."""
    if isinstance(value, Quantity):
        return value.number
    if isinstance(value, date):
        return Fraction(value.toordinal())
    raise TypeError(f"{value!r} has no size")

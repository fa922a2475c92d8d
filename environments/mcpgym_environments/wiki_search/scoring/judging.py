"""Whether a submitted answer is right: one typed match of the whole text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mcpgym_environments.folding import fold, name_key, text_key, unwrap
from mcpgym_environments.wiki_search.scoring.answers import (
    LONGEST_ANSWER,
    Answer,
    AnyAnswer,
    DateAnswer,
    EntityAnswer,
    ListAnswer,
    NumberAnswer,
    TextAnswer,
    Unanswerable,
    YesNoAnswer,
)
from mcpgym_environments.wiki_search.scoring.dates import date_readings
from mcpgym_environments.wiki_search.scoring.numbers import Written, open_fractions, readings
from mcpgym_environments.wiki_search.scoring.units import Unit, find_unit, same_noun

_YES = frozenset(("yes", "y", "true"))
_NO = frozenset(("no", "n", "false"))
_NOT_ANSWERABLE = frozenset(
    (
        "not answerable",
        "unanswerable",
        "not answered",
        "no answer",
        "unknown",
        "not known",
        "not stated",
        "not said",
        "not given",
        "not mentioned",
        "not specified",
        "not available",
        "not found",
        "not in encyclopedia",
        "not in the encyclopedia",
        "not stated in the encyclopedia",
        "cannot be answered",
        "can not be answered",
        "cannot be determined",
        "question is not answerable",
        "question cannot be answered",
        "encyclopedia does not say",
        "it is not stated",
        "it is unknown",
        "not enough information",
        "n/a",
    )
)
_SEPARATOR = re.compile(r"(?:\s*[,;|\n](?:[\s,;|]*)(?:and\s+|&\s*)?|\s+(?:and|&)\s+)")
_ENDS = " \t\n,;|"
_BULLET = re.compile(r"^\s*(?:[-*•]|[0-9]{1,2}[.)])\s+", re.MULTILINE)
_SAID_TWICE = re.compile(r"([^()]+) \(([^()]+)\)\.?")
_MOST_TRIES = 2_000
_CONVERSION_SLACK = Fraction(1, 200)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, and a sentence that says why (without the right answer)."""

    correct: bool
    reason: str


def judge(answer: Answer, submitted: str) -> Verdict:
    """Whether ``submitted`` is ``answer``, as a whole: no lists of guesses, no sentence around it.

    Case, accents, quotes around it, an article in front and a full stop at the end do not matter. More than
    ``LONGEST_ANSWER`` characters are never right, and are not looked at. A number may be written in any usual way
    and in another unit of the same dimension; a date that can be read in two ways is right in neither.
    """
    if len(submitted) > 5 * LONGEST_ANSWER:
        return _TOO_LONG
    submitted = submitted.strip()
    if len(submitted) > LONGEST_ANSWER:
        return _TOO_LONG
    if not submitted:
        return Verdict(False, "nothing was submitted")
    return _judge(answer, submitted)


_TOO_LONG = Verdict(False, f"longer than {LONGEST_ANSWER} characters")
_RIGHT = Verdict(True, "the right answer")


def says_not_answerable(submitted: str) -> bool:
    """Whether ``submitted`` says that the encyclopedia holds no answer."""
    return len(submitted) <= LONGEST_ANSWER and name_key(submitted) in _NOT_ANSWERABLE


def _judge(answer: Answer, submitted: str) -> Verdict:
    match answer:
        case AnyAnswer(choices):
            verdict = Verdict(False, "no answer would be right")
            for choice in choices:
                verdict = _judge(choice, submitted)
                if verdict.correct:
                    break
            return verdict
        case ListAnswer(items, ordered):
            return _judge_list(items, ordered, submitted)
        case Unanswerable():
            return _RIGHT if says_not_answerable(submitted) else Verdict(False, "the encyclopedia does not say")
    verdict = _judge_one(answer, submitted)
    if not verdict.correct and says_not_answerable(submitted):
        return Verdict(False, "the encyclopedia does answer this")
    return verdict


def _judge_one(answer: Answer, submitted: str) -> Verdict:
    match answer:
        case EntityAnswer(name, aliases):
            return _RIGHT if name_key(submitted) in _name_keys(name, aliases) else Verdict(False, "another name")
        case TextAnswer(text, aliases):
            accepted = {text_key(text), *map(text_key, aliases)}
            return _RIGHT if text_key(submitted) in accepted else Verdict(False, "other words")
        case YesNoAnswer(yes):
            said = unwrap(fold(submitted)).rstrip("!")
            if said not in _YES and said not in _NO:
                return Verdict(False, "neither yes nor no")
            return _RIGHT if (said in _YES) == yes else Verdict(False, "the opposite")
        case DateAnswer():
            return _judge_date(answer, submitted)
        case NumberAnswer():
            return _judge_number(answer, submitted)
    raise TypeError(f"not an answer: {type(answer).__name__}")


@lru_cache(maxsize=4096)
def _name_keys(name: str, aliases: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name_key(text) for text in (name, *aliases))


def _judge_date(answer: DateAnswer, submitted: str) -> Verdict:
    dates = date_readings(unwrap(fold(submitted)))
    if not dates:
        return Verdict(False, "not a date")
    if len(dates) > 1:
        return Verdict(False, "a date that can be read in two ways")
    said = dates[0]
    for right, given in ((answer.year, said.year), (answer.month, said.month), (answer.day, said.day)):
        if right is not None and given is None:
            return Verdict(False, "less precise than the answer")
        if right is not None and given != right:
            return Verdict(False, "another date")
    return _RIGHT


def _judge_number(answer: NumberAnswer, submitted: str) -> Verdict:
    """The number, or the number said twice, as in *864 km (537 mi)* and *twelve (12)*: both must be right."""
    verdict = _judge_one_number(answer, submitted)
    twice = None if verdict.correct else _SAID_TWICE.fullmatch(submitted)
    return _RIGHT if twice and all(_judge_one_number(answer, said).correct for said in twice.groups()) else verdict


def _judge_one_number(answer: NumberAnswer, submitted: str) -> Verdict:
    wanted = fold(answer.unit)
    gold = find_unit(wanted) if wanted else None
    reason = "not one number"
    for written in readings(unwrap(fold(open_fractions(submitted)))):
        problem = _compare(answer, wanted, gold, written)
        if problem is None:
            return _RIGHT
        reason = problem if reason == "not one number" or problem == "another number" else reason
    return Verdict(False, reason)


def _compare(answer: NumberAnswer, wanted: str, gold: Unit | None, written: Written) -> str | None:
    """What is wrong with one reading of a number; None if nothing is."""
    number, slack = written.number, answer.tolerance
    if written.unit and written.unit != wanted:
        unit = find_unit(written.unit)
        if gold is not None and unit is not None:
            if unit.dimension != gold.dimension:
                return "another unit"
            if unit != gold:
                number = (number * unit.factor + unit.offset - gold.offset) / gold.factor
                rounding = written.step * unit.factor / gold.factor / 2
                slack = max(slack, min(rounding, abs(answer.number) * _CONVERSION_SLACK))
        elif not ((not wanted and unit is not None and unit.dimension == "people") or same_noun(written.unit, wanted)):
            return "another unit"
    return None if abs(number - answer.number) <= slack else "another number"


def _judge_list(items: tuple[Answer, ...], ordered: bool, submitted: str) -> Verdict:
    """Items are matched from the left; a separator may also stand inside a name (*Trinidad and Tobago*)."""
    text = _BULLET.sub("", submitted)
    if submitted[0] == "[" and submitted[-1] == "]":
        try:
            texts = [str(item) for item in json.loads(submitted)]
        except (ValueError, RecursionError):
            texts, text = [], submitted[1:-1]
        if texts:
            text = "\n".join(texts)
    text = text.strip(_ENDS)
    cuts = [(found.start(), found.end()) for found in _SEPARATOR.finditer(text)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    fitting: dict[tuple[int, int], int] = {}
    dead: set[tuple[int, int]] = set()

    def fits(first: int, last: int) -> int:
        """Which items the text from one atom to another is: a bit each."""
        if (first, last) not in fitting:
            piece = text[starts[first] : ends[last]].strip()
            places = (place for place, item in enumerate(items) if piece and _judge(item, piece).correct)
            fitting[first, last] = sum(1 << place for place in places)
        return fitting[first, last]

    def match(atom: int, used: int) -> bool:
        if atom == len(starts):
            return used == (1 << len(items)) - 1
        if (atom, used) in dead or len(dead) > _MOST_TRIES:
            return False
        for last in range(atom, min(len(starts), atom + 6)):
            tried: set[Answer] = set()
            for place, item in enumerate(items):
                if not fits(atom, last) >> place & 1 or used >> place & 1 or item in tried:
                    continue
                tried.add(item)
                if (not ordered or place == used.bit_count()) and match(last + 1, used | 1 << place):
                    return True
        dead.add((atom, used))
        return False

    if match(0, 0):
        return _RIGHT
    return Verdict(False, "another list, or in another order" if ordered else "another list")

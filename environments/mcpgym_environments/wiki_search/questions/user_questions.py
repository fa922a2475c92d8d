"""A file of somebody's own questions: one JSON object in each line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym.tasks import task_id
from mcpgym_environments.folding import fold, unwrap
from mcpgym_environments.wiki_search.knowledge import Evidence
from mcpgym_environments.wiki_search.questions.question import Question
from mcpgym_environments.wiki_search.scoring.answers import (
    LONGEST_ANSWER,
    UNANSWERABLE,
    Answer,
    AnyAnswer,
    EntityAnswer,
    ListAnswer,
    NumberAnswer,
    TextAnswer,
    YesNoAnswer,
)
from mcpgym_environments.wiki_search.scoring.dates import date_readings
from mcpgym_environments.wiki_search.scoring.judging import judge
from mcpgym_environments.wiki_search.scoring.numbers import open_fractions, readings
from mcpgym_environments.wiki_search.scoring.writing import answer_text

TYPES = ("entity", "number", "date", "list", "ordered list", "yes or no", "text", "not answerable")
_KEYS = ("question", "answers", "aliases", "tolerance", "type", "unit", "evidence", "hops", "id", "split")
_LONGEST_QUESTION = 4_000


def read_questions(path: str | Path, split: str | None = None) -> tuple[Question, ...]:
    """The questions of a JSONL file: all, or those of a split; a line that names no split belongs to each.

    A line has ``question`` and ``answers`` (one, or a list of which each is right; for the types ``list`` and
    ``ordered list`` all of them together). It may have ``aliases`` (further names), ``type`` (one of ``TYPES``;
    ``entity`` unless it is given), ``unit`` and ``tolerance`` (a number, or a percentage such as ``"2%"``) for
    numbers, ``evidence`` (a list of page titles, or of pairs of a title and a heading), ``hops``, ``id``, ``split``.

    Raises:
        ConfigurationError: the file cannot be read, has no question, or a line is wrong; with the line's number.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise ConfigurationError(f"the questions {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not UTF-8 text (byte {error.start + 1})") from None
    questions: list[Question] = []
    ids: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _row(line)
            question = _question(row, task_id(split or "test", len(questions)))
        except _Wrong as wrong:
            raise ConfigurationError(f"{path}, line {number}: {wrong}") from None
        if split is not None and row.get("split") not in (None, split):
            continue
        if question.id in ids:
            raise ConfigurationError(f"{path}, line {number}: its id {question.id!r} is line {ids[question.id]}'s too")
        ids[question.id] = number
        questions.append(question)
    if not questions:
        raise ConfigurationError(f"{path}: there is no question in it" + (f" for the {split} split" if split else ""))
    return tuple(questions)


class _Wrong(Exception):
    """What is wrong with a line."""


def _row(line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except RecursionError:
        raise _Wrong("nested too deeply") from None
    except ValueError as error:
        raise _Wrong(f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise _Wrong("not a JSON object with question and answers")
    if unknown := [key for key in row if key not in _KEYS]:
        raise _Wrong(f"no key {unknown[0]!r}; there is: {', '.join(_KEYS)}")
    return row


def _question(row: Mapping[str, Any], identity: str) -> Question:
    text = row.get("question")
    if not isinstance(text, str) or not text.strip():
        raise _Wrong("question must be a text that is not empty")
    if len(text) > _LONGEST_QUESTION:
        raise _Wrong(f"the question has {len(text)} characters; at most {_LONGEST_QUESTION} fit")
    hops = row.get("hops", 1)
    if not isinstance(hops, int) or isinstance(hops, bool) or hops < 1:
        raise _Wrong("hops must be a whole number from 1 on")
    if row.get("split") not in (None, "train", "test"):
        raise _Wrong("split must be train or test")
    own = row.get("id", identity)
    if not isinstance(own, str) or not own.strip():
        raise _Wrong("id must be a text that is not empty")
    answer = _answer(row)
    if not judge(answer, answer_text(answer)).correct:
        raise _Wrong(f"no answer of at most {LONGEST_ANSWER} characters would be right")
    return Question(own, text.strip(), answer, "user", hops, _evidence(row.get("evidence", [])))


def _answer(row: Mapping[str, Any]) -> Answer:
    kind = row.get("type", "entity")
    if kind not in TYPES:
        raise _Wrong(f"no type {kind!r}; there is: {', '.join(TYPES)}")
    for key in ("unit", "tolerance"):
        if key in row and kind != "number":
            raise _Wrong(f"{key} is for answers of the type number, and this is of the type {kind}")
    if kind == "not answerable":
        if row.get("answers"):
            raise _Wrong("a question that is not answerable has no answers")
        return UNANSWERABLE
    given = row.get("answers")
    values = given if isinstance(given, list) else [given]
    texts = [_text(value) for value in values]
    if not texts:
        raise _Wrong("answers must be a text, a number, or a list of them that is not empty")
    aliases = row.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) and alias.strip() for alias in aliases):
        raise _Wrong("aliases must be a list of texts")
    if kind == "list" or kind == "ordered list":
        if aliases:
            raise _Wrong('a list has no aliases: write each item\'s names as one list, ["Rome", "Roma"]')
        return ListAnswer(tuple(_item(value) for value in values), kind == "ordered list")
    if kind == "entity":
        return EntityAnswer(texts[0], (*texts[1:], *aliases))
    if kind == "text":
        return TextAnswer(texts[0], (*texts[1:], *aliases))
    choices = tuple(_typed(kind, text, row) for text in texts)
    if aliases:
        choices = (*choices, EntityAnswer(aliases[0], tuple(aliases[1:])))
    return choices[0] if len(choices) == 1 else AnyAnswer(choices)


def _item(value: Any) -> EntityAnswer:
    names = value if isinstance(value, list) else [value]
    if not names:
        raise _Wrong("an item of a list of answers has no name")
    texts = [_text(name) for name in names]
    return EntityAnswer(texts[0], tuple(texts[1:]))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, list) and value:
        return _text(value[0])
    if not isinstance(value, str) or not value.strip():
        raise _Wrong("answers must be a text, a number, or a list of them that is not empty")
    return value.strip()


def _typed(kind: str, text: str, row: Mapping[str, Any]) -> Answer:
    folded = unwrap(fold(open_fractions(text)))
    if kind == "yes or no":
        if folded not in ("yes", "no", "true", "false"):
            raise _Wrong(f"the answer {text!r} is neither yes nor no")
        return YesNoAnswer(folded in ("yes", "true"))
    if kind == "date":
        dates = date_readings(folded)
        if len(dates) != 1:
            told = "can be read in two ways" if dates else "is not a date"
            raise _Wrong(f"the answer {text!r} {told}; write it as 1876-05-03, May 1876 or 1876")
        return dates[0]
    unit = row.get("unit", "")
    if not isinstance(unit, str):
        raise _Wrong("unit must be a text")
    for written in readings(folded):
        if not written.unit or not unit or written.unit == fold(unit):
            unit = unit or written.unit
            return NumberAnswer(written.number, unit, _tolerance(row.get("tolerance", 0), written.number))
    raise _Wrong(f"the answer {text!r} is not one number" + (f" in {unit}" if unit else ""))


def _tolerance(value: Any, number: Fraction) -> Fraction:
    percent = isinstance(value, str) and value.strip().endswith("%")
    try:
        if isinstance(value, bool):
            raise TypeError
        size = Fraction(str(value).strip().removesuffix("%").strip())
    except (TypeError, ValueError, ZeroDivisionError):
        raise _Wrong(f'tolerance must be a number, or a percentage such as "2%", not {value!r}') from None
    if size < 0:
        raise _Wrong(f"tolerance must not be negative, and is {value}")
    return abs(number) * size / 100 if percent else size


def _evidence(value: Any) -> tuple[Evidence, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _Wrong("evidence must be a list of page titles, or of pairs of a title and a heading")
    found = []
    for part in value:
        pair = [part] if isinstance(part, str) else part
        if not isinstance(pair, list) or len(pair) not in (1, 2) or not all(isinstance(one, str) for one in pair):
            raise _Wrong("evidence must be a list of page titles, or of pairs of a title and a heading")
        found.append(Evidence(pair[0], pair[-1]))
    return tuple(found)

"""A file of one's own questions: what it may say, and what is said about its mistakes."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.knowledge import Evidence
from mcpgym_environments.wiki_search.questions import Question, read_questions
from mcpgym_environments.wiki_search.scoring import UNANSWERABLE, NumberAnswer, judge


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def one(tmp_path: Path, **row: Any) -> Question:
    (question,) = read_questions(write(tmp_path / "questions.jsonl", {"question": "What?", **row}))
    return question


@pytest.mark.parametrize(
    ("row", "right", "wrong"),
    [
        ({"answers": "Paris"}, "paris", "Lyon"),
        ({"answers": ["Paris", "Lutetia"], "aliases": ["Paname"]}, "Paname", "Paris or Paname"),
        ({"answers": 42, "type": "number"}, "forty-two", "43"),
        ({"answers": "412 km", "type": "number"}, "412,000 m", "412 miles"),
        ({"answers": [412], "type": "number", "unit": "km", "tolerance": "1%"}, "415", "417"),
        ({"answers": [412], "type": "number", "unit": "km", "tolerance": 10}, "422", "423"),
        ({"answers": ["1/3"], "type": "number", "tolerance": "0.01"}, "0.33", "0.3"),
        ({"answers": "3 May 1876", "type": "date"}, "1876-05-03", "May 1876"),
        ({"answers": [1876, 1877], "type": "date"}, "1877", "1878"),
        ({"answers": ["Rome", ["Oslo", "Christiania"]], "type": "list"}, "Christiania and Rome", "Rome"),
        ({"answers": ["Rome", "Oslo"], "type": "ordered list"}, "Rome, Oslo", "Oslo, Rome"),
        ({"answers": True, "type": "yes or no"}, "yes", "no"),
        ({"answers": "no", "type": "yes or no"}, "No.", "yes"),
        ({"answers": "The end", "type": "text"}, "the end.", "end"),
        ({"answers": 7, "type": "number", "aliases": ["seven hills"]}, "Seven Hills", "8"),
        ({"type": "not answerable"}, "not answerable", "Paris"),
    ],
)
def test_types(tmp_path: Path, row: dict[str, Any], right: str, wrong: str) -> None:
    question = one(tmp_path, **row)
    assert judge(question.answer, right).correct
    assert not judge(question.answer, wrong).correct


def test_all_there_is_to_say(tmp_path: Path) -> None:
    question = one(
        tmp_path, answers="Paris", evidence=["France", ["Paris", "History"]], hops=2, id="capital", split="test"
    )
    assert question == Question(
        "capital", "What?", question.answer, "user", 2, (Evidence("France", "France"), Evidence("Paris", "History"))
    )
    assert one(tmp_path, answers=[3], type="number", unit="km").answer == NumberAnswer(Fraction(3), "km")
    assert one(tmp_path, type="not answerable").answer is UNANSWERABLE


def test_splits_and_ids(tmp_path: Path) -> None:
    rows = [{"question": f"{split}?", "answers": "x", "split": split} for split in ("train", "test", None)]
    path = write(tmp_path / "q.jsonl", rows[0], "", rows[1], rows[2])
    assert [(q.id, q.text) for q in read_questions(path, "test")] == [("test-0", "test?"), ("test-1", "None?")]
    assert [q.text for q in read_questions(path, "train")] == ["train?", "None?"]
    assert len(read_questions(path)) == 3
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"question": "é?", "answers": "x"}).encode() + b"\r\n")
    assert read_questions(path)[0].text == "é?"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2: not JSON"),
        ("[" * 200_000, "line 2: "),
        ("[1]", "line 2: not a JSON object"),
        ({"answers": "x"}, "line 2: question must be a text"),
        ({"question": "  ", "answers": "x"}, "question must be a text that is not empty"),
        ({"question": "x" * 5000, "answers": "x"}, "5000 characters; at most 4000"),
        ({"question": "q"}, "answers must be a text, a number, or a list"),
        ({"question": "q", "answers": []}, "answers must be"),
        ({"question": "q", "answers": [{}]}, "answers must be"),
        ({"question": "q", "answers": ""}, "answers must be"),
        ({"question": "q", "answers": "x" * 201}, "at most 200 characters"),
        ({"question": "q", "answer": "x"}, "no key 'answer'; there is: question, answers"),
        ({"question": "q", "answers": "x", "type": "string"}, "no type 'string'; there is: entity"),
        ({"question": "q", "answers": "x", "type": ["list"]}, "no type"),
        ({"question": "q", "answers": "x", "type": "number"}, "'x' is not one number"),
        ({"question": "q", "answers": "4-5", "type": "number"}, "'4-5' is not one number"),
        ({"question": "q", "answers": "4 kg", "type": "number", "unit": "km"}, "not one number in km"),
        ({"question": "q", "answers": "3/5/1876", "type": "date"}, "can be read in two ways; write it as"),
        ({"question": "q", "answers": "soon", "type": "date"}, "is not a date"),
        ({"question": "q", "answers": "maybe", "type": "yes or no"}, "neither yes nor no"),
        ({"question": "q", "answers": "x", "type": "not answerable"}, "has no answers"),
        ({"question": "q", "answers": "x", "tolerance": 1}, "tolerance is for answers of the type number"),
        ({"question": "q", "answers": 1, "type": "number", "tolerance": "x"}, "tolerance must be a number"),
        ({"question": "q", "answers": 1, "type": "number", "tolerance": -1}, "must not be negative"),
        ({"question": "q", "answers": 1, "type": "number", "tolerance": True}, "tolerance must be a number"),
        ({"question": "q", "answers": 1, "type": "number", "unit": 3}, "unit must be a text"),
        ({"question": "q", "answers": "x", "aliases": "y"}, "aliases must be a list of texts"),
        ({"question": "q", "answers": ["x"], "type": "list", "aliases": ["y"]}, "a list has no aliases"),
        ({"question": "q", "answers": [[]], "type": "list"}, "answers must be"),
        ({"question": "q", "answers": "x", "hops": 0}, "hops must be a whole number"),
        ({"question": "q", "answers": "x", "split": "dev"}, "split must be train or test"),
        ({"question": "q", "answers": "x", "id": 3}, "id must be a text"),
        ({"question": "q", "answers": "x", "id": "first"}, "its id 'first' is line 1's too"),
        ({"question": "q", "answers": "x", "evidence": "page"}, "evidence must be a list"),
        ({"question": "q", "answers": "x", "evidence": [["a", "b", "c"]]}, "evidence must be a list"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, line: Any, told: str) -> None:
    path = write(tmp_path / "questions.jsonl", {"question": "q", "answers": "x", "id": "first"}, line)
    with pytest.raises(ConfigurationError) as raised:
        read_questions(path)
    assert told in str(raised.value)
    assert "line 2" in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        read_questions(tmp_path / "none.jsonl")
    with pytest.raises(ConfigurationError, match="there is no question in it"):
        read_questions(write(tmp_path / "empty.jsonl", ""))
    (tmp_path / "latin.jsonl").write_bytes('{"question": "é", "answers": "x"}'.encode("latin-1"))
    with pytest.raises(ConfigurationError, match="not UTF-8 text"):
        read_questions(tmp_path / "latin.jsonl")

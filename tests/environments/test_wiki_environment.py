"""Wiki search: what the tools say, what an episode may cost, and what it is paid."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from episode_driver import open_episode
from hypothesis import given
from hypothesis import strategies as st
from wiki_files import QUESTIONS, write_files

from mcpgym import ConfigurationError, check_environment
from mcpgym.errors import UnknownNameError
from mcpgym.messages import assistant
from mcpgym.registry import configure
from mcpgym_environments.wiki_search.environment import WikiSearch
from mcpgym_environments.wiki_search.observation import cut


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The configuration of a small encyclopedia with two questions."""
    corpus, questions = write_files(tmp_path_factory.mktemp("wiki"))
    return {"corpus": corpus, "questions": questions}


def play(environment: Any, calls: list[tuple[str, dict[str, Any]]], index: int = 0, **given: Any) -> dict[str, Any]:
    """The answers to ``calls`` in one episode of ``test``, whether each was an error, and the score."""

    async def main() -> dict[str, Any]:
        episode = await open_episode(environment, "test", index)
        results = [await episode.call(name, arguments) for name, arguments in calls]
        score = await episode.score(given.get("transcript", []))
        return {
            "texts": [result.text for result in results],
            "errors": [result.is_error for result in results],
            "done": episode.stop_reason,
            "parts": score.components,
            "total": score.total,
            "prompt": [message["content"] for message in episode.messages],
        }

    return asyncio.run(main())


def search(query: str) -> tuple[str, dict[str, Any]]:
    return "search_pages", {"query": query}


def view(page: str) -> tuple[str, dict[str, Any]]:
    return "view_sections", {"page_id": page}


def read(section: str, part: int = 1) -> tuple[str, dict[str, Any]]:
    return "read_section", {"section_id": section, "part": part}


def submit(answer: str) -> tuple[str, dict[str, Any]]:
    return "submit_answer", {"answer": answer}


def test_a_question_is_looked_up_and_answered(toy: dict[str, Any]) -> None:
    told = play(configure(WikiSearch, toy), [search("river Oder"), view("p1"), read("p1.1"), submit("840 km")])
    assert told["prompt"][1] == QUESTIONS[0]["question"]
    assert "60 times in all" in told["prompt"][0]
    found, listed, text, submitted = told["texts"]
    assert found.splitlines()[0] == "p1 Oder"
    assert found.splitlines()[1].startswith("  p1.1: The Oder is a river")
    assert listed == "p1 Oder\np1.1 Oder (71 characters)\n  p1.2 Course (2,431 characters)"
    assert text == "p1.1 Oder\nThe Oder is a river. It rises in the Oder Mountains and is 840 km long."
    assert submitted == 'You submitted "840 km". The task is over.'
    assert (told["done"], told["total"]) == ("done", 1.0)
    paid = {"correct": 1.0, "evidence": 1.0, "efficiency": 1.0, "exact_match": 1.0, "f1": 1.0}
    assert told["parts"] == {**paid, "format": 0.0, "judged": None}


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (view("p99"), 'no page "p99"; search_pages shows the ids'),
        (view("Odra"), 'no page "Odra"; the page of this name is p1'),
        (view("Odre"), 'no page "Odre"; nearest: p1 (Oder)'),
        (view("p1.2"), "p1.2 is a section of page p1; read_section reads it"),
        (read("p1"), 'no section "p1"; page p1 (Oder) has p1.1 to p1.2'),
        (read("p1.7"), 'no section "p1.7"; page p1 (Oder) has p1.1 to p1.2'),
        (read("Max Born"), 'no section "Max Born"; the page of this name is p3'),
        (read("p1.1", 2), "section p1.1 has one part; there is no part 2"),
        (read("p1.2", 3), "section p1.2 has 2 parts; there is no part 3"),
        (submit("  "), "an empty answer cannot be submitted"),
        (submit("x" * 201), "200"),
        (search(""), "query"),
        (search("x" * 201), "200"),
        (view(""), "page_id"),
    ],
)
def test_a_mistake_is_told_with_what_would_be_right(
    toy: dict[str, Any], call: tuple[str, dict[str, Any]], wanted: str
) -> None:
    told = play(configure(WikiSearch, toy), [call])
    assert told["errors"] == [True]
    assert wanted in told["texts"][0]
    assert told["done"] is None


@pytest.mark.parametrize("written", ["p1", "P1", " p1 ", "`p1`", "[p1]", '"p1"', "1"])
def test_ids_are_understood_as_small_models_copy_them(toy: dict[str, Any], written: str) -> None:
    assert play(configure(WikiSearch, toy), [view(written)])["errors"] == [False]


def test_nothing_found_is_an_answer_not_an_error(toy: dict[str, Any]) -> None:
    told = play(configure(WikiSearch, toy), [search("zzyzx qqfrt")])
    assert told["errors"] == [False]
    assert told["texts"][0].startswith('Nothing found for "zzyzx qqfrt"')


def test_a_long_section_comes_in_parts_that_make_up_the_whole(toy: dict[str, Any]) -> None:
    told = play(configure(WikiSearch, toy), [read("p1.2"), read("p1.2", 2)])
    first, second = told["texts"]
    assert first.splitlines()[0] == "p1.2 Oder, Course, part 1 of 2"
    assert first.endswith("\n(more in part 2)")
    assert second.endswith("\n(the end)")
    body = " ".join(text.split("\n", 1)[1].rpartition("\n")[0] for text in told["texts"])
    assert body.split() == ("It passes Wroclaw and Szczecin. " + "It flows on and on. " * 120).split()


@given(st.text(alphabet="ab. \n", max_size=300), st.integers(min_value=10, max_value=80))
def test_parts_are_short_and_lose_no_word_but_white_space(text: str, size: int) -> None:
    parts = cut(text, size)
    assert all(len(part) <= size for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_the_last_lookups_are_counted_down_and_then_only_an_answer_can_be_given(toy: dict[str, Any]) -> None:
    told = play(configure(WikiSearch, toy | {"max_lookups": 8}), [*[search("Oder")] * 9, submit("840 km")])
    notes = [text.rpartition("\n")[2] for text in told["texts"]]
    assert "left" not in "".join(notes[:2])
    assert notes[2:7] == [*(f"[{left} lookups left]" for left in (5, 4, 3, 2)), "[1 lookup left]"][:5]
    assert notes[7] == "[0 lookups left: submit your answer]"
    assert told["errors"] == [*[False] * 8, True, False]
    assert (
        told["texts"][8] == "you have looked things up 8 times, and may do no more: submit_answer is the only tool left"
    )
    assert told["total"] == 1.0


def test_an_episode_ends_without_an_answer_too(toy: dict[str, Any]) -> None:
    told = play(configure(WikiSearch, toy | {"max_lookups": 2}), [search("Oder")] * 13)
    assert told["errors"] == [False, False, *[True] * 11]
    assert "this episode has ended (max_turns)" in told["texts"][12]
    assert (told["done"], told["parts"]["correct"]) == ("max_turns", 0.0)


def test_a_call_that_cannot_be_made_costs_no_lookup(toy: dict[str, Any]) -> None:
    mistakes = [view(""), search("x" * 300), ("no_such_tool", {}), ("read_section", {"part": 1})]
    told = play(configure(WikiSearch, toy | {"max_lookups": 6}), [*mistakes, search("Oder")])
    assert told["texts"][-1].endswith("\n[5 lookups left]")


def test_after_the_last_character_only_an_answer_can_be_given(toy: dict[str, Any]) -> None:
    calls = [read("p1.2"), read("p1.1"), search("Oder"), submit("840 km")]
    told = play(configure(WikiSearch, toy | {"max_characters": 1_600}), calls)
    assert told["texts"][0].endswith(" characters left to read]")
    assert told["texts"][1].endswith("[0 characters left to read: submit your answer]")
    assert told["errors"] == [False, False, True, False]
    assert "submit_answer is the only tool left" in told["texts"][2]
    assert told["parts"]["correct"] == 1.0


def test_a_wrong_answer_without_reading_is_paid_nothing(toy: dict[str, Any]) -> None:
    told = play(configure(WikiSearch, toy), [submit("480 km")])
    assert (told["total"], told["parts"]["evidence"], told["parts"]["efficiency"]) == (0.0, 0.0, 0.0)


def test_detours_cost_efficiency_and_nothing_else(toy: dict[str, Any]) -> None:
    calls = [
        search("Filler"),
        search("filler 3"),
        search("Oder"),
        view("p1"),
        read("p1.1"),
        read("p2.1"),
        submit("840"),
    ]
    told = play(configure(WikiSearch, toy), [*calls[:-1], ("no_such_tool", {}), calls[-1]])
    assert told["parts"]["efficiency"] == pytest.approx(4 / 8)
    assert told["total"] == 1.0


def test_there_is_one_answer(toy: dict[str, Any]) -> None:
    told = play(configure(WikiSearch, toy), [submit("1 km"), submit("840 km")])
    assert told["errors"] == [False, True]
    assert told["total"] == 0.0


def test_thoughts_are_asked_for_and_rewarded_where_configured(toy: dict[str, Any]) -> None:
    transcript = [assistant("<think>Hm.</think>"), assistant("no thought")]
    plain = play(configure(WikiSearch, toy), [submit("840 km")], transcript=transcript)
    thinking = play(configure(WikiSearch, toy | {"thoughts": True}), [submit("840 km")], transcript=transcript)
    assert (plain["parts"]["format"], thinking["parts"]["format"]) == (0.0, 0.5)
    assert thinking["total"] == pytest.approx(1.1)
    assert "<think>" in thinking["prompt"][0]
    assert "<think>" not in plain["prompt"][0]


def test_an_encyclopedia_without_questions_is_open_to_anybodys(toy: dict[str, Any]) -> None:
    environment = configure(WikiSearch, {"corpus": toy["corpus"]})
    assert environment.splits == ("test",)
    assert (environment.size("test"), environment.max_turns) == (1, None)
    told = play(environment, [search("Oder")] * 60)
    assert not any(told["errors"])
    assert "left" not in "".join(told["texts"])
    assert told["total"] is None
    assert all(part is None for name, part in told["parts"].items() if name != "format")


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"corpus": "folder:/no/such/place"}, "/no/such/place"),
        ({"corpus": "wikipedia"}, "there is: world"),
        ({"kinds": "chain,riddle"}, "no kind of question 'riddle'; there is: all, chain"),
        ({"min_hops": 3, "max_hops": 2}, "min_hops=3"),
        ({"judge": "gpt"}, "openai:MODEL@BASE_URL"),
        ({"judge_decides": True}, "needs a judge"),
        ({"questions": "/no/such/questions.jsonl"}, "/no/such/questions.jsonl"),
        ({"pages": 1}, "pages"),
        ({"distractors": 2}, "distractors"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(config: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        configure(WikiSearch, config).tasks("test")[0]
    assert wanted in str(raised.value)


def test_what_is_wrong_with_pages_and_questions_is_said_when_they_are_first_used(
    toy: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MCPGYM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "pages").mkdir()
    for name in "ab":
        (tmp_path / "pages" / f"{name}.md").write_text("# A\n\nThe letter.")
    lines = [
        {"question": "What is A?", "answers": ["a letter"], "evidence": [["A", "A"]]},
        {"question": "What is B?", "answers": ["a letter"], "evidence": [["B", "Use"]]},
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, lines)))
    config = {"corpus": f"folder:{tmp_path / 'pages'}", "questions": str(tmp_path / "q.jsonl")}
    play(configure(WikiSearch, config), [search("A")])
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("wiki-search: wrong with the source: duplicate title (1); such as ")
    assert second.endswith("q.jsonl: no section 'Use' of a page 'B' is there to be evidence of 'What is B?'")


def test_only_the_splits_that_have_tasks_are_there(toy: dict[str, Any]) -> None:
    with pytest.raises(UnknownNameError):
        configure(WikiSearch, {"corpus": toy["corpus"]}).tasks("train")


def test_paths_stay_right_in_another_folder(
    toy: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.md").write_text("# A\n\nThe letter.")
    (tmp_path / "q.jsonl").write_text(json.dumps({"question": "What is A?", "answers": ["a letter"]}))
    monkeypatch.chdir(tmp_path)
    environment = configure(WikiSearch, {"corpus": "folder:pages", "questions": "q.jsonl"})
    monkeypatch.chdir("/")
    assert "The letter." in play(environment, [read("p1.1")])["texts"][0]


def test_an_encyclopedia_of_ones_own_keeps_the_contract(toy: dict[str, Any]) -> None:
    check_environment(WikiSearch, config=toy, episodes=2, second_process=False).raise_for_findings()
    open_to_all = {"corpus": toy["corpus"]}
    check_environment(WikiSearch, config=open_to_all, episodes=2, second_process=False).raise_for_findings()

"""Long texts: made anew the same, quickly, of the size they say, with one exact answer that the reader can find."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym_environments.long_context.asking.reader import MARK, PUZZLED, Reader, forms
from mcpgym_environments.long_context.made import chain, compare, tally
from mcpgym_environments.long_context.made.families import FAMILIES, make, plan_of, question
from mcpgym_environments.long_context.made.plan import SIZES, Plan
from mcpgym_environments.long_context.made.words import HOUSES, LARGEST, PEOPLE, house, numbers, person, ways
from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer, WordAnswer, judge

EVERYTHING = Reader(100_000_000)


def ask(text: str, asked: str) -> str:
    return EVERYTHING.read(f"{text}\n{MARK}{asked}")


def solved(plan: Plan) -> str:
    """The answer, found by a reader of unlimited window: not the way in which the text was made."""
    text, asked = make(plan).text, question(plan)
    if found := re.search(r"(\w+ \w+) has (the \w+), and it is handed on (\d+) times", asked):
        holder = found[1]
        for _ in range(int(found[3])):
            holder = ask(text, chain.ASKED.format(a=holder, o=found[2]))
        return holder
    if found := re.search(r"(?:crates of|delivery of|deliveries of) (\w+) (?:that )?arrived at (\w+)", asked):
        said = [int(number) for number in ask(text, tally.ASKED.format(g=found[1], p=found[2])).split(", ")]
        return str(sum(said) if "in all" in asked else max(said) if "largest" in asked else len(said))
    if "three counts" in asked:
        spring, _, winter = (
            dict(line.split(" = ") for line in ask(section, compare.ASKED).splitlines())
            for section in re.findall(r"Here begins the \w+ count\.\n(.*?)\nHere ends", text, re.DOTALL)
        )
        gains = {name: int(winter[name]) - int(spring[name]) for name in spring}
        if "How many houses" in asked:
            return str(sum(gain > 0 for gain in gains.values()))
        best = sorted(gains, key=gains.__getitem__)[-2:]
        assert gains[best[0]] < gains[best[1]]  # no two gained most
        return best[1]
    town = re.findall(r"What did (\w+) pay", asked)[0]
    return str(sum(map(int, re.findall(rf"\[entry \d+: {town}, paid (\d+)\]", text))))


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 2**41))
@settings(max_examples=12, deadline=None)
def test_a_text_is_the_same_each_time_and_its_answer_can_be_read_in_it(family: str, seed: int) -> None:
    plan = Plan(family, 1, seed)
    made = make(plan)
    assert made == make(Plan(family, 1, seed))
    assert made.text.isascii()
    assert abs(len(made.text) - SIZES[0]) < 0.02 * SIZES[0]
    assert max(map(len, made.text.split("\n"))) < 30_000
    assert judge(made.answer, solved(plan)).correct
    assert not judge(made.answer, "0").correct


@pytest.mark.parametrize("family", FAMILIES)
def test_the_largest_text_is_made_in_about_a_second_and_its_answer_is_right(family: str) -> None:
    plan = Plan(family, 5, 7)
    began = time.process_time()
    made = make(plan)
    took = time.process_time() - began
    assert took < 3, f"{took:.2f} s"  # 0.2 to 0.5 on a machine that does nothing else
    assert abs(len(made.text) - 10_000_000) < 200_000
    assert judge(made.answer, solved(plan)).correct


def test_no_two_tasks_share_a_text_and_all_families_and_levels_take_turns() -> None:
    names, levels = tuple(FAMILIES), (1, 2, 3)
    plans = [plan_of(split, index, names, levels) for split in ("train", "test") for index in range(3000)]
    assert len({plan.seed for plan in plans}) == 6000
    assert {(plan.family, plan.level) for plan in plans[:12]} == {(name, level) for name in names for level in levels}
    texts = {make(plan_of(split, index, ("chain",), (1,))).text for split in ("train", "test") for index in range(5)}
    assert len(texts) == 10


@pytest.mark.flaky(reruns=1)  # it measures time
def test_what_is_asked_is_told_without_making_the_text() -> None:
    began = time.process_time()
    for index in range(400):
        question(plan_of("train", index, tuple(FAMILIES), (1, 2, 3, 4, 5)))
    assert time.process_time() - began < 1


@pytest.mark.parametrize("module", [chain, tally, compare])
def test_the_reader_takes_no_wording_of_what_did_not_happen_for_one_that_did(module: object) -> None:
    parts = {"a": "Tavel Mornick", "b": "Ornna Pelbess", "o": "the lamp with the blue glass"}
    parts |= {"n": "two score and one", "g": "fat for candles", "p": "Aldham", "h": "Mornick Hall"}
    asked = {
        chain: chain.ASKED.format(a="Tavel Mornick", o="the lantern"),
        tally: tally.ASKED.format(g="tallow", p="Aldham"),
        compare: compare.ASKED,
    }[module]  # type: ignore[index]
    right = {chain: "Ornna Pelbess", tally: "41", compare: "Mornick Hall = 41"}[module]  # type: ignore[index]
    for forms_, wanted in ((module.TRUE, right), (module.FALSE, "none")):  # type: ignore[attr-defined]
        for form in forms_:
            sentence = form.format(**parts)
            sentence = sentence[0].upper() + sentence[1:]
            assert ask(f"A widow lost a glove as people do. {sentence} Nobody asked the way.", asked) == wanted, (
                sentence
            )


def test_a_regular_expression_for_one_wording_finds_a_small_part() -> None:
    plan = Plan("tally", 1, 3)
    text, asked = make(plan).text, question(plan)
    town = re.findall(r"arrived at (\w+)", asked)[0]
    goods = re.findall(r"(?:crates|delivery|deliveries) of (\w+)", asked)[0]
    simple = re.findall(rf"(\d+) crates of {goods} reached {town}", text)
    said = ask(text, tally.ASKED.format(g=goods, p=town)).split(", ")
    assert len(simple) < len(said) / 4


def test_the_reader_reads_no_more_than_its_window_and_says_what_it_understands() -> None:
    reader = Reader(500)
    asked = f"\n{MARK}{tally.ASKED.format(g='salt', p='Aldham')}"
    text = "12 crates of salt reached Aldham before dark."
    assert reader.read(text + asked) == "12"
    room = 500 - len(text) - len(asked)
    assert reader.read(" " * room + text + asked) == "12"
    assert reader.read(" " * (room + 1) + text + asked) == "I can read 500 characters at once, and this has 501."
    for prompt in ("", "\n", text, f"{text}\n{MARK}How many?", f"{MARK}{forms()[0]}", "x" * 400):
        assert reader.read(prompt) == PUZZLED
    assert all(form.split("{")[0] in PUZZLED for form in forms())


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_the_reader_answers_whatever_it_is_asked(prompt: str) -> None:
    assert EVERYTHING.read(prompt) == PUZZLED
    assert EVERYTHING.read(f"{prompt}\n{MARK}{compare.ASKED}") == "none" or "measures" in prompt


def test_every_way_to_write_a_number_means_that_number_alone() -> None:
    assert set(numbers().values()) == set(range(LARGEST + 1))
    assert all(numbers()[text] == number for number, said in enumerate(ways()) for text in said)
    assert [ways()[41], ways()[24], ways()[7]] == [
        ("41", "forty-one", "three dozen and five", "two score and one"),
        ("24", "twenty-four", "two dozen", "a score and four"),
        ("7", "seven"),
    ]


def test_all_people_and_all_houses_have_names_of_their_own() -> None:
    assert len({person(number) for number in range(PEOPLE)}) == PEOPLE
    assert len({house(number) for number in range(HOUSES)}) == HOUSES


def test_answers_are_numbers_and_names() -> None:
    kinds = {family: type(make(Plan(family, 1, 1)).answer) for family in ("chain", "tally", "ledger")}
    assert kinds == {"chain": WordAnswer, "tally": NumberAnswer, "ledger": NumberAnswer}

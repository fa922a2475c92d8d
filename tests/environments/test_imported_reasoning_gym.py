"""reasoning-gym: its questions, its scorers, splits that share nothing, and answers that are read and never run."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random as global_random
import re
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy
import pytest
import reasoning_gym
from episode_driver import drive, open_episode

from mcpgym import ConfigurationError, check_environment, load_environment
from mcpgym_clients.scanning import scan
from mcpgym_clients.scanning.scan import scan_environment
from mcpgym_environments.imported.reasoning_gym import ReasoningGym, ReasoningGymConfig, safe, source
from mcpgym_environments.imported.reasoning_gym.package import EXTRA
from mcpgym_environments.imported.reasoning_gym.source import BLOCK, HALF, Source, split_of

FAST = ["acre", "gcd", "graph_color", "knights_knaves", "list_functions", "maze", "pool_matrix", "string_insertion"]
RECORDED = {
    "reasoning-gym": "0.1.25",
    "acre": "2d4284b7d454c611",
    "gcd": "fa598ab3939ebbbc",
    "graph_color": "2ae131aee10bf552",
    "knights_knaves": "2a2df0f9a52199e1",
    "list_functions": "6410383b851e93bf",
    "maze": "395e4cee3bc7a15a",
    "pool_matrix": "0a48d18f1b072eab",
    "string_insertion": "fbbd85490bc76b3e",
    "chain_sum*3,gcd,maze*0.5": "ae80c1128338e580",
}
"""Digests of the first 60 questions of both splits, under this version."""


def made(dataset: str, **fields: Any) -> ReasoningGym:
    return ReasoningGym(ReasoningGymConfig(dataset=dataset, **fields))


def submitted(environment: ReasoningGym, index: int, answer: str) -> float | None:
    async def run() -> float | None:
        episode = await open_episode(environment, "test", index)
        await episode.call("submit_answer", {"answer": answer})
        return (await episode.score([])).total

    return asyncio.run(run())


@pytest.mark.parametrize("dataset", [*FAST, "chain_sum*3,gcd,maze*0.5"])
def test_the_expert_gets_everything_and_no_split_has_a_question_or_a_seed_of_the_other(dataset: str) -> None:
    environment = made(dataset)
    questions = {
        split: [environment.task_at(split, i).messages[1]["content"] for i in range(60)] for split in ("train", "test")
    }
    assert not {*questions["train"]} & {*questions["test"]}
    for split, asked in questions.items():
        assert {split_of(question) for question in asked} == {split}  # so it is for all that will ever be asked
    if RECORDED["reasoning-gym"] == EXTRA.version:
        digest = hashlib.sha256(json.dumps(questions).encode()).hexdigest()[:16]
        assert digest == RECORDED[dataset], f"{dataset} asks something else than it did: {questions['test'][0][:200]}"

    async def run(index: int) -> float | None:
        episode = await open_episode(environment, "test", index)
        messages = await drive(episode, environment.reference_policies()["expert"], Random(0))
        return (await episode.score(messages)).total

    assert [asyncio.run(run(index)) for index in range(6)] == [1.0] * 6


def test_train_takes_seeds_from_the_lower_half_and_test_from_the_upper(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[int]] = {"train": set(), "test": set()}
    for split, kept in seen.items():
        made_by = Source(ReasoningGymConfig())
        item = made_by._item
        monkeypatch.setattr(
            made_by, "_item", lambda seed, place, item=item, kept=kept: kept.add(seed + place) or item(seed, place)
        )
        for index in (0, 1, BLOCK, 999, 123_456, 999_999):
            made_by.entry(split, index)
    assert max(seen["train"]) + BLOCK < HALF <= min(seen["test"])
    assert len(seen["train"]) >= 6


def test_a_dataset_whose_questions_all_belong_to_the_other_split_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "split_of", lambda question: "test")
    assert made("gcd").task_at("test", 0)
    with pytest.raises(ConfigurationError, match="asks too few questions for two splits"):
        made("gcd").task_at("train", 0)


def test_what_it_draws_disturbs_nobody_and_nobody_disturbs_it() -> None:
    asked = [made(dataset).task_at("test", 3).messages for dataset in ("list_functions", "pool_matrix")]
    global_random.seed(4)
    numpy.random.seed(4)
    states = global_random.getstate(), numpy.random.get_state()[1].tolist()  # type: ignore[index,union-attr]
    again = [made(dataset).task_at("test", 3).messages for dataset in ("list_functions", "pool_matrix")]
    assert again == asked
    assert states == (global_random.getstate(), numpy.random.get_state()[1].tolist())  # type: ignore[index,union-attr]


def test_tasks_are_the_same_in_whatever_order_they_are_asked_for() -> None:
    for dataset in ("list_functions", "acre"):
        forth, back = made(dataset), made(dataset)
        order = [0, 40, 7, 1, 39, 200]
        first = {index: forth.task_at("train", index) for index in order}
        assert {index: back.task_at("train", index) for index in order[::-1]} == first


EVIL = [
    "[open(MARK, 'w').write('x')]",
    "__import__('pathlib').Path(MARK).write_text('x')",
    "(lambda: open(MARK, 'w'))()",
    "[x for x in [open(MARK, 'w')]]",
    "sin.__class__.__mro__[-1].__subclasses__()",
    "x.__class__",
    "exp(open(MARK, 'w'))",
    "oracle_answer",
    "entry['answer']",
    "9**9**9**9",
    "(2**32)**32",
    "2**999999999",
    "1e-99999999",
    "1e-9999_9999",
    "factorial(999999)",
    "1" + "+1" * 5_000,
    "(" * 5_000,
    "'" + "\\" * 99,
]


@pytest.mark.parametrize("module", [*safe.LITERAL, *safe.PARSED, *safe.SYMPY])
@pytest.mark.flaky(reruns=1)  # it measures time
def test_no_scorer_runs_what_a_policy_writes(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if module.endswith("polynomial_multiplication"):
        monkeypatch.setenv("PYTHONHASHSEED", "0")
    environment = made(module.rpartition(".")[2])
    entry = environment._source.entry("test", 0)
    mark = tmp_path / "ran"
    started = time.process_time()
    for text in EVIL:
        assert environment._source.score(text.replace("MARK", repr(str(mark))), entry) <= 0.1, text
    assert not mark.exists()
    assert time.process_time() - started < 10  # one of them would never end
    assert environment._source.score(entry["answer"], entry) == 1.0


@pytest.mark.parametrize(
    ("dataset", "answer"),
    [
        ("rush_hour", "F+99999999999"),
        ("rubiks_cube", "U99999999999"),
        ("coin_flip", "1e9999999"),
        ("pool_matrix", "\n"),
    ],
)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_no_answer_keeps_a_scorer_busy_or_makes_it_say_much(
    dataset: str, answer: str, recwarn: pytest.WarningsRecorder
) -> None:
    started = time.process_time()
    assert submitted(made(dataset), 0, f"{answer} ") in (0.0, 0.01)
    assert submitted(made(dataset), 0, f"x\n{answer * 999}") in (0.0, 0.01)
    assert time.process_time() - started < 15  # the first of them would take hours, the second the memory
    assert [*recwarn] == []


def test_numbers_that_a_scorer_would_not_see_solve_no_countdown() -> None:
    environment = made("countdown")
    entry = environment._source.entry("test", 0)
    numbers, target = entry["metadata"]["numbers"], entry["metadata"]["target"]
    unused = f"({'+'.join(map(str, numbers))})"
    assert environment._source.score(entry["answer"], entry) == 1.0
    tricks = (f"*0e0+{target}e0", f"*0_0+{str(target)[0]}_{str(target)[1:]}", f"*(x-x)+{target}*x/x", "*(E-E)+(E+E)/E")
    for trick in tricks:
        assert environment._source.score(unused + trick, entry) < 0.1, trick


def test_what_solves_every_puzzle_solves_none() -> None:
    makes_24 = made("puzzle24")
    entries = [makes_24._source.entry("test", index) for index in range(4)]
    for entry in entries:
        scores = [makes_24._source.score(other["answer"], entry) for other in entries]
        assert scores == [float(other is entry) for other in entries]
    four = {**entries[0], "metadata": {**entries[0]["metadata"], "numbers": [6, 4, 1, 2]}}
    assert [makes_24._source.score(text, four) for text in ("6*4*(2-1)", "6*4+1/2")] == [1.0, 0.0]
    halting = made("game_of_life_halting")
    entry = halting._source.entry("test", 0)
    scored = [halting._source.score(text, entry) for text in (entry["answer"], "I do not know", "x")]
    assert scored == [1.0, 0.0, 0.0]


def test_questions_are_made_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    assert made("bf").task_at("train", 0)
    assert capfd.readouterr().out == ""


def test_a_list_is_still_read_where_a_scorer_takes_lists() -> None:
    environment = made("string_insertion")
    entry = environment._source.entry("test", 0)
    assert environment._source.score(repr(list(entry["answer"])), entry) == 0.1


def test_no_other_scorer_evaluates_anything() -> None:
    """Where a new version evaluates in another place, this fails: look whether a policy's words come there."""
    root = Path(reasoning_gym.__file__).parent
    found = {
        str(path.relative_to(root).with_suffix("")).replace("/", ".")
        for path in root.rglob("*.py")
        if re.search(r"\b(?:eval|exec|parse_expr|sympify)\(", path.read_text("utf-8")) and "contrib" not in path.parts
    }
    own_words = {  # evaluate what they wrote themselves
        "algorithmic.number_sorting", "arithmetic.bitwise_arithmetic", "arithmetic.basic_arithmetic", "code.codeio",
        "arithmetic.gsm_symbolic.generators_00_49", "arithmetic.gsm_symbolic.generators_50_99",
        "logic.propositional_logic",  # has a parse_expr of its own
    }  # fmt: skip
    assert found - own_words == {*safe.LITERAL, *safe.PARSED, *safe.SYMPY}


def test_an_answer_is_submitted_once_and_empty_ones_are_not() -> None:
    async def run() -> list[tuple[bool, str]]:
        episode = await open_episode(made("gcd"), "test", 0)
        answers = [
            await episode.call("submit_answer", {"answer": text}) for text in (" ", "-1", episode.task.info["answer"])
        ]
        assert (await episode.score([])).total == 0.0
        return [(answer.is_error, answer.text) for answer in answers]

    answers = asyncio.run(run())
    assert [error for error, _ in answers] == [True, False, True]
    assert answers[1][1] == "Your answer was submitted. The task is over."


def test_a_scorer_that_fails_on_an_answer_gives_nothing() -> None:
    for dataset in FAST:
        for answer in ("{", "[[[[", "\x00", "é" * 9_999, '{"a": 1}', "null", "1e999"):
            assert submitted(made(dataset), 0, answer) in (0.0, 0.01), (dataset, answer)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"dataset": "chain_sums"}, "did you mean 'chain_sum'"),
        ({"dataset": "composite"}, "no dataset of reasoning-gym 'composite'"),
        ({"dataset": "gcd,,lcm"}, "'' is no dataset"),
        ({"dataset": "gcd*0"}, r"write NAME or NAME\*WEIGHT"),
        ({"dataset": "gcd,gcd"}, "names a dataset twice"),
        ({"options": "{"}, "is no JSON"),
        ({"options": '{"seed": 1}'}, "seed is not for you to set"),
        ({"options": '{"min_term": 3}'}, "unexpected keyword argument 'min_term'"),
        ({"options": '{"min_terms": 9, "max_terms": 2}'}, "cannot be made so"),
        ({"dataset": "gcd,lcm", "options": '{"maze": {}}'}, "no dataset in options 'maze'"),
        ({"dataset": "word_ladder"}, "PYTHONHASHSEED=0"),
    ],
)
def test_a_wrong_configuration_is_told(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load_environment("reasoning-gym", config).task_at("test", 0)


def test_its_knobs_and_its_name_in_short() -> None:
    easy = load_environment("reasoning-gym:chain_sum", {"options": '{"min_terms": 2, "max_terms": 2}'})
    assert all(easy.task_at("train", i).messages[1]["content"].count("+") <= 1 for i in range(20))
    mixed = load_environment("reasoning-gym:gcd*4,maze", {"options": '{"maze": {"min_grid_size": 5}}'})
    asked = [mixed.task_at("train", i).messages[1]["content"] for i in range(60)]
    assert 3 <= sum("Common Divisor" not in question for question in asked) <= 25


def test_the_list_of_environments_imports_nothing_of_it() -> None:
    code = (
        "import sys, mcpgym_clients.listing as l; l.list_environments(None, True); "
        "print(*({'reasoning_gym', 'textarena', 'gymnasium', 'bfcl_eval'} & {*sys.modules}), sep='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110)
    assert done.stdout.endswith("]\n\n"), done.stderr


def test_the_checker_finds_nothing() -> None:
    check_environment(
        "reasoning-gym", config={"dataset": "gcd,list_functions"}, episodes=1, second_process=True
    ).raise_for_findings()


def test_no_answer_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = "HTTP, 2026-07-28"
    monkeypatch.setattr(scan, "LANES", {lane: scan.LANES[lane]})
    report = scan_environment(made("knights_knaves"), parts=["play"])
    assert report.ok, report.as_json()
    assert report.canaries["hidden info"] > 3

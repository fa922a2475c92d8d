"""Problems are found by their index: always the same ones, and never one in both splits."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from random import Random

import pytest
from tests.sandbox_problem_docs import PAGE, page

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_environments.python_sandbox.problems.catalogue import (
    SPLITS,
    Catalogue,
    all_generators,
    find_generator,
    make_problem,
    split_of,
)
from mcpgym_environments.python_sandbox.problems.problem import FAMILIES, LEVELS, Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import whole

GENERATORS = tuple(all_generators().values())

DIGESTS = """\
import hashlib, json
from mcpgym_environments.python_sandbox.problems.catalogue import all_generators, make_problem
found = {}
for generator in all_generators().values():
    for level in (generator.levels[0], generator.levels[2]):
        problem = make_problem(generator, level, "train", 3)
        whole = [problem.text, sorted((k, v.hex()) for k, v in problem.files.items()), problem.solution, problem.wrong]
        found[f"{generator.name} {level}"] = hashlib.sha256(json.dumps(whole).encode()).hexdigest()
print(json.dumps(found))
"""


def test_every_family_is_there() -> None:
    assert len(GENERATORS) >= 20
    assert [family for family in FAMILIES if any(g.family == family for g in GENERATORS)] == list(FAMILIES)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", generator.name) for generator in GENERATORS)
    assert all(generator.summary and list(generator.levels) == sorted(generator.levels) for generator in GENERATORS)


def numbers_of(count: int, levels: tuple[int, ...]) -> dict[str, list[Problem]]:
    return {
        split: [
            make_problem(generator, level, split, number)
            for generator in GENERATORS
            for level in generator.levels
            if level in levels
            for number in range(count)
        ]
        for split in SPLITS
    }


def no_problem_is_in_both(problems: dict[str, list[Problem]]) -> None:
    train, test = problems["train"], problems["test"]
    assert {problem.text for problem in train} & {problem.text for problem in test} == set()
    assert {problem.identity for problem in train} & {problem.identity for problem in test} == set()
    assert {(p.generator, p.key) for p in train if p.key} & {(p.generator, p.key) for p in test if p.key} == set()
    by_text: dict[str, set[bytes]] = {}
    for problem in train + test:
        assert problem.text.strip() == problem.text
        by_text.setdefault(problem.text, set()).add(problem.identity)
    assert [text for text, identities in by_text.items() if len(identities) > 1] == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_text_of_thousands_is_in_both_splits() -> None:
    """Most at the easiest levels, where a generator has the fewest problems; some of every generator at every level."""
    problems: dict[str, list[Problem]] = {split: [] for split in SPLITS}
    for count, levels in ((15, (1,)), (6, (2,)), (1, (3, 4, 5))):
        for split, more in numbers_of(count, levels).items():
            problems[split] += more
            assert {split_of(problem) for problem in more} == {split}
            assert all(problem.solution != problem.wrong for problem in more)
    assert sum(map(len, problems.values())) >= 2_000
    no_problem_is_in_both(problems)


def test_a_generator_that_leaves_a_split_empty_is_named() -> None:
    one = Made("only-one", "compute", "", lambda random, level: Problem("only-one", "compute", level, "1?", whole(1)))
    (empty,) = [split for split in SPLITS if split != split_of(one.make(Random(0), 1))]
    with pytest.raises(RuntimeError, match="only-one makes no problem of level 1"):
        make_problem(one, 1, empty, 0)


def test_two_wordings_of_one_problem_are_in_one_split() -> None:
    one, other = (Problem("g", "compute", 1, text, whole(1), key="k") for text in ("What is 1?", "Say 1."))
    assert one.identity == other.identity


def test_problems_are_the_same_in_every_process() -> None:
    environment = os.environ | {"PYTHONHASHSEED": "77"}
    child = subprocess.run([sys.executable, "-c", DIGESTS], env=environment, capture_output=True, text=True, check=True)
    theirs = json.loads(child.stdout)
    for generator in GENERATORS:
        for level in (generator.levels[0], generator.levels[2]):
            problem = make_problem(generator, level, "train", 3)
            files = sorted((name, content.hex()) for name, content in problem.files.items())
            ours = json.dumps([problem.text, files, problem.solution, problem.wrong]).encode()
            assert theirs[f"{generator.name} {level}"] == hashlib.sha256(ours).hexdigest(), generator.name


def test_a_round_of_tasks_has_every_pair_once_and_neighbours_differ() -> None:
    catalogue = Catalogue()
    places = [catalogue.place(index) for index in range(2 * len(catalogue))]
    pairs = [(place.generator.name, place.level) for place in places]
    assert len(set(pairs[: len(catalogue)])) == len(catalogue) == sum(len(g.levels) for g in GENERATORS)
    assert pairs[: len(catalogue)] == pairs[len(catalogue) :]
    assert [place.number for place in places] == [0] * len(catalogue) + [1] * len(catalogue)
    assert all(one[0] != other[0] for one, other in pairwise(pairs))


def test_a_far_index_costs_what_a_near_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def counted(random: Random, level: int) -> Problem:
        nonlocal calls
        calls += 1
        return made(random, level)

    generator = find_generator("residues")
    assert isinstance(generator, Made)
    made = generator.maker
    catalogue = Catalogue(("compute",), ["residues"])
    catalogue._pairs = tuple((Made("residues", "compute", "", counted), level) for level in LEVELS)
    assert catalogue.place(10**15).number == 2 * 10**14
    assert calls == 0
    problem = catalogue.problem("test", 10**15)
    assert 1 <= calls < 60
    before = calls
    assert catalogue.problem("test", 10**15) is problem
    assert calls == before


def test_a_problem_is_the_same_in_every_configuration() -> None:
    one, other = Catalogue(("data",), min_level=2, max_level=2), Catalogue()
    mine = one.problem("train", 3)
    place = one.place(3)
    index = next(i for i in range(10**4) if other.place(i) == place)
    assert other.problem("train", index) == mine
    assert mine.level == 2
    assert mine.family == "data"


def test_what_there_is_not_is_refused_with_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="no generator 'prime-serch': did you mean 'prime-search'"):
        Catalogue(generators=["prime-serch"])
    with pytest.raises(UnknownNameError, match="no family 'dat': did you mean 'data'"):
        Catalogue(("dat",))
    with pytest.raises(ConfigurationError, match="'prime-search' is of the family compute"):
        Catalogue(("data",), ["prime-search"])
    with pytest.raises(ConfigurationError, match="no problem of levels 4 to 3"):
        Catalogue(min_level=4, max_level=3)
    with pytest.raises(UnknownNameError, match="no split 'trian': did you mean 'train'"):
        Catalogue().problem("trian", 0)


def test_a_problem_has_an_answer_or_tests_and_a_level() -> None:
    with pytest.raises(ValueError, match="either an answer or tests"):
        Problem("g", "compute", 1, "text")
    with pytest.raises(ValueError, match="level 6"):
        Problem("g", "compute", 6, "text", whole(1))
    with pytest.raises(ValueError, match="residues has no level 9"):
        find_generator("residues").make(Random(0), 9)


def test_the_page_of_problems_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.sandbox_problem_docs"

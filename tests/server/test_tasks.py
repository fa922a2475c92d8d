"""Tasks: immutable rows, lazy splits, and seeds that depend on every part."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym import LazyTasks, Task, derive_seed, task_id
from mcpgym.messages import user
from mcpgym.tasks import find_task


def lazy(count: int, split: str = "train") -> LazyTasks:
    return LazyTasks(count, lambda index: Task(task_id(split, index), split, (user(f"{index}"),), {"n": index}))


def test_lazy_tasks_are_made_only_when_asked_for():
    made = []
    tasks = LazyTasks(10**9, lambda index: made.append(index) or Task(task_id("train", index), "train", ()))
    assert len(tasks) == 10**9
    assert made == []
    assert tasks[10**9 - 1].id == "train-999999999"
    assert tasks[-1].id == "train-999999999"
    assert find_task(tasks, "train", "train-123456").id == "train-123456"
    assert len(made) < 6


@given(st.integers(0, 12), st.integers(-15, 15), st.integers(-15, 15), st.sampled_from([1, 2, -1, -3]))
def test_lazy_tasks_are_indexed_sliced_and_iterated_as_a_list_is(count, start, stop, step):
    tasks, rows = lazy(count), list(lazy(count))
    assert tasks[start:stop:step] == rows[start:stop:step]
    try:
        expected = rows[start]
    except IndexError:
        with pytest.raises(IndexError, match=f"task {start} of {count}"):
            tasks[start]
    else:
        assert tasks[start] == expected
    assert list(reversed(tasks)) == rows[::-1]


@pytest.mark.parametrize("index", [1.0, "1", None])
def test_an_index_is_a_whole_number(index):
    with pytest.raises(TypeError):
        lazy(3)[index]


def test_a_split_cannot_have_fewer_than_no_tasks():
    with pytest.raises(ValueError, match="-1"):
        lazy(-1)


@pytest.mark.parametrize(
    "wanted",
    ["", "train", "train-", "train-3", "train--1", "train-01", "train-1 ", "test-1", "train-١", "train-1e0", "-9" * 99],
)  # fmt: skip
def test_ids_that_only_look_right_find_nothing(wanted):
    assert find_task(lazy(3), "train", wanted) is None


def test_tasks_with_ids_of_their_own_are_found():
    tasks = [Task(f"topic-{name}", "all", ()) for name in ("tea", "rain", "2")]
    assert find_task(tasks, "all", "topic-rain") is tasks[1]
    assert find_task(tasks, "topic", "topic-2") is tasks[2]


def test_a_tasks_info_cannot_be_changed_and_is_not_printed():
    given = {"answer": 42}
    task = Task("a", "train", [user("hi")], given)  # type: ignore[arg-type]
    given["answer"] = 43
    assert task.info["answer"] == 42
    assert task.messages == (user("hi"),)
    with pytest.raises(TypeError):
        task.info["answer"] = 1  # type: ignore[index]
    assert "42" not in repr(task)


PARTS = st.lists(
    st.one_of(
        st.integers(), st.text(alphabet="ab:\x1f", max_size=4), st.none(), st.booleans(), st.tuples(st.integers())
    ),
    max_size=4,
)


@given(PARTS, PARTS)
def test_seeds_are_equal_exactly_when_all_parts_are(one, other):
    def typed(parts):
        return [(type(part), part) for part in parts]

    assert (derive_seed(*one) == derive_seed(*other)) == (typed(one) == typed(other))


def test_a_separator_inside_a_part_makes_no_two_lists_equal():
    assert derive_seed("a\x1fstr:b") != derive_seed("a", "b")
    assert derive_seed("a\x1f", "b") != derive_seed("a", "\x1fb")


def test_case_27_seeds_are_what_they_were_in_every_process():
    code = "from mcpgym import derive_seed; print(derive_seed('x', 3, 1.5, None, (1, 'a')))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {str(derive_seed("x", 3, 1.5, None, (1, "a")))}
    assert derive_seed(1, "a") == 18137943845137847875
    assert 0 <= derive_seed() < 2**64


@pytest.mark.parametrize("part", [{1, 2}, frozenset("ab"), object()])
def test_parts_whose_text_changes_from_process_to_process_are_refused(part):
    with pytest.raises(TypeError, match="another in each process"):
        derive_seed("x", part)

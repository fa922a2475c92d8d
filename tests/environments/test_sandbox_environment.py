"""The Python sandbox as an environment: what its tools do, what is graded, what an episode costs and leaves behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from mcpgym import ConfigurationError, load_environment
from mcpgym.control import LocalControl
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.errors import CannotBegin, EpisodeError
from mcpgym_environments.python_sandbox import PythonSandbox
from mcpgym_environments.python_sandbox.problems.answers import answer_text
from mcpgym_environments.python_sandbox.problems.problem import Problem
from mcpgym_environments.python_sandbox.sessions.backend import SessionLost

HERE = {"backend": "unsafe-local", "min_isolation": "none", "packages": "none"}
"""Without a boundary, so that these tests run everywhere: nothing here runs code that could do harm."""

Call = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def sandbox() -> Iterator[None]:
    """Holds the sandbox that these tests share, so that it starts once."""
    holder = made()
    asyncio.run(holder.reset(holder.task_at("test", 0), 0))
    yield
    asyncio.run(holder.shutdown())


def made(**config: Any) -> PythonSandbox:
    environment = load_environment("python-sandbox", {**HERE, **config})
    assert isinstance(environment, PythonSandbox)
    return environment


def with_episode(
    do: Callable[[Episode], Awaitable[Any]], environment: PythonSandbox | None = None, index: int = 0, seed: int = 0
) -> Any:
    """What ``do`` makes of a fresh episode, which is closed afterwards, and its environment with it."""
    environment = environment or made()
    episodes = Episodes({environment.name: environment})

    async def main() -> Any:
        try:
            return await do(await episodes.open(environment.name, split="test", index=index, seed=seed))
        finally:
            await episodes.aclose()

    return asyncio.run(main())


def answers(*calls: Call, environment: PythonSandbox | None = None, index: int = 0) -> list[Any]:
    """The results of ``calls`` in a fresh episode."""

    async def do(episode: Episode) -> list[Any]:
        return [await episode.call(name, arguments) for name, arguments in calls]

    return list(with_episode(do, environment, index))


def scored(*calls: Call, index: int = 0, environment: PythonSandbox | None = None, seed: int = 0) -> Any:
    """The results of ``calls``, how the episode ended, and its score without and with a transcript."""

    async def do(episode: Episode) -> Any:
        results = [await episode.call(name, arguments) for name, arguments in calls]
        return results, episode.stop_reason, await episode.score(None), await episode.score(episode.messages)

    return with_episode(do, environment, index, seed)


def run(code: str) -> Call:
    return "run_python", {"code": code}


def write(path: str, text: str) -> Call:
    return "write_file", {"path": path, "text": text}


def read(path: str, offset: int = 0) -> Call:
    return "read_file", {"path": path, "offset": offset}


def submit(answer: str = "") -> Call:
    return "submit", {"answer": answer}


def first_of(family: str) -> tuple[int, Problem]:
    """An easy task of a family, and its problem."""
    environment = made(max_level=2)
    places = enumerate(map(environment._catalogue.place, range(1_000)))
    index = next(index for index, place in places if place.generator.family == family)
    problem = environment.problem("test", index)
    assert problem is not None
    return index, problem


def right_answer(problem: Problem) -> str:
    assert problem.answer is not None
    return answer_text(problem.answer)


# The notebook.


def test_variables_stay_values_are_shown_and_errors_name_the_line() -> None:
    texts = [
        result.text
        for result in answers(
            run("x = 20"),
            run("print('so:')\nx + 1"),
            run("def f(n):\n    return 1 / n\nf(0)"),
            run("import sys; print('both', file=sys.stderr); x"),
            run("if"),
        )
    ]
    assert texts[:2] == ["(no output)", "so:\n21"]
    assert texts[2].splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "return 1 / n" in texts[2]
    assert "mcpgym" not in texts[2]
    assert texts[3] == "both\n20"
    assert "SyntaxError" in texts[4]


def test_files_are_written_listed_and_read_by_tools_and_code_alike() -> None:
    texts = [
        result.text
        for result in answers(
            write("notes/a.txt", "one\ntwo"),
            run("print(open('notes/a.txt').read()); n = open('b.txt', 'w').write('three\\n')"),
            ("list_files", {}),
            read("/work/b.txt"),
            write("b.txt", ""),
            read("b.txt"),
            environment=made(tasks="open"),
        )
    ]
    assert texts[0] == "wrote notes/a.txt (2 lines, 7 bytes)"
    assert texts[1] == "one\ntwo"
    assert sorted(texts[2].splitlines()) == ["b.txt (6 bytes)", "notes/", "notes/a.txt (7 bytes)"]
    assert texts[3:] == ["three", "wrote b.txt (0 lines, 0 bytes)", "(an empty file)"]
    assert answers(("list_files", {}), environment=made(tasks="open"))[0].text == "(no files)"


def test_a_long_file_is_read_whole_in_parts_whatever_is_in_it() -> None:
    text = "".join(f"{number}: {'äß🎲x' * (number % 9)}\n" for number in range(100)) + "ü" * 700

    async def do(episode: Episode) -> tuple[str, list[int], str]:
        await episode.call(*write("long.txt", text))
        whole, offset, lengths = "", 0, []
        while True:
            shown = (await episode.call(*read("long.txt", offset))).text
            body, _, last = shown.rpartition("\n[bytes ")
            end = int(last.split(" ")[2].replace(",", ""))
            whole += body + "\n" * (end - offset - len(body.encode()))  # a line feed at the end is not shown
            lengths.append(len(body))
            if last.endswith("; the end]"):
                break
            assert last.endswith(f"; go on with offset={end}]")
            offset = end
        return whole, lengths, (await episode.call(*read("long.txt", len(text.encode()) - 3))).text

    whole, lengths, middle = with_episode(do, made(output_characters=200, tasks="open"))
    assert whole == text
    assert max(lengths) <= 200
    assert len(lengths) > 8
    assert middle.startswith("ü\n[bytes ")  # from the next whole character on


def test_a_listing_goes_down_into_every_folder() -> None:
    deep = "/".join("abcdefghijklm")
    _, listing = answers(write(f"{deep}/z.txt", "x"), ("list_files", {}), environment=made(tasks="open"))
    assert listing.text.splitlines()[-1] == f"{deep}/z.txt (1 byte)"
    assert len(listing.text.splitlines()) == 14


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (read("nothing.txt"), ["nothing.txt", "there is: data.bin, latin.txt, ok.txt"]),
        (read("data.bin"), ["no UTF-8 text", "byte 2 is 0x00", "open('data.bin', 'rb')"]),
        (read("latin.txt"), ["no UTF-8 text", "byte 3 is 0xe9"]),
        (read("ok.txt", 100), ["nothing at offset 100"]),
        (read("/etc/passwd"), ["not in the workspace"]),
        (read("a/../../etc/passwd"), ["not in the workspace"]),
        (read("folder"), ["folder"]),
        (read("a\0b"), ["'a\\x00b' is no path"]),
        (read("dé漢\u202e.txt"), ["there is no 'dé漢\\u202e.txt' in the workspace"]),
        (write("../up.txt", "x"), ["not in the workspace"]),
        (write("folder", "x"), ["folder"]),
        (write("/tmp/x", "x"), ["not in the workspace"]),
    ],
)
def test_what_cannot_be_done_says_what_would_be_right(call: Call, wanted: list[str]) -> None:
    files = {"data.bin": b"ab\0", "latin.txt": b"caf\xe9", "ok.txt": b"ok"}
    code = f"import os; os.mkdir('folder')\nfor name, data in {files}.items(): open(name, 'wb').write(data)"
    _, result = answers(run(code), call, environment=made(tasks="open"))
    assert result.is_error
    for part in wanted:
        assert part in result.text


def test_a_run_that_takes_too_long_is_interrupted_and_the_notebook_goes_on() -> None:
    results = answers(run("x = 7"), run("while True: pass"), run("x"), environment=made(seconds=0.5))
    assert "[timed out after 0.5 s and was interrupted; variables are kept]" in results[1].text
    assert results[2].text == "7"


def test_what_ends_python_keeps_the_files_and_says_so() -> None:
    results = answers(write("a.txt", "kept"), run("x = 1; import os; os._exit(3)"), run("x"), read("a.txt"))
    assert results[1].text == "[Python ended itself with exit code 3; files are kept, variables are lost]"
    assert "NameError" in results[2].text
    assert results[3].text == "kept"


def test_long_output_is_cut_in_its_middle() -> None:
    (result,) = answers(run("for i in range(100_000): print(i)"), environment=made(output_characters=200))
    assert len(result.text) < 300
    assert result.text.startswith("0\n1\n")
    assert result.text.endswith("99999")
    assert "characters cut" in result.text


def test_a_call_that_is_cancelled_leaves_a_notebook_that_goes_on() -> None:
    async def do(episode: Episode) -> str:
        await episode.call(*run("x = 1"))
        slow = asyncio.create_task(episode.call(*run("import time; time.sleep(0.4); x = 2; print('late')")))
        await asyncio.sleep(0.15)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return (await episode.call(*run("x + 1"))).text

    assert with_episode(do, made(tasks="open")) == "3"


# Problems and scores.


def test_the_right_answer_pays_and_ends_the_episode() -> None:
    index, problem = first_of("compute")
    (_, said, later), stop, bare, full = scored(
        run("1"), submit(f" {right_answer(problem)} "), run("2"), index=index, environment=made(max_level=2)
    )
    assert (stop, full.total, bare.components["correct"], bare.components["solved"]) == ("done", 1.0, 1.0, 1.0)
    assert said.text.endswith("The task is over.")
    assert later.is_error
    _, _, _, wrong = scored(submit("nothing of the kind"), index=index, environment=made(max_level=2))
    assert (wrong.total, wrong.components["efficiency"], wrong.components["no_errors"]) == (0.0, 0.0, 0.0)
    _, stop, _, none = scored(run("1"), index=index, environment=made(max_level=2))
    assert (stop, none.total) == (None, 0.0)


def test_nothing_cannot_be_submitted() -> None:
    index, _ = first_of("data")
    (result, later), stop, _, _ = scored(submit(" \n"), run("1"), index=index, environment=made(max_level=2))
    assert result.is_error
    assert "answer" in result.text
    assert (later.text, stop) == ("1", None)


def test_the_files_of_a_problem_are_there_first() -> None:
    index, problem = first_of("data")
    (listing,) = answers(("list_files", {}), index=index, environment=made(max_level=2))
    assert {line.split(" (")[0] for line in listing.text.splitlines()} >= set(problem.files)


def test_code_is_graded_by_hidden_tests_in_a_place_of_its_own() -> None:
    index, problem = first_of("function")

    def total(*calls: Call) -> Any:
        return scored(*calls, index=index, environment=made(max_level=2))

    assert total(write("solution.py", problem.solution), submit())[3].total == 1.0
    assert total(write("solution.py", problem.wrong), submit())[3].total < 1.0
    assert total(write("solution.py", "raise SystemExit(0)"), submit())[3].total == 0.0
    # What the session has besides solution.py is not there when it is graded.
    results, _, _, score = total(
        write("helper.py", problem.solution), write("solution.py", "from helper import *"), submit()
    )
    assert (results[-1].text, score.total) == ("You submitted solution.py. The task is over.", 0.0)
    (missing,), stop, _, score = total(submit("def f(): pass"))
    assert missing.is_error
    assert "solution.py" in missing.text
    assert (stop, score.total) == (None, 0.0)


def test_hidden_tests_come_from_the_seed_of_the_episode_which_code_cannot_learn() -> None:
    index, problem = first_of("function")
    assert problem.tests is not None

    def seen(seed: int) -> tuple[int, str]:
        """What makes the tests, and what code can tell of the seeds: the state that its generator begins with."""

        async def do(episode: Episode) -> tuple[int, str]:
            result = await episode.call(*run("import random; random.getrandbits(256)"))
            return episode.state.seed, result.text

        found: tuple[int, str] = with_episode(do, made(max_level=2), index, seed)
        return found

    one, again, other = seen(1), seen(1), seen(2)
    assert one == again
    assert one[0] != other[0]
    assert one[1] == other[1]
    cases = [list(problem.tests.cases(seed)) for seed, _ in (one, again, other)]
    assert cases[0] == cases[1] != cases[2]


def test_after_the_last_call_only_a_solution_can_be_submitted() -> None:
    index, problem = first_of("compute")
    runs, last = [run(str(number)) for number in range(5)], submit(right_answer(problem))
    results, stop, _, score = scored(*runs, last, index=index, environment=made(max_level=2, max_calls=3))
    assert [result.text for result in results[:3]] == [
        "0\n[2 calls left]", "1\n[1 call left]", "2\n[no calls left: submit]",
    ]  # fmt: skip
    assert results[3].is_error
    assert "submit is the only tool left" in results[3].text
    assert (stop, score.total) == ("done", 1.0)


def test_the_small_rewards_are_always_told_and_paid_only_where_asked() -> None:
    index, problem = first_of("compute")
    weights = {"efficiency_weight": 0.2, "no_errors_weight": 0.1}

    def score(*calls: Call, **config: Any) -> Any:
        return scored(*calls, submit(right_answer(problem)), index=index, environment=made(max_level=2, **config))[3]

    plain = score(run("1"))
    assert {**plain.components, "format": 0.0} == {
        "correct": 1.0, "format": 0.0, "efficiency": 1.0, "no_errors": 1.0, "solved": 1.0,
    }  # fmt: skip
    assert plain.total == 1.0
    assert score(run("1"), **weights).total == pytest.approx(1.3)
    slow = score(run("1 / 0"), run("1"), run("1"), **weights)
    assert slow.components["no_errors"] == 0.0
    assert slow.total == pytest.approx(1.0 + 0.2 * 2 / 4)
    assert score(read("nothing.txt")).components["no_errors"] == 0.0
    assert score(("read_file", {})).components["no_errors"] == 0.0
    assert PythonSandbox.rewards["efficiency"].weight == 0.0  # the weights are those of an instance


def test_an_open_visit_has_no_limits_and_no_score() -> None:
    environment = made(tasks="open", max_calls=1)
    assert (environment.splits, environment.size("test"), environment.max_turns) == (("test",), 1, None)
    runs = [run(str(number)) for number in range(30)]
    results, stop, _, score = scored(*runs, submit(), environment=environment)
    assert [result.text for result in results[:-1]] == [str(number) for number in range(30)]
    assert stop == "done"
    assert score.total is None


# What an episode costs, and what it leaves.


def test_a_session_is_taken_when_a_tool_needs_one_and_ended_with_the_episode() -> None:
    async def do(episode: Episode) -> None:
        work = episode.state
        assert work.session is None
        await episode.call(*run("x = 1"))
        session = work.session
        assert session.ended is None
        await episode.end("closed")
        assert session.ended is not None
        assert work.session is None

    with_episode(do)


def test_a_lost_session_leaves_no_score() -> None:
    async def do(episode: Episode) -> Any:
        await episode.call(*run("x = 1"))
        episode.state.session.stream.kill()
        result = await episode.call(*run("x"))
        assert result.is_error
        assert "failed" in result.text
        with pytest.raises(EpisodeError, match="no score"):
            await episode.score(None)
        return episode.failure, episode.stop_reason

    failure, stop = with_episode(do)
    assert "SessionLost" in failure
    assert stop == "failed"


def test_a_session_that_took_the_machines_memory_costs_its_files_and_not_the_score() -> None:
    async def do(episode: Episode) -> Any:
        await episode.call(*write("kept.txt", "not"))
        episode.state.session.kill("the machine had no memory left", spent=True)
        said = await episode.call(*run("1"))
        later = [(await episode.call(*call)).text for call in (run("2"), ("list_files", {}))]
        return said, later, episode.failure, (await episode.score(None)).components["correct"], episode.state.faults

    said, later, failure, correct, faults = with_episode(do, index=first_of("function")[0])
    assert said.is_error
    assert said.text.startswith("[killed: the machine had no memory left")
    assert later == ["2", "(no files)"]
    assert (failure, correct, faults) == (None, 0.0, 1)


def test_environments_of_one_kind_share_a_pool_until_the_last_lets_go() -> None:
    one, two, other = made(memory_mb=200), made(memory_mb=200, max_calls=5), made(memory_mb=256)

    async def main() -> None:
        works = [await each.reset(each.task_at("test", 0), 0) for each in (one, two, other)]
        assert works[0].pool is works[1].pool
        assert works[0].pool is not works[2].pool
        await one.shutdown()
        session = await works[1].pool.open(1)
        assert (await session.run("1 + 1")).output == b"2\n"
        await two.shutdown()
        with pytest.raises(SessionLost):
            await session.run("1 + 1")
        await other.shutdown()
        again = await one.reset(one.task_at("test", 0), 0)  # what was shut down can be used again
        assert (await (await again.pool.open(1)).run("2")).output == b"2\n"
        await one.shutdown()

    asyncio.run(main())


def test_what_an_episode_ran_under_is_told_and_never_to_the_policy() -> None:
    environment = made()
    control = LocalControl(Episodes({environment.name: environment}))

    async def main() -> Any:
        opened = await control.open(environment.name, split="test", index=0)
        gauges = environment.gauges()
        await control.aclose()
        return opened, gauges

    opened, gauges = asyncio.run(main())
    assert opened.conditions["backend"] == "unsafe-local"
    assert opened.conditions["isolation"] == "none"
    assert opened.conditions["python"].startswith("3.")
    assert "unsafe" not in str(opened.messages)
    assert {"sessions_lost", "calls_waiting"} <= set(gauges)
    assert "sessions_live" in gauges


def test_the_same_calls_read_and_score_the_same_again() -> None:
    calls = [
        run("import random, time; print(random.random(), hash('x')); time.time()"),
        run("object()"),
        write("solution.py", "def f(): pass"),
        ("list_files", {}),
        submit("0"),
    ]
    environment = made()
    first, second = (scored(*calls, index=3) for _ in range(2))
    assert first[1:] == second[1:]
    for one, other in zip(first[0], second[0], strict=True):
        assert environment.same_observation(one.text, other.text)


# Configuration.


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"backend": "dokcer"}, "no back-end 'dokcer'; there is: auto, namespaces, landlock"),
        ({"packages": "scipy"}, "no package 'scipy' can be preloaded; write auto, none, numpy, or numpy,pandas"),
        ({"families": "maths"}, "no family of problems 'maths'; there is: all, compute, function, data, debug"),
        ({"generators": "no-such"}, "no generator 'no-such'"),
        ({"min_level": 4, "max_level": 2}, "min_level=4 must not be above max_level=2"),
        ({"min_level": 6}, "less than or equal to 5"),
        ({"seconds": "nan"}, "seconds"),
        ({"tasks": "none"}, "'made' or 'open'"),
        ({"min_isolation": "docker"}, "'none', 'landlock'"),
        ({"max_call": 3}, "did you mean 'max_calls'"),
        ({"image": "python:3.13"}, "backend=auto runs on this machine and takes no image"),
    ],
)
def test_what_cannot_be_configured_says_what_would_be_right(config: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_environment("python-sandbox", config)
    assert wanted in str(caught.value)


def test_a_boundary_that_is_too_weak_is_refused_before_anything_runs() -> None:
    environment = load_environment("python-sandbox", {"backend": "unsafe-local"})
    assert isinstance(environment, PythonSandbox)
    with pytest.raises(CannotBegin, match="min_isolation=none"):
        with_episode(lambda episode: episode.call("list_files", {}), environment)


def test_what_reaches_out_of_this_machine_or_keeps_nothing_in_is_told() -> None:
    def reaches(**config: Any) -> Any:
        return load_environment("python-sandbox", config).config.reaches()

    assert reaches() == []
    assert reaches(backend="landlock", families="data") == []
    assert reaches(backend="unsafe-local", min_isolation="none") == ["backend=unsafe-local"]
    assert reaches(backend="docker", image="python:3.13") == ["backend=docker", "image=python:3.13"]


def test_families_levels_and_generators_choose_the_tasks() -> None:
    environment = made(families="debug, function", min_level=2, max_level=3)
    rows = [environment.task_at("train", index).info for index in range(30)]
    assert {row["family"] for row in rows} == {"debug", "function"}
    assert {row["level"] for row in rows} == {2, 3}
    assert environment.config.families == "function,debug"
    name = rows[0]["generator"]
    assert {task.info["generator"] for task in made(generators=name).tasks("test")[:10]} == {name}


def test_listing_environments_loads_no_problem_and_no_library() -> None:
    code = (
        "import sys, mcpgym\n"
        "environment = mcpgym.load_environment('python-sandbox')\n"
        "environment.size('train'), environment.max_turns, environment.config.package_names\n"
        "ours = ('mcpgym_environments.python_sandbox.problems', 'mcpgym_environments.python_sandbox.backends')\n"
        "print([name for name in sys.modules if name in ('numpy', 'pandas', 'sympy') or name.startswith(ours)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"

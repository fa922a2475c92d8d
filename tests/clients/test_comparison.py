"""Runs against each other: what may be compared, what belongs together, and what may be concluded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console

from mcpgym_clients.comparing import CompareOptions, compared
from mcpgym_clients.comparison_report import notes, render, render_many, verdict
from mcpgym_clients.failures import UsageProblem
from mcpgym_rl.traces import Trace, TraceCall, TraceScore, TraceWriter


def trace(task: int, total: float | None, seed: int = 0, /, **changed: Any) -> Trace:
    seed = changed.get("seed", seed)
    score = None if total is None else TraceScore(total, {"outcome": total}, changed.pop("ended", None))
    values: dict[str, Any] = {
        "environment": "game",
        "environment_version": "1",
        "task": f"test-{task}",
        "split": "test",
        "seed": seed,
        "config": {"hard": True},
        "schema_hash": "a" * 64,
        "policy": "p",
        "messages": [],
        "calls": [TraceCall("play", {"task": task, "seed": seed, "total": total}, "ok", False, 0.0)],
        "stop_reason": "done",
        "score": score,
        "place": task + 1000 * seed,
    }
    return Trace(**(values | changed))


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Write a run: a folder with these traces, and a summary with this ``run`` where one is given."""
    made = iter(range(100))

    def write(traces: Iterable[Trace], run: dict[str, Any] | None = None, **summary: Any) -> Path:
        path = tmp_path / f"run-{next(made)}"
        with TraceWriter(path / "traces.jsonl") as writer:
            for item in traces:
                writer.write(item)
        if run is not None:
            (path / "summary.json").write_text(json.dumps({"run": run, **summary}))
        return path

    return write


def of(totals: Iterable[float | None], **changed: Any) -> list[Trace]:
    return [trace(number, total, **changed) for number, total in enumerate(totals)]


def judged(*paths: Path, **options: Any) -> dict[str, Any]:
    found = compared(CompareOptions(list(paths), **options))
    return json.loads(json.dumps(found, allow_nan=False))


def row(found: dict[str, Any], metric: str = "reward") -> dict[str, Any]:
    return next(item for item in found["comparisons"] if item["metric"] == metric)


def shown(found: dict[str, Any]) -> str:
    from rich.console import Console

    console = Console(width=300)
    with console.capture() as captured:
        console.print((render if len(found["runs"]) == 2 else render_many)(found))
    return captured.get()


def test_pairs_see_what_means_cannot(folder: Callable[..., Path]) -> None:
    """Tasks differ a hundred times more than the policies do; every task is a little better solved by the second."""
    random = Random(3)
    hard = [random.uniform(0, 100) for _ in range(40)]
    first, second = folder(of(hard)), folder(of(value + random.uniform(0.1, 0.9) for value in hard))
    found = judged(first, second)
    made = row(found)
    assert made["distinguishable"]
    assert (made["n"], made["tasks"], made["paired_by"], made["left_out"]) == (40, 40, "episode", [0, 0])
    low, high = made["interval"]
    assert 0.4 < low < made["difference"] < high < 0.7
    assert verdict(made).startswith("B has the higher reward than A")
    assert verdict(row(judged(second, first))).startswith("A has the higher reward than B")
    assert "B has the higher reward" in shown(found)


def test_what_chance_may_have_done_is_not_distinguishable(folder: Callable[..., Path]) -> None:
    random = Random(8)
    runs = [folder(of(float(random.random() < 0.5) for _ in range(60))) for _ in range(2)]
    made = row(judged(*runs))
    assert not made["distinguishable"]
    assert made["interval"][0] < 0 < made["interval"][1]
    text = verdict(made)
    assert "not distinguishable" in text
    assert f"a true difference of {made['detectable']:.3f} would be found in about 80 % of all cases" in text
    assert f"{made['tasks_needed']:,} tasks" in text


def test_equal_runs_are_not_distinguishable(folder: Callable[..., Path]) -> None:
    made = row(judged(folder(of([1.0, 0.0, 1.0])), folder(of([1.0, 0.0, 1.0]))))
    assert not made["distinguishable"]
    assert (made["difference"], made["p"], made["equal_games"], made["differing_tasks"]) == (0.0, 1.0, 3, 0)
    assert "the same in every one of 3 pairs" in verdict(made)


def test_five_tasks_that_all_differ_one_way_are_too_few(folder: Callable[..., Path]) -> None:
    """Student's interval has no width here and leaves 0 out; signs alone come out so in 1 of 16 cases."""
    made = row(judged(folder(of([0.0] * 5)), folder(of([1.0] * 5))))
    assert made["p"] == pytest.approx(2 / 32)
    assert not made["distinguishable"]
    varied = row(judged(folder(of([0.0] * 5)), folder(of([0.5, 1.0, 0.25, 0.75, 1.0]))))
    assert (varied["detectable"], varied["tasks_needed"]) == (None, None)
    assert verdict(varied).endswith("So few tasks cannot tell any runs apart: it takes 6 that differ, at the least.")
    assert row(judged(folder(of([0.0] * 6)), folder(of([1.0] * 6))))["distinguishable"]


def test_one_pair_tells_nothing(folder: Callable[..., Path]) -> None:
    found = judged(folder(of([0.0])), folder(of([1.0])))
    assert row(found)["interval"] is None
    assert "not distinguishable" in shown(found)


@pytest.mark.parametrize(
    ("changed", "run", "why"),
    [
        ({"environment": "other"}, None, "the environment is game in A and other in B"),
        ({"environment_version": "2"}, None, "the version of the environment is 1 in A and 2 in B"),
        ({"schema_hash": "b" * 64}, None, "the tools' schema hash is aaaaaaaaaaaa… in A and bbbbbbbbbbbb… in B"),
        ({"config": {"hard": False}}, None, "the configuration differs: hard is true in A and false in B"),
        ({"config": {}}, None, "hard is true in A and not set in B"),
        ({"task": "test-9"}, None, "the tasks differ: A has 2 and B 1, with 0 in common"),
        ({"seed": 7}, None, "the seeds differ: A has 0 and B 7"),
        ({}, {"max_turns": 3}, "the limit on turns is 8 in A and 3 in B"),
        ({}, {"max_turns": None}, "the limit on turns is 8 in A and the environment's own in B"),
    ],
)
def test_runs_that_differ_in_more_than_their_policy_are_refused(
    folder: Callable[..., Path], changed: dict[str, Any], run: dict[str, Any] | None, why: str
) -> None:
    first = folder(of([1.0, 0.0]), {"max_turns": 8})
    second = folder([trace(number, 1.0, **({"seed": 0} | changed)) for number in range(2)], run)
    with pytest.raises(UsageProblem) as refused:
        judged(first, second)
    assert why in str(refused.value)
    assert "--force" in str(refused.value)
    found = judged(first, second, force=True)
    assert any(why in reason for reason in found["in_spite_of"])
    assert why in shown(found)


def test_the_limit_on_turns_is_known_from_a_run_that_was_killed(folder: Callable[..., Path]) -> None:
    first, second = folder(of([1.0])), folder(of([1.0]), {"max_turns": 8})
    (first / "run.json").write_text(json.dumps({"options": {"max_turns": 2}}))
    with pytest.raises(UsageProblem, match="limit on turns is 2 in A and 8 in B"):
        judged(first, second)


def test_runs_of_which_less_is_known_are_compared(folder: Callable[..., Path]) -> None:
    assert judged(folder(of([1.0])), folder(of([1.0]), {"max_turns": 8}))["in_spite_of"] == []


def test_a_run_that_stopped_early_is_refused(folder: Callable[..., Path]) -> None:
    with pytest.raises(UsageProblem, match="A has 5 and B 3, with 3 in common"):
        judged(folder(of([1.0] * 5)), folder(of([1.0] * 3)))
    twice = [*of([1.0] * 3), *of([1.0] * 3, seed=1)]
    with pytest.raises(UsageProblem, match="the seeds differ: A has 0 and B 0 to 1"):
        judged(folder(of([1.0] * 3)), folder(twice))
    with pytest.raises(UsageProblem, match="the episodes differ: A has 6 and B 5, with 5 in common"):
        judged(folder(twice), folder(twice[:-1]))


def test_traces_of_two_policies_in_one_file_are_refused(folder: Callable[..., Path]) -> None:
    both = [trace(0, 1.0), trace(1, 1.0, policy="q")]
    with pytest.raises(UsageProblem, match="A has traces of several policies: p and q"):
        judged(folder(both), folder(of([1.0, 1.0])))


def test_case_29_unscored_episodes_are_in_no_pair_and_said(folder: Callable[..., Path]) -> None:
    """Taken for 0, they would make the difference 0.5."""
    failed = [trace(number, None if number % 2 else 1.0) for number in range(20)]
    found = judged(folder(of([1.0] * 20)), folder(failed))
    made = row(found)
    assert (made["difference"], made["n"], made["left_out"]) == (0.0, 10, [10, 0])
    text = shown(found)
    assert "10 episodes of B are unscored" in text
    assert "10 scored episodes of A left out against B" in text


def test_by_force_episodes_then_tasks_then_nothing_make_the_pairs(folder: Callable[..., Path]) -> None:
    first = folder(of([0.0, 1.0, 2.0, 3.0]))
    some = judged(first, folder([trace(number, number + 1.0) for number in range(2, 6)]), force=True)
    assert (row(some)["n"], row(some)["paired_by"], row(some)["left_out"]) == (2, "episode", [2, 2])
    tasks = judged(
        first, folder([trace(number, number + 1.0, seed) for number in range(3) for seed in (5, 6)]), force=True
    )
    assert (row(tasks)["n"], row(tasks)["paired_by"], row(tasks)["difference"]) == (3, "task", 1.0)
    assert row(tasks)["left_out"] == [1, 0]
    assert "paired by task" in shown(tasks)
    none = judged(first, folder([trace(number, 5.0 + number % 2) for number in range(10, 16)]), force=True)
    assert (row(none)["n"], row(none)["paired_by"], row(none)["difference"]) == (10, None, 4.0)
    assert row(none)["distinguishable"]
    assert "no task in common" in shown(none)
    with pytest.raises(UsageProblem, match="no task in common"):
        judged(first, folder(of([1.0] * 3, task="x")), force=True, bootstrap=True)


def test_repeats_of_a_task_are_no_further_tasks(folder: Callable[..., Path]) -> None:
    """Ten equal repeats of five tasks tell as much as five tasks."""
    many = [[trace(number, total, seed) for number in range(5) for seed in range(10)] for total in (0.0, 1.0)]
    made = row(judged(*map(folder, many)))
    assert (made["n"], made["tasks"], made["differing_tasks"]) == (50, 5, 5)
    assert made["p"] == pytest.approx(2 / 32)
    assert not made["distinguishable"]


def test_metrics_are_reward_components_and_ends_of_games(folder: Callable[..., Path]) -> None:
    games = [trace(number, 1.0, ended="win" if number else None) for number in range(8)]
    lost = [trace(number, 0.0, ended="loss") for number in range(8)]
    found = judged(folder(games), folder(lost), metric="loss")
    assert [item["metric"] for item in found["comparisons"]] == [
        *("loss", "reward", "outcome", "win", "draw", "unfinished"),
    ]
    assert row(found, "loss")["difference"] == 1.0
    assert row(found, "unfinished")["difference"] == -1 / 8
    assert verdict(row(found, "loss")).startswith("B has the higher loss")
    with pytest.raises(UsageProblem, match="these runs have reward, outcome"):
        judged(folder(of([1.0])), folder(of([1.0])), metric="win")


def test_a_component_that_one_run_never_had_is_left_out(folder: Callable[..., Path]) -> None:
    other = [trace(number, 1.0, score=TraceScore(1.0, {"style": 1.0})) for number in range(3)]
    found = judged(folder(of([1.0] * 3)), folder(other))
    assert [item["metric"] for item in found["comparisons"]] == ["reward"]
    with pytest.raises(UsageProblem, match="no episode with a value of style"):
        judged(folder(of([1.0] * 3)), folder(other), metric="style")


def test_case_28_games_that_repeat_are_said(folder: Callable[..., Path]) -> None:
    one, other = ([trace(number, total, calls=[], messages=[]) for number in range(20)] for total in (0.0, 1.0))
    found = judged(folder(one), folder(other))
    assert any("only 1 of 20 pairs differ" in note for note in notes(found, row(found)))


def test_several_runs_are_compared_each_with_each_and_corrected(folder: Callable[..., Path]) -> None:
    random = Random(1)
    base = [random.random() for _ in range(30)]
    runs = [folder(of(value + shift * random.random() for value in base)) for shift in (0.0, 0.02, 0.5)]
    found = judged(*runs)
    assert [(item["a"], item["b"]) for item in found["comparisons"]] == [("A", "B"), ("A", "C"), ("B", "C")]
    ranked = sorted(found["comparisons"], key=lambda item: item["p"])
    assert ranked[0]["p_corrected"] == pytest.approx(3 * ranked[0]["p"])
    assert ranked[2]["p_corrected"] == max(ranked[2]["p"], ranked[1]["p_corrected"])
    assert "3 comparisons" in shown(found)
    equal = judged(runs[0], runs[0], runs[0])
    assert "Not distinguishable in reward: A and B, A and C, B and C." in shown(equal)
    assert "All can be told apart." in shown(judged(*(folder(of([value] * 8)) for value in (0.0, 1.0, 2.0))))


def test_the_bootstrap_agrees_where_the_t_interval_is_right(folder: Callable[..., Path]) -> None:
    random = Random(2)
    runs = [folder(of(random.gauss(centre, 1) for _ in range(80))) for centre in (0.0, 0.7)]
    t, drawn = row(judged(*runs)), row(judged(*runs, bootstrap=True))
    assert drawn["interval"] != t["interval"]
    assert drawn["interval"] == pytest.approx(t["interval"], abs=0.05)
    assert row(judged(*runs, bootstrap=True)) == drawn


def test_names_of_others_stay_text(folder: Callable[..., Path]) -> None:
    hostile = of([1.0, 1.0], policy="[red]x[/red]\x1b[2J", environment="[/]", config={"[bold]": 1})
    found = judged(folder(hostile), folder(of([1.0, 1.0], policy="q")), force=True)
    text = shown(found)
    assert "[red]x[/red]" in text
    assert "\x1b" not in text


def test_the_command(command: Callable[..., Any], folder: Callable[..., Path], tmp_path: Path) -> None:
    first, second = folder(of([0.0] * 9)), folder(of([1.0] * 9))
    code, out, _ = command("compare", str(first), str(second / "traces.jsonl"), "--json", "c.json")
    assert code == 0
    assert "B has the higher reward" in out
    assert json.loads((tmp_path / "c.json").read_text())["schema"] == "mcpgym.comparison/1"
    code, _, err = command("compare", str(first), str(folder(of([1.0]))))
    assert (code, "must not be compared" in err) == (2, True)
    assert command("compare", str(first))[0] == 2
    assert command("compare", str(first), str(tmp_path / "nowhere"))[0] == 2
    assert command("compare", str(first), str(second), "--json", "nowhere/c.json")[0] == 2


def test_two_evaluations_are_compared(command: Callable[..., Any]) -> None:
    for policy in ("random", "expert"):
        assert command("eval", "tic-tac-toe", "-p", policy, "-n", "20", "--out", policy)[0] == 0
    code, out, _ = command("compare", "random", "expert")
    assert code == 0
    assert "B has the higher reward" in out
    assert command("eval", "tic-tac-toe", "-p", "random", "-n", "20", "--config", "max_turns=7", "--out", "c")[0] == 0
    code, _, err = command("compare", "random", "c")
    assert (code, "max_turns is 8 in A and 7 in B" in err) == (2, True)


def test_other_conditions_are_no_reason_not_to_compare_and_are_said(folder: Callable[..., Path]) -> None:
    here = {"isolation": "namespaces", "packages": {"numpy": "2.1.0"}}
    there = {**here, "isolation": "landlock"}
    a, b = folder(of([0.0, 1.0] * 5, conditions=here)), folder(of([1.0, 1.0] * 5, conditions=there))
    found = compared(CompareOptions([a, b]))
    assert found["conditions"] == ['isolation is "namespaces" in A and "landlock" in B']
    console = Console(width=200)
    with console.capture() as shown:
        console.print(render(found))
    assert "they ran under other conditions: isolation is" in shown.get()
    assert "conditions" not in compared(CompareOptions([a, folder(of([1.0, 1.0] * 5, conditions=here))]))
    assert "conditions" not in compared(CompareOptions([folder(of([0.0] * 9)), folder(of([1.0] * 9))]))
    none = folder(of([1.0] * 10))
    assert compared(CompareOptions([a, none]))["conditions"][0] == 'isolation is "namespaces" in A and not known in B'

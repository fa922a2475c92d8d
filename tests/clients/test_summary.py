"""What a summary says, from traces made by hand whose right answer is plain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from mcpgym.errors import ConfigurationError
from mcpgym.messages import assistant, tool_answer, tool_call, user
from mcpgym.schema import schema_hash
from mcpgym_clients.report import notes, render
from mcpgym_clients.statistics import wilson
from mcpgym_clients.summary import Summary
from mcpgym_rl.traces import Trace, TraceCall, TraceError, TraceScore, TraceTokens, TraceUsage


def trace(number: int, score: TraceScore | None, **changed: Any) -> Trace:
    values: dict[str, Any] = {
        "environment": "game",
        "environment_version": "1",
        "task": f"test-{number}",
        "split": "test",
        "seed": 0,
        "config": {},
        "schema_hash": "a" * 64,
        "policy": "p",
        "messages": [{"role": "user", "content": f"begin {number}"}, {"role": "assistant", "content": ""}],
        "calls": [TraceCall("play", {"position": number}, "ok", False, 0.1)],
        "stop_reason": "done",
        "score": score,
        "prompt_messages": 1,
        "turns": 3,
        "usage": TraceUsage(100, 10),
    }
    return Trace(**(values | changed))


def scored(total: float | None, ended: str | None = None, /, **components: float | None) -> TraceScore:
    return TraceScore(total, components, ended)


def summarise(*traces: Trace) -> dict[str, Any]:
    summary = Summary()
    for item in traces:
        summary.add(item)
    return json.loads(json.dumps(summary.as_json(), allow_nan=False))


def test_means_shares_and_counts() -> None:
    made = summarise(
        trace(0, scored(1.2, "win", outcome=1.0, format=1.0, invalid_move=0.0)),
        trace(1, scored(0.4, "draw", outcome=0.5, format=0.0, invalid_move=-0.1)),
        trace(2, scored(0.0, "loss", outcome=0.0, format=0.5, invalid_move=-0.1)),
        trace(3, scored(1.0, "win", outcome=1.0, format=0.5, invalid_move=0.0)),
    )
    assert made["schema"] == "mcpgym.summary/1"
    assert (made["episodes"], made["scored"], made["unscored"]) == (4, 4, {})
    assert made["reward"]["mean"] == pytest.approx(0.65)
    assert made["reward"]["n"] == 4
    low, high = made["reward"]["interval"]
    assert low < 0.65 < high
    assert made["components"] == pytest.approx({"outcome": 0.625, "format": 0.5, "invalid_move": -0.05})
    assert made["outcomes"] == {"win": 0.5, "draw": 0.25, "loss": 0.25}
    assert made["outcome_intervals"]["win"] == pytest.approx(list(wilson(2, 4)))
    assert made["penalised"]["invalid_move"]["share"] == 0.5
    assert set(made["penalised"]) == {"invalid_move"}
    assert made["format_rate"] == 0.5
    assert made["turns"] == {"mean": 3.0, "min": 3, "max": 3}
    assert made["tokens"] == {"prompt": 400, "completion": 40}
    assert made["tool_calls"] == {"made": 4, "errors": 0}
    assert made["stop_reasons"] == {"done": 4}


def test_case_29_an_unscored_episode_enters_no_mean() -> None:
    failed = trace(1, None, stop_reason="policy_failed", error=TraceError("PolicyError", "the endpoint is gone"))
    made = summarise(trace(0, scored(1.0, "win", outcome=1.0)), failed)
    assert made["reward"] == {"mean": 1.0, "interval": None, "n": 1}
    assert made["unscored"] == {"policy_failed": 1}
    assert made["outcomes"] == {"win": 1.0, "draw": 0.0, "loss": 0.0}
    assert made["stop_reasons"] == {"done": 1, "policy_failed": 1}
    assert any("the endpoint is gone" in note for note in notes(made))


def test_case_29_a_null_component_is_left_out_and_counted() -> None:
    made = summarise(
        trace(0, scored(None, outcome=1.0, format=None)),
        trace(1, scored(0.5, outcome=0.5, metric=None)),
        trace(2, scored(1.0, outcome=1.0, metric=0.25)),
    )
    assert made["unscored"] == {"incomplete_score": 1}
    assert any("no value for format" in note for note in notes(made))
    assert made["components"] == {"outcome": 0.75, "metric": 0.25}
    assert made["component_counts"] == {"outcome": 2, "metric": 1}


def test_nothing_scored_is_null_and_never_zero() -> None:
    made = summarise(trace(0, None, stop_reason="environment_failed", error=TraceError("X", "y")))
    assert made["reward"] == {"mean": None, "interval": None, "n": 0}
    assert made["turns"]["mean"] is None
    assert "outcomes" not in made
    assert summarise()["reward"]["mean"] is None


def test_games_that_never_end_stay_in_the_shares() -> None:
    """Leaving them out would make a policy that dawdles look better than it is."""
    made = summarise(
        trace(0, scored(1.0, "win")), trace(1, scored(0.0)), trace(2, scored(0.0)), trace(3, scored(0.0, "loss"))
    )
    assert made["outcomes"] == {"win": 0.25, "draw": 0.0, "loss": 0.25, "unfinished": 0.5}


def test_what_is_no_game_has_no_outcomes() -> None:
    made = summarise(trace(0, scored(1.0, likeness=1.0)))
    assert "outcomes" not in made
    assert "format_rate" not in made


def test_case_28_equal_games_are_counted_once() -> None:
    same = [trace(0, scored(1.0, "win"), seed=seed) for seed in range(10)]
    made = summarise(*same)
    assert (made["scored"], made["distinct_episodes"]) == (10, 1)
    assert any("only 1 of 10" in note for note in notes(made))
    assert made["outcome_intervals"]["win"][0] < 0.8
    different = summarise(*(trace(number, scored(1.0, "win")) for number in range(10)))
    assert different["distinct_episodes"] == 10
    assert notes(different) == []


def test_thoughts_make_no_other_game_of_it() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "play", "arguments": '{"position": 0}'}}
    games = []
    for thought in ("I begin.", "Hm."):
        messages = [
            {"role": "user", "content": "begin"},
            {"role": "assistant", "content": f"<think>{thought}</think>", "tool_calls": [call]},
        ]
        games.append(trace(0, scored(1.0), messages=messages))
    assert summarise(*games)["distinct_episodes"] == 1


def test_the_order_in_which_episodes_end_changes_no_digit() -> None:
    random = Random(7)
    traces = [trace(number % 17, scored(random.random(), part=random.random())) for number in range(200)]
    first = summarise(*traces)
    for _ in range(3):
        random.shuffle(traces)
        assert summarise(*traces) == first


def test_repeated_tasks_widen_the_interval() -> None:
    values = [float(number % 2) for number in range(20)]
    once = summarise(*(trace(number, scored(value)) for number, value in enumerate(values)))
    repeated = summarise(*(trace(number, scored(value)) for _ in range(8) for number, value in enumerate(values)))
    assert repeated["reward"]["interval"] == pytest.approx(once["reward"]["interval"])


def test_case_21_tools_that_changed_during_a_run_are_said() -> None:
    summary = Summary()
    summary.add(trace(0, scored(1.0)))
    summary.add(trace(1, scored(1.0), schema_hash="b" * 64))
    made = summary.as_json() | {"run": {"schema_hashes": sorted(summary.schema_hashes)}}
    assert any("tools changed" in note for note in notes(made))


def test_every_summary_can_be_shown() -> None:
    from rich.console import Console

    console = Console(width=100)
    for made in (
        summarise(),
        summarise(trace(0, None, stop_reason="timed_out", error=TraceError("T", "[red]slow[/red]"))),
        summarise(trace(0, scored(0.5, "draw", format=None, penalty=-1.0)), trace(1, scored(0.5))),
    ):
        with console.capture() as captured:
            console.print(render(made))
        assert "reward" in captured.get()
    assert "[red]slow[/red]" in " ".join(notes(summarise(trace(0, None, error=TraceError("T", "[red]slow[/red]")))))


def test_a_run_in_which_no_tool_was_called_asks_whether_the_endpoint_shows_them() -> None:
    silent = summarise(trace(0, scored(0.0), calls=[]), trace(1, scored(0.0), calls=[]))
    hint = "--tool-mode guided"
    for run, said in (
        ({"policy": "openai:m@http://h/v1", "schema_hash": "a" * 64}, True),
        ({"policy": "openai:m@http://h/v1", "schema_hash": schema_hash([])}, False),
        ({"policy": "script", "schema_hash": "a" * 64}, False),
    ):
        assert any(hint in note for note in notes({**silent, "run": run})) == said
    error = {"role": "tool", "content": "no JSON", "tool_call_id": "a", "name": "", "is_error": True}
    tried = summarise(trace(0, scored(0.0), calls=[], messages=[error]))
    assert tried["tool_calls"] == {"made": 0, "errors": 1}
    assert notes({**tried, "run": {"policy": "openai:m@http://h/v1", "schema_hash": "a" * 64}}) == []


def test_episodes_of_one_task_are_said_to_tell_nothing_of_others() -> None:
    made = summarise(*(trace(0, scored(float(i)), calls=[TraceCall("play", {"i": i}, "", False, 0)]) for i in range(3)))
    assert any("one task" in note for note in notes({**made, "run": {"n": 1}}))
    assert notes({**made, "run": {"n": 2}}) == []


def test_cancelled_episodes_are_not_among_those_that_a_run_completed() -> None:
    stopped = trace(1, None, stop_reason="cancelled", error=TraceError("Cancelled", "the run was stopped"))
    made = {**summarise(trace(0, scored(1.0)), stopped), "complete": False, "run": {"planned": 2}}
    assert notes(made)[0] == "the run was not completed: 1 of 2 episodes came to their end"


def attempts(*ends: str, task: int = 0, reward: dict[str, float] | None = None) -> list[Trace]:
    worth = reward or {"win": 1.0, "draw": 0.5, "loss": 0.0}
    return [
        trace(task, scored(worth[end], None if reward else end), repeat=number, calls=[call_of(task, number)])
        for number, end in enumerate(ends)
    ]


def call_of(task: int, number: int) -> TraceCall:
    return TraceCall("play", {"task": task, "number": number}, "ok", False, 0.1)


def test_repeats_make_pass_rates_of_games_that_are_won() -> None:
    made = summarise(*attempts("win", "draw", "loss"), *attempts("win", "win", "win", task=1))
    passes = made["passes"]
    assert passes["success"] == "win"
    assert [rate["k"] for rate in passes["rates"]] == [1, 2, 3]
    assert [rate["pass_at_k"] for rate in passes["rates"]] == pytest.approx([2 / 3, (2 / 3 + 1) / 2, 1.0])
    assert [rate["pass_hat_k"] for rate in passes["rates"]] == pytest.approx([2 / 3, 0.5, 0.5])
    assert "passes" not in summarise(*attempts("win"), *attempts("loss", task=1))


def test_what_passes_is_a_reward_where_nothing_is_a_game() -> None:
    worth = {"good": 1.2, "fair": 0.7, "bad": 0.1}
    traces = attempts("good", "fair", "bad", reward=worth)
    for success, said, rate in ((None, "reward >= 1", 1 / 3), (0.7, "reward >= 0.7", 2 / 3), (0.0, "reward >= 0", 1.0)):
        summary = Summary(success)
        for item in traces:
            summary.add(item)
        passes = summary.as_json()["passes"]
        assert passes["success"] == said
        assert passes["rates"][0]["pass_at_k"] == pytest.approx(rate)
    games = Summary(0.5)
    for item in attempts("win", "draw", "loss"):
        games.add(item)
    assert games.as_json()["passes"]["success"] == "reward >= 0.5"


def test_case_29_an_unscored_attempt_is_none() -> None:
    failed = trace(0, None, stop_reason="policy_failed", error=TraceError("PolicyError", "gone"), repeat=2)
    passes = summarise(*attempts("win", "win"), failed)["passes"]
    assert [(rate["k"], rate["pass_hat_k"]) for rate in passes["rates"]] == [(1, 1.0), (2, 1.0)]


def test_the_effective_sample_size_is_at_most_the_number_of_distinct_episodes() -> None:
    """Five games that were each played by four tasks: the interval for five is the wider one, and it is said."""
    games = [
        trace(number, scored(float(number % 5)), messages=[], calls=[call_of(number % 5, 0)]) for number in range(20)
    ]
    made = summarise(*games)
    assert (made["scored"], made["distinct_episodes"], made["effective_sample_size"]) == (20, 5, 5.0)
    own, cautious = made["reward"]["interval"], made["cautious_interval"]
    assert cautious[0] < own[0] < own[1] < cautious[1]
    deviation = (sum((number % 5 - 2) ** 2 for number in range(20)) / 19) ** 0.5
    half = 2.77644511 * deviation / 5**0.5
    assert cautious == pytest.approx([2 - half, 2 + half])
    (note,) = notes(made)
    assert f"as 5 samples, the reward's is {cautious[0]:.3f} to {cautious[1]:.3f}" in note


def test_an_effective_size_that_is_the_whole_says_nothing() -> None:
    made = summarise(*(trace(number, scored(float(number % 2))) for number in range(10)))
    assert made["effective_sample_size"] == 10
    assert made["cautious_interval"] == made["reward"]["interval"]
    assert notes(made) == []
    assert summarise()["effective_sample_size"] is None


def test_exact_values_stand_beside_the_shares() -> None:
    from rich.console import Console

    made = summarise(*attempts("win", "draw", "loss"))
    made["exact"] = {"outcomes": {"win": 0.43651, "draw": 0.12698, "loss": 0.43651, "unfinished": 0.0}}
    console = Console(width=100)
    with console.capture() as captured:
        console.print(render(made))
    (line,) = [line for line in captured.get().splitlines() if line.startswith("win")]
    assert line.split()[-2:] == ["43.65", "%"]


ANSWERED = tool_call("c", "play", "{}")
ODD: list[Any] = [True, -1, 10**400, 1e308, "x", "", [], {}, [None], [{}], {"": []}, "\ud800"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each part of a value is."""
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from places(item, (*path, key))


def test_whatever_is_read_can_be_summed_up_and_shown() -> None:
    """A file of traces may be anybody's: each part of one is made something else, and then it is refused, or of use."""
    score = TraceScore(1.0, {"outcome": 1.0, "format": None}, "win", {"signature": "x"})
    messages = [user("Go."), assistant("", [ANSWERED]), tool_answer(ANSWERED, "ok")]
    told = trace(0, score, messages=messages, tokens=TraceTokens([1], [True], [-0.5]), usage=TraceUsage(3, 4, 1))
    whole = told.to_dict()
    refused = []
    for path in places(whole):
        for odd in (*ODD, 0, None):
            made = json.loads(json.dumps(whole))
            at = made
            for step in path[:-1]:
                at = at[step]
            if path:
                at[path[-1]] = odd
            try:
                read = Trace.from_dict(made if path else odd)
            except ConfigurationError as error:
                refused.append(str(error))
                continue
            summary = Summary()
            for one in (told, read):
                summary.add(one)
            json.dumps(summary.as_json(), allow_nan=False)
            read.to_json()
            for message in read.messages:
                assert message["role"] + message["content"]
    assert len(refused) > 200
    assert max(map(len, refused)) < 300

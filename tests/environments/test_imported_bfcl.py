"""BFCL's multi-turn tasks: solved over MCP, judged as BFCL's own checker judges, and each episode by itself."""

from __future__ import annotations

import asyncio
import dataclasses
import random as global_random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import mpmath
import pytest
from bfcl_calls import entries, says, solution, turns_of, written
from episode_driver import drive, open_episode

from mcpgym import ConfigurationError, Message, check_environment, load_environment
from mcpgym.check.arguments import hostile_arguments, valid_arguments
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.errors import MissingPackage
from mcpgym.messages import assistant
from mcpgym_clients.scanning import scan
from mcpgym_clients.scanning.scan import scan_environment
from mcpgym_clients.serve import ServeOptions, load
from mcpgym_environments.imported import extras
from mcpgym_environments.imported.bfcl import Bfcl, BfclConfig
from mcpgym_environments.imported.bfcl.functions import functions
from mcpgym_environments.imported.bfcl.judging import Call, read_calls
from mcpgym_rl.traces import read_traces

ENVIRONMENT = Bfcl()
ROWS = list(ENVIRONMENT.rows.values())
CATEGORIES = ("base", "miss_param", "miss_func", "long_context")
OUT_OF_REACH = "multi_turn_miss_func_49"
"""Its solution calls a function (tail) in the turn before BFCL lists it."""


async def play(episode: Episode, turns: Sequence[Sequence[Call]]) -> float:
    """The score of these calls, turn by turn; what is refused does not stop them."""
    messages: list[Message] = list(episode.messages)
    for turn in turns:
        for call in turn:
            await episode.call(call.function, call.arguments)
        messages.append(assistant("Done."))
        said = await episode.respond(messages)
        if said is None:
            break
        messages += said
    return (await episode.score(messages)).components["correct"] or 0.0


def played(all_turns: Sequence[tuple[int, Sequence[Sequence[Call]]]], environment: Bfcl = ENVIRONMENT) -> list[float]:
    """The scores of calls on tasks, each by its index."""

    async def run() -> list[float]:
        return [await play(await open_episode(environment, "test", index), turns) for index, turns in all_turns]

    return asyncio.run(run())


def as_bfcl_writes(turns: Sequence[Sequence[Call]]) -> list[list[str]]:
    return [[written(call.function, call.arguments) for call in turn] for turn in turns]


@pytest.mark.slow
def test_all_200_solutions_sent_by_16_clients_at_once_over_mcp_are_right_to_bfcls_own_checker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mcpgym_clients", "eval", "bfcl", "--policy", "expert", "-n", "200"]
    more = ["--lane", "mcp", "--concurrency", "16", "--out", str(tmp_path / "run")]
    done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    traces = read_traces(tmp_path / "run" / "traces.jsonl")
    theirs = entries()
    rows = {row.id: row for row in ROWS}
    verdicts = {
        trace.task: (says(theirs[trace.task], rows[trace.task], turns_of(trace.messages)), trace.score.total)
        for trace in traces
        if trace.score is not None
    }
    assert verdicts == dict.fromkeys(theirs, (True, 1.0))
    assert len(verdicts) == 200
    assert {len(turns_of(trace.messages)) for trace in traces} == {1, 2, 3, 4, 5, 6, 7}


def spoilt(turns: list[list[Call]], random: Random) -> dict[str, list[list[Call]]]:
    """A solution with one thing wrong, in several ways."""
    places = [(turn, place) for turn, calls in enumerate(turns) for place in range(len(calls))]
    turn, place = random.choice(places)
    made: dict[str, list[list[Call]]] = {}
    dropped = [list(calls) for calls in turns]
    del dropped[turn][place]
    made["dropped"] = dropped
    twice = [list(calls) for calls in turns]
    twice[turn].insert(place, twice[turn][place])
    made["twice"] = twice
    silent = [list(calls) for calls in turns]
    silent[turn] = []
    made["silent"] = silent
    call = turns[turn][place]
    if call.arguments:
        name = random.choice(sorted(call.arguments))
        old = call.arguments[name]
        new = f"{old}x" if isinstance(old, str) else old + 1 if isinstance(old, (int, float)) else old
        changed = [list(calls) for calls in turns]
        changed[turn][place] = call._replace(arguments={**call.arguments, name: new})
        made["changed"] = changed
    if len(turns) > 1:
        made["late"] = [[], *turns[:-2], [*turns[-2], *turns[-1]]]
    return made


def test_what_is_wrong_to_bfcls_checker_is_wrong_here_and_what_is_right_there_is_right_here() -> None:
    theirs = entries()
    random = Random(1)
    spoils = [
        (index, kind, turns) for index, row in enumerate(ROWS) for kind, turns in spoilt(solution(row), random).items()
    ]
    here = played([(index, turns) for index, _, turns in spoils])
    there = [says(theirs[ROWS[index].id], ROWS[index], as_bfcl_writes(turns)) for index, _, turns in spoils]
    assert [spoil[:2] for spoil, mine, its in zip(spoils, here, there, strict=True) if mine != float(its)] == []
    right = {kind: [its for spoil, its in zip(spoils, there, strict=True) if spoil[1] == kind] for _, kind, _ in spoils}
    assert not any(any(right[kind]) for kind in ("dropped", "silent", "late"))
    for kind in ("twice", "changed"):  # a call may do nothing twice
        assert 0 < sum(right[kind]) < len(right[kind]), kind
    assert len(spoils) > 900


@pytest.mark.parametrize("category", CATEGORIES[1:])
def test_the_other_categories_solutions_are_right_too(category: Any) -> None:
    environment = Bfcl(BfclConfig(category=category))
    theirs = entries(category)
    rows = list(environment.rows.values())
    chosen = [i for i, row in enumerate(rows) if i % 4 == 0 or row.id == OUT_OF_REACH]
    assert all(says(theirs[rows[i].id], rows[i], as_bfcl_writes(solution(rows[i]))) for i in chosen)
    here = dict(zip(chosen, played([(i, solution(rows[i])) for i in chosen], environment), strict=True))
    assert [rows[i].id for i, score in here.items() if not score] == [OUT_OF_REACH][: category == "miss_func"]
    assert len(theirs) == 200


def test_interleaved_episodes_are_what_they_are_alone_byte_for_byte() -> None:
    chosen = [index for index, row in enumerate(ROWS) if index % 20 == 0 or "MathAPI" in row.apis][:24]

    async def answers(indices: Sequence[int], interleaved: bool) -> list[list[str]]:
        episodes = [await open_episode(ENVIRONMENT, "test", index) for index in indices]
        lists: list[list[str]] = [[] for _ in indices]
        plans = [[call for turn in solution(ROWS[index]) for call in turn] for index in indices]
        steps = [(place, number) for number, plan in enumerate(plans) for place in range(len(plan))]
        for place, number in sorted(steps) if interleaved else sorted(steps, key=lambda step: step[::-1]):
            call = plans[number][place]
            lists[number].append((await episodes[number].call(call.function, call.arguments)).text)
        return lists

    alone = asyncio.run(answers(chosen, False))
    assert asyncio.run(answers(chosen, True)) == alone
    assert asyncio.run(answers([chosen[0], *chosen], True))[1:] == alone


def test_the_user_speaks_in_turns_and_a_function_that_is_withheld_comes_with_its_turn() -> None:
    environment = Bfcl(BfclConfig(category="miss_func"))
    index, row = next((i, r) for i, r in enumerate(environment.rows.values()) if r.withheld and r.id != OUT_OF_REACH)
    (name, turn), *_ = row.withheld.items()
    call = next(call for call in solution(row)[turn] if call.function == name)

    async def run() -> list[bool]:
        episode = await open_episode(environment, "test", index)
        errors = []
        for number in range(turn + 1):
            errors.append((await episode.call(name, call.arguments)).text.startswith(f"{name} is not available now"))
            said = await episode.respond([])
            assert [dict(m) for m in said or ()] == [dict(m) for m in (*row.turns, ())[number + 1]]
        return errors

    assert asyncio.run(run()) == [True] * turn + [False]


def test_apis_narrow_the_tasks_and_the_tools() -> None:
    narrow = load_environment("bfcl", {"apis": "TwitterAPI,GorillaFileSystem"})
    assert narrow.size("test") == 12
    assert {"cd", "post_tweet"} <= {*narrow.tools}
    assert len(narrow.tools) == 18 + 14 < len(ENVIRONMENT.tools) == 128
    with pytest.raises(ConfigurationError, match="did you mean 'MathAPI'"):
        load_environment("bfcl", {"apis": "MathApi"})
    alone = next(i for i, row in enumerate(ROWS) if row.apis == ("TradingBot",))

    async def refused() -> str:
        return (await (await open_episode(ENVIRONMENT, "test", alone)).call("mean", {"numbers": [1, 2]})).text

    assert asyncio.run(refused()) == "mean is not available in this task; it has the functions of: TradingBot"


def test_a_turn_with_too_many_calls_ends_the_episode_unsolved() -> None:
    environment = Bfcl(BfclConfig(calls_per_turn=3))

    async def run() -> tuple[str | None, float | None, str]:
        episode = await open_episode(environment, "test", 0)
        texts = [(await episode.call("ls", {})).text for _ in range(4)]
        return episode.stop_reason, (await episode.score([])).total, texts[-1]

    reason, total, text = asyncio.run(run())
    assert (reason, total) == ("done", 0.0)
    assert text.startswith("you have made 3 calls since the user spoke")


@pytest.mark.flaky(reruns=1)  # it measures time
def test_costly_calls_are_refused_at_once_and_nobody_elses_arithmetic_changes() -> None:
    index = next(i for i, row in enumerate(ROWS) if {*row.apis} == {"MathAPI", "GorillaFileSystem"})
    calls: list[tuple[str, dict[str, Any]]] = [
        ("logarithm", {"value": 2.5, "base": 10, "precision": 10**9}),
        ("square_root", {"number": 2, "precision": 10**9}),
        ("power", {"base": 10, "exponent": 10**9}),
        ("round_number", {"number": 5, "decimal_places": -(10**9)}),
        ("multiply", {"a": 10**200, "b": 2}),
        ("mean", {"numbers": ["x" * 60_000]}),
        ("logarithm", {"value": 2.5, "base": 10, "precision": 60}),
    ]

    async def run() -> list[tuple[bool, str]]:
        episode = await open_episode(ENVIRONMENT, "test", index)
        return [((made := await episode.call(*call)).is_error, made.text) for call in calls]

    before, state, started = mpmath.mp.prec, global_random.getstate(), time.process_time()
    answers = asyncio.run(run())
    assert time.process_time() - started < 20  # each of the refused would take minutes
    assert [error for error, _ in answers] == [True] * 6 + [False]
    assert "may be -1000 to 1000" in answers[0][1]
    assert "0.39794000867203760957252221055101394646362023707" in answers[-1][1]
    assert mpmath.mp.prec == before
    assert global_random.getstate() == state


def test_a_file_system_that_doubles_with_every_copy_ends_the_episode_before_it_costs_anything() -> None:
    index = next(i for i, row in enumerate(ROWS) if row.apis == ("GorillaFileSystem",) and not row.excluded)

    async def run() -> tuple[int, float | None]:
        episode = await open_episode(Bfcl(BfclConfig(calls_per_turn=200)), "test", index)
        await episode.call("mkdir", {"dir_name": "d0"})
        for number in range(1, 60):
            for name, arguments in (
                ("cp", {"source": f"d{number - 1}", "destination": f"e{number}"}),
                ("mkdir", {"dir_name": f"d{number}"}),
                ("mv", {"source": f"d{number - 1}", "destination": f"d{number}"}),
                ("mv", {"source": f"e{number}", "destination": f"d{number}"}),
            ):
                await episode.call(name, arguments)
                if episode.done:
                    return number, (await episode.score([])).total
        return 60, None

    levels, total = asyncio.run(run())
    assert 5 < levels < 20
    assert total == 0.0


@pytest.mark.flaky(reruns=1)  # it measures time
def test_whatever_is_called_is_answered_and_ends_soon() -> None:
    random = Random(5)
    names = ["a", "b", "..", ".", "/", "", "a/b", "~"]
    started = time.process_time()

    async def run(index: int) -> None:
        episode = await open_episode(Bfcl(BfclConfig(calls_per_turn=200)), "test", index)
        own = [ENVIRONMENT.tools[function.name] for api in ROWS[index].apis for function in functions(api)]
        for _ in range(60):
            tool = random.choice(own)
            arguments: Any = valid_arguments(tool.parser.schema, random)
            if random.random() < 0.5:
                arguments = {k: random.choice(names) if isinstance(v, str) else v for k, v in arguments.items()}
            if random.random() < 0.1:
                arguments = random.choice(list(hostile_arguments(tool.parser.schema, random)))
            await episode.call(tool.name, arguments)
        assert episode.failure is None
        score = await episode.score([])
        assert 0.0 <= (score.components["turns_right"] or 0.0) <= 1.0

    for index in range(0, 200, 5):
        asyncio.run(run(index))
    assert time.process_time() - started < 60


def test_what_does_not_fit_is_tried_where_it_costs_nothing_as_bfcl_tries_it() -> None:
    index = next(i for i, row in enumerate(ROWS) if row.id == "multi_turn_base_173")

    async def run() -> list[tuple[bool, str]]:
        episode = await open_episode(ENVIRONMENT, "test", index)
        calls = [{"ticket_id": "ticket_001"}, {"ticket_id": "x" * 600}, {"wrong": 1}]
        return [((made := await episode.call("close_ticket", call)).is_error, made.text) for call in calls]

    answers = asyncio.run(run())
    assert [error for error, _ in answers] == [True] * 3
    assert answers[0][1].splitlines()[0] == '{"status": "Ticket ticket_001 has been closed successfully."}'
    assert answers[1][1].startswith("close_ticket: ticket_id: ")
    assert answers[2][1].startswith("Error during execution: ")


def test_the_random_policy_scores_nothing_and_the_expert_everything() -> None:
    async def run(name: str, index: int) -> float | None:
        episode = await open_episode(ENVIRONMENT, "test", index)
        messages = await drive(episode, ENVIRONMENT.reference_policies()[name], Random(index))
        return (await episode.score(messages)).total

    assert [asyncio.run(run("random", index)) for index in range(0, 200, 20)] == [0.0] * 10
    assert [asyncio.run(run("expert", index)) for index in range(0, 200, 20)] == [1.0] * 10


def test_a_solution_is_read_and_never_evaluated() -> None:
    for text in ("__import__('os').system('true')", "cd(folder=open('x'))", "cd", "eval('1')", "cd(folder='a'"):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            list(read_calls((text,), ("GorillaFileSystem",)))


@pytest.mark.parametrize("category", ["miss_func", "long_context"])
def test_the_checker_finds_nothing(category: Any) -> None:
    config = {"category": category, "apis": "GorillaFileSystem,MathAPI"}
    check_environment(Bfcl, config=config, episodes=2, second_process=False).raise_for_findings()


def test_no_solution_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = "HTTP, 2026-07-28"
    monkeypatch.setattr(scan, "LANES", {lane: scan.LANES[lane]})
    report = scan_environment(Bfcl(BfclConfig(apis="TravelAPI")), parts=["play"])
    assert report.ok, report.as_json()
    assert report.canaries["hidden info"] > 10


def test_it_is_served_when_it_is_named_and_what_is_not_here_is_not_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "textarena" else find(name))
    assert {"bfcl", "textarena"} & {*served().environments} == set()  # 128 tools are for who asks for them
    assert "gymnasium" in served().environments
    assert "not served" not in capsys.readouterr().err
    assert {*served("bfcl").environments} == {"bfcl"}
    with pytest.raises(MissingPackage, match=r"textarena needs textarena, which is not here: pip install"):
        served("textarena")


def served(*names: str) -> Episodes:
    given: dict[str, Any] = {field.name: None for field in dataclasses.fields(ServeOptions)}
    options = ServeOptions(**{**given, "environments": names, "config": (), "json_log": False, "max_episodes": 10})
    return load(options)

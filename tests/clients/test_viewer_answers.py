"""``mcpgym view``: what its pages are told. Runs are found, traces selected, and every legal move weighed."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcpgym.errors import ConfigurationError
from mcpgym.registry import environment_class
from mcpgym_clients.cli import main
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.viewer.answers import Answers
from mcpgym_clients.viewer.distributions import histogram
from mcpgym_clients.viewer.library import Library
from mcpgym_clients.viewer.move_values import Games
from mcpgym_clients.viewer.reading import _turn, read_trace
from mcpgym_clients.viewer.selecting import Selection
from mcpgym_clients.viewer.token_texts import Tokenizers
from mcpgym_clients.viewer.trace_index import Row, TraceIndex
from mcpgym_clients.viewer.training_runs import read_curves
from mcpgym_rl.traces import Trace, TraceTokens, read_traces

sys.path.insert(0, str(Path(__file__).parents[1] / "environments"))
sys.path.insert(0, str(Path(__file__).parents[1] / "rl"))
from nim_toy import Nim
from tic_tac_toe_oracle import cells, states


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, policy, more in (
        ("weak", "random", ["-r", "2"]),
        ("strong", "expert", ["-r", "2"]),
        ("model", "local:default", []),
    ):
        arguments = ["eval", "tic-tac-toe", "-p", policy, "-n", "20", "--out", str(folder / name), *more]
        assert main(arguments) == 0
    assert main(["eval", "reverse-text", "-p", "random", "-n", "5", "--out", str(folder / "words")]) == 0
    return folder


@pytest.fixture
def answers(runs: Path) -> Answers:
    return Answers([runs])


@cache
def forced(shown: str, first: bool) -> int:
    """1, 0 or -1: the best that the policy can force, by plain minimax."""
    state, seat = states()[shown], 0 if first else 1
    if state.is_terminal():
        return round(state.returns()[seat])
    children = [forced(cells(state.child(action)), first) for action in state.legal_actions()]
    return max(children) if state.current_player() == seat else min(children)


@cache
def chances(shown: str, first: bool) -> tuple[float, float]:
    """Win and draw against random play of a policy that gives nothing away, and then wins most often."""
    state, seat = states()[shown], 0 if first else 1
    if state.is_terminal():
        return float(state.returns()[seat] > 0), float(state.returns()[seat] == 0)
    after = [cells(state.child(action)) for action in state.legal_actions()]
    if state.current_player() != seat:
        found = [chances(child, first) for child in after]
        return sum(win for win, _ in found) / len(found), sum(draw for _, draw in found) / len(found)
    safe = [child for child in after if forced(child, first) >= 0] or after
    return max(chances(child, first) for child in safe)


SWAP = str.maketrans("XO", "OX")


def shown(board: str, first: bool) -> str:
    """A board as OpenSpiel has it: X is whoever moved first."""
    return board if first else board.translate(SWAP)


def test_the_values_of_every_legal_move_are_openspiels(answers: Answers) -> None:
    moves = 0
    for row in answers.library.index(answers.library.item("weak")).rows:
        trace = answers.trace("weak", row.n)
        first = "You move first" in trace["prompt"][1]["text"]
        for turn in trace["turns"]:
            (call,) = turn["calls"]
            values, board = call["values"], call["board"]
            assert [int(move["act"]) for move in values["moves"]] == [c for c in range(9) if board[c] == "."]
            best = -2.0, -1.0, -1.0
            for move in values["moves"]:
                after = shown(board[: int(move["act"])] + "X" + board[int(move["act"]) + 1 :], first)
                assert {"win": 1, "draw": 0, "loss": -1}[move["forced"]] == forced(after, first)
                assert (move["win"], move["draw"]) == pytest.approx(chances(after, first), abs=1e-6)
                best = max(best, (float(forced(after, first) >= 0), *chances(after, first)))
                moves += 1
            assert any(move["best"] for move in values["moves"])
            for move in values["moves"]:
                after = shown(board[: int(move["act"])] + "X" + board[int(move["act"]) + 1 :], first)
                worth = float(forced(after, first) >= 0), *chances(after, first)
                assert move["best"] == (worth == pytest.approx(best, abs=1e-9))
            position = shown(board, first)
            (made,) = [move for move in values["moves"] if move["act"] == values["played"]]
            assert made["call"] == call["shown"]
            before, then = forced(position, first), {"win": 1, "draw": 0, "loss": -1}[made["forced"]]
            wanted = (
                "blunder" if before >= 0 > then
                else "missed_win" if before > 0 >= then
                else "best" if made["best"] else "inaccuracy"
            )  # fmt: skip
            assert values["verdict"] == wanted
    assert moves > 400


def test_mistakes_are_counted_and_can_be_selected(answers: Answers) -> None:
    found = answers.weigh("weak")
    rows = answers.traces("weak", {"only": "mistakes", "order": "-mistakes"})["rows"]
    blunders = missed = 0
    for row in answers.library.index(answers.library.item("weak")).rows:
        verdicts = [
            call["values"]["verdict"] for turn in answers.trace("weak", row.n)["turns"] for call in turn["calls"]
        ]
        assert (row.blunders, row.missed) == (verdicts.count("blunder"), verdicts.count("missed_win"))
        blunders, missed = blunders + verdicts.count("blunder"), missed + verdicts.count("missed_win")
        assert (row.n in [one["n"] for one in rows]) == (row.blunders + row.missed > 0)
    assert (found["blunders"], found["missed"], found["weighed"]) == (blunders, missed, 40)
    assert blunders > 5
    assert [row["blunders"] for row in rows] == sorted((row["blunders"] for row in rows), reverse=True)
    expert = answers.weigh("strong")
    assert (expert["blunders"], expert["missed"], expert["weighed"]) == (0, 0, 40)
    assert answers.weigh("words")["weighed"] == 0
    assert answers.weigh("weak") == found, "weighed once, they are kept"


def test_a_game_that_is_not_tic_tac_toe_has_values_too(tmp_path: Path) -> None:
    path = tmp_path / "nim"
    here = f"{Path(__file__).parents[1] / 'rl' / 'nim_toy.py'}"
    shutil.copy(here, tmp_path / "nim_for_view.py")
    sys.path.insert(0, str(tmp_path))
    try:
        assert main(["eval", "nim_for_view:Nim", "-p", "random", "-n", "8", "-c", "stones=7", "--out", str(path)]) == 0
    finally:
        sys.path.remove(str(tmp_path))
    assert all(turn["calls"][0]["values"] is None for turn in Answers([path]).trace("nim", 0)["turns"])
    answers = Answers([path], [Nim])
    seen = 0
    for row in answers.library.index(answers.library.item("nim")).rows:
        for turn in answers.trace("nim", row.n)["turns"]:
            for call in turn["calls"]:
                if (values := call["values"]) is None:
                    continue
                for move in values["moves"]:
                    taken = int(re.findall(r"\d+", move["call"])[0])
                    seen += 1
                    assert move["act"] == str(taken)
                lost = all(move["forced"] == "loss" for move in values["moves"])
                assert values["before"]["forced"] == ("loss" if lost else "win"), "of nim there is no draw"
    assert seen > 10


def test_a_trace_that_tells_of_another_game_has_no_values_and_says_why(runs: Path, tmp_path: Path) -> None:
    (trace, *_) = read_traces(runs / "weak" / "traces.jsonl")
    games = Games()
    assert games.weigh(trace).turns
    other = games.weigh(replace(trace, environment_version="99"))
    assert (other.turns, "version 1 here" in other.note) == ([], True)
    changed = [dict(message) for message in trace.messages]
    changed[3]["content"] = changed[3]["content"].replace("You played", "You have played")
    lost = games.weigh(replace(trace, messages=changed))
    assert "goes on otherwise" in lost.note
    assert sum(map(len, lost.turns)) == 0
    assert "begins like this" in games.weigh(replace(trace, messages=trace.messages[1:], prompt_messages=1)).note
    assert games.weigh(replace(trace, config={"nonsense": 1})).note
    assert games.weigh(replace(trace, environment="os:system")).note == ""


def test_a_game_that_is_too_large_can_still_be_read(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgym_rl.certificate.values.MAX_POSITIONS", 20)
    answers = Answers([runs])
    shown = answers.trace("weak", 0)
    assert "over 20 positions" in shown["note"]
    assert shown["turns"][0]["calls"][0]["values"] is None
    assert answers.weigh("weak")["weighed"] == 0


def test_no_trace_can_have_a_module_imported(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.chdir(tmp_path)
    (trace, *_) = read_traces(runs / "weak" / "traces.jsonl")
    assert Games().weigh(replace(trace, environment="evil:Environment")).turns == []
    assert "evil" not in sys.modules


def test_refused_and_malformed_calls_are_told_apart_from_moves(runs: Path) -> None:
    trace = read_traces(runs / "weak" / "traces.jsonl")[2]
    call = trace.messages[2]["tool_calls"][0]
    bad = {"role": "assistant", "content": "", "tool_calls": [{**call, "function": {"name": "play", "arguments": "{"}}]}
    refusal = {"role": "tool", "content": "arguments are no JSON", "tool_call_id": call["id"], "name": "play"}
    refusal["is_error"] = True
    messages = [*trace.messages[:2], bad, refusal, *trace.messages[2:]]
    weighed = Games().weigh(replace(trace, messages=messages, turns=trace.turns + 1))
    plain = Games().weigh(trace)
    assert weighed.turns[0][0] is not None
    assert weighed.turns[0][0].verdict == "refused"
    assert weighed.turns[0][0].played is None
    assert [d.played for t in weighed.turns[1:] for d in t if d] == [d.played for t in plain.turns for d in t if d]


def row(**changed: Any) -> Row:
    base = Row(0, 0, "t", "test", 0, 0, 1.0, None, None, "done", 1, 1, 0, False)
    return replace(base, **changed)


def test_a_selection_takes_what_it_says() -> None:
    rows = [
        row(n=0, total=0.0, outcome="loss"),
        row(n=1, total=None, unscored="timed_out", stop="timed_out"),
        row(n=2, total=1.0, outcome="win", blunders=2, missed=0, turns=5),
        row(n=3, total=0.5, outcome="draw", blunders=0, missed=1, errors=1, penalised=True, task="other"),
        row(n=4, total=0.25),
    ]

    def took(**query: str) -> list[int]:
        selection = Selection.of(query)
        return [one.n for one in selection.sorted(one for one in rows if selection.takes(one))]

    assert took() == [0, 1, 2, 3, 4]
    assert took(only="bad") == [0, 1, 3]
    assert took(only="unscored") == [1]
    assert took(only="penalised") == took(only="errors") == [3]
    assert took(only="mistakes", order="-mistakes") == [2, 3]
    assert took(outcome="win") == [2]
    assert took(outcome="unfinished") == [1, 4]
    assert took(stop="timed_out") == [1]
    assert took(task="other") == [3]
    assert took(low="0.25", high="0.5") == [3, 4]
    assert took(order="total") == [0, 4, 3, 2, 1]
    assert took(order="-total") == [2, 3, 4, 0, 1]
    assert took(order="-turns") == [2, 0, 1, 3, 4]
    for query in ({"only": "x"}, {"order": "x"}, {"low": "x"}):
        with pytest.raises(ConfigurationError):
            Selection.of(query)


def test_an_index_follows_its_file(runs: Path, tmp_path: Path) -> None:
    lines = (runs / "weak" / "traces.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b"".join(lines[:3]) + lines[3][:100])
    index = TraceIndex(path)
    assert index.refresh()
    assert (len(index.rows), "line 4 is incomplete" in index.torn) == (3, True)
    assert not index.refresh() or index.torn
    index.weighed(0, 7, 1)
    first = index.rows[0]
    path.write_bytes(b"".join(lines))
    index.refresh()
    assert (len(index.rows), index.torn, index.faults) == (len(lines), "", [])
    assert [one.n for one in index.rows] == list(range(len(lines)))
    assert [one.place for one in index.rows] == sorted(one.place for one in index.rows)
    kept = next(one for one in index.rows if one.place == first.place)
    assert (kept.blunders, kept.missed) == (7, 1), "what was weighed stays weighed when the file grows"
    for one in index.rows:
        assert index.trace(one.n).task == one.task
    path.write_bytes(lines[0])
    index.refresh()
    assert len(index.rows) == 1


def test_of_an_episode_played_twice_the_scored_trace_counts(runs: Path, tmp_path: Path) -> None:
    trace = read_traces(runs / "weak" / "traces.jsonl")[0]
    failed = replace(trace, score=None, stop_reason="policy_failed")
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(f"{one.to_json()}\n" for one in (failed, trace, failed)) + '[1]\n{"schema": 1}\n\n')
    index = TraceIndex(path)
    index.refresh()
    assert [one.total for one in index.rows] == [trace.score.total if trace.score else None]
    assert [fault.split(" is no trace")[0] for fault in index.faults] == ["line 4", "line 5"]


@pytest.mark.parametrize(
    "messages", [["x"], [{"role": "user"}], [{"role": "x", "content": ""}], [{"role": "user", "content": 3}]]
)
def test_messages_that_are_none_are_a_fault_of_the_line(runs: Path, tmp_path: Path, messages: list[Any]) -> None:
    trace = read_traces(runs / "weak" / "traces.jsonl")[0].to_dict()
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps({**trace, "messages": messages}) + "\n")
    index = TraceIndex(path)
    index.refresh()
    assert index.rows == []
    assert "messages[0]" in index.faults[0]


def test_pages_of_a_list_and_the_page_around_a_trace(tmp_path: Path, runs: Path) -> None:
    trace = read_traces(runs / "weak" / "traces.jsonl")[0]
    many = [replace(trace, place=n, task=f"task-{n}", score=replace(trace.score, total=n % 7 / 7)) for n in range(450)]
    random.Random(1).shuffle(many)
    (tmp_path / "traces.jsonl").write_text("".join(f"{one.to_json()}\n" for one in many))
    answers = Answers([tmp_path])
    name = tmp_path.name
    page = answers.traces(name, {"offset": "100"})
    assert (page["offset"], page["matching"], page["of"], len(page["rows"])) == (100, 450, 450, 100)
    assert page["rows"][0]["n"] == 100
    around = answers.traces(name, {"around": "333", "order": "-total"})
    assert around["rows"][around["at"] - around["offset"]]["n"] == 333
    assert answers.traces(name, {"around": "333", "low": "2"})["at"] is None
    assert answers.traces(name, {"q": "TASK-44"})["matching"] == 11
    for wrong in ("-1", "x", "9" * 30):
        with pytest.raises(ConfigurationError):
            answers.traces(name, {"offset": wrong})
    with pytest.raises(LookupError, match="0 to 449"):
        answers.trace(name, 450)


def test_what_is_found_below_folders(runs: Path, tmp_path: Path) -> None:
    training = tmp_path / "trained"
    for stage in ("rl", "warm-up"):
        (training / stage).mkdir(parents=True)
        (training / stage / "metrics.jsonl").write_text('{"step": 1, "loss": 2}\n')
    (training / "recipe.json").write_text('{"environment": "tic-tac-toe"}')
    (training / "stages.json").write_text('{"warm-up": 1, "rl": 2}')
    (training / "certificate.json").write_text("{}")
    (tmp_path / ".hidden" / "x").mkdir(parents=True)
    shutil.copy(runs / "weak" / "traces.jsonl", tmp_path / ".hidden" / "x" / "traces.jsonl")
    (tmp_path / "link").symlink_to(runs)
    (tmp_path / "alone").mkdir()
    shutil.copy(runs / "weak" / "traces.jsonl", tmp_path / "alone" / "mine.jsonl")
    (tmp_path / "cert").mkdir()
    (tmp_path / "cert" / "certificate.json").write_text('{"schema": "mcpgym.certificate/1", "certified": true}')
    paths = [tmp_path, runs, runs / "weak", tmp_path / "alone" / "mine.jsonl"]
    found = {item.name: item.kind for item in Library(paths).items().values()}
    assert found == {
        "cert": "certificate", "trained": "training", "model": "evaluation", "strong": "evaluation",
        "weak": "evaluation", "words": "evaluation", "mine.jsonl": "evaluation",
    }  # fmt: skip
    answers = Answers(paths)
    assert answers.run("trained")["card"]["stages"] == ["warm-up", "rl"]
    assert [stage["name"] for stage in answers.run("trained")["stages"]] == ["warm-up", "rl"]
    assert answers.run("cert")["certificate"]["certified"] is True
    assert answers.run("trained")["certificate"] is None
    with pytest.raises(LookupError):
        answers.run("../trained")
    with pytest.raises(UsageProblem, match="there is no"):
        Library([tmp_path / "nothing"])
    twice = tmp_path / "b" / "weak"
    twice.mkdir(parents=True)
    shutil.copy(runs / "strong" / "traces.jsonl", twice / "traces.jsonl")
    assert [item.name for item in Library([runs / "weak", twice]).items().values()] == ["weak", "weak (2)"]


@pytest.mark.timeout(60)
def test_pipes_and_circular_links_are_no_runs_and_nobody_waits_for_them(runs: Path, tmp_path: Path) -> None:
    for name in ("pipe", "circle", "dangling", "good", "other"):
        (tmp_path / name).mkdir()
    for name in ("traces.jsonl", "metrics.jsonl", "certificate.json"):
        os.mkfifo(tmp_path / "pipe" / name)
    (tmp_path / "circle" / "traces.jsonl").symlink_to("traces.jsonl")
    (tmp_path / "dangling" / "traces.jsonl").symlink_to("nothing")
    for name in ("good", "other"):
        shutil.copy(runs / "weak" / "traces.jsonl", tmp_path / name / "traces.jsonl")
        for beside in ("summary.json", "run.json"):
            os.mkfifo(tmp_path / name / beside)
    found = Answers([tmp_path])
    assert [card["name"] for card in found.runs()["runs"]] == ["good", "other"]
    assert found.run("good")["traces"] == found.traces("good", {})["of"]
    assert found.compare(["good", "other"])["pairs"]


def test_seeds_of_more_than_53_bits_are_texts_for_a_browser(runs: Path, tmp_path: Path) -> None:
    row = json.loads((runs / "weak" / "traces.jsonl").read_text().splitlines()[0])
    row["seed"] = seed = 2**62 + 1
    (tmp_path / "traces.jsonl").write_text(json.dumps(row) + "\n")
    found, name = Answers([tmp_path]), tmp_path.name
    assert found.trace(name, 0)["seed"] == found.traces(name, {})["rows"][0]["seed"] == str(seed)


@pytest.mark.parametrize("content", ["", "[]", '{"reward": 3}', '{"episodes": 3, "reward": {"mean": "x"}}', "{" * 3000])
def test_a_card_can_be_made_whatever_a_summary_says(runs: Path, tmp_path: Path, content: str) -> None:
    shutil.copy(runs / "weak" / "traces.jsonl", tmp_path / "traces.jsonl")
    (tmp_path / "summary.json").write_text(content)
    answers = Answers([tmp_path])
    (card,) = answers.runs()["runs"]
    assert card["episodes"] in (3, 40)
    json.dumps(answers.run(tmp_path.name), allow_nan=False)
    json.dumps(card, allow_nan=False)


def test_a_run_that_goes_on_has_a_card(runs: Path, tmp_path: Path) -> None:
    shutil.copy(runs / "weak" / "run.json", tmp_path / "run.json")
    whole = (runs / "weak" / "traces.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "traces.jsonl").write_bytes(b"".join(whole[:10]))
    (card,) = Answers([tmp_path]).runs()["runs"]
    assert (card["complete"], card["episodes"], card["planned"], card["policy"]) == (None, 10, 40, "random")


def test_a_summary_says_what_its_run_says(answers: Answers) -> None:
    found = answers.run("weak")
    written = json.loads((answers.library.item("weak").folder / "summary.json").read_text())
    assert found["card"]["reward"] == written["reward"]
    assert {name: share["mean"] for name, share in found["card"]["outcomes"].items()} == written["outcomes"]
    assert sum(bar["count"] for bar in found["histogram"]["bars"]) == 40
    assert found["counts"]["outcome"] == {
        name: round(40 * share) for name, share in written["outcomes"].items() if share
    }
    assert found["passes"]["rates"][0]["pass_at_k"] == written["passes"]["rates"][0]["pass_at_k"]


def test_a_histogram_counts_every_total_once() -> None:
    draw = random.Random(3)
    values = [draw.gauss(0, 1) for _ in range(500)] + [math.inf]
    found = histogram([row(total=value) for value in values])
    assert not found["exact"]
    assert [sum(bar["least"] <= value <= bar["most"] for value in values) for bar in found["bars"] if bar["count"]] == [
        bar["count"] for bar in found["bars"] if bar["count"]
    ]
    assert sum(bar["count"] for bar in found["bars"]) == 500
    assert all(bar["low"] <= bar["least"] <= bar["most"] <= bar["high"] for bar in found["bars"] if bar["count"])
    assert histogram([])["bars"] == []


def test_two_runs_are_compared_as_the_command_does(answers: Answers) -> None:
    found = answers.compare(["weak", "strong"])
    reward = found["metrics"][0]
    rows = [answers.library.index(answers.library.item(name)).rows for name in ("weak", "strong")]
    assert reward["metric"] == "reward"
    assert reward["difference"] == pytest.approx(sum(b.total - a.total for a, b in zip(*rows, strict=True)) / 40)
    assert (found["scored"], sum(sum(line.values()) for line in found["outcomes"].values())) == (40, 40)
    assert found["pairs"][0]["change"] == max(abs(b.total - a.total) for a, b in zip(*rows, strict=True))
    assert "B has the higher reward" in found["verdict"]
    assert answers.compare(["strong", "weak"])["metrics"][0]["difference"] == pytest.approx(-reward["difference"])
    other = answers.compare(["weak", "words"])
    assert any("environment" in reason for reason in other["reasons"])
    with pytest.raises(ConfigurationError):
        answers.compare(["weak"])


def test_tokens_have_their_text_and_their_log_probability(answers: Answers, runs: Path) -> None:
    trace = next(trace for trace in read_traces(runs / "model" / "traces.jsonl") if trace.place == 0)
    cls = environment_class("tic-tac-toe")
    turns = Tokenizers().turns(trace, cls)
    said = [message["content"] for message in trace.messages if message["role"] == "assistant"]
    assert len(turns) == trace.turns
    for tokens, text in zip(turns, said, strict=True):
        assert text in "".join(token[0] for token in tokens)
    assert trace.tokens is not None
    flat = [token for turn in turns for token in turn]
    kept = [place for place, own in enumerate(trace.tokens.mask) if own]
    assert [token[2] for token in flat] == [trace.tokens.ids[place] for place in kept]
    assert [token[1] for token in flat] == pytest.approx([trace.tokens.logprobs[place] for place in kept], abs=1e-5)
    shown = answers.trace("model", 0)
    assert [turn["tokens"] for turn in shown["turns"]] == turns
    stranger = Tokenizers().turns(replace(trace, policy=f"local:{runs}"), cls)
    assert all(token[0] is None for turn in stranger for token in turn), "a path that a trace names is not opened"
    odd = replace(trace, tokens=TraceTokens([10**9, *trace.tokens.ids[1:]], trace.tokens.mask, trace.tokens.logprobs))
    assert Tokenizers().turns(odd, cls)
    assert Tokenizers().turns(replace(trace, tokens=TraceTokens([1], [True, False], [0.0])), cls) == []


def test_curves_leave_out_what_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [
        '{"step": 0, "a": {"b": 1}, "word": "x", "flag": true}',
        "not json",
        '{"a": 3}',
        '{"step": 1, "a": {"b": NaN}}',
    ]
    path.write_text("\n".join([*lines, '{"step": 2']))
    assert read_curves(path) == {"step": [0, 1], "a/b": [1, None]}
    path.write_text("".join(json.dumps({"step": step, "loss": 1 / (step + 1)}) + "\n" for step in range(9_001)))
    columns = read_curves(path)
    assert len(columns["step"]) <= 2_002
    assert (columns["step"][0], columns["step"][-1]) == (0, 9_000)


def test_a_text_of_several_lines_is_a_block_below_its_call() -> None:
    given = {"name": "f", "arguments": json.dumps({"a": 1, "code": "\nx = 1\n  y\n", "b": "z"})}
    shown = _turn({"role": "assistant", "content": "", "tool_calls": [{"function": given}]})["calls"][0]
    assert shown["shown"] == 'f(a=1, code ↓, b="z")'
    assert shown["blocks"] == [{"name": "code", "text": "x = 1\n  y"}]


def test_what_a_trace_ran_under_is_told(runs: Path) -> None:
    trace = read_traces(runs / "weak" / "traces.jsonl")[0]
    assert read_trace(trace)["conditions"] == ""
    told = read_trace(replace(trace, conditions={"isolation": "landlock", "packages": {"numpy": "2"}}))
    assert told["conditions"] == "ran under isolation landlock; packages numpy 2"


def test_what_others_wrote_is_read_whatever_it_is(runs: Path, tmp_path: Path) -> None:
    trace = read_traces(runs / "weak" / "traces.jsonl")[0]
    calls = [None, 3, {"function": 1}, {"function": {"name": {"a": 1}, "arguments": []}}, {"id": [], "function": {}}]
    odd = [
        {"role": "user", "content": "\x1b[31m\u202e</script>"},
        {"role": "assistant", "content": "<think>", "tool_calls": calls, "reasoning_content": 3},
        {"role": "tool", "content": "no", "is_error": True},
        {"role": "assistant", "content": "a", "tool_calls": "x"},
        {"role": "tool", "content": "X 9 · O none · free 0"},
    ]
    written: Trace = replace(trace, messages=odd, prompt_messages=1, environment="nobody", given_turns=9)
    (tmp_path / "traces.jsonl").write_text(written.to_json() + "\n")
    answers = Answers([tmp_path])
    shown = answers.trace(tmp_path.name, 0)
    assert len(shown["turns"]) == 2
    assert len(shown["turns"][0]["calls"]) == len(calls)
    json.dumps(shown, allow_nan=False)
    assert answers.weigh(tmp_path.name)["weighed"] == 0
    assert answers.traces(tmp_path.name, {"q": "</SCRIPT>"})["matching"] == 1

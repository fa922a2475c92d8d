"""Collected data: what is in it, what is left out, and that it can be gone on with."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import model_toys
import pytest
import rl_toys

from mcpgym import load_environment
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym_rl.collect import Collection, Collector, sft_row
from mcpgym_rl.data_card import Card
from mcpgym_rl.keep import parse_keep
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.sft_run import read_games
from mcpgym_rl.traces import Trace, read_traces

GAME = Collection("tic-tac-toe", "teacher:skill=0.8", "train", 10_000, 40)


def collect(
    folder: Path,
    wanted: Collection = GAME,
    keep: str = "",
    model: Path | None = None,
    on_trace: Callable[[Trace], None] | None = None,
) -> tuple[Collector, Card]:
    environment = load_environment("tic-tac-toe")
    collector = Collector(wanted, folder)

    async def play() -> None:
        lane = ControlLane(LocalControl(Episodes({"tic-tac-toe": environment})))
        await collector.play(make_policy(wanted.policy, environment), lane, on_trace=on_trace)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(play())
    return collector, collector.finish(parse_keep(keep), keep, None if model is None else open_directory(model))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "sft.jsonl").read_text("utf-8").splitlines()]


def test_what_is_kept_is_what_the_condition_says_once_each(tmp_path: Path) -> None:
    _, card = collect(tmp_path, replace(GAME, count=120), "outcome == 'win' and refused == 0")
    traces = sorted(read_traces(tmp_path / "traces.jsonl"), key=lambda trace: trace.place)
    assert [trace.place for trace in traces] == list(range(120))
    wins = [trace for trace in traces if trace.score is not None and trace.score.game_outcome == "win"]
    prints = list(dict.fromkeys(trace.fingerprint for trace in wins))
    assert [row["fingerprint"] for row in rows(tmp_path)] == prints
    assert (card.played, card.kept, card.duplicates) == (120, len(prints), len(wins) - len(prints))
    assert card.filtered == 120 - len(wins)
    written = json.loads((tmp_path / "card.json").read_text())
    assert written["complete"] is True
    assert written["kept"] == len(prints)
    assert written["left_out"]["by_keep"] == 120 - len(wins)
    assert written["schema_hash"] == traces[0].schema_hash
    assert (written["policy"], written["seed"], written["count"]) == ("teacher:skill=0.8", 0, 120)
    assert f"| kept | {len(prints)} of 120 rollouts" in (tmp_path / "card.md").read_text()


def test_duplicates_are_left_out(tmp_path: Path) -> None:
    collector = Collector(Collection("chat", "script", "train", 1, 12), tmp_path)
    control = rl_toys.control()
    asyncio.run(collector.play(ScriptedPolicy(["no", "yes"]), ControlLane(control)))
    card = collector.finish(parse_keep(""), "")
    assert (card.played, card.kept, card.duplicates) == (12, 1, 11)
    assert {trace.seed for trace in collector.traces.values()} == set(range(12))


def test_the_lines_are_in_the_format_that_chat_templates_and_trainers_read(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    model = model_toys.model_of("tic-tac-toe")
    _, card = collect(tmp_path, model=model)
    stock = AutoTokenizer.from_pretrained(str(model))
    learnt = 0
    for row in rows(tmp_path):
        (tool,) = json.loads(row["tools"])
        assert tool["type"] == "function"
        assert tool["function"]["name"] == "play"
        assert tool["function"]["parameters"]["required"] == ["position"]
        calls = [call for message in row["messages"] for call in message.get("tool_calls", [])]
        assert calls
        assert all(isinstance(call["function"]["arguments"]["position"], int) for call in calls)
        answers = [message for message in row["messages"] if message["role"] == "tool"]
        assert [answer["tool_call_id"] for answer in answers] == [call["id"] for call in calls]
        rendered = stock.apply_chat_template(
            row["messages"], tools=json.loads(row["tools"]), return_dict=True, return_assistant_tokens_mask=True
        )
        ids, mask = row["ids"], row["mask"]
        assert rendered["input_ids"][: len(ids)] == ids
        slips = any(message.get("weight") == 0 for message in row["messages"])
        if not slips:
            assert rendered["assistant_masks"][: len(ids)] == mask
        assert set(mask) == {0, 1}
        learnt += sum(mask)
    assert card.learnt_tokens == learnt
    chat = model_toys.chat_of("tic-tac-toe")
    games = [
        ([*ids], [bool(own) for own in mask]) for ids, mask in ((row["ids"], row["mask"]) for row in rows(tmp_path))
    ]
    assert [(list(ids), list(mask)) for ids, mask in read_games(tmp_path, chat)] == games


def test_case_31_a_collection_that_broke_off_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    collect(whole)
    begun = 0

    def stop(trace: Trace) -> None:
        nonlocal begun
        begun += 1
        if begun == 15:
            raise KeyboardInterrupt

    first, _ = collect(broken, on_trace=stop)
    assert not first.complete
    assert json.loads((broken / "card.json").read_text())["complete"] is False
    with (broken / "traces.jsonl").open("a") as file:
        file.write('{"schema": "mcpgym.trace/1", "torn')
    played: list[int] = []
    second, _ = collect(broken, on_trace=lambda trace: played.append(trace.place))
    assert second.found >= 14
    assert second.complete
    assert len(played) == 40 - second.found
    places = [trace.place for trace in read_traces(broken / "traces.jsonl")]
    assert sorted(places) == list(range(40))
    assert (broken / "sft.jsonl").read_bytes() == (whole / "sft.jsonl").read_bytes()
    assert (broken / "card.json").read_bytes() == (whole / "card.json").read_bytes()


def test_more_can_be_played_later_and_another_condition_chooses_anew(tmp_path: Path) -> None:
    collect(tmp_path / "a", replace(GAME, count=60), "reward > 1")
    collect(tmp_path / "b", replace(GAME, count=20))
    third, _ = collect(tmp_path / "b", replace(GAME, count=60), "reward > 1")
    assert third.found == 20
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    fewer, card = collect(tmp_path / "b", replace(GAME, count=30))
    assert (fewer.found, card.played) == (60, 30)


def test_another_collection_or_folder_is_not_touched(tmp_path: Path) -> None:
    collect(tmp_path / "a", replace(GAME, count=2))
    with pytest.raises(
        ConfigurationError, match=r"has other data \(policy is 'teacher:skill=0.8' there, not 'random'\)"
    ):
        Collector(replace(GAME, policy="random"), tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="is not empty and has no card"):
        Collector(GAME, tmp_path / "b")
    (tmp_path / "a" / "card.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="is no card of collected data"):
        Collector(GAME, tmp_path / "a")


def test_rollouts_without_a_score_are_counted_with_their_reason_and_played_again(tmp_path: Path) -> None:
    wanted = Collection("chat", "script", "train", 5, 5)
    collector = Collector(wanted, tmp_path)
    asyncio.run(collector.play(ScriptedPolicy(["only one turn"]), ControlLane(rl_toys.control())))
    card = collector.finish(parse_keep(""), "")
    assert (card.kept, dict(card.unscored)) == (0, {"policy_failed": 5})
    again = Collector(wanted, tmp_path)
    assert again.found == 0
    asyncio.run(again.play(ScriptedPolicy(["no", "yes"]), ControlLane(rl_toys.control())))
    assert again.finish(parse_keep(""), "").kept == 1
    assert len(read_traces(tmp_path / "traces.jsonl")) == 5


def test_a_malformed_call_stays_as_it_was_written(tmp_path: Path) -> None:
    turns = [{"name": "add", "arguments": "{bad"}, {"name": "add", "arguments": {"amount": 3}}]
    collector = Collector(Collection("counter", "script", "train", 50, 1), tmp_path)
    asyncio.run(collector.play(ScriptedPolicy(turns), ControlLane(rl_toys.control())))
    collector.finish(parse_keep(""), "")
    (row,) = rows(tmp_path)
    arguments = [call["function"]["arguments"] for m in row["messages"] for call in m.get("tool_calls", [])]
    assert arguments == ["{bad", {"amount": 3}]
    assert row["messages"] == sft_row(collector.traces[0], [])["messages"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2 "),
        ("[]", 'line 2 must be a JSON object with "messages"'),
        ('{"messages": [{"role": "user"}]}', "line 2 cannot be used: message 1 has NoneType for content"),
        ('{"messages": [{"role": "user", "content": "x"}]}', "line 2 has no assistant message"),
        ('{"messages": [{"role": "assistant", "content": "x"}], "tools": [1]}', 'line 2 has "tools" that are none'),
    ],
)
def test_data_that_is_none_says_where(tmp_path: Path, line: str, words: str) -> None:
    good = '{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}'
    (tmp_path / "sft.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(ConfigurationError, match=words):
        list(read_games(tmp_path, model_toys.chat_of("double-check")))


def test_data_with_nothing_to_learn_is_refused(tmp_path: Path) -> None:
    slip = '{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "weight": 0}]}'
    (tmp_path / "sft.jsonl").write_text(slip)
    with pytest.raises(ConfigurationError, match="no conversation with a turn to learn"):
        list(read_games(tmp_path / "sft.jsonl", model_toys.chat_of("double-check")))
    with pytest.raises(ConfigurationError, match="cannot read data"):
        list(read_games(tmp_path / "nothing", model_toys.chat_of("double-check")))

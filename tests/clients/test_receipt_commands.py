"""``mcpgym key``, ``verify`` and ``leaderboard``: what holds, what is rejected and why, and what a table covers."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mcpgym.control import Call, LocalControl
from mcpgym.episodes import Episodes
from mcpgym.receipts import Signer, canonical, receipt_line
from mcpgym.signing_keys import PublicKey, SigningKey, load_signing_key, make_signing_key
from mcpgym_clients.cli import main
from mcpgym_clients.receipt_checks import check_file, check_trace
from mcpgym_rl.traces import Trace, read_traces

RUN = ["eval", "tic-tac-toe", "-p", "random", "-n", "12", "-r", "2"]


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "signing.key"
    make_signing_key(path)
    return path


@pytest.fixture(scope="module")
def key(key_file: Path) -> SigningKey:
    return load_signing_key(key_file)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Iterator[Path]:
    """A signed run of 24 games, in process; nothing may change it."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCPGYM_SIGNING_KEY", str(key_file))
        assert main([*RUN, "--out", str(folder / "run")]) == 0
    before = {item.name: item.read_bytes() for item in (folder / "run").iterdir()}
    yield folder / "run"
    assert {item.name: item.read_bytes() for item in (folder / "run").iterdir()} == before


def keys(key: SigningKey) -> dict[str, PublicKey]:
    return {key.public.id: key.public}


def test_eval_writes_the_receipts_of_its_traces(made: Path, key: SigningKey) -> None:
    lines = (made / "receipts.jsonl").read_bytes().splitlines()
    traces = sorted(read_traces(made / "traces.jsonl"), key=lambda trace: trace.place)
    assert len(lines) == len(traces) == 24
    assert [json.loads(line) for line in lines] == [trace.score and trace.score.receipt for trace in traces]
    said = json.loads(lines[0])["receipt"]
    assert said["claims"]["policy"] == "random"
    assert said["claims"]["harness"].startswith("mcpgym eval ")
    assert all(checked.problem is None for checked in check_file(made / "receipts.jsonl", keys(key)))


def test_what_was_signed_holds(command: Callable, made: Path, key: SigningKey, tmp_path: Path) -> None:
    code, out, _ = command("verify", str(made), "--key", key.public.text, "--replay", "--json", "found.json")
    assert code == 0, out
    assert "24 verified" in out
    assert "none rejected" in out
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["verified"], found["replayed"], found["rejected"], found["notes"]) == (24, 24, [], [])
    (tmp_path / "server.pub").write_text(key.public.text)
    for path in (made / "receipts.jsonl", made / "traces.jsonl", made.parent):
        assert command("verify", str(path), "-k", "server.pub")[0] == 0


def test_a_trace_with_any_of_its_signed_parts_changed_is_rejected(made: Path, key: SigningKey) -> None:
    data = json.loads((made / "traces.jsonl").read_text().splitlines()[0])
    check_trace(Trace.from_dict(data), keys(key))
    call, score = data["calls"][0], data["score"]
    changes: dict[str, Any] = {
        "environment": "tic-tac-two", "environment_version": "2", "task": "test-99", "split": "train", "seed": 99,
        "schema_hash": "0" * 64, "policy": "expert", "calls": data["calls"][1:],
    }  # fmt: skip
    changed = [(name, {**data, name: value}) for name, value in changes.items()]
    changed += [("config", {**data, "config": {**data["config"], "max_turns": 9}})]
    for name, value in {"name": "plai", "arguments": {}, "result": "you won", "is_error": not call["is_error"]}.items():
        changed.append(("calls", {**data, "calls": [{**call, name: value}, *data["calls"][1:]]}))
    changed.append(("calls", {**data, "calls": [*data["calls"], call]}))
    for place, message in enumerate(data["messages"]):
        other = {**message, "content": message["content"] + " "}
        changed.append(
            ("messages", {**data, "messages": [*data["messages"][:place], other, *data["messages"][place + 1 :]]})
        )
    changed += [("messages", {**data, "messages": data["messages"][:-1]})]
    for name, value in {"total": 1, "game_outcome": "draw" if score["game_outcome"] == "win" else "win"}.items():
        changed.append((name, {**data, "score": {**score, name: value}}))
    components = {**score["components"], "outcome": 0.25}
    changed.append(("components", {**data, "score": {**score, "components": components}}))
    for name, other in changed:
        with pytest.raises(Exception, match=name):
            check_trace(Trace.from_dict(other), keys(key))
    with pytest.raises(Exception, match="not signed"):
        check_trace(Trace.from_dict({**data, "score": {**score, "receipt": None}}), keys(key))


def test_calls_after_the_end_are_in_no_log(key: SigningKey) -> None:
    """A turn of several calls, the first of which ends the game: the rest are answered, and logged nowhere."""
    from mcpgym_rl.lanes import ControlLane
    from mcpgym_rl.policies.script import ScriptedPolicy
    from mcpgym_rl.rollout import rollout

    async def script() -> Trace:
        control = LocalControl(Episodes.of("tic-tac-toe"), signer=Signer(key))
        calls = [
            {"id": f"c{n}", "type": "function", "function": {"name": "play", "arguments": json.dumps({"position": n})}}
            for n in range(10)
        ]
        policy = ScriptedPolicy([{"role": "assistant", "content": "", "tool_calls": calls}])
        lane = ControlLane(control)
        try:
            return await rollout(policy, lane, environment="tic-tac-toe", split="test", index=0)
        finally:
            await lane.aclose()

    trace = asyncio.run(script())
    assert trace.score is not None
    assert trace.score.receipt is not None
    assert trace.score.receipt["receipt"]["calls"]["count"] < len(trace.calls) == 10
    check_trace(trace, keys(key))


def test_traces_that_nobody_wrote_are_rejected_in_words(made: Path, key: SigningKey, tmp_path: Path) -> None:
    data = json.loads((made / "traces.jsonl").read_text().splitlines()[0])
    call, score = data["calls"][0], data["score"]
    odd = [
        {**data, "calls": [{**call, "name": 5}, *data["calls"][1:]]},
        {**data, "calls": [{**call, "name": None, "result": None}] * len(data["calls"])},
        {**data, "messages": [5, None, {"role": []}]},
        {**data, "score": {**score, "components": ["x"], "total": {}}},
        {**data, "score": {**score, "receipt": []}},
        {**data, "score": {**score, "receipt": {"receipt": 1, "key": 2, "signature": 3}}},
        {**data, "config": {"a": "DEEP"}},
        {**data, "messages": ["DEEP"]},
        {"schema": "mcpgym.trace/1"},
        [],
    ]
    for depth in (400, 900, 100_000):
        nested = "[" * depth + "]" * depth
        lines = [json.dumps(item).replace('"DEEP"', nested) for item in odd]
        (tmp_path / "traces.jsonl").write_text("\n".join(lines) + "\n")
        found = list(check_file(tmp_path / "traces.jsonl", keys(key)))
        assert len(found) == len(odd)
        assert all(checked.problem for checked in found)


def test_every_flip_of_a_byte_of_a_file_is_rejected(made: Path, key: SigningKey, tmp_path: Path) -> None:
    content = b"".join((made / "receipts.jsonl").read_bytes().splitlines(keepends=True)[:3])
    file = tmp_path / "receipts.jsonl"
    numbers = random.Random(11)
    places = [place for place, byte in enumerate(content) if byte == 10]  # every newline, and 300 other bytes
    places += [numbers.randrange(len(content)) for _ in range(300)]
    for place in places:
        flipped = bytes([content[place] ^ numbers.randrange(1, 256)])
        file.write_bytes(content[:place] + flipped + content[place + 1 :])
        found = list(check_file(file, keys(key)))
        assert any(checked.problem is not None for checked in found), place
        assert sum(checked.receipt is not None for checked in found) < 3
    for other in (content[:-1], content + b"\n", content.replace(b"\n", b"\r\n")):
        file.write_bytes(other)
        assert any(checked.problem is not None for checked in check_file(file, keys(key)))


def test_a_rejected_line_is_named_with_its_reason(
    command: Callable, made: Path, key: SigningKey, tmp_path: Path
) -> None:
    lines = (made / "receipts.jsonl").read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"task":"test-3"', b'"task":"test-4"')
    lines[5] = b"\x1b[31m[bold]<script>\n"
    (tmp_path / "odd.jsonl").write_bytes(b"".join(lines))
    code, out, _ = command("verify", "odd.jsonl", "--key", key.public.text)
    assert code == 1
    assert re.search(r"odd\.jsonl, line 4: key \w{16} did not sign this", out)
    assert "line 6: it is no JSON" in out
    assert "2 rejected" in out
    assert "\x1b[31m" not in out


def test_replaying_finds_a_score_that_the_rules_do_not_give(
    command: Callable, made: Path, key: SigningKey, tmp_path: Path
) -> None:
    """Whoever has the key can sign what they like; the calls, played again, tell."""
    data = [json.loads(line) for line in (made / "traces.jsonl").read_text().splitlines()]
    lost = next(item for item in data if item["score"]["game_outcome"] == "loss")
    statement = lost["score"]["receipt"]["receipt"]
    score = {"total": 1.5, "components": {**statement["components"], "outcome": 1.0}, "game_outcome": "win"}
    statement |= score
    signature = base64.b64encode(key.sign(canonical(statement))).decode()
    lost["score"] |= {**score, "receipt": {"receipt": statement, "key": key.public.id, "signature": signature}}
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(item) + "\n" for item in data))
    assert command("verify", "traces.jsonl", "--key", key.public.text)[0] == 0
    code, out, _ = command("verify", "traces.jsonl", "--key", key.public.text, "--replay")
    assert code == 1
    assert "1 rejected" in out
    assert "replayed, it differs" in out


def test_a_trace_that_is_not_signed_is_rejected_and_one_without_a_score_is_said(
    command: Callable, made: Path, key: SigningKey, tmp_path: Path
) -> None:
    first, second, third, *_ = (json.loads(line) for line in (made / "traces.jsonl").read_text().splitlines())
    second["score"]["receipt"] = None
    third |= {"score": None, "error": {"kind": "Cancelled", "message": "x"}, "stop_reason": "cancelled"}
    text = "".join(json.dumps(item) + "\n" for item in (first, second, third)) + '{"schema": "mcpgym.tr'
    (tmp_path / "traces.jsonl").write_text(text)
    code, out, _ = command("verify", "traces.jsonl", "--key", key.public.text)
    assert code == 1
    assert "1 verified, 1 unscored, 1 rejected, 1 incomplete" in out
    assert "line 2: its score is not signed" in out


def test_a_trace_that_says_two_things_at_once_is_rejected(
    command: Callable, made: Path, key: SigningKey, tmp_path: Path
) -> None:
    line = (made / "traces.jsonl").read_text().splitlines()[0]
    (tmp_path / "traces.jsonl").write_text(line.replace('"score":{', '"score":{"total":9.0,', 1) + "\n")
    code, out, _ = command("verify", "traces.jsonl", "--key", key.public.text)
    assert (code, "the same name twice" in out) == (1, True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders")
def test_a_folder_of_somebody_elses_holds_nothing_up(command: Callable, tmp_path: Path, key: SigningKey) -> None:
    """Reading a pipe that stands where traces should waits for ever."""
    (tmp_path / "theirs").mkdir()
    for name in ("traces.jsonl", "receipts.jsonl"):
        os.mkfifo(tmp_path / "theirs" / name)
    for what in ("verify", "leaderboard"):
        code, _, err = command(what, "theirs", "--key", key.public.text)
        assert (code, "no receipts and no traces" in err) == (2, True)


def scored_twice(key: SigningKey) -> list[dict[str, Any]]:
    """Receipts of one server: an episode scored twice, one scored once, and one whose receipt is lost."""

    async def script() -> list[dict[str, Any]]:
        control = LocalControl(Episodes.of("tic-tac-toe"), signer=Signer(key))
        found = []
        for index in range(3):
            token = (await control.open("tic-tac-toe", split="test", index=index)).token
            for _ in range(2 if index == 0 else 1):
                await control.step([Call(token, "play", {"position": 4})])
                score = await control.score(token, [], claims={"policy": "hasty"})
                found.append(json.loads(json.dumps(score.receipt)))
        await control.aclose()
        return found

    first, second, _, last = asyncio.run(script())
    return [first, second, last, last]


def test_duplicates_repeated_scorings_and_gaps_are_said(command: Callable, key: SigningKey, tmp_path: Path) -> None:
    _, second, last, _ = found = scored_twice(key)
    (tmp_path / "all.jsonl").write_bytes(b"".join(receipt_line(item) + b"\n" for item in found))
    code, out, _ = command("verify", "all.jsonl", "--key", key.public.text)
    assert code == 0
    assert "1 receipt stands there more than once" in out
    assert "1 episode scored more than once" in out
    assert "1 of at least 4 receipts are not here" in out
    (tmp_path / "picked.jsonl").write_bytes(receipt_line(second) + b"\n" + receipt_line(last) + b"\n")
    code, out, _ = command("verify", "picked.jsonl", "--key", key.public.text)
    assert "1 of them without the first scoring here" in out
    code, out, _ = command("leaderboard", "picked.jsonl", "--key", key.public.text, "--format", "json")
    (board,) = json.loads(out)["boards"]
    assert [row["n"] for row in board["rows"]] + [row["unscored"] for row in board["rows"]] in ([1, 0], [0, 1])
    (tmp_path / "second.jsonl").write_bytes(receipt_line(second) + b"\n")
    assert command("leaderboard", "second.jsonl", "--key", key.public.text)[0] == 1


def test_episodes_that_were_given_up_are_said(command: Callable, key: SigningKey, tmp_path: Path) -> None:
    """Scoring only what went well leaves no gap among the receipts; the server counts what it opens as well."""

    async def script() -> list[Any]:
        control = LocalControl(Episodes.of("tic-tac-toe"), signer=Signer(key))
        opened = [(await control.open("tic-tac-toe", split="test", index=0)).token for _ in range(6)]
        return [(await control.score(token, [])).receipt for token in opened[3:]]

    (tmp_path / "picked.jsonl").write_bytes(b"".join(receipt_line(item) + b"\n" for item in asyncio.run(script())))
    for name in ("verify", "leaderboard"):
        code, out, _ = command(name, "picked.jsonl", "--key", key.public.text)
        assert code == 0
        assert "3 of at least 6 episodes that it opened have none here" in " ".join(out.split()).replace("\\", "")


def test_a_signed_name_imports_nothing_that_the_user_did_not_name(
    command: Callable, key: SigningKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
from mcpgym_environments.tic_tac_toe import TicTacToe
from pathlib import Path
Path("imported").touch()

class Mine(TicTacToe):
    name = "mine"
"""
    (tmp_path / "signed_by_me.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MCPGYM_SIGNING_KEY", str(tmp_path / "own.key"))
    assert command("eval", "signed_by_me:Mine", "-p", "random", "-n", "2", "--out", "run")[0] == 0
    code, _, err = command("verify", "run", "--replay")
    assert code == 2
    assert "--env module:Class" in err
    code, out, _ = command("verify", "run", "--replay", "--env", "signed_by_me:Mine")
    assert (code, "2 were replayed" in out) == (0, True)
    assert command("verify", "run", "--env", "signed_by_me:Mine")[0] == 2
    (line,) = (tmp_path / "run" / "traces.jsonl").read_text().splitlines()[:1]
    data = json.loads(line)
    statement = data["score"]["receipt"]["receipt"]
    data["environment"] = statement["environment"] = "another_of_mine:Mine"
    own = load_signing_key(tmp_path / "own.key")
    data["score"]["receipt"]["signature"] = base64.b64encode(own.sign(canonical(statement))).decode()
    (tmp_path / "another_of_mine.py").write_text(source.replace("imported", "imported too"))
    (tmp_path / "traces.jsonl").write_text(json.dumps(data) + "\n")
    code, _, err = command("verify", "traces.jsonl", "--replay")
    assert (code, "not installed here" in err) == (2, True)
    assert not (tmp_path / "imported too").exists()


def test_whoever_picks_tasks_does_not_lead(command: Callable, key: SigningKey, tmp_path: Path) -> None:
    """One lucky game, handed in alone, once stood above a hundred."""

    async def script() -> list[Any]:
        control = LocalControl(Episodes.of("tic-tac-toe"), signer=Signer(key))

        async def play(policy: str, index: int) -> Any:
            token = (await control.open("tic-tac-toe", split="test", index=index)).token
            await control.step([Call(token, "play", {"position": cell}) for cell in (4, 0, 8, 2, 6, 1, 3, 5, 7)])
            return (await control.score(token, [], claims={"policy": policy})).receipt

        found = [await play("thorough", index) for index in range(6)]
        totals = [item["receipt"]["total"] for item in found]
        return [*found, await play("lucky", totals.index(max(totals)))]

    (tmp_path / "all.jsonl").write_bytes(b"".join(receipt_line(item) + b"\n" for item in asyncio.run(script())))
    code, out, _ = command("leaderboard", "all.jsonl", "--key", key.public.text, "--format", "json")
    assert code == 0
    (board,) = json.loads(out)["boards"]
    first, second = board["rows"]
    assert (first["policy"], first["missing"], second["policy"], second["missing"]) == ("thorough", 0, "lucky", 5)
    assert second["reward"]["mean"] > first["reward"]["mean"]


def test_a_leaderboard_holds_what_was_verified_and_says_what_it_covers(
    command: Callable, made: Path, key: SigningKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPGYM_SIGNING_KEY", str(tmp_path / "signing.key"))
    assert command("eval", "tic-tac-toe", "-p", "expert", "-n", "8", "--out", "runs/expert")[0] == 0
    assert command("eval", "tic-tac-toe", "-p", "expert", "-n", "4", "--lane", "mcp", "--out", "runs/mcp")[0] == 0
    assert command("eval", "tic-tac-toe", "-p", "expert", "-n", "4", "--out", "runs/again")[0] == 0
    turns = ["--max-turns", "9"]
    assert command("eval", "reverse-text", "-p", "expert", *turns, "-n", "2", "--out", "runs/text")[0] == 0
    other = ["--config", "max_random_move_prob=0.5"]
    assert command("eval", "tic-tac-toe", "-p", "expert", *other, "-n", "3", "--out", "runs/other")[0] == 0
    own = load_signing_key(tmp_path / "signing.key").public.text
    lines = (tmp_path / "runs/other/receipts.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "runs/other/receipts.jsonl").write_bytes(lines[0] + lines[1] + lines[2].replace(b"expert", b"random"))
    board = ["leaderboard", "runs", str(made), "-k", own, "-k", key.public.text]
    code, out, err = command(*board, "--format", "json")
    assert code == 0
    assert "did not sign" in err
    found = json.loads(out)
    assert sorted(len(board["rows"]) for board in found["boards"]) == [1, 1, 3]
    assert [row["options"] for row in found["boards"][0]["rows"]] == ["max_turns=9"]
    assert "1 line was rejected and counts nowhere" in found["notes"]
    large = max(found["boards"], key=lambda board: len(board["rows"]))
    rows = {(row["policy"], row["client"]): row for row in large["rows"]}
    played, over_mcp = rows["expert", "control plane"], next(row for row in large["rows"] if "MCP" in row["client"])
    assert (large["episodes"], large["common"]) == (24, 4)
    covered = {name: played[name] for name in ("n", "tasks", "repeated", "missing", "distinct")}
    assert covered == {"n": 12, "tasks": 8, "repeated": 4, "missing": 16, "distinct": 8}
    assert (over_mcp["n"], over_mcp["missing"]) == (4, 20)
    assert rows["random", "control plane"]["n"] == 24
    traces = {trace.place: trace for trace in read_traces(tmp_path / "runs/expert/traces.jsonl")}
    scores = [traces[place].score for place in (*range(8), *range(4))]
    totals = [score.total for score in scores if score is not None and score.total is not None]
    assert played["reward"]["mean"] == pytest.approx(sum(totals) / 12)
    small = next(board for board in found["boards"] if board["config"].get("max_random_move_prob") == 0.5)
    assert small["rows"][0]["n"] == 2
    code, text, _ = command(*board)
    assert code == 0
    assert "8 of 24 episodes, 8 tasks, 16 missing, 4 repeated, only 8 distinct" in text
    assert command(*board, "--format", "html", "--out", "board.html")[0] == 0
    page = (tmp_path / "board.html").read_text()
    assert "<td>expert</td>" in page
    assert page.count('class="bar"') == sum(
        row["reward"]["mean"] <= 1
        for board in found["boards"]
        if all(other["reward"]["mean"] <= 1 for other in board["rows"])
        for row in board["rows"]
    )


HOSTILE = "<script>alert(1)</script> | [x](http://evil.example) ![y](z) @team `a` \x1b[31m www.evil.example\n# h"


def test_names_that_somebody_wrote_are_no_markup(command: Callable, key: SigningKey, tmp_path: Path) -> None:
    async def script() -> Any:
        control = LocalControl(Episodes.of("tic-tac-toe"), signer=Signer(key))
        token = (await control.open("tic-tac-toe", split="test", index=0)).token
        await control.step([Call(token, "play", {"position": 4})])
        control.episodes.get(token).saw(HOSTILE, HOSTILE)
        score = await control.score(token, [], claims={"policy": HOSTILE, "harness": HOSTILE, "options": HOSTILE})
        await control.aclose()
        return score.receipt

    (tmp_path / "r.jsonl").write_bytes(receipt_line(asyncio.run(script())) + b"\n")
    code, out, _ = command("leaderboard", "r.jsonl", "--key", key.public.text)
    assert code == 0
    (row,) = (line for line in out.splitlines() if "alert" in line)
    assert row.count("|") == 10  # nine cells
    for markup in ("<script", "](", "![", "http:", "@team", "`a`", "www.", "\x1b"):
        assert markup not in row.replace("\\`", "").replace("\\[", "").replace("\\]", ""), markup
    assert command("leaderboard", "r.jsonl", "--key", key.public.text, "--format", "html", "--out", "r.html")[0] == 0

    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: set[str] = set()
            self.addresses: list[str] = []

        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            self.found.add(tag)
            self.addresses += [name for name, _ in attributes if name in ("src", "href") or name.startswith("on")]

    page = Tags()
    text = (tmp_path / "r.html").read_text()
    page.feed(text)
    ours = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "i"}
    assert page.found <= ours | {"table", "thead", "tbody", "tr", "th", "td"}
    assert page.addresses == []
    assert "default-src 'none'" in text
    assert "\x1b" not in text
    json.loads(command("leaderboard", "r.jsonl", "--key", key.public.text, "--format", "json")[1])


def test_key_shows_the_public_key_alone(command: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    code, out, err = command("key")
    assert code == 0
    assert re.fullmatch(r"ed25519:[A-Za-z0-9+/]{43}=\n", out)
    assert command("key")[1] == out
    assert "signing.key" in err
    assert "PRIVATE" not in out + err
    code, new, _ = command("key", "--new", "another.key")
    assert (code, new == out) == (0, False)
    assert command("key", "another.key")[1] == new
    assert (tmp_path / "another.key").stat().st_mode & 0o777 == 0o600
    for words, says in [
        (["key", "--new", "another.key"], "no key is ever overwritten"),
        (["key", "another.key", "--new", "x"], "drop FILE"),
        (["key", "missing"], "cannot be read"),
    ]:
        code, _, err = command(*words)
        assert (code, says in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["verify", "nowhere"], "there is no nowhere"),
        (["verify", "."], "no receipts and no traces"),
        (["leaderboard", "."], "no receipts and no traces"),
        (["verify", ".", "--key", "nonsense"], "is no public key"),
        (["verify", ".", "--server", "http://127.0.0.1:1"], "add --replay"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    command: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.setenv("MCPGYM_SIGNING_KEY", str(make_key(tmp_path.parent / f"{tmp_path.name}.key")))
    code, _, err = command(*words)
    assert code == 2
    assert says in err


def make_key(path: Path) -> Path:
    make_signing_key(path)
    return path


def test_without_a_key_nobody_is_believed(
    command: Callable, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    code, _, err = command("verify", str(made))
    assert code == 2
    assert "whose receipts?" in err
    assert not (tmp_path / "none").exists()


def test_a_run_that_is_not_to_be_signed_is_not(
    command: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPGYM_SIGNING_KEY", "")
    assert command("eval", "reverse-text", "-p", "expert", "-n", "2", "--out", "run")[0] == 0
    assert not (tmp_path / "run" / "receipts.jsonl").exists()
    assert "receipt" not in (tmp_path / "run" / "traces.jsonl").read_text()


def test_a_default_key_that_cannot_be_used_costs_no_run_and_a_named_one_does(
    command: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "mcpgym"
    folder.mkdir(parents=True)
    (folder / "signing.key").write_text("garbage")
    (folder / "signing.key").chmod(0o600)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    code, _, err = command("eval", "reverse-text", "-p", "expert", "-n", "2", "--out", "run")
    assert code == 0
    assert "scores are not signed" in err
    monkeypatch.setenv("MCPGYM_SIGNING_KEY", str(folder / "signing.key"))
    code, _, err = command("eval", "reverse-text", "-p", "expert", "-n", "2", "--out", "other")
    assert code == 2
    assert "no Ed25519 private key" in err


def test_a_server_signs_with_the_key_it_was_given(command: Callable, tmp_path: Path, key: SigningKey) -> None:
    public = make_signing_key(tmp_path / "server.key").public
    (tmp_path / "secret").write_text("a-secret-of-the-tests-0123456789")
    (tmp_path / "secret").chmod(0o600)
    words = ["serve", "tic-tac-toe", "--port", "0", "--control-socket", str(tmp_path / "c.sock")]
    words += ["--secret-file", str(tmp_path / "secret"), "--signing-key", str(tmp_path / "server.key")]
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("Stop"):
                break
        assert f"Scores are signed by key {public.id}" in "".join(said)
        server = ["--server", f"unix:{tmp_path / 'c.sock'}", "--secret-file", str(tmp_path / "secret")]
        code, _, err = command("eval", "tic-tac-toe", "-p", "random", "-n", "5", *server, "--out", "run")
        assert code == 0, err
        assert command("verify", "run", "--key", public.text)[0] == 0
        assert command("verify", "run", "--key", key.public.text)[0] == 1
        code, out, _ = command("verify", "run", "--key", public.text, "--replay", *server)
        assert (code, "5 were replayed" in out) == (0, True)
        said_of = json.loads((tmp_path / "run" / "receipts.jsonl").read_text().splitlines()[0])["receipt"]
        assert [row["lane"] for row in said_of["clients"]] == ["mcp"]
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()  # type: ignore[union-attr]
    code, _, err = command("serve", "tic-tac-toe", "--stdio", "--signing-key", "server.key")
    assert (code, "--signing-key belongs to HTTP" in err) == (2, True)

"""``mcpgym replay``: what it prints, writes and exits with."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcpgym_clients.cli import main
from mcpgym_clients.replay_report import LINES, WIDTH, unified

MODULE = '''
from mcpgym import Environment, LazyTasks, Task, reward, task_id, tool
from mcpgym.messages import user


class Counter(Environment):
    """Count."""

    name = "counted"
    max_turns = 4

    def tasks(self, split):
        return LazyTasks(9, lambda i: Task(task_id(split, i), split, (user(f"Count. Task {i}."),)))

    def reset(self, task, seed):
        return [seed]

    @tool(inline=True)
    def add(self, state: list) -> str:
        """Add one."""
        state[0] += 1
        return f"count {state[0]}"

    @reward
    def counted(self, state) -> float:
        """Whether it counted."""
        return min(state[0] / 10, 1.0)


class Changed(Counter):
    version = "2"

    @tool(inline=True)
    def add(self, state: list) -> str:
        """Add one."""
        state[0] += 1
        return f"count {state[0]}" if state[0] < 3 else f"\\x1b[31mcount\\u202e {state[0]}"


class Live(Counter):
    reproducible = False
    ticks = 0

    @tool(inline=True)
    def add(self, state: list) -> str:
        """Add one."""
        Live.ticks += 1
        state[0] += 1
        return f"count {state[0]} at {Live.ticks}"

    def same_observation(self, recorded, replayed):
        return recorded.split(" at ")[0] == replayed.split(" at ")[0]
'''


def mcpgym(*words: str | Path) -> int:
    """The exit code of a command in this process."""
    try:
        return main([str(word) for word in words]) or 0
    except SystemExit as error:
        return int(error.code or 0)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the module above, and a run of its environment under ``runs/one``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "counted_env", raising=False)
    (tmp_path / "counted_env.py").write_text(MODULE)
    record("counted_env:Counter", "runs/one")
    return tmp_path


def record(environment: str, out: str, n: int = 6) -> None:
    assert mcpgym("eval", environment, "-p", "random", "-n", n, "--out", out) == 0


def report(folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((folder / "r.json").read_text())
    return made


def test_an_unchanged_world_replays_equal(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert mcpgym("replay", "runs/one", "--env", "counted_env:Counter", "--json", "r.json") == 0
    out = capsys.readouterr().out
    assert "6 traces replay equal" in out
    assert "6 scores, to the letter" in out
    made = report(here)
    assert (made["schema"], made["equal"], made["traces"], made["scores"]) == ("mcpgym.replay/1", True, 6, 6)
    assert made["environments"] == {"counted": {"recorded": ["1"], "replayed": "1", "reproducible": True}}
    assert [row["index"] for row in made["results"]] == list(range(6))
    assert all(row["equal"] and row["observations"] > 1 for row in made["results"])


def test_a_changed_world_is_told_with_its_version_first_and_the_first_difference(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert mcpgym("replay", "runs/one", "--env", "counted_env:Changed", "--json", "r.json") == 1
    out, talk = capsys.readouterr()
    assert "recorded with version 1 of counted; what replays is version 2" in talk
    assert "6 of 6 traces differ" in out
    assert "0 scores were compared" in out
    assert "observation differs  call 3, add(" in out
    assert "-count 3" in out
    assert "→ add {}" in out
    assert "\x1b[31mcount" not in out
    assert "\u202e" not in out
    (difference,) = report(here)["results"][0]["differences"]
    assert (difference["kind"], difference["call"], difference["message"]) == ("observation", 3, 6)
    assert (difference["recorded"], difference["replayed"]) == ("count 3", "\x1b[31mcount\u202e 3")


def test_names_in_a_trace_fake_no_lines_and_odd_characters_are_reported(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Traces may be anybody's: line breaks in their names once printed a verdict of their own."""
    fake = "1\n✓ 6 traces replay equal"
    lines = (here / "runs/one/traces.jsonl").read_text().splitlines()
    data = json.loads(lines[0]) | {"policy": fake, "task": f"test-{fake}", "environment_version": f"{fake} \ud800"}
    (here / "theirs.jsonl").write_text(json.dumps(data) + "\n")
    capsys.readouterr()
    assert mcpgym("replay", "theirs.jsonl", "--env", "counted_env:Counter", "--json", "r.json") == 1
    out, talk = capsys.readouterr()
    assert not [line for line in (out + talk).splitlines() if line.strip().startswith("✓")]
    assert "\ud800" in report(here)["environments"]["counted"]["recorded"][0]


def test_one_trace_can_be_chosen(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert mcpgym("replay", "runs/one/traces.jsonl", "--env", "counted_env:Changed", "-i", "-1") == 1
    assert "trace 5: counted test-5" in capsys.readouterr().out


def test_what_is_not_reproducible_is_compared_by_its_rule(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("counted_env:Live", "runs/live")
    capsys.readouterr()
    assert mcpgym("replay", "runs/live", "--env", "counted_env:Live") == 0
    out, talk = capsys.readouterr()
    assert "by the rules of their environments" in " ".join(out.split())
    assert "counted says that it cannot give the same bytes twice; its own rule says" in talk
    assert mcpgym("list", "counted_env:Live", "--json") == 0
    assert json.loads(capsys.readouterr().out)["reproducible"] is False


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere"], 2, "there is no nowhere"),
        (["empty"], 2, "there is no traces.jsonl in or below empty"),
        (["runs/one"], 2, "'counted' of these traces is not installed here"),
        (["runs/one", "--env", "counted_env:Counter", "-i", "6"], 2, "there are 6 traces, 0 to 5"),
        (["runs/one", "twice", "--env", "counted_env:Counter", "-i", "0"], 2, "of which run? There are 2"),
        (["runs/one", "--env", "counted_env:Nothing"], 2, "Nothing"),
        (["runs/one", "--env", "counted_env:Counter", "--score-tolerance", "inf"], 2, "must be a number"),
        (["runs/one", "--server", "unix:/nowhere/at.all", "--secret-file", "secret"], 1, "not available"),
        (["runs/one", "--json", "runs"], 2, "--json runs is a folder; name a file in it: --json runs/replay.json"),
        (["runs/one", "--json", "no/r.json"], 2, "there is no folder no"),
        (["broken"], 2, "line 1 is no trace"),
    ],
)
def test_what_cannot_be_replayed_is_said(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    for name in ("empty", "broken", "twice"):
        (here / name).mkdir()
    (here / "broken" / "traces.jsonl").write_text('{"schema": "mcpgym.trace/1"}\n')
    (here / "twice" / "traces.jsonl").write_bytes((here / "runs" / "one" / "traces.jsonl").read_bytes())
    (here / "secret").write_text("s" * 40)
    (here / "secret").chmod(0o600)
    capsys.readouterr()
    assert mcpgym("replay", *words) == code
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_trace_never_makes_us_import_what_it_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "evil.py").write_text("raise SystemExit('imported')")
    traces = here / "runs" / "one" / "traces.jsonl"
    traces.write_text(traces.read_text().replace('"counted"', '"evil:Evil"'))
    capsys.readouterr()
    assert mcpgym("replay", "runs/one") == 2
    assert "'evil:Evil' of these traces is not installed here" in capsys.readouterr().err
    assert "evil" not in sys.modules


def test_runs_that_never_opened_an_episode_prove_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = json.loads((here / "runs" / "one" / "traces.jsonl").read_text().splitlines()[0])
    row |= {"messages": [], "calls": [], "score": None, "prompt_messages": 0, "stop_reason": "environment_failed"}
    row["error"] = {"kind": "EpisodeError", "message": "no board"}
    (here / "runs" / "one" / "traces.jsonl").write_text(json.dumps(row) + "\n")
    capsys.readouterr()
    assert mcpgym("replay", "runs/one", "--env", "counted_env:Counter") == 1
    out, talk = capsys.readouterr()
    assert "1 never opened an episode: nothing to compare" in out
    assert "nothing was compared" in talk


def test_it_replays_on_a_running_server(here: Path) -> None:
    secret = here / "secret"
    secret.write_text("a-secret-of-this-test-alone\n")
    secret.chmod(0o600)
    words = [sys.executable, "-m", "mcpgym_clients"]
    where = ["--port", "0", "--control-socket", str(here / "c.sock"), "--secret-file", str(secret)]
    command = [*words, "serve", "counted_env:Counter", *where]
    log = (here / "server.log").open("w")
    server = subprocess.Popen(command, cwd=here, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        for _ in range(300):
            if (here / "c.sock").exists():
                break
            time.sleep(0.05)
        there = ["--server", f"unix:{here / 'c.sock'}", "--secret-file", str(secret)]
        done = subprocess.run(
            [*words, "replay", "runs/one", *there], cwd=here, capture_output=True, text=True, timeout=60
        )
    finally:
        server.terminate()
        server.wait(20)
    assert done.returncode == 0, (here / "server.log").read_text() + done.stdout + done.stderr
    assert "6 traces replay equal" in done.stdout


def test_a_difference_that_cannot_be_seen_is_written_out() -> None:
    assert unified("a b", "a  b")[-2:] == ["-a␠b", "+a␠␠b"]
    assert unified("a\tb", "a\x1bb")[-2:] == ["-a\tb", "+a\N{REPLACEMENT CHARACTER}b"]
    assert unified("a\x1bb", "a\x9bb")[-2:] == ["-a\\x1bb", "+a\\x9bb"]


def test_long_texts_are_cut_around_the_difference() -> None:
    old, new = "x" * 100_000 + "a" + "y" * 100_000, "x" * 100_000 + "b" + "y" * 100_000
    lines = unified(old, new)
    assert all(len(line) <= WIDTH + 4 for line in lines)
    assert "a" in lines[-2]
    assert "b" in lines[-1]
    many = unified("\n".join(map(str, range(200_000))), "\n".join(map(str, range(1, 200_001))))
    assert len(many) < 4 * LINES
    assert many[-1] == f"… {200_000 - LINES} more lines"


@pytest.mark.parametrize("words", [["replay"], ["verify", "--replay"]])
def test_a_file_from_somebody_else_opens_nothing_of_ours(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A configuration that names files or endpoints is refused unless the user trusts the traces."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "Rivers.md").write_text("# Rivers\n\nThe Oder is long.\n")
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"role": "assistant", "content": "I give up."}]))
    (tmp_path / "mine.jsonl").write_text(json.dumps({"question": "Which river is long?", "answers": ["Oder"]}) + "\n")
    chosen = ["--config", "corpus=folder:notes", "--config", "questions=mine.jsonl"]
    assert (
        main(["eval", "wiki-search", "-p", f"script:{script}", "-n", "1", "--split", "test", *chosen, "--out", "run"])
        == 0
    )
    capsys.readouterr()
    assert main([*words, "run"]) == 2
    said = capsys.readouterr().err
    assert f"corpus=folder:{tmp_path / 'notes'}" in said
    assert "mine.jsonl" in said
    assert "--trust" in said
    assert main([*words, "run", "--trust"]) == 0

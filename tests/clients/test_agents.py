"""``mcpgym eval --agent``: somebody's program plays in its own loop, whatever it does besides, and leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.clients.small_agent import LEAN

from mcpgym_clients.agents import making, places, playing, process
from mcpgym_clients.agents.contract import Start
from mcpgym_clients.agents.programs import version_of
from mcpgym_clients.agents.shielding import PASSED_ON
from mcpgym_clients.cli import main
from mcpgym_clients.harness import harness_of
from mcpgym_rl.traces import Trace, read_traces

AGENT = Path(__file__).with_name("small_agent.py")
SECRET = "a-secret-of-another-server"


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Notes of the agents; afterwards none of them runs, and none of their folders is there."""
    temporary, notes = tmp_path / "tmp", tmp_path / "notes"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET", SECRET)
    yield notes
    assert living(notes) == []
    assert left(notes) == []


def left(notes: Path) -> list[Path]:
    """The folders of agents that are there."""
    return sorted((notes.parent / "tmp").glob("mcpgym-agent-*"))


def living(notes: Path) -> list[str]:
    """The processes that were started with these notes for an argument."""
    found = []
    for one in psutil.process_iter(["cmdline", "status"]):
        if str(notes) in (one.info["cmdline"] or ()) and one.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(" ".join(one.info["cmdline"]))
    return [line for line in found if "mcpgym_clients" not in line]


def noted(notes: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def agent(mode: str, notes: Path) -> str:
    return f"command:{shlex.join([sys.executable, *LEAN, str(AGENT), mode, '{url}', str(notes)])}"


def evaluated(command: Callable, mode: str, notes: Path, *more: str, n: int = 1) -> tuple[int, str, list[Trace]]:
    os.environ["MCPGYM_CONTROL_SECRET"] = SECRET  # which the fixture `command` takes away
    code, out, err = command(
        *("eval", "tic-tac-toe", "--agent", agent(mode, notes), "-n", str(n), "--out", "run"), *more
    )
    traces = sorted(read_traces(notes.parent / "run" / "traces.jsonl"), key=lambda trace: trace.place)
    return code, out + err, traces


def test_a_program_plays_and_is_scored_by_what_the_server_saw(command: Callable, alone: Path) -> None:
    code, _, traces = evaluated(command, "plays", alone, "-p", "a-model", n=3)
    assert code == 0
    assert [trace.stop_reason for trace in traces] == ["done"] * 3
    for trace in traces:
        assert trace.policy == "agent:command:small_agent.py(a-model)"
        assert trace.agent["name"] == "command:small_agent.py"
        assert trace.agent["last_words"] == "That was it."
        assert len(trace.calls) == trace.turns == sum(message["role"] == "tool" for message in trace.messages)
        assert trace.score is not None
        assert trace.score.game_outcome in ("win", "draw", "loss")
        assert trace.score.receipt is not None
        assert trace.score.receipt["receipt"]["clients"] == [
            {"lane": "mcp", "name": "small agent", "version": "1"},
        ]
    assert command("replay", "run")[0] == 0
    assert command("verify", "run")[0] == 0
    assert "play(position=0)" in command("show", "run")[1]
    summary = json.loads((alone.parent / "run" / "summary.json").read_text())
    assert summary["run"]["agent"] == {"name": "command:small_agent.py", "version": None, "model": "a-model"}


def test_an_answer_without_a_call_is_scored_and_odd_arguments_are_kept(command: Callable, alone: Path) -> None:
    code, _, (trace,) = evaluated(command, "quiet", alone)
    assert code == 0
    assert (trace.stop_reason, trace.messages[-1]["content"]) == ("answered", "I would rather not.")
    assert trace.scored
    code, _, (trace,) = evaluated(command, "odd", alone, "--overwrite")
    assert code == 0
    assert [call.is_error for call in trace.calls] == [True] * 3
    assert trace.calls[0].arguments == {"position": None}
    assert command("verify", "run")[0] == 0, "the signed calls are those of the trace"


def test_one_that_dies_is_unscored_and_its_secrets_stay_out_of_it(
    command: Callable, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALL_KEY", "sk-of-the-tests-123")
    code, said, traces = evaluated(command, "dies", alone, "--agent-env", "SMALL_KEY", n=2)
    assert code == 1
    assert "no episode was scored" in said
    assert [(trace.stop_reason, trace.score) for trace in traces] == [("policy_failed", None)] * 2
    assert "exit code 3" in traces[0].error.message  # type: ignore[union-attr]
    assert "***" in traces[0].error.message  # type: ignore[union-attr]
    written = "".join(file.read_text() for file in (alone.parent / "run").iterdir() if file.is_file())
    assert "sk-of-the-tests" not in written + said


@pytest.mark.flaky(reruns=1)  # it measures time
def test_one_that_hears_nothing_is_ended_at_the_time_limit_and_scored(command: Callable, alone: Path) -> None:
    begun = time.monotonic()
    code, _, (trace,) = evaluated(command, "deaf", alone, "--timeout", "1.5")
    assert time.monotonic() - begun < 60
    assert code == 0
    assert (trace.stop_reason, trace.agent["limit"], trace.scored) == ("truncated", "time", True)
    assert len(noted(alone)) == 2
    assert command("replay", "run")[0] == 0


def test_one_that_prints_without_end_is_ended_at_a_limit(
    command: Callable, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, (trace,) = evaluated(command, "floods", alone)
    assert code == 0
    assert (trace.stop_reason, trace.agent["limit"], trace.scored) == ("truncated", "output", True)
    assert len(json.dumps(trace.to_dict())) < 100_000


def test_daemons_and_what_they_shut_are_gone(command: Callable, alone: Path) -> None:
    code, _, (trace,) = evaluated(command, "leaves", alone)
    assert code == 0
    assert trace.agent["left_behind"] == 3
    assert sum("pid" in line for line in noted(alone)) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_one_that_kills_its_keeper_is_unscored_and_its_child_is_found(command: Callable, alone: Path) -> None:
    code, _, (trace,) = evaluated(command, "kills", alone)
    assert code == 1
    assert trace.stop_reason == "policy_failed"
    assert "keeper was killed" in trace.error.message  # type: ignore[union-attr]
    assert sum("pid" in line for line in noted(alone)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_reaches_its_episode_and_nothing_else(command: Callable, alone: Path) -> None:
    code, _, (trace,) = evaluated(command, "pries", alone)
    assert code == 0
    found = noted(alone)
    assert {line["path"]: line["status"] for line in found if "path" in line}
    assert {line["status"] for line in found if "status" in line} == {404}
    assert next(line for line in found if "other" in line)["other"] == 404
    own = next(line for line in found if "environment" in line)
    allowed = {*PASSED_ON, "NO_PROXY", "no_proxy", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "MCPGYM_AGENT"}
    assert {name for name in own["environment"] if not name.startswith("XDG_")} <= {*allowed, "MCPGYM_URL", "LC_CTYPE"}
    assert own["files"] == []
    assert own["home"] != str(Path.home())
    assert SECRET not in alone.read_text()
    assert SECRET not in trace.to_json()


def test_calls_beyond_the_limit_are_not_run(command: Callable, alone: Path) -> None:
    code, _, (trace,) = evaluated(command, "plays", alone, "--max-turns", "2")
    assert code == 0
    assert (trace.stop_reason, len(trace.calls), trace.scored) == ("max_turns", 2, True)
    assert command("replay", "run")[0] == 0


def test_what_has_no_score_is_played_again(command: Callable, alone: Path) -> None:
    code, _, traces = evaluated(command, "once", alone, "-p", "m", n=6)
    failed = [trace.place for trace in traces if not trace.scored]
    assert code == 0
    assert 0 < len(failed) < 6
    alone.with_name("second").touch()
    assert command("eval", "--resume", "run")[0] == 0
    traces = read_traces(alone.parent / "run" / "traces.jsonl")
    assert sorted(trace.place for trace in traces if trace.scored) == list(range(6))
    code, _, err = command("eval", "--resume", "run", "--agent", "codex", "-p", "m")
    assert (code, "would change what the run is" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--agent", "claude-cod", "-p", "m"], "did you mean 'claude-code'"),
        (["--agent", "codex", "-p", "random"], "--agent loop"),
        (["--agent", "codex", "-p", "anthropic:m@http://127.0.0.1:9"], "openai-responses:MODEL"),
        (["--agent", "gemini", "-p", "gemini:m@http://u:p@127.0.0.1:9"], "MCPGYM_EVAL_POLICY"),
        (["--agent", "command:no-such-program {url}"], "there is no program no-such-program"),
        (["--agent", "command:cat {ulr}"], "{ulr} stands for nothing"),
        (["--agent", "command:cat {model}"], "name it with -p MODEL"),
        (["--agent", "command:cat {url", "-p", "m"], "no command can be read"),
        (["--agent", "command:cat", "--max-cost", "1"], "--max-cost: a command: tells nothing of its tokens"),
        (["--agent", "command:cat", "--temperature", "1"], "--temperature: that is for our own loop"),
        (["--agent", "command:cat", "--agent-env", "NOT_SET_HERE"], "NOT_SET_HERE: it is not set"),
        (["--agent", "codex", "-p", "m", "--agent-python", "x"], "--agent-python is for openai-agents"),
        (["-p", "random", "--agent-env", "HOME"], "belong to --agent"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_begun(command: Callable, words: list[str], said: str) -> None:
    code, _, err = command("eval", "tic-tac-toe", *words, "-n", "1")
    assert code == 2
    assert said in " ".join(err.split())
    assert not Path("runs").exists()


def test_a_password_from_the_environment_is_not_for_an_agent(
    command: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPGYM_EVAL_POLICY", "gemini:m@http://u:p@127.0.0.1:9")
    code, _, err = command("eval", "tic-tac-toe", "--agent", "gemini", "-n", "1")
    assert (code, "no user and password" in " ".join(err.split())) == (2, True)


def test_loop_is_our_own_and_its_files_are_the_same_but_for_times(command: Callable) -> None:
    words = ["eval", "tic-tac-toe", "-p", "random", "-n", "2", "--no-exact"]
    assert command(*words, "--agent", "loop", "--out", "a")[0] == 0
    assert command(*words, "--out", "b")[0] == 0
    times = (
        r'"(?:seconds|milliseconds|number)": ?[\d.e-]+|"(?:started|opened|scored|episode|series|signature)": ?"[^"]*"'
    )
    made = {
        place: {
            file.name: sorted(re.sub(times, "", file.read_text()).splitlines())
            for file in Path(place).iterdir()
            if not file.name.startswith(".")
        }
        for place in "ab"
    }
    assert {"run.json", "summary.json", "traces.jsonl"} <= set(made["a"])
    assert made["a"] == made["b"]


def begun(folder: Path, *words: str) -> int:
    """The command line at work in ``folder``, in a process of its own that need not import everything anew; its id."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.chdir(folder)
            code = main(words)
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """The exit code of a process that ends within 30 s."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        gone, status = os.waitpid(child, os.WNOHANG)
        if gone:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("it did not end")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_when_the_run_is_stopped_nothing_of_its_agents_is_left(alone: Path, how: signal.Signals) -> None:
    words = ["eval", "tic-tac-toe", "--agent", agent("deaf", alone), "-n", "3", "--concurrency", "3", "--out", "run"]
    running = begun(alone.parent, *words)
    until = time.monotonic() + 60
    while len(noted(alone)) < 6 and time.monotonic() < until:
        time.sleep(0.05)
    with places.workplace() as ours:
        os.kill(running, how)
        code = ended(running)
        until = time.monotonic() + 15
        while living(alone) and time.monotonic() < until:
            time.sleep(0.1)
        if how is signal.SIGKILL:
            assert len(left(alone)) == 4, "nobody was there to remove them"
            places.remove_abandoned()  # as the next run does
        assert left(alone) == [ours.root]
    if how is not signal.SIGKILL:
        assert code == 130
        assert {trace.stop_reason for trace in read_traces(alone.parent / "run" / "traces.jsonl")} == {"cancelled"}


def test_one_that_is_stopped_while_it_is_made_is_ended(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = asyncio.create_subprocess_exec

    async def stopped(*command: str, **options: Any) -> None:
        process = await made(*command, **options)
        while not noted(alone):
            await asyncio.sleep(0.02)
        process.kill()  # as asyncio does then: with the keeper's, not with the agent's
        raise asyncio.CancelledError

    async def never() -> bool:
        return False

    async def start() -> None:
        with places.workplace() as place:
            await process.run(Start([sys.executable, *LEAN, str(AGENT), "deaf", "", str(alone)]), place, None, never)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", stopped)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(start())
    assert living(alone) == []


def test_no_warning_is_printed_of_a_process_that_ended(
    alone: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wait = os.waitpid

    def slowly(pid: int, options: int) -> tuple[int, int]:
        time.sleep(0.1)
        return wait(pid, options)

    monkeypatch.setattr(os, "waitpid", slowly)
    assert asyncio.run(version_of(["echo", "a 1.25.0 b"])) == "1.25.0"
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_an_endpoint_that_never_answers_a_product_leaves_the_episode_unscored(
    command: Callable, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code asks again for minutes, and tells of it: what 2.1.332 prints, from a program of its name."""
    retry = {"type": "system", "subtype": "api_retry", "error_status": 401, "error": "authentication_failed"}
    program = alone.parent / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --version ] && echo "2.1.332 (Claude Code)" && exit\n'
        """echo '{"type": "system", "subtype": "init", "claude_code_version": "2.1.332"}'\n"""
        f"echo '{json.dumps(retry)}'\n"
        "exec sleep 600\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-tests-123")
    words = ["eval", "tic-tac-toe", "--agent", "claude-code", "-p", "m@http://127.0.0.1:9", "-n", "1"]
    code, _, err = command(*words, "--timeout", "0.7")
    assert code == 1
    said = " ".join(err.split())
    assert (
        "its endpoint answered 401 (authentication_failed), until the time limit (is ANTHROPIC_API_KEY right?)" in said
    )


@pytest.mark.parametrize(
    ("name", "policy", "agent", "model"),
    [
        ("command:a b (2).py", "agent:command:a b (2).py(m (x))", "command:a b (2).py", "m (x)"),
        ("command:a(2)", "agent:command:a(2)", "command:a(2)", None),
        (None, "agent:codex(gpt-5)", "codex", "gpt-5"),
    ],
)
def test_agents_of_odd_names_are_told_from_their_models(
    name: str | None, policy: str, agent: str, model: str | None
) -> None:
    trace = Trace(**{field.name: None for field in fields(Trace)})  # type: ignore[arg-type]
    trace = replace(trace, policy=policy, schema_hash="x", agent={} if name is None else {"name": name})
    found = harness_of([trace])
    assert found is not None
    assert (found.agent, found.model) == (agent, model)


TOLD = {
    "claude-code": (
        [{"type": "system", "subtype": "init"}, {"type": "system", "subtype": "api_retry", "error_status": 529}],
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "a"}]}},
    ),
    "codex": (
        [{"type": "thread.started", "thread_id": "t"}, {"type": "error", "message": "stream disconnected; again 1/5"}],
        {"type": "item.completed", "item": {"type": "agent_message", "text": "a"}},
    ),
    "gemini": ([{"type": "init"}], {"type": "message", "role": "assistant", "content": "a"}),
    "openai-agents": ([{"type": "init"}], {"type": "turn", "text": "a", "calls": []}),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_product_s_endpoint_has_answered_once_the_product_tells_of_an_answer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, "k")
    product = making._product(name, "m", Path(sys.executable) if name == "openai-agents" else None)
    before, answer = TOLD[name]
    lines = [json.dumps(event).encode() + b"\n" for event in (*before, answer, {"type": "turn.completed"})]
    assert product.read(b"".join(lines[:-2])).unanswered is not None
    said = product.read(b"".join(lines))
    assert (said.unanswered, said.failure, said.everybody) == (None, None, False)
    assert [step.text for step in said.steps] == ["a"]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="takes another user's place")
def test_another_process_of_the_same_user_cannot_read_the_variables_of_a_shielded_one() -> None:
    seen = []
    for shield in (False, True):
        program = (
            "import os, sys, time\n"
            "from mcpgym_clients.agents.shielding import shielded\n"
            "os.setgid(65534); os.setuid(65534)\n"
            "import ctypes; ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"
            f"with {'shielded()' if shield else 'open(os.devnull)'}:\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        try: print(len(open(f'/proc/{os.getppid()}/environ').read()) > 0)\n"
            "        except PermissionError: print('refused')\n"
            "        sys.stdout.flush(); os._exit(0)\n"
            "    os.waitpid(child, 0)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        seen.append(done.stdout.strip() or done.stderr)
    assert seen == ["True", "refused"]


def test_the_limits_are_what_the_documentation_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
    assert f"{process.MAX_OUTPUT // 2**20} MiB" in page
    assert f"{playing.LINGER_SECONDS:g} s" in page

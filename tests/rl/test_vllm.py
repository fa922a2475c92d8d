"""vLLM itself, on the CPU, with two models, each of which one server serves for all that is asked of it here.

The one is the trained model that tic-tac-toe ships. Its heads are made wider first (see mcpgym_rl.wider_heads), for
vLLM's attention on CPUs begins at 32. The other is SmolLM2-135M-Instruct, which somebody else trained for something
else: what is looked at is that calls, ids and log-probabilities are right, not that it plays well.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pretrained
import pytest
import torch
import vllm_process
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM

from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.registry import load_environment
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.local.policy import find_model
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policy import Policy
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace
from mcpgym_rl.training.guards import TrainingStopped
from mcpgym_rl.training.metrics import read_metrics
from mcpgym_rl.training.pipeline import Pipeline
from mcpgym_rl.training.recipe import make_recipe
from mcpgym_rl.wider_heads import widen_heads

GAME = "tic-tac-toe"
OPTIONS = [
    *("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
    *("--enable-scale-out", "--logprobs-mode", "processed_logprobs"),
    *("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}'),
    *("--max-model-len", "2048"),
]
SMOL_APART = 2e-4
"""Nats; seen: 5e-5, in 32-bit floats on both sides, after up to 1,000 tokens and 30 layers."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not vllm_process.PYTHON.exists(), reason=vllm_process.MISSING),
    pytest.mark.xdist_group("vllm"),
]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return widen_heads(find_model("default", load_environment(GAME)), tmp_path_factory.mktemp("model") / "tiny")


class Servers:
    """One server at a time: that of the model asked for, once the one before has ended. Each takes 3 GB."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._running = folder, ExitStack()
        self._served: tuple[str, str] | None = None

    def url(self, name: str, model: Path, options: Sequence[str]) -> str:
        if self._served is None or self._served[0] != name:
            self.stop()
            folder = self._folder / name
            folder.mkdir()
            self._served = name, self._running.enter_context(vllm_process.serving(model, name, folder, options))
        return self._served[1]

    def stop(self) -> None:
        self._running.close()
        self._served = None


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    made = Servers(tmp_path_factory.mktemp("vllm"))
    yield made
    made.stop()


@pytest.fixture
def url(servers: Servers, model: Path) -> str:
    return servers.url("tiny", model, [*OPTIONS, "--enable-lora", "--max-lora-rank", "8"])


def play(policy: Policy, count: int, repeats: int = 1, limits: Limits | None = None) -> list[Trace]:
    async def main() -> list[Trace]:
        lane = ControlLane(LocalControl(Episodes({GAME: load_environment(GAME)})))
        specs = [EpisodeSpec(GAME, split="test", index=i, repeat=r) for i in range(count) for r in range(repeats)]
        try:
            result = await run(policy, lane, specs, limits=limits)
        finally:
            await policy.aclose()
        assert result.failure is None
        return result.traces

    return asyncio.run(main())


def evaluate(url: str, folder: Path, *options: str, name: str = "tiny", count: int = 4) -> dict[str, Any]:
    words = [sys.executable, "-m", "mcpgym_clients", "eval", GAME, "--policy", f"openai:{name}@{url}/v1"]
    words += ["-n", str(count), "--max-tokens", "40", "--out", str(folder), *options]
    subprocess.run(words, check=True, capture_output=True, timeout=600)
    made: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))
    return made


def test_an_evaluation_with_native_calls_plays_whole_games(url: str, tmp_path: Path) -> None:
    made = evaluate(url, tmp_path / "native", "--temperature", "0", "--max-turns", "6")
    assert made["scored"] == 4
    assert made["stop_reasons"] == {"done": 4}
    assert made["tool_calls"]["made"] >= 12
    assert made["tool_calls"]["errors"] == 0
    assert made["outcomes"]["loss"] == 0


def test_an_evaluation_with_guided_calls_is_held_to_the_schema(url: str, tmp_path: Path) -> None:
    made = evaluate(url, tmp_path / "guided", "--tool-mode", "guided", "--temperature", "1", "--max-turns", "6")
    assert made["scored"] == 4
    assert made["tool_calls"]["made"] > 0, "this model has never seen such a format: the schema makes it call"
    for line in (tmp_path / "guided" / "traces.jsonl").read_text("utf-8").splitlines():
        first = json.loads(line)["messages"][2]
        assert "<think>" not in str(first), "what this model writes where nothing holds it"


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.7])
def test_rollouts_are_ids_whose_log_probabilities_are_ours(url: str, model: Path, temperature: float) -> None:
    stock = AutoModelForCausalLM.from_pretrained(find_model("default", load_environment(GAME)))
    traces = play(make_policy(f"vllm:{model}@{url}", temperature=temperature), 4, 2)
    for trace in traces:
        assert trace.stop_reason == StopReason.DONE
        assert trace.tokens is not None
        assert len(trace.tokens.ids) == len(trace.tokens.mask) == len(trace.tokens.logprobs)
        assert trace.usage.completion_tokens == sum(trace.tokens.mask)
        assert pretrained.apart(stock, trace, temperature or 1.0) < 1e-4
    if not temperature:
        ours = play(make_policy("local:default", load_environment(GAME)), 4, 2)
        assert [trace.tokens.ids for trace in traces if trace.tokens] == [t.tokens.ids for t in ours if t.tokens]


def test_the_same_seeds_make_the_same_rollouts_and_repeats_differ(url: str, model: Path) -> None:
    def ids() -> list[tuple[int, ...]]:
        traces = play(make_policy(f"vllm:{model}@{url}", temperature=1.7), 2, 8)
        return [tuple(trace.tokens.ids) for trace in traces if trace.tokens is not None]

    first = ids()
    assert first == ids()
    assert len(first) == 16
    assert len(set(first)) > 6, "of two tasks; the model is sure of itself, so some of them are alike"


def test_our_trainer_samples_with_vllm_which_gets_the_adapters_before_each_batch(
    url: str, model: Path, tmp_path: Path
) -> None:
    rl = {"steps": 3, "groups": 2, "group_size": 3, "learning_rate": 1e-2, "average": 0.0, "temperature": 0.8}
    rl |= {"train_without_signal": True, "certify": None, "vllm": {"url": url}}
    data = {"environment": GAME, "seed": 3, "model": {"path": str(model), "lora_rank": 4}, "rl": rl}
    Pipeline(make_recipe(data), tmp_path / "run").run()
    rows = read_metrics(tmp_path / "run" / "rl")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert all(row["log_ratio"] < 1e-4 and row["gradient"] > 0 for row in rows), "stale adapters would be apart by far"
    assert vllm_process.models(url) == ["tiny"], "it lets go of what it was given"
    assert list((tmp_path / "run" / "rl" / "adapters").iterdir()) == []


def test_a_server_that_has_other_weights_stops_training(url: str, model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(model, other)
    weights = load_file(model / "model.safetensors")
    weights["model.norm.weight"] = weights["model.norm.weight"] * 0.5
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
    rl = {"steps": 1, "groups": 1, "group_size": 2, "average": 0.0, "certify": None, "vllm": {"url": url}}
    data = {
        "environment": GAME,
        "model": {"path": str(other), "lora_rank": 4},
        "rl": {**rl, "train_without_signal": True},
    }
    with pytest.raises(TrainingStopped, match="sampler and trainer differ"):
        Pipeline(make_recipe(data), tmp_path / "run").run()


SMOL = "smollm2"
SHORT = ("--max-turns", "2")


@pytest.fixture(scope="module")
def smol(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 with a template that knows tools and shows two calls: its own drops tools, and it would call none."""
    if pretrained.PACKAGE is None:
        pytest.skip(pretrained.MISSING)
    made = tmp_path_factory.mktemp("with-tools") / SMOL
    shutil.copytree(pretrained.smollm2(shared_folder), made, copy_function=os.link)
    (made / "chat_template.jinja").unlink()
    shutil.copy(Path(__file__).with_name("smollm2_tools.jinja"), made / "chat_template.jinja")
    return made


@pytest.fixture
def smol_url(servers: Servers, smol: Path) -> str:
    return servers.url(SMOL, smol, OPTIONS)


def test_smollm2_is_evaluated_with_native_calls_and_rolled_out_by_ids_which_are_the_same_games(
    smol_url: str, smol: Path, tmp_path: Path
) -> None:
    made = evaluate(smol_url, tmp_path / "native", "--temperature", "0", *SHORT, name=SMOL, count=2)
    assert made["scored"] == 2
    assert made["tool_calls"]["made"] == 4
    told = [json.loads(line) for line in (tmp_path / "native" / "traces.jsonl").read_text("utf-8").splitlines()]
    rolled = play(make_policy(f"vllm:{smol}@{smol_url}", temperature=0.0), 2, limits=Limits(max_turns=2))
    model = AutoModelForCausalLM.from_pretrained(smol)
    for one, other in zip(sorted(told, key=lambda trace: str(trace["task"])), rolled, strict=True):
        calls = [(call["name"], call["arguments"], call["result"]) for call in one["calls"]]
        assert calls == [(call.name, call.arguments, call.result) for call in other.calls]
        assert pretrained.apart(model, other) < SMOL_APART


def test_smollm2_samples_ids_whose_log_probabilities_are_ours(smol_url: str, smol: Path) -> None:
    policy = make_policy(f"vllm:{smol}@{smol_url}", temperature=0.7, max_tokens=28)
    traces = play(policy, 1, 3, limits=Limits(max_turns=1))
    model = AutoModelForCausalLM.from_pretrained(smol)
    assert len({tuple(trace.tokens.ids) for trace in traces if trace.tokens}) == 3
    for trace in traces:
        assert trace.tokens is not None
        assert trace.usage.completion_tokens == sum(trace.tokens.mask) > 1
        assert pretrained.apart(model, trace, 0.7) < SMOL_APART


def test_smollm2_is_held_to_the_schema_by_guided_calls(smol_url: str, tmp_path: Path) -> None:
    options = ("--tool-mode", "guided", "--temperature", "1", "--max-turns", "1")
    made = evaluate(smol_url, tmp_path / "guided", *options, name=SMOL, count=6)
    assert made["scored"] == 6
    called = 0
    for line in (tmp_path / "guided" / "traces.jsonl").read_text("utf-8").splitlines():
        for call in json.loads(line)["messages"][2].get(
            "tool_calls", []
        ):  # an answer, which the schema has too, is none
            if name := call["function"]["name"]:
                assert name == "play"
                assert isinstance(json.loads(call["function"]["arguments"])["position"], int)
                called += 1
            else:
                assert call["function"]["arguments"].startswith('{"act":{"'), "cut off, and held to the schema so far"
    assert called


def test_a_directory_of_another_model_is_noticed(smol_url: str, model: Path) -> None:
    (trace,) = play(make_policy(f"vllm:{model}@{smol_url}"), 1)
    assert trace.error is not None
    assert "has another tokenizer: what we write as 'Your turn" in trace.error.message
    assert not trace.scored


def serve_lines() -> list[list[str]]:
    """The arguments of each ``vllm serve`` that the documents write."""
    found: list[list[str]] = []
    for page in ("vllm.md", "trl.md"):
        text = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            _, serve, rest = line.partition("vllm serve ")
            if serve and not rest.startswith("`"):
                found.append(shlex.split(rest))
    return found


def test_every_line_that_serves_in_the_documents_is_taken_by_the_installed_release() -> None:
    lines = serve_lines()
    assert len(lines) >= 6
    wrong = [["m", "--tool-call-parser", "hermez", "--enable-auto-tool-choice"], ["m", "--enable-token-endpoint"]]
    words = [str(vllm_process.PYTHON), str(Path(__file__).with_name("vllm_lines.py"))]
    done = subprocess.run(
        words,
        input=json.dumps([*lines, *wrong]),
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, **vllm_process.SETTINGS},
        check=True,
    )
    answers = json.loads(done.stdout.splitlines()[-1])
    assert answers[: len(lines)] == [None] * len(lines)
    assert all(answers[len(lines) :]), "what is wrong is found"

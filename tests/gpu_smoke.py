"""``python -m tests.gpu_smoke DIR``: vLLM on a GPU, as docs/vllm.md uses it, tried at once; it says what it saw.

It serves the model in DIR, evaluates with native and with guided calls, plays rollouts through token ids and compares
their log-probabilities with a forward pass of transformers, and trains adapters for some steps. Not part of make test.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

GAME = "tic-tac-toe"


def main() -> None:
    """Serve, try, report; the exit code is 1 if anything was not as it should be."""
    asked = argparse.ArgumentParser(prog="python -m tests.gpu_smoke", description=__doc__)
    asked.add_argument("model", type=Path, help="a model directory of Hugging Face's")
    asked.add_argument("--vllm", default="vllm", help="vLLM's command, in its own virtual environment")
    asked.add_argument("--parser", default="hermes", help="the tool parser")
    asked.add_argument("--options", default="", help="further options for vllm serve")
    asked.add_argument("--device", default="cuda", help="where the trainer's copy goes")
    asked.add_argument("--share", default="0.4", help="vLLM's part of the GPU's memory")
    asked.add_argument("--steps", type=int, default=3, help="steps of training")
    asked.add_argument("-n", type=int, default=32, help="episodes")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="mcpgym-gpu-") as made:
        folder = Path(made)
        port = free_port()
        command = shlex.split(given.vllm)
        words = [*command, *(["serve"] if command[-1].endswith("vllm") else ["--model"]), str(given.model)]
        words += ["--host", "127.0.0.1", "--port", str(port)]
        words += ["--served-model-name", "smoke", "--dtype", "float32", "--gpu-memory-utilization", given.share]
        words += ["--enable-auto-tool-choice", "--tool-call-parser", given.parser, "--max-model-len", "4096"]
        words += [
            "--enable-scale-out",
            "--logprobs-mode",
            "processed_logprobs",
            "--enable-lora",
            "--max-lora-rank",
            "16",
        ]
        words += ["--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}']
        environment = {**os.environ, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}
        if "--gpu-memory-utilization" in given.options or given.device == "cpu":
            at = words.index("--gpu-memory-utilization")
            del words[at : at + 2]
        log = (folder / "vllm.log").open("wb")
        server = subprocess.Popen(
            [*words, *shlex.split(given.options)], stdout=log, stderr=log, env=environment, start_new_session=True
        )
        try:
            began = time.monotonic()
            wait(server, port, folder / "vllm.log")
            say("vLLM is there", seconds=time.monotonic() - began)
            good = all([*evaluations(port, folder, given.n), rollouts(port, given), training(port, folder, given)])
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    server.wait(60)
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
    print("all as it should be" if good else "NOT all as it should be", flush=True)
    sys.exit(0 if good else 1)


def say(what: str, **seen: Any) -> None:
    """One line of the report."""
    print(what, json.dumps(seen, default=str), flush=True)


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until the server answers; at most 20 minutes."""
    for _ in range(1200):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(1)
    sys.exit(f"vLLM did not start:\n{log.read_text('utf-8', 'replace')[-5000:]}")


def evaluations(port: int, folder: Path, count: int) -> list[bool]:
    """Native and guided calls; whether episodes were scored and guided ones had calls."""
    good: list[bool] = []
    for mode in ("native", "guided"):
        out = folder / mode
        words = [sys.executable, "-m", "mcpgym_clients", "eval", GAME, "--tool-mode", mode, "-n", str(count)]
        words += ["--policy", f"openai:smoke@http://127.0.0.1:{port}/v1", "--max-tokens", "200", "--out", str(out)]
        done = subprocess.run([*words, "--max-turns", "8"], capture_output=True, text=True)
        if done.returncode:
            say(f"evaluation, {mode}", failed=done.stderr[-500:])
            good.append(False)
            continue
        made = json.loads((out / "summary.json").read_text("utf-8"))
        seen = {name: made[name] for name in ("scored", "reward", "tool_calls", "stop_reasons", "tokens")}
        say(f"evaluation, {mode}", **seen)
        good.append(made["scored"] == count and (mode == "native" or made["tool_calls"]["made"] > 0))
    return good


def rollouts(port: int, given: argparse.Namespace) -> bool:
    """Rollouts through token ids: tokens a second, and how far their log-probabilities are from transformers'."""
    import torch
    from transformers import AutoModelForCausalLM

    from mcpgym.control import LocalControl
    from mcpgym.episodes import Episodes
    from mcpgym.registry import load_environment
    from mcpgym_rl.lanes import ControlLane
    from mcpgym_rl.policies import make_policy
    from mcpgym_rl.rollout import Limits
    from mcpgym_rl.run import EpisodeSpec, RunResult, run

    async def play() -> RunResult:
        policy = make_policy(f"vllm:{given.model}@http://127.0.0.1:{port}", temperature=0.8, max_tokens=200)
        lane = ControlLane(LocalControl(Episodes({GAME: load_environment(GAME)})))
        specs = [EpisodeSpec(GAME, split="test", index=place) for place in range(given.n)]
        try:
            return await run(policy, lane, specs, concurrency=given.n, limits=Limits(max_turns=8))
        finally:
            await policy.aclose()

    began = time.monotonic()
    result = asyncio.run(play())
    seconds = time.monotonic() - began
    traces = [trace for trace in result.traces if trace.tokens is not None and any(trace.tokens.mask)]
    if result.failure is not None:
        say("rollouts by token ids", failed=result.failure)
    model: Any = AutoModelForCausalLM.from_pretrained(given.model, dtype=torch.float32).to(given.device)
    worst = 0.0
    for trace in traces[:8]:
        assert trace.tokens is not None
        ids = torch.tensor(trace.tokens.ids, device=given.device)
        places = torch.tensor(trace.tokens.mask, device=given.device).nonzero()[:, 0]
        with torch.no_grad():
            logs = (model(ids[None]).logits[0, places - 1] / 0.8).log_softmax(-1)
        sampled = torch.tensor(trace.tokens.logprobs, device=given.device)[places]
        worst = max(worst, float((logs.gather(1, ids[places, None])[:, 0] - sampled).abs().max()))
    tokens = sum(sum(trace.tokens.mask) for trace in traces if trace.tokens)
    say("rollouts by token ids", played=len(traces), tokens_a_second=tokens / seconds, apart=worst)
    return len(traces) == given.n and worst < 1e-2


def training(port: int, folder: Path, given: argparse.Namespace) -> bool:
    """Our trainer, sampling with vLLM; whether both agreed on what was sampled."""
    from mcpgym_rl.training.guards import TrainingStopped
    from mcpgym_rl.training.metrics import read_metrics
    from mcpgym_rl.training.pipeline import Pipeline
    from mcpgym_rl.training.recipe import make_recipe

    rl = {"steps": given.steps, "groups": 4, "group_size": 4, "learning_rate": 1e-4, "average": 0.0, "temperature": 0.8}
    rl |= {"train_without_signal": True, "certify": None, "max_new_tokens": 200, "guards": {"max_log_ratio": 1e-2}}
    rl |= {"vllm": {"url": f"http://127.0.0.1:{port}", "model": "smoke"}}
    model = {"path": str(given.model), "lora_rank": 16, "device": given.device}
    try:
        Pipeline(make_recipe({"environment": GAME, "model": model, "rl": rl}), folder / "run").run()
    except TrainingStopped as stopped:
        say("training", stopped=stopped)
        return False
    rows = read_metrics(folder / "run" / "rl")
    for row in rows:
        say("a step of training", **{name: row[name] for name in ("step", "reward", "log_ratio", "sampling_seconds")})
    return len(rows) == given.steps and all(row["log_ratio"] < 1e-2 for row in rows)


if __name__ == "__main__":
    main()

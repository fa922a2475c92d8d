"""What the token-level policy does where a server is not what it should be. The real one is in test_vllm.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import model_toys
import pytest
from aiohttp import web

from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym.registry import load_environment
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.rollout import rollout
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace
from mcpgym_rl.training.recipe import make_recipe
from mcpgym_rl.vllm import server as server_module

GAME = "tic-tac-toe"
Json = dict[str, Any]


def answer(body: Json, **changes: Any) -> Json:
    """One token that ends the turn, as vLLM 0.32 says it."""
    end = body["sampling_params"]["stop_token_ids"][0]
    content = [{"token_id": end, "logprob": -0.5, "top_logprobs": [{"token_id": end, "logprob": -0.5}]}]
    choice = {"index": 0, "finish_reason": "stop", "token_ids": [end], "logprobs": {"content": content}}
    return {"prompt_token_ids": body["token_ids"], "choices": [{**choice, **changes}]}


def play(
    reply: Callable[[Json], Json | web.Response], *, positions: int = 2048, tokens: Any = None, **options: Any
) -> tuple[Trace, int]:
    """One rollout over a server that replies so; the trace, and how often it was asked for tokens.

    It has no tokenizer, unless ``tokens`` turns ids into text.
    """
    asked = 0

    async def generate(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        body = await request.json()
        if "stop_token_ids" not in body["sampling_params"]:
            body["sampling_params"]["stop_token_ids"] = [0]
        made = reply(body)
        return made if isinstance(made, web.Response) else web.json_response(made)

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m", "max_model_len": positions}]})

    async def detokenize(request: web.Request) -> web.Response:
        ids = (await request.json())["tokens"]
        return web.json_response({"prompt": tokens(ids)}) if tokens else web.Response(status=404)

    async def main() -> Trace:
        app = web.Application()
        app.add_routes([web.get("/v1/models", models), web.post("/inference/v1/generate", generate)])
        app.add_routes([web.post("/detokenize", detokenize)])
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        policy = make_policy(f"vllm:{model_toys.model_of(GAME)}@http://127.0.0.1:{port}/v1", **options)
        lane = ControlLane(LocalControl(Episodes({GAME: load_environment(GAME)})))
        try:
            return await rollout(policy, lane, environment=GAME, split="test")
        finally:
            await policy.aclose()
            await runner.cleanup()

    return asyncio.run(main()), asked


def error_of(trace: Trace) -> str:
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.error is not None
    return trace.error.message


def test_what_it_says_is_what_the_trace_has() -> None:
    trace, asked = play(answer)
    assert trace.stop_reason == StopReason.ANSWERED
    assert asked == 1
    assert trace.tokens is not None
    assert list(trace.tokens.mask)[-2:] == [False, True]
    assert trace.tokens.logprobs[-1] == -0.5


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (lambda body: {**answer(body), "prompt_token_ids": body["token_ids"][1:]}, "went on from other ids"),
        (lambda body: answer(body, token_ids=[5]), "one without its log-probability"),
        (lambda body: answer(body, token_ids=[], logprobs={"content": []}), "gave no token"),
        (lambda body: answer(body, logprobs=None), "what is no turn"),
        (lambda body: {"choices": []}, "what is no turn"),
        (lambda body: web.Response(status=404, text="Not Found"), "404.*start it with --enable-scale-out"),
        (lambda body: web.Response(status=401, text="no"), "is VLLM_API_KEY right"),
        (lambda body: web.json_response({"error": {"message": "out of it"}}, status=500), "500.*out of it"),
    ],
    ids=["other-ids", "other-token", "no-token", "no-logprobs", "no-choice", "shut", "key", "broken"],
)
def test_an_answer_that_cannot_be_trained_on_is_none(reply: Callable[[Json], Any], words: str) -> None:
    import re

    assert re.search(words, error_of(play(reply)[0]))


def test_a_model_whose_ids_mean_something_else_is_noticed_before_it_is_asked() -> None:
    ours = model_toys.chat_of(GAME).decode
    trace, asked = play(answer, tokens=lambda ids: f" {ours(ids)}")  # spaces are cleaned up by some
    assert trace.stop_reason == StopReason.ANSWERED
    trace, asked = play(answer, tokens=lambda ids: ours([token + 1 for token in ids]))
    assert "has another tokenizer: what we write as 'Your turn" in error_of(trace)
    assert asked == 0


def test_log_probabilities_before_the_temperature_are_noticed() -> None:
    trace, _ = play(answer, temperature=0.7)
    assert "start it with --logprobs-mode processed_logprobs" in error_of(trace)


def test_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "AGAIN_SECONDS", (0.0, 0.0))
    replies: list[Callable[[Json], Any]] = [lambda body: web.Response(status=503), answer]
    trace, asked = play(lambda body: (replies.pop(0) if len(replies) > 1 else replies[0])(body))
    assert trace.stop_reason == StopReason.ANSWERED
    assert asked == 2


def test_a_conversation_that_is_too_long_for_it_is_truncated() -> None:
    trace, asked = play(answer, positions=20)
    assert trace.stop_reason == StopReason.TRUNCATED
    assert asked == 0


@pytest.mark.parametrize("spec", ["vllm:", "vllm:dir", "vllm:dir@ftp://x", "vllm:@http://x"])
def test_how_it_is_written_is_said(spec: str) -> None:
    with pytest.raises(ConfigurationError, match="write vllm:DIR@URL"):
        make_policy(spec)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "give model.lora_rank"),
        ({"model": {"path": "x", "lora_rank": 4}, "warm_up": {}}, "run them apart"),
        ({"model": {"path": "x", "lora_rank": 4}, "then": [{}]}, "run them apart"),
        ({"model": {"path": "x", "lora_rank": 4}, "rl": {"vllm": {"url": "u"}, "hot_min_p": 0.1}}, "hot_min_p = 0"),
    ],
    ids=["weights", "warm-up", "then", "min-p"],
)
def test_a_recipe_that_vllm_cannot_follow_is_refused(changes: Json, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make_recipe({"environment": GAME, "rl": {"vllm": {"url": "http://127.0.0.1:8000"}}, **changes})

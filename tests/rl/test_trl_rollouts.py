"""What TRL is handed of a rollout, and how its vLLM is asked: in rounds, ids in and ids out."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("accelerate")

from mcpgym import load_environment
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.local.line import Line
from mcpgym_rl.local.policy import LocalPolicy, shipped_models
from mcpgym_rl.policy import PolicyError
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace, TraceScore, TraceTokens
from mcpgym_rl.trl.plan import planned, read, write
from mcpgym_rl.trl.recipe import make_trl_recipe
from mcpgym_rl.trl.rollouts import as_row
from mcpgym_rl.trl.vllm_engine import VllmEngine


def trace(tokens: TraceTokens | None, *, scored: bool = True, turns: int = 1) -> Trace:
    return Trace(
        environment="e", environment_version="1", task="train-0", split="train", seed=0, config={}, schema_hash="",
        policy="p", messages=(), calls=(), stop_reason="done" if scored else "environment_failed", turns=turns,
        score=TraceScore(1.0) if scored else None, tokens=tokens,
    )  # fmt: skip


TOKENS = TraceTokens([1, 2, 3, 4, 5, 6, 7], [0, 0, 1, 0, 1, 1, 0], [0.0, 0.0, -0.5, 0.0, -0.25, -1.0, 0.0])  # type: ignore[list-item]


def test_a_rollout_begins_with_its_first_sampled_token_and_ends_with_its_last() -> None:
    row, logprobs = as_row(trace(TOKENS), pad=9, known=True)
    assert row == ((1, 2), (3, 4, 5, 6), (1, 0, 1, 1))
    assert logprobs == [-0.5, 0.0, -0.25, -1.0]


def test_case_29_what_has_no_score_is_there_and_nothing_of_it_is_trained_on() -> None:
    row, _ = as_row(trace(TOKENS), pad=9, known=False)
    assert row == ((1, 2), (3, 4, 5, 6), (0, 0, 0, 0))
    assert as_row(trace(None, scored=False, turns=0), pad=9, known=False) == (((9,), (9,), (0,)), [0.0])


def test_a_policy_without_ids_cannot_be_trained() -> None:
    with pytest.raises(ValueError, match="no token ids"):
        as_row(trace(None), pad=9, known=True)


def test_trl_plays_the_episodes_that_our_trainer_would() -> None:
    from mcpgym_rl.training.curriculum import Lines, plan_batch

    recipe = make_trl_recipe(
        {"environment": "tic-tac-toe", "seed": 4, "rl": {"steps": 3, "groups": 5, "group_size": 2}}
    )
    assert recipe.rl is not None
    specs = planned(recipe, recipe.rl, "tic-tac-toe", 12)
    ours = [plan_batch(recipe.rl, "tic-tac-toe", {}, 12, 4, step, Lines()).specs[::2] for step in range(3)]
    assert specs == [spec for batch in ours for spec in batch]
    told = read(write(specs[7], 7))
    assert (told["split"], told["index"], told["seed"], told["group"]) == ("train", 7, specs[7].seed, 7)


class Generation:
    """TRL's ``VLLMGeneration`` as far as it is used, over our own engine: the same ids and log-probabilities."""

    def __init__(self, policy: LocalPolicy) -> None:
        self.policy, self.batches = policy, []  # type: ignore[var-annotated]

    def generate(self, prompts: list[list[int]], images: None, num_generations: int) -> tuple[Any, Any, Any, Any]:
        assert num_generations == 1
        self.batches.append(len(prompts))

        async def work() -> list[Any]:
            lines = [self.policy.engine.open(sum(prompt)) for prompt in prompts]
            asked = [
                line.generate(prompt, limit=64, temperature=1.0) for line, prompt in zip(lines, prompts, strict=True)
            ]
            made = await asyncio.gather(*asked)
            for line in lines:
                line.close()
            return made

        import threading

        made: list[Any] = []
        thread = threading.Thread(target=lambda: made.extend(asyncio.run(work())))
        thread.start()
        thread.join()
        return prompts, [one.ids for one in made], [[[value] for value in one.logprobs] for one in made], None


def trainer(generation: Any, mode: str = "colocate") -> Any:
    config = SimpleNamespace(get_text_config=lambda decoder: SimpleNamespace(max_position_embeddings=2048))
    return SimpleNamespace(
        model=SimpleNamespace(config=config), args=SimpleNamespace(vllm_max_model_length=None), vllm_mode=mode,
        vllm_generation=generation, vllm_tensor_parallel_size=1,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["colocate", "server"])
def test_rollouts_over_trls_vllm_go_on_in_step_and_keep_what_was_sampled(mode: str) -> None:
    environment = load_environment("tic-tac-toe")
    directory = open_directory(shipped_models(environment)["default"])
    generation = Generation(LocalPolicy(directory, temperature=1.0))
    lane = ControlLane(LocalControl(Episodes({environment.name: environment})))
    specs = [EpisodeSpec(environment.name, split="train", index=index) for index in range(6)]

    async def work() -> list[Trace]:
        engine = VllmEngine(trainer(generation, mode), directory.chat.end_ids, len(specs))
        policy = LocalPolicy.over_engine(engine, directory.chat, temperature=1.0, max_new_tokens=64)
        answering = asyncio.create_task(engine.rounds())
        result = await run(policy, lane, specs, concurrency=6, on_trace=lambda trace: engine.ended())
        await asyncio.wait_for(answering, 30)
        return result.traces

    traces = asyncio.run(work())
    assert [each.stop_reason for each in traces] == ["done"] * 6
    assert generation.batches[0] == 6, "all ask together"
    assert generation.batches == sorted(generation.batches, reverse=True), "and nobody is asked for twice"
    assert len(generation.batches) == max(each.turns for each in traces)
    for each in traces:
        assert each.tokens is not None
        assert sum(each.tokens.mask) > each.turns
        assert all(own or not value for own, value in zip(each.tokens.mask, each.tokens.logprobs, strict=True))


def test_a_token_without_its_log_probability_leaves_its_rollout_alone_unscored() -> None:
    class Broken:
        def generate(self, prompts: list[list[int]], **rest: Any) -> tuple[Any, Any, Any, Any]:
            return prompts, [[5], [6, 2]], [[[None]], [[-0.5], [-0.1]]], None

    async def work() -> list[Any]:
        engine = VllmEngine(trainer(Broken()), {2}, 2)
        answering = asyncio.create_task(engine.rounds())
        lines = [Line(engine, 0), Line(engine, 1)]
        asked = [line.generate([1], limit=4, temperature=1.0) for line in lines]
        made = await asyncio.gather(*asked, return_exceptions=True)
        engine.all_ended()
        await answering
        return [*made, lines[1].ids]

    first, second, ids = asyncio.run(work())
    assert isinstance(first, PolicyError)
    assert (second.ids, second.logprobs, second.finish, ids) == ([6, 2], [-0.5, -0.1], "stop", [1, 6, 2])

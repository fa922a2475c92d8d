"""The rollout function that TRL calls: our rollouts, from the weights it trains, as the ids that it trains on."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from accelerate.utils import gather_object  # type: ignore[import-untyped]

from mcpgym.environment import Environment
from mcpgym_rl.lanes import Lane
from mcpgym_rl.local.chat import Chat
from mcpgym_rl.local.policy import LocalPolicy
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace, TraceTokens
from mcpgym_rl.training.guards import TrainingStopped, Watch
from mcpgym_rl.training.metrics import describe_batch
from mcpgym_rl.training.recipe import Recipe
from mcpgym_rl.training.rewarding import all_perfect, reward_of
from mcpgym_rl.training.sections import Rl
from mcpgym_rl.trl.plan import read
from mcpgym_rl.trl.vllm_engine import VllmEngine

REWARD = "mcpgym_reward"
"""The field with which the rollout function hands rewards to TRL's reward function."""
Row = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""A rollout as TRL gets it: ids of the prompt, ids of what followed, and which of those the policy sampled."""


@dataclass(slots=True)
class Batch:
    """What was sampled last, in all processes together: traces in order, their rewards, what the metrics say of them.

    ``rows`` are this process's own: what may be trained on. ``flat`` says of each of its rollouts, in their order,
    whether the rewards of its group are equal.
    """

    traces: Sequence[Trace] = ()
    rewards: Sequence[float | None] = ()
    row: dict[str, Any] = field(default_factory=dict)
    rows: frozenset[Row] = frozenset()
    flat: Sequence[bool] = ()


class Rollouts:
    """A ``rollout_func`` for ``GRPOTrainer``: plays the episodes that its prompts name, with TRL's model as it is now.

    Args:
        recipe: for the environment's configuration and the run's seed.
        rl: the stage.
        environment: what is played.
        chat: the model's conversation format.
        lane: where episodes are opened: each process has its own.
    """

    def __init__(self, recipe: Recipe, rl: Rl, environment: Environment[Any, Any, Any], chat: Chat, lane: Lane) -> None:
        self.recipe, self.rl, self.environment, self.chat, self.lane = recipe, rl, environment, chat, lane
        self.batch = Batch()
        self._watch = Watch()
        self._runner = asyncio.Runner()
        self._policy: LocalPolicy | None = None

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        """Play one episode for each of ``prompts``, all at once; what TRL wants to know of each.

        Raises:
            TrainingStopped: the server is gone, or there is nothing to learn from.
        """
        started = time.process_time()
        first = trainer.accelerator.process_index * len(prompts)
        told = [read(prompt) for prompt in prompts]
        specs = [
            EpisodeSpec(
                self.environment.name,
                split=one["split"],
                index=one["index"],
                seed=one["seed"],
                repeat=(first + place) % self.rl.group_size,
                config=self.recipe.config,
            )
            for place, one in enumerate(told)
        ]
        traces, failure = self._played(specs, trainer)
        rewards = [reward_of(trace, self.rl.rewards) for trace in traces]
        self._look(traces, rewards, [one["group"] for one in told], failure, time.process_time() - started)
        pad = self._pad(trainer)
        rows = [as_row(trace, pad, known=worth is not None) for trace, worth in zip(traces, rewards, strict=True)]
        self.batch.rows = frozenset(row for row, _ in rows)
        return {
            "prompt_ids": [list(row[0]) for row, _ in rows],
            "completion_ids": [list(row[1]) for row, _ in rows],
            "env_mask": [list(row[2]) for row, _ in rows],
            "logprobs": [logprobs for _, logprobs in rows],
            REWARD: rewards,
        }

    def close(self) -> None:
        """Stop the sampler and let go of the episodes."""
        with contextlib.closing(self._runner):
            if self._policy is not None:
                self._runner.run(self._policy.aclose())
            self._runner.run(self.lane.aclose())

    def _played(self, specs: Sequence[EpisodeSpec], trainer: Any) -> tuple[list[Trace], str | None]:
        """The rollouts, in the order of ``specs``, and why they ended early if they did."""
        if trainer.use_vllm:
            return self._runner.run(self._over_vllm(specs, trainer))
        from trl.models.utils import unwrap_model_for_generation

        gather = trainer.args.ds3_gather_for_generation
        with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator, gather) as model:
            if self._policy is None:
                self._policy = LocalPolicy.from_torch(model, self.chat, rows=len(specs), **self._options())
            self._policy.refresh()
            result = self._runner.run(run(self._policy, self.lane, specs, concurrency=len(specs)))
        return result.traces, result.failure

    async def _over_vllm(self, specs: Sequence[EpisodeSpec], trainer: Any) -> tuple[list[Trace], str | None]:
        """The same with TRL's vLLM, whose weights TRL has synchronised."""
        engine = VllmEngine(trainer, self.chat.end_ids, len(specs))
        policy = LocalPolicy.over_engine(engine, self.chat, **self._options())
        answering = asyncio.create_task(engine.rounds())
        playing = asyncio.create_task(
            run(policy, self.lane, specs, concurrency=len(specs), on_trace=lambda trace: engine.ended())
        )
        await asyncio.wait([answering, playing], return_when=asyncio.FIRST_COMPLETED)
        if not playing.done():
            playing.cancel()
            await answering  # raises what stopped it
        engine.all_ended()
        await answering
        result = await playing
        return result.traces, result.failure

    def _options(self) -> dict[str, Any]:
        return {"temperature": self.rl.temperature, "max_new_tokens": self.rl.max_new_tokens, "name": "trl"}

    def _look(
        self,
        traces: Sequence[Trace],
        rewards: Sequence[float | None],
        groups: Sequence[int],
        failure: str | None,
        seconds: float,
    ) -> None:
        """Put the processes' rollouts together, and see whether there is anything to learn from them.

        Raises:
            TrainingStopped: there is not; in every process alike.
        """
        failures = [why for why in gather_object([failure]) if why is not None]
        if failures:
            raise TrainingStopped(failures[0])
        own = groups
        traces, rewards, groups = (gather_object(list(values)) for values in (traces, rewards, groups))
        seen: dict[int, set[float]] = {group: set() for group in groups}
        for group, reward in zip(groups, rewards, strict=True):
            if reward is not None:
                seen[group].add(reward)
        signal = sum(len(values) > 1 for values in seen.values()) / len(seen)
        perfect = all_perfect(rewards, self.environment.rewards, self.rl.rewards)
        self._watch.batch(traces, signal, self.rl.guards, tools=bool(self.environment.tools), perfect=perfect)
        row = describe_batch(traces, rewards, self.rl.temperature)
        row |= {"signal": signal, "groups": {"ordinary": len(seen)}, "sampling_seconds": round(seconds, 3)}
        self.batch = Batch(traces, rewards, row, flat=[len(seen[group]) < 2 for group in own])

    def _pad(self, trainer: Any) -> int:
        made: int = trainer.processing_class.pad_token_id
        return made


def as_row(trace: Trace, pad: int, *, known: bool) -> tuple[Row, list[float]]:
    """A rollout as TRL gets it, cut off after its last sampled token, and the log-probabilities of what followed.

    A rollout whose worth is unknown, or whose policy was never asked, is there but has nothing that is trained on.

    Args:
        trace: the rollout.
        pad: an id to stand where there is none: TRL wants at least one.
        known: whether its worth is known.

    Raises:
        ValueError: a policy that keeps no ids played it.
    """
    tokens = trace.tokens
    if tokens is None or not any(tokens.mask):
        if tokens is None and known and trace.turns:
            raise ValueError(
                f"the trace of {trace.task} has no token ids: only a local policy's rollouts can be trained on"
            )
        return ((pad,), (pad,), (0,)), [0.0]
    start, end = _span(tokens)
    mask = tuple(int(own and known) for own in tokens.mask[start:end])
    row = tuple(tokens.ids[:start]), tuple(tokens.ids[start:end]), mask
    return row, list(tokens.logprobs[start:end])


def _span(tokens: TraceTokens) -> tuple[int, int]:
    """Where the first sampled token stands, and where the last one ends."""
    sampled = [place for place, own in enumerate(tokens.mask) if own]
    return sampled[0], sampled[-1] + 1


def environment(mcpgym_reward: Sequence[float | None], **rest: Any) -> list[float | None]:
    """TRL's reward function: what the environment's control plane said of each rollout; None where it has no score."""
    return list(mcpgym_reward)

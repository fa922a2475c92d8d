"""The training loop, from top to bottom: sample groups, compare within them, update, certify, go on or go back."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import nn

from mcpgym.environment import Environment
from mcpgym.tasks import derive_seed
from mcpgym_rl.certificate import certify
from mcpgym_rl.lanes import Lane
from mcpgym_rl.local.chat import Chat
from mcpgym_rl.local.policy import LocalPolicy
from mcpgym_rl.run import run
from mcpgym_rl.traces import Trace
from mcpgym_rl.training import checkpoint
from mcpgym_rl.training.advantages import group_advantages, turn_advantages
from mcpgym_rl.training.batch import make_batch
from mcpgym_rl.training.checkpoint import Snapshot, State
from mcpgym_rl.training.curriculum import Plan, groups_for, plan_batch
from mcpgym_rl.training.guards import NothingLeft, TrainingStopped
from mcpgym_rl.training.metrics import Metrics, describe_batch
from mcpgym_rl.training.models import copy_model
from mcpgym_rl.training.recipe import Recipe
from mcpgym_rl.training.rewarding import all_perfect, reward_of
from mcpgym_rl.training.sections import Rl
from mcpgym_rl.training.updating import Update, average, entropy_weight, learning_rate, minibatches, update

Report = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run works with. ``model`` is trained in place, ``environment`` is that of the recipe, ``lane`` leads to
    it; ``spent`` is the CPU time, in seconds, that went into the model before (its warm-up)."""

    recipe: Recipe
    model: nn.Module
    chat: Chat
    environment: Environment[Any, Any, Any]
    lane: Lane
    folder: Path
    spent: float = 0.0


class Trainer:
    """A training run under way."""

    def __init__(self, setup: Setup, report: Report = lambda row: None) -> None:
        assert setup.recipe.rl is not None
        self.setup, self.report, self.rl = setup, report, setup.recipe.rl
        self.model = setup.model.train()
        self.averaged = copy_model(self.model) if self.rl.average else self.model
        self.reference = copy_model(self.model).requires_grad_(False) if self.rl.kl else None
        self.sampled = copy_model(self.model) if self.rl.overlap else self.model
        self.optimizer = _optimizer(self.model, self.rl)
        self.sampler = self._sampler()
        self.greedy = self._policy(self.averaged, 0.0)
        self.size = setup.environment.size(self.rl.split)
        self.tree = setup.environment.game_tree()
        self.certify = self.rl.certify if self.tree is not None else None
        self.state = State(cpu_seconds=setup.spent)
        self.accepted: Snapshot | None = None
        self.best: Snapshot | None = None
        self._certificate: dict[str, Any] = {}
        self._started = time.process_time() - setup.spent

    async def train(self) -> State:
        """Train until the certificate is reached or the steps, the time or the patience are at an end.

        A guard that stops a run which has a certificate, or nothing left to learn, ends it there: the best state, or
        the last, is the result, and ``finished`` says why.

        Raises:
            TrainingStopped: a guard stopped it before there was anything to keep.
        """
        state = self._resume()
        if state.finished:
            await self.sampler.aclose()
            return state
        with Metrics(self.setup.folder, state.step) as metrics:
            try:
                await self._loop(metrics)
            except TrainingStopped as stopped:
                if self.best is None and not isinstance(stopped, NothingLeft):
                    raise
                state.finished = str(stopped)
            finally:
                await self.sampler.aclose()
        self._finish()
        return state

    async def _loop(self, metrics: Metrics) -> None:
        """Step by step: certify, sample, compare, learn."""
        rl, state = self.rl, self.state
        ahead: asyncio.Task[tuple[Plan, list[Trace]]] | None = None
        while not await self._finished(metrics):
            row: dict[str, Any] = {"step": state.step, **self._certificate}
            started = time.process_time()
            plan, traces = await (ahead or self._sample(state.step))
            sampled = time.process_time() - started
            rewards = [reward_of(trace, rl.rewards) for trace in traces]
            signal = _signal(rewards, plan.groups)
            state.signal += 0.2 * (signal - state.signal)
            state.tasks += plan.kinds["ordinary"]
            described = describe_batch(traces, rewards, rl.temperature)
            row |= {**described, "signal": signal, "groups": plan.kinds}
            ahead = None
            if (why := self._look(traces, rewards, signal)) and self._roll_back(why):
                row["went_back"] = why  # and nothing is learnt from a batch of the policy that was left
            else:
                ahead = self._sample_ahead() if rl.overlap and state.step + 1 < rl.steps else None
                bonus = entropy_weight(rl, state.step, described["entropy"] or 0.0)
                done = await self._learn(traces, rewards, plan.groups, bonus)
                row |= {**_told(done), "entropy_weight": bonus, "learning_rate": self._rate(state.step)}
            state.step += 1
            state.cpu_seconds = time.process_time() - self._started
            row |= {"roll_backs": state.watch.roll_backs, "cpu_seconds": round(state.cpu_seconds, 3)}
            row["sampling_seconds"] = round(sampled, 3)
            metrics.write(row)
            self.report(row)
            if state.step % rl.checkpoint_every == 0:
                self._save()
        if ahead is not None:
            ahead.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ahead

    def _look(self, traces: Sequence[Trace], rewards: Sequence[float | None], signal: float) -> str | None:
        """Why to go back to the best state before learning from this batch, if there is a reason."""
        environment = self.setup.environment
        perfect = all_perfect(rewards, environment.rewards, self.rl.rewards)
        return self.state.watch.batch(traces, signal, self.rl.guards, tools=bool(environment.tools), perfect=perfect)

    async def _finished(self, metrics: Metrics) -> bool:
        """Whether there is no further step; certifies where that is due, for the certificate may be the end."""
        state, self._certificate = self.state, {}
        due = self.certify and state.step >= self.certify.start and state.step % self.certify.every == 0
        if due:
            await self._certify(self._certificate)
        if not state.finished and state.step >= self.rl.steps:
            state.finished = "steps"
        if not state.finished and self._out_of_time():
            state.finished = "cpu_seconds"
        if state.finished and self._certificate:
            seconds = round(time.process_time() - self._started, 3)
            row = {"step": state.step, **self._certificate, "cpu_seconds": seconds}
            metrics.write(row)
            self.report(row)
        return bool(state.finished)

    async def _sample(self, step: int) -> tuple[Plan, list[Trace]]:
        """Play the episodes of the batch of ``step``."""
        recipe, name = self.setup.recipe, self.setup.environment.name
        state, line_task = self.state, None if self.tree is None else self.tree.line_task
        plan = plan_batch(
            self.rl,
            name,
            recipe.config,
            self.size,
            recipe.seed,
            step,
            state.lines,
            line_task,
            groups=groups_for(self.rl, state.signal),
            first_task=state.tasks,
        )
        result = await run(self.sampler, self.setup.lane, plan.specs, concurrency=len(plan.specs))
        if result.failure is not None:
            raise TrainingStopped(result.failure)
        return plan, result.traces

    def _sample_ahead(self) -> asyncio.Task[tuple[Plan, list[Trace]]]:
        """Begin the next batch with the weights as they are, while this one is learnt from."""
        average(self.sampled, self.model, 0.0)
        self.sampler.refresh()
        return asyncio.create_task(self._sample(self.state.step + 1))

    async def _learn(
        self, traces: Sequence[Trace], rewards: Sequence[float | None], groups: Sequence[int], bonus: float
    ) -> Update:
        """Update the weights from a batch, with an entropy bonus of this weight; what the first of its updates saw."""
        rl = self.rl
        advantages: Sequence[Sequence[float] | float | None]
        if rl.advantage == "turn":
            advantages = turn_advantages(traces, rewards, groups, prior=rl.prior, least=rl.least_others)
        else:
            advantages = group_advantages(rewards, groups, scale=rl.scale)
        keep = rl.train_without_signal
        whole = make_batch(traces, advantages, temperature=rl.temperature, keep_without_signal=keep)
        order = list(range(len(whole.rollouts)))
        Random(derive_seed("minibatches", self.setup.recipe.seed, self.state.step)).shuffle(order)
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate(self.state.step)
        check = None if rl.overlap else lambda ratio: self.state.watch.agreement(ratio, rl.guards)
        first: Update | None = None
        for part in minibatches(whole, rl.updates, order):
            arguments = (self.model, self.reference, self.optimizer, part, rl, bonus, check if first is None else None)
            done = await asyncio.to_thread(update, *arguments) if rl.overlap else update(*arguments)
            first = first or done
            if rl.average:
                made = self.state.step + 1
                average(self.averaged, self.model, min(rl.average, made / (made + 3)))
        self.sampler.refresh()
        self.greedy.refresh()
        assert first is not None
        return first

    async def _certify(self, row: dict[str, Any]) -> None:
        """Certify the averaged weights; keep them when they are no worse than what was accepted, else go back."""
        wanted, state, watch = self.certify, self.state, self.state.watch
        assert wanted is not None
        found = await certify(self.greedy, self.setup.environment)
        made = found.certificate
        win, optimum = made["versus_random"]["win"], made["optimum"]["win"]
        cost = made["lost_lines"] + 3 * (made["unfinished_lines"] + made["invalid_moves"]) + 100 * (optimum - win)
        told = {name: made[name] for name in ("lines", "lost_lines", "unfinished_lines", "invalid_moves")}
        row["certificate"] = {**told, "win": win, "cost": cost}
        safe = made["lost_lines"] <= wanted.lost_lines and not made["unfinished_lines"]
        if safe and win >= wanted.win:
            state.finished = "certified"
        # No gain in wins makes up for a lost line; else the cost decides, and between two alike more training does.
        worth, before = (not safe, cost), (not state.safe, math.inf if state.best is None else state.best)
        best = worth <= (before[0], before[1] + wanted.alike) or bool(state.finished)
        if best or state.accepted is None or cost <= state.accepted + wanted.slack:
            state.accepted = cost
            state.lines.learn(found, unsure=self.rl.curriculum.unsure_share > 0)
            self.accepted = checkpoint.take(self.model, self.averaged, self.optimizer)
        else:
            row["went_back"] = f"{made['lost_lines']} lost lines, {win:.4f} wins: worse than what was accepted"
            self._roll_back(row["went_back"])
        if worth < before:
            state.best, watch.roll_backs = cost, 0
        if best:
            state.safe, state.certificate, self.best = safe, made, self.accepted

    def _roll_back(self, why: str) -> bool:
        """Go back to the accepted state, with a lower learning rate; False where there is none, and only forward."""
        if self.accepted is None:
            return False
        self.state.watch.rolled_back(why, self.rl.guards)
        if self.certify is not None:
            self.state.rate_scale *= self.certify.back_off
        checkpoint.restore(self.accepted, self.model, self.averaged, self.optimizer)
        self.sampler.refresh()
        self.greedy.refresh()
        return True

    def _rate(self, step: int) -> float:
        return learning_rate(self.rl, step) * self.state.rate_scale

    def _out_of_time(self) -> bool:
        return self.rl.cpu_seconds is not None and time.process_time() - self._started >= self.rl.cpu_seconds

    def _sampler(self) -> LocalPolicy:
        """What plays, with the weights as they are when it is refreshed: our own engine, or vLLM."""
        rl = self.rl
        if rl.vllm is None:
            return self._policy(self.sampled, rl.temperature)
        from mcpgym_rl.vllm.policy import training_policy

        folder = Path(rl.vllm.folder) if rl.vllm.folder else self.setup.folder / "adapters"
        return training_policy(rl.vllm.url, rl.vllm.model, self.sampled, folder, self.setup.chat, rl)

    def _policy(self, model: nn.Module, temperature: float) -> LocalPolicy:
        rl = self.rl
        rows = max(rl.groups, rl.max_groups if rl.signal_groups else 0) * rl.group_size
        policy = LocalPolicy.from_torch(
            model, self.setup.chat, temperature=temperature, max_new_tokens=rl.max_new_tokens, rows=rows
        )
        policy.hot_min_p = rl.hot_min_p
        return policy

    def _resume(self) -> State:
        path = self.setup.folder / checkpoint.FILE
        if path.exists():
            recipe = self.setup.recipe.model_dump_json()
            self.state, now, self.accepted, self.best = checkpoint.load(path, recipe)
            checkpoint.restore(now, self.model, self.averaged, self.optimizer)
            self.sampler.refresh()
            self.greedy.refresh()
            self._started = time.process_time() - self.state.cpu_seconds
        return self.state

    def _save(self) -> None:
        now = checkpoint.take(self.model, self.averaged, self.optimizer)
        path = self.setup.folder / checkpoint.FILE
        checkpoint.save(path, self.setup.recipe.model_dump_json(), self.state, now, self.accepted, self.best)

    def _finish(self) -> None:
        """Leave the best certified weights in both models, and a checkpoint of them."""
        if self.best is not None:
            checkpoint.restore(self.best, self.model, self.averaged, self.optimizer)
        self._save()


def _optimizer(model: nn.Module, rl: Rl) -> torch.optim.Optimizer:
    trained = [value for value in model.parameters() if value.requires_grad]
    return torch.optim.AdamW(trained, lr=rl.learning_rate, betas=rl.betas, weight_decay=rl.weight_decay)


def _signal(rewards: Sequence[float | None], groups: Sequence[int]) -> float:
    """The share of groups in which rewards differ."""
    seen: dict[int, set[float]] = {group: set() for group in groups}
    for reward, group in zip(rewards, groups, strict=True):
        if reward is not None:
            seen[group].add(reward)
    return sum(len(values) > 1 for values in seen.values()) / len(seen)


def _told(done: Update) -> dict[str, Any]:
    return {
        "loss": done.loss,
        "trained_entropy": done.entropy,
        "log_ratio": done.log_ratio,
        "gradient": done.gradient,
        "clipped": done.clipped,
        "kl": done.kl,
        "trained_tokens": done.tokens,
    }

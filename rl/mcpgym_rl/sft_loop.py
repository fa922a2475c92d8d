"""The loop of supervised fine-tuning; what it does is told in :mod:`mcpgym_rl.sft`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mcpgym.errors import ConfigurationError
from mcpgym_rl.sft import Game, SftConfig, SftStep
from mcpgym_rl.sft_batches import Part, parts_of, shuffled, trimmed
from mcpgym_rl.sft_checkpoint import Checkpoint


class Fitting:
    """One run."""

    def __init__(
        self,
        model: Any,
        games: Iterable[Game],
        config: SftConfig,
        out: Path | None,
        on_step: Callable[[SftStep], None] | None,
    ) -> None:
        self.model, self.config, self.on_step = model, config, on_step
        self.trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
        if not self.trained:
            raise ConfigurationError("the model has no parameter that can be trained")
        self.average = {name: value.detach().clone() for name, value in self.trained.items()} if config.average else {}
        self.optimizer = _optimizer(self.trained, config)
        self.checkpoint = None if out is None else Checkpoint(out, config)
        self._decoder, self._head = parts(model)
        self._games = games
        self._vocabulary = self._head.weight.shape[0]

    def run(self) -> list[SftStep]:
        """Train to the last step."""
        done = [] if self.checkpoint is None else self.checkpoint.load(self.trained, self.average, self.optimizer)
        batches = self._batches(len(done))
        self.model.train()
        for step in range(len(done), self.config.steps):
            done.append(self._update(step, next(batches)))
            if self.checkpoint is not None:
                self.checkpoint.wrote(done[-1])
                if (step + 1) % self.config.checkpoint_every == 0 or step + 1 == self.config.steps:
                    self.checkpoint.save(step + 1, self.trained, self.average, self.optimizer)
            if self.on_step is not None:
                self.on_step(done[-1])
        if self.checkpoint is not None:
            self.checkpoint.close()
        self.model.eval()
        with torch.no_grad():
            for name, value in self.average.items():
                self.trained[name].copy_(value)
        return done

    def _batches(self, passed: int) -> Iterator[list[Game]]:
        """The batches from step ``passed`` on."""
        size, games = self.config.batch_size, self._games
        if isinstance(games, Sequence):
            if not games:
                raise ConfigurationError("there are no games to learn from")
            stream: Iterator[Game] = (games[place] for place in shuffled(len(games), self.config.seed, passed * size))
        else:
            stream = islice(iter(games), passed * size, None)
        for step in range(passed, self.config.steps):
            batch = [trimmed(game, self._vocabulary) for game in islice(stream, size)]
            if len(batch) < size:
                needed = self.config.steps * size
                raise ConfigurationError(f"the games ended in step {step + 1}; {needed} are needed in all")
            yield batch

    def _update(self, step: int, batch: list[Game]) -> SftStep:
        config = self.config
        rate = learning_rate(config, step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        tokens = sum(sum(mask) for _, mask in batch)
        loss = 0.0
        places = 0
        for part in parts_of(batch, config.micro_batch_tokens):
            share = self._loss(part) / tokens
            share.backward()  # type: ignore[no-untyped-call]
            loss += share.item()
            places += part.ids.numel()
        gradient = float(nn.utils.clip_grad_norm_(self.trained.values(), config.max_grad_norm))
        if not (math.isfinite(loss) and math.isfinite(gradient)):
            raise FloatingPointError(
                f"step {step + 1}: the loss is {loss:g} and the gradient {gradient:g}; take a lower learning_rate"
            )
        self.optimizer.step()
        if self.average:
            with torch.no_grad():
                own, new = list(self.average.values()), [self.trained[name] for name in self.average]
                torch._foreach_lerp_(own, new, 1 - config.average)
        return SftStep(step + 1, loss, rate, gradient, tokens, places)

    def _loss(self, part: Part) -> Tensor:
        """The summed loss of the learnt tokens. Only their places are projected on the vocabulary."""
        device = self._head.weight.device
        hidden = self._decoder(input_ids=part.ids.to(device), use_cache=False).last_hidden_state
        logits = self._head(hidden.flatten(0, 1)[part.places.to(device)]).float()
        return nn.functional.cross_entropy(logits, part.targets.to(device), reduction="sum")


def learning_rate(config: SftConfig, step: int) -> float:
    """The rate of ``step``, from 0: linear up to the peak, then half a cosine down to ``final_rate`` of it."""
    if step < config.warm_up_steps:
        return config.learning_rate * (step + 1) / config.warm_up_steps
    length = config.steps - config.warm_up_steps
    done = (step - config.warm_up_steps) / max(length - 1, 1)
    return config.learning_rate * (config.final_rate + (1 - config.final_rate) * 0.5 * (1 + math.cos(math.pi * done)))


def parts(model: Any) -> tuple[Any, Any]:
    """The layers below the vocabulary, and its projection; of a model with adapters too."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return base.get_decoder(), base.get_output_embeddings()


def _optimizer(trained: dict[str, nn.Parameter], config: SftConfig) -> torch.optim.Optimizer:
    matrices = [value for value in trained.values() if value.ndim > 1]
    others = [value for value in trained.values() if value.ndim <= 1]
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=config.betas,
        weight_decay=config.weight_decay,
        fused=True,
    )

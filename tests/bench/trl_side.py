"""TRL's ``GRPOTrainer`` playing our environment in process: the other side of the training benchmark.

It is set up in its own favour: the same prompts and tool schema as ours, token for token; no reference model, no
gradient checkpointing, no logging, 32-bit floats, no padding to multiples, the sampled log-probabilities not computed a
second time, and generation cut off after as many tokens a turn as ours is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset
from tests.bench.warmed_up import NAME, load
from transformers import AutoTokenizer, PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym_rl.policies.chat_format import native_tools
from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.training.sections import Rl


@dataclass
class Played:
    """What TRL's games came to."""

    calls: int = 0
    late: int = 0
    outcomes: list[str | None] = field(default_factory=list)


@dataclass(frozen=True)
class TrlStep:
    """CPU seconds of one step, and of its parts: playing (of which ``generate()``), and learning."""

    total: float
    playing: float
    generating: float
    tokens: int
    turns: int
    calls: int


def environment_class(episodes: Episodes, loop: asyncio.AbstractEventLoop, worth: Mapping[str, float], played: Played):
    """The class whose instances TRL plays with; all share the episodes, the event loop and the counters."""

    class InProcess:
        def __init__(self) -> None:
            self._episode: Episode | None = None

        def reset(self, *, index: int, seed: int, split: str, **rest: Any) -> str:
            if self._episode is not None:
                loop.run_until_complete(episodes.close(self._episode.token))
            self._episode = loop.run_until_complete(episodes.open(NAME, split=split, index=index, seed=seed))
            return self._episode.messages[-1]["content"]

        def play(self, position: int) -> str:
            """Put your X on a free cell. The answer shows what O played and the new board.

            Args:
                position: A free cell, 0 to 8, row by row from the top left.
            """
            assert self._episode is not None
            if self._episode.done:
                played.late += 1
                return "The game is over."
            answer = loop.run_until_complete(self._episode.call("play", {"position": position}))
            played.calls += 1
            return answer.text

        def get_reward(self) -> float:
            assert self._episode is not None
            outcome = loop.run_until_complete(self._episode.score(None)).game_outcome
            played.outcomes.append(outcome)
            return worth[outcome or "unfinished"]

    return InProcess


MICRO_BATCH = 64
"""Rollouts whose gradients TRL computes at once."""


class TrlSide:
    """A trainer over ``plans``: the first episodes of each group, one plan a step."""

    def __init__(self, path: Path, folder: Path, rl: Rl, plans: Sequence[Sequence[EpisodeSpec]]) -> None:
        self.played = Played()
        self.steps: list[TrlStep] = []
        self._loop = asyncio.new_event_loop()
        self._episodes = Episodes.of(NAME)
        environment = self._episodes.environment(NAME)
        model, _ = load(path)
        tokenizer = AutoTokenizer.from_pretrained(path)
        rows = []
        for spec in (spec for plan in plans for spec in plan):
            episode = self._loop.run_until_complete(
                self._episodes.open(NAME, split=spec.split, index=spec.index, seed=spec.seed)
            )
            *before, last = episode.messages
            prompt = [*({"role": one["role"], "content": one["content"]} for one in before)]
            prompt.append({"role": last["role"], "content": ""})  # what reset() says comes here
            rows.append({"prompt": prompt, "index": spec.index, "seed": spec.seed, "split": spec.split})
            self._loop.run_until_complete(self._episodes.close(episode.token))
        games = rl.groups * rl.group_size
        part = min(games, MICRO_BATCH)
        config = GRPOConfig(
            output_dir=str(folder),
            per_device_train_batch_size=part,
            gradient_accumulation_steps=games // part,
            num_generations=rl.group_size,
            max_completion_length=1024,
            generation_kwargs={"max_new_tokens": rl.max_new_tokens},
            max_tool_calling_iterations=environment.max_turns,
            max_steps=len(plans),
            learning_rate=rl.learning_rate,
            lr_scheduler_type="constant",
            temperature=rl.temperature,
            beta=0.0,
            loss_type="dapo",
            scale_rewards="none",
            epsilon=rl.clip_low,
            epsilon_high=rl.clip_high,
            max_grad_norm=rl.max_grad_norm,
            shuffle_dataset=False,
            gradient_checkpointing=False,
            bf16=False,
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        self._generating = self._playing = 0.0
        self._turns = self._tokens = 0
        self.trainer = GRPOTrainer(
            model=model,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            environment_factory=environment_class(self._episodes, self._loop, rl.rewards.game_outcome, self.played),
        )
        tools = native_tools([tool.listing for tool in environment.tools.values()])
        self.trainer._env_tools = {None: tools}  # it would describe the method in other words than the server does
        self._time("_generate_single_turn", self._count_generated)
        self._time("_generate_and_score_completions", self._count_played)

    def run(self, before_step: Callable[[], None]) -> None:
        """Train; ``before_step`` runs before each step and is not counted."""
        side = self

        class Clock(TrainerCallback):
            def on_step_begin(self, *args: Any, **rest: Any) -> None:
                before_step()
                side._generating = side._playing = 0.0
                side._turns = side._tokens = 0
                self.calls = side.played.calls
                self.started = time.process_time()

            def on_step_end(self, *args: Any, **rest: Any) -> None:
                spent = time.process_time() - self.started
                calls = side.played.calls - self.calls
                side.steps.append(TrlStep(spent, side._playing, side._generating, side._tokens, side._turns, calls))

        self.trainer.remove_callback(PrinterCallback)
        self.trainer.add_callback(Clock())
        self.trainer.train()

    def _time(self, name: str, count: Callable[[float, Any], None]) -> None:
        method = getattr(self.trainer, name)

        def timed(*args: Any, **rest: Any) -> Any:
            started = time.process_time()
            made = method(*args, **rest)
            count(time.process_time() - started, made)
            return made

        setattr(self.trainer, name, timed)

    def _count_generated(self, seconds: float, made: Any) -> None:
        self._generating += seconds
        self._turns += len(made[0])
        self._tokens += sum(map(len, made[0]))

    def _count_played(self, seconds: float, made: Any) -> None:
        self._playing += seconds

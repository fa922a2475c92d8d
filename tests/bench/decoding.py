"""Decoding, ours and ``generate()``'s: the same conversations, the same number of sampled tokens in every turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from tests.bench.warmed_up import load
from transformers import GenerationConfig

from mcpgym_rl.local.engine import Engine, Line
from mcpgym_rl.local.llama import Llama
from mcpgym_rl.local.policy import LocalPolicy
from mcpgym_rl.traces import Trace

DECODED = 32
"""Tokens a row of the comparison of decoding steps alone."""


@dataclass(frozen=True)
class Decoding:
    """Medians over rounds: CPU milliseconds a game of each side, and CPU microseconds of one decoding step a row."""

    games: int
    turns: int
    tokens_a_turn: int
    ours: float
    theirs: float
    ratio: float
    our_step: float
    their_step: float
    step_ratio: float


def chunks_of(trace: Trace) -> list[list[int]]:
    """What the environment said before each turn: the prompt's ids, then those of each answer."""
    assert trace.tokens is not None
    made: list[list[int]] = []
    before = True
    for place, (token, own) in enumerate(zip(trace.tokens.ids, trace.tokens.mask, strict=True)):
        if not own:
            if before:
                made.append([])
            made[-1].append(token)
        before = own
        if own and place == 0:
            raise ValueError("a game begins with a prompt")
    return made


class Ours:
    """The engine under every local policy; a turn ends after so many tokens, whatever they are."""

    def __init__(self, path: Path, rows: int) -> None:
        model, chat = load(path)
        backend = LocalPolicy.from_torch(model, chat).engine.backend
        assert isinstance(backend, Llama)
        self.engine = Engine(backend, (), rows=rows)

    async def games(self, games: Sequence[Sequence[Sequence[int]]], tokens: int) -> int:
        """Every game, each at its own pace, as in a run; how many tokens were sampled."""

        async def play(line: Line, chunks: Sequence[Sequence[int]]) -> int:
            count = 0
            for chunk in chunks:
                count += len((await line.generate(chunk, limit=tokens, temperature=1.0)).ids)
            line.close()
            return count

        self.engine.forget()
        lines = [self.engine.open(seed) for seed in range(len(games))]
        return sum(await asyncio.gather(*map(play, lines, games)))


class Theirs:
    """``generate()`` on all games that have a turn to come, the whole conversation as its prompt each time."""

    def __init__(self, path: Path) -> None:
        self.model = load(path)[0].eval()

    def games(self, games: Sequence[Sequence[Sequence[int]]], tokens: int) -> int:
        """Every game; how many tokens were sampled."""
        ids: list[list[int]] = [[] for _ in games]
        count = 0
        for turn in range(max(map(len, games))):
            chosen = [place for place, chunks in enumerate(games) if turn < len(chunks)]
            for place in chosen:
                ids[place] += games[place][turn]
            for place, said in zip(chosen, self.turn([ids[place] for place in chosen], tokens), strict=True):
                ids[place] += said
                count += len(said)
        return count

    def turn(self, prompts: Sequence[Sequence[int]], tokens: int) -> list[list[int]]:
        """``tokens`` sampled tokens after each prompt."""
        width = max(map(len, prompts))
        ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        config = GenerationConfig(
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=tokens,
            pad_token_id=0,
            eos_token_id=None,
        )
        self.model.generation_config.eos_token_id = None
        made: Any = self.model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
        return made[:, width:].tolist()


def compare(path: Path, traces: Sequence[Trace], rounds: int) -> Decoding:
    """Both sides on the games of ``traces``, in turn."""
    games = [chunks_of(trace) for trace in traces]
    turns = sum(map(len, games))
    sampled = sum(sum(trace.tokens.mask) for trace in traces if trace.tokens is not None)
    tokens = max(1, round(sampled / turns))
    ours, theirs = Ours(path, len(games)), Theirs(path)
    longest = [[token for chunk in chunks for token in [*chunk, *[0] * tokens]][:-tokens] for chunks in games]

    def our_turn(count: int) -> int:
        return asyncio.run(ours.games([[ids] for ids in longest], count))

    def step(turn: Callable[[int], Any]) -> float:
        """A decoding step a row: what more tokens cost more."""
        return (_timed(turn, DECODED + 1)[0] - _timed(turn, 1)[0]) / DECODED / len(games)

    spent: list[tuple[float, float, float, float]] = []
    for number in range(rounds + 1):
        mine, our_count = _timed(lambda count: asyncio.run(ours.games(games, count)), tokens)
        other, their_count = _timed(lambda count: theirs.games(games, count), tokens)
        if our_count != turns * tokens or their_count != turns * tokens:
            raise AssertionError(f"both must sample {turns * tokens} tokens, not {our_count} and {their_count}")
        steps = step(our_turn), step(lambda count: theirs.turn(longest, count))
        if number:  # the first is to get warm
            spent.append((mine / len(games), other / len(games), *steps))
    our, their, our_step, their_step = (median(values) for values in zip(*spent, strict=True))
    return Decoding(
        games=len(games),
        turns=turns,
        tokens_a_turn=tokens,
        ours=our * 1e3,
        theirs=their * 1e3,
        ratio=median(other / mine for mine, other, *_ in spent),
        our_step=our_step * 1e6,
        their_step=their_step * 1e6,
        step_ratio=median(other / mine for *_, mine, other in spent),
    )


def _timed(work: Callable[[int], Any], count: int) -> tuple[float, Any]:
    started = time.process_time()
    made = work(count)
    return time.process_time() - started, made

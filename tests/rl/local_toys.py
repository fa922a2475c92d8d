"""Local policies for tests: an untrained model, and a backend that speaks as it is told instead of computing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from random import Random
from typing import Any

import model_toys
import numpy as np
import torch

from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.messages import Message, assistant, tool_call
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.local.chat import Chat
from mcpgym_rl.local.policy import LocalPolicy
from mcpgym_rl.policy import Policy
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.traces import Trace

torch.set_num_threads(1)

GAME = "tic-tac-toe"
TOOLS = model_toys.tools_of(GAME)


def chat() -> Chat:
    return model_toys.chat_of(GAME)


def untrained(**options: Any) -> LocalPolicy:
    return LocalPolicy(model_toys.model_of(GAME), **{"temperature": 1.0, "max_new_tokens": 12, **options})


def play(
    policy: Policy, specs: Sequence[EpisodeSpec] | int, concurrency: int = 64, limits: Limits | None = None
) -> list[Trace]:
    """The traces of games of tic-tac-toe."""
    if isinstance(specs, int):
        specs = [EpisodeSpec(GAME, split="train", index=index) for index in range(specs)]

    async def playing() -> list[Trace]:
        lane = ControlLane(LocalControl(Episodes.of(GAME)))
        result = await run(policy, lane, specs, concurrency=concurrency, limits=limits)
        await policy.aclose()
        assert result.failure is None
        return result.traces

    return asyncio.run(playing())


class Spoken:
    """A backend that computes nothing. Every turn is planned when its prompt is complete, a canonical one or not.

    It keeps the ids of each row, and insists on what the engine promises: chunks go where the row ends.
    """

    small = True
    positions = 4_000

    def __init__(self, chat: Chat, strange: float = 0.0) -> None:
        self.chat, self.strange = chat, strange
        self.vocabulary = chat.tokenizer.get_vocab_size()
        self.rows: dict[int, list[int]] = {}
        self.plans: dict[int, list[int]] = {}
        self.widths: list[int] = []

    def reserve(self, rows: int, tokens: int) -> None:
        self.rows = {row: self.rows.get(row, []) for row in range(rows)}
        self.tokens = tokens

    def row_bytes(self, tokens: int) -> int:
        return tokens

    def append(self, rows: Sequence[int], starts: Sequence[int], chunks: Sequence[Sequence[int]]) -> Any:
        assert len(set(rows)) == len(rows)
        assert all(chunks)
        for row, start, chunk in zip(rows, starts, chunks, strict=True):
            assert start <= len(self.rows[row])
            self.rows[row] = [*self.rows[row][:start], *chunk]
            self.plans.pop(row, None)
        return self._next(rows)

    def step(self, rows: Any, tokens: Any, starts: Any) -> Any:
        self.widths.append(len(rows))
        assert (np.diff(rows) > 0).all()
        for row, token, start in zip(rows.tolist(), tokens.tolist(), starts.tolist(), strict=True):
            assert start == len(self.rows[row])
            self.rows[row].append(token)
        return self._next(rows.tolist())

    def _next(self, rows: Sequence[int]) -> Any:
        logits = np.full((len(rows), self.vocabulary), -30.0, np.float32)
        for place, row in enumerate(rows):
            if not self.plans.get(row):
                self.plans[row] = self.rest(self.rows[row])
            logits[place, self.plans[row].pop(0)] = 0.0
        return logits

    def rest(self, ids: list[int]) -> list[int]:
        """What is still to be said of the turn that ``ids`` are in, which may be half said."""
        begin = self.chat.tokenizer.encode("<|im_start|>assistant\n").ids
        prompt = len(ids) - ids[::-1].index(begin[0]) + len(begin) - 1
        return self.plan(ids[:prompt])[len(ids) - prompt :]

    def plan(self, ids: list[int]) -> list[int]:
        random = Random(sum(ids))
        text = self.chat.decode(ids)
        free = re.findall(r"free ((?:\d ?)+)", text)[-1].split()
        cell = random.choice(free)
        message: Message = assistant(
            f"<think>Take {cell}.</think>", [tool_call("c", "play", f'{{"position": {cell}}}')]
        )
        canonical = self.chat.turn_ids(message)
        if random.random() >= self.strange:
            return canonical
        turn = self.chat.turn_text(message)
        match random.randrange(4):
            case 0:
                return [random.randrange(3, self.vocabulary) for _ in range(random.randint(1, 9))] + canonical[-1:]
            case 1:
                turn = turn[: random.randrange(1, len(turn))]
            case 2:
                turn = turn.replace('"position": ', '"position":   ').replace("</think>", " </think>\n\n")
            case 3:
                return [token for char in turn for token in self.chat.tokenizer.encode(char).ids] + canonical[-1:]
        return [*self.chat.tokenizer.encode(turn).ids, canonical[-1]]

    def choose(self, logits: Any, temperatures: Any, min_p: float, uniforms: Any) -> Any:
        tokens = logits.argmax(axis=1)
        return tokens, logits[np.arange(len(tokens)), tokens]

    def take(self, logits: Any, places: Sequence[int]) -> Any:
        return logits[np.array(places)]

    def copy(self, source: int, target: int, tokens: int) -> None:
        self.rows[target] = self.rows[source][:tokens]

    def save(self, row: int, tokens: int) -> Any:
        return self.rows[row][:tokens]

    def load(self, row: int, saved: Any) -> None:
        self.rows[row] = list(saved)
        self.plans[row] = self.rest(self.rows[row])[1:]  # the first is sampled from what was computed once

    def refresh(self) -> bool:
        return False


def spoken(strange: float = 0.0, **options: Any) -> tuple[LocalPolicy, Spoken]:
    backend = Spoken(chat(), strange)
    return LocalPolicy.over(backend, chat(), max_new_tokens=200, **options), backend  # type: ignore[arg-type]

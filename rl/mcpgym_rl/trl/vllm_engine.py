"""TRL's vLLM as the engine of a local policy: token ids in, token ids and log-probabilities out, in rounds.

TRL's ``VLLMGeneration.generate`` takes a whole batch, and with a server all processes call it together. So rollouts go
on in step: when each of them waits for a turn or has ended, one batch is asked for, in every process one of the same
size; a process whose rollouts have all ended takes part until those of the others have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from accelerate.utils import gather_object  # type: ignore[import-untyped]

from mcpgym_rl.local.engine import Engine
from mcpgym_rl.local.line import Line, Request, Sampled
from mcpgym_rl.policy import PolicyError

_ANYTHING = 1 << 20


class VllmEngine(Engine):
    """Serves the lines of ``rollouts`` rollouts, all begun at once, through ``trainer.vllm_generation``.

    Temperature and the longest turn are those TRL was configured with: it has no others for single turns.

    Args:
        trainer: TRL's ``GRPOTrainer``, with ``use_vllm``; it has synchronised the weights before it asks for rollouts.
        end_ids: tokens that end a turn.
        rollouts: how many rollouts there are.
    """

    def __init__(self, trainer: Any, end_ids: Iterable[int], rollouts: int) -> None:
        config = trainer.model.config.get_text_config(decoder=True)
        own = int(getattr(config, "max_position_embeddings", None) or _ANYTHING)
        self.positions = min(own, trainer.args.vllm_max_model_length or own)
        self.expected: set[Line] = set()
        self._generation = trainer.vllm_generation
        self._together = trainer.vllm_mode == "server" or trainer.vllm_tensor_parallel_size > 1
        self._end_ids = frozenset(end_ids)
        self._left = rollouts
        self._waiting: list[Request] = []
        self._changed = asyncio.Event()

    def open(self, seed: int) -> Line:
        """A new conversation. Its randomness is vLLM's: ``seed`` has no say."""
        return Line(self, seed)

    async def serve(self, line: Line, limit: int, temperature: float, min_p: float) -> Sampled:
        """Sample a turn of ``line``, in the next round."""
        request = Request(line, limit, temperature, min_p, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._changed.set()
        return await request.future

    def ended(self) -> None:
        """One of the rollouts asks for no turn any more."""
        self._left -= 1
        self._changed.set()

    def all_ended(self) -> None:
        """None of them does."""
        self._left = 0
        self._changed.set()

    async def rounds(self) -> None:
        """Answer until all rollouts, of all processes, have ended."""
        while True:
            while len(self._waiting) < self._left:
                self._changed.clear()
                await self._changed.wait()
            asked = [request for request in self._waiting if not request.future.done()]  # a limit may have ended some
            self._waiting.clear()
            size = max(gather_object([len(asked)])) if self._together else len(asked)
            if size:
                self._round(asked, size)
            elif not self._left:
                return
            await asyncio.sleep(0)

    def _round(self, asked: list[Request], size: int) -> None:
        prompts = [list(request.line.ids) for request in asked]
        nothing = prompts[0] if prompts else [min(self._end_ids)]
        prompts += [nothing] * (size - len(prompts))
        _, made, logprobs, _ = self._generation.generate(prompts=prompts, images=None, num_generations=1)
        for request, ids, scores in zip(asked, made, logprobs, strict=False):
            values = [score[0] for score in scores]
            if not ids or any(value is None for value in values):
                request.future.set_exception(PolicyError("vLLM gave no token, or one without its log-probability"))
                continue
            request.line.ids.extend(ids)
            request.future.set_result(Sampled(list(ids), values, "stop" if ids[-1] in self._end_ids else "length"))

    def release(self, line: Line) -> None:
        """Nothing is kept of a line."""

    def refresh(self) -> None:
        """TRL synchronises the weights."""

    async def aclose(self) -> None:
        """Nothing is open."""

"""What one episode may ask its sub-model: counted here, in the server, where no code of the sandbox is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from mcpgym_environments.long_context.asking.models import SubModel
from mcpgym_environments.long_context.asking.record import Key, Record, digest
from mcpgym_environments.python_sandbox.sessions.asking import Offer, Refused, Unanswered

PROMPTS = 64
"""Prompts that come in one question; longer lists are asked in parts."""
WAITS = 5.0
"""How many times as long as for one answer a run may wait in all."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an episode may ask.

    Args:
        calls: prompts.
        characters: of all prompts together.
        window: characters of one prompt.
        answer: characters of one answer.
        at_once: prompts that are asked at once.
        seconds: for one answer.
    """

    calls: int
    characters: int
    window: int
    answer: int
    at_once: int
    seconds: float


class Budget:
    """Answers what the code of one episode asks, as long as it may. A broker of the Python sandbox.

    What a question costs is taken off before it is asked, so several at once cannot share what is left; a refused
    question costs nothing. One that is asked and then given up (its run was ended) is paid for.

    Args:
        allowance: what may be asked.
        model: who answers; None where only the record does.
        record: answers kept, if any.
        task: whose episode it is, for the record.
        seed: likewise.
    """

    def __init__(
        self, allowance: Allowance, model: SubModel | None, record: Record | None = None, task: str = "", seed: int = 0
    ) -> None:
        self._allowance = allowance
        self._model, self._record = model, record
        self._task, self._seed = task, seed
        self._times: Counter[str] = Counter()
        self._waited = 0.0
        self.calls = 0
        """Prompts asked so far."""
        self.characters = 0
        """Characters of them."""
        largest = min(PROMPTS * (6 * allowance.window + 8), 15 << 20)  # of JSON, where every character is written out
        self.offer = Offer(
            prompts=PROMPTS,
            characters=allowance.window,
            bytes=max(largest, 6 * allowance.window + 8) if allowance.window <= 2_000_000 else 15 << 20,
            asks=allowance.calls + 1_000,
        )

    def begin_run(self) -> None:
        """A run begins: it may wait as long as any other."""
        self._waited = 0.0

    async def answer(self, prompts: Sequence[str]) -> list[str]:
        """The answers, in order.

        Raises:
            Refused: it is more than may be asked.
            Unanswered: the model does not answer.
        """
        self._pay(prompts)
        gate = asyncio.Semaphore(self._allowance.at_once)
        left = WAITS * self._allowance.seconds - self._waited
        began = monotonic()
        try:
            async with asyncio.timeout(max(left, 0.0)) as patience, asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(prompt, key, gate)) for prompt, key in self._keyed(prompts)]
        except TimeoutError:
            if not patience.expired():
                raise
            raise Refused(
                f"this run has waited {WAITS * self._allowance.seconds:g} s for the model, and may not longer"
            ) from None
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        finally:
            self._waited += monotonic() - began
        return [task.result() for task in tasks]

    def _pay(self, prompts: Sequence[str]) -> None:
        allowed, size = self._allowance, sum(map(len, prompts))
        if any(len(prompt) > allowed.window for prompt in prompts):
            raise Refused(f"a prompt may have {allowed.window:,} characters")
        if self.calls + len(prompts) > allowed.calls:
            raise Refused(
                f"the model may be asked {allowed.calls:,} prompts: {self.calls:,} were, and "
                f"these are {len(prompts):,} more"
            )
        if self.characters + size > allowed.characters:
            raise Refused(
                f"prompts may have {allowed.characters:,} characters in all: {self.characters:,} are used, and these "
                f"have {size:,} more"
            )
        self.calls += len(prompts)
        self.characters += size

    def _keyed(self, prompts: Sequence[str]) -> list[tuple[str, Key | None]]:
        """Each prompt with its place in the record, where there is one."""
        if self._record is None:
            return [(prompt, None) for prompt in prompts]
        made: list[tuple[str, Key | None]] = []
        for prompt in prompts:
            known = digest(prompt)
            made.append((prompt, Key(self._task, self._seed, known, self._times[known])))
            self._times[known] += 1
        return made

    async def _one(self, prompt: str, key: Key | None, gate: asyncio.Semaphore) -> str:
        if key is not None and self._record is not None and (kept := self._record.find(key)) is not None:
            return kept
        if self._model is None:
            raise Unanswered("the record has no answer to this prompt, and nobody else may be asked")
        async with gate:
            try:
                async with asyncio.timeout(self._allowance.seconds):
                    said = await self._model(prompt)
            except TimeoutError:
                raise Unanswered(f"the sub-model gave no answer within {self._allowance.seconds:g} s") from None
            except (Refused, Unanswered):
                raise
            except Exception as error:
                raise Unanswered(f"the sub-model failed: {type(error).__name__}: {error}") from error
        if type(said) is not str:
            raise Unanswered(f"the sub-model gave {type(said).__name__}, no text")
        said = said[: self._allowance.answer]
        if key is not None and self._record is not None:
            self._record.keep(key, said)
        return said

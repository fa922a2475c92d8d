"""Where questions come from: datasets under seeds of which no two splits share one, and no question either.

A dataset makes its item ``i`` from its seed plus ``i``. Tasks of ``train`` take seeds from the lower half of 31 bits,
those of ``test`` from the upper. Different seeds may still ask the same where little can be asked; so a question also
belongs to one split alone, by a digest of its text: a task takes the first of its candidates that is of its split.
"""

from __future__ import annotations

import copy
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from mcpgym import derive_seed
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_environments.imported.reasoning_gym.config import ReasoningGymConfig
from mcpgym_environments.imported.reasoning_gym.package import EXTRA, reasoning_gym
from mcpgym_environments.imported.reasoning_gym.safe import shared_generator
from mcpgym_environments.imported.reasoning_gym.stricter import is_answer

HALF = 1 << 30
BLOCK = 32
"""Items of one dataset object; some datasets make all of theirs when they are made."""
ATTEMPTS = 64
"""Candidates of one task. That all are of the other split has a probability of 2⁻⁶⁴, where many questions are asked."""
BLOCKS = 24
"""Dataset objects that are kept."""
ENTRIES = 4_096
"""Items that are kept."""
STRIDE = 1 << 24
"""How far apart the seeds of a task's candidates are: more than the tasks that a split may have."""
UNSTABLE = frozenset({"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"})
"""Datasets that ask by the order of a set, which is another in each process."""

Entry = Mapping[str, Any]


def split_of(question: str) -> str:
    """The split that a question belongs to, by its text."""
    return "test" if hashlib.sha256(question.encode("utf-8", "surrogatepass")).digest()[0] % 2 else "train"


class Source:
    """The tasks of one configuration. Items are made one at a time, and kept for a while."""

    def __init__(self, config: ReasoningGymConfig) -> None:
        self._config = config
        self._blocks: OrderedDict[int, Any] = OrderedDict()
        self._entries: OrderedDict[tuple[str, int], Entry] = OrderedDict()
        self._lock = threading.RLock()

    def entry(self, split: str, index: int) -> Entry:
        """The item of a task: ``question``, ``answer``, ``metadata``; do not change it.

        Raises:
            MissingPackage: reasoning-gym is not installed.
            UnknownNameError, ConfigurationError: there is no such dataset, or its options do not fit.
        """
        with self._lock:
            if (known := self._entries.get((split, index))) is None:
                known = self._entries[split, index] = self._made(split, index)
                if len(self._entries) > ENTRIES:
                    self._entries.popitem(last=False)
            return known

    def score(self, answer: str, entry: Entry) -> float:
        """What the dataset's own scorer gives for an answer, 0 to 1; 0 where it fails on it."""
        with self._lock:
            dataset = self._block(0)
        try:
            score = min(max(float(dataset.score_answer(answer, copy.deepcopy(dict(entry)))), 0.0), 1.0)
            return score if is_answer(answer, entry) else 0.0
        except Exception:
            return 0.0

    def _made(self, split: str, index: int) -> Entry:
        start = HALF if split == "test" else 0
        block, place = divmod(index, BLOCK)
        for attempt in range(ATTEMPTS):
            seed = start + (attempt * STRIDE + block * BLOCK) % HALF
            entry = self._item(seed, place)
            if split_of(entry["question"]) == split:
                return entry
        raise ConfigurationError(
            f"reasoning-gym: {self._config.dataset} asks too few questions for two splits; let its options vary more"
        )

    def _item(self, seed: int, place: int) -> Entry:
        dataset = self._block(seed)
        shared_generator().seed(derive_seed("list_functions", seed, place))
        try:
            made: dict[str, Any] = dict(dataset[place])
        except Exception as error:
            raise ConfigurationError(
                f"reasoning-gym: {self._config.dataset} made no question: {type(error).__name__}: {error}"
            ) from error
        return made

    def _block(self, seed: int) -> Any:
        if (known := self._blocks.get(seed)) is None:
            known = self._blocks[seed] = _dataset(self._config, seed)
            if len(self._blocks) > BLOCKS:
                self._blocks.popitem(last=False)
        else:
            self._blocks.move_to_end(seed)
        return known


def _dataset(config: ReasoningGymConfig, seed: int) -> Any:
    package = reasoning_gym()
    datasets: Mapping[str, Any] = package.factory.DATASETS
    for part in config.parts:
        if part.name not in datasets or part.name == "composite":
            raise UnknownNameError("dataset of reasoning-gym", part.name, {*datasets} - {"composite"})
        if part.name in UNSTABLE and os.environ.get("PYTHONHASHSEED") != "0":
            raise ConfigurationError(
                f"reasoning-gym {EXTRA.version}: {part.name} asks other questions in each process, for it goes by the "
                "order of a set; start everything with PYTHONHASHSEED=0 in its environment, or take another dataset"
            )
    options = config.arguments
    shared_generator().seed(derive_seed("list_functions", seed))
    try:
        if len(config.parts) == 1:
            return package.create_dataset(config.parts[0].name, seed=seed, size=BLOCK, **options)
        if odd := sorted({*options} - {part.name for part in config.parts}):
            raise UnknownNameError("dataset in options", odd[0], [part.name for part in config.parts])
        spec = package.composite.DatasetSpec
        parts = [spec(name, weight, dict(options.get(name, {}))) for name, weight in config.parts]
        return package.create_dataset("composite", seed=seed, size=BLOCK, datasets=parts)
    except (TypeError, ValueError, AssertionError) as error:
        raise ConfigurationError(f"reasoning-gym: {config.dataset} cannot be made so: {error}") from error

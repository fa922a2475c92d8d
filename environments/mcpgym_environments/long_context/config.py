"""What may be configured about long texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import Field, field_validator, model_validator

from mcpgym import Config
from mcpgym_environments.long_context.made.families import FAMILIES
from mcpgym_environments.python_sandbox.config import PythonSandboxConfig
from mcpgym_environments.python_sandbox.sessions.backend import Level

BY_NAME = ("reader", "none", "given", "recorded")
"""The sub-models that are named by a word."""


class LongContextConfig(Config):
    """The tasks, the model that code may ask and how much of it, and where the code runs.

    The default asks nobody outside: the built-in reader answers.
    """

    families: str = "all"
    """Which families of tasks: all, or some of chain, tally, compare and ledger with commas between."""
    min_level: int = Field(default=1, ge=1, le=5)
    """The shortest texts: 1 to 5 are 100,000, 300,000, 1,000,000, 3,000,000 and 10,000,000 characters."""
    max_level: int = Field(default=3, ge=1, le=5)
    """The longest texts, likewise."""
    sub_model: str = "reader"
    """Who answers llm() in the code: reader (built in, offline), none, given (what a trainer or a test has put in as
    environment.sub_model), recorded (answers that the record has, and no others), or openai:MODEL@BASE_URL."""
    window: int = Field(default=16_000, ge=500, le=1_000_000)
    """How many characters one prompt to the sub-model may have."""
    sub_calls: int = Field(default=2_000, ge=0, le=1_000_000)
    """How many prompts an episode may ask the sub-model."""
    sub_characters: int = Field(default=20_000_000, ge=0, le=10_000_000_000)
    """How many characters all prompts of an episode may have together."""
    answer_characters: int = Field(default=8_000, ge=100, le=200_000)
    """How many characters of each of the sub-model's answers are handed over; the rest is cut off."""
    at_once: int = Field(default=8, ge=1, le=256)
    """How many prompts of an episode are asked at once."""
    sub_seconds: float = Field(default=120.0, gt=0, le=3_600, allow_inf_nan=False)
    """How long the sub-model may take for one answer; a run waits five times as long in all."""
    record: str = ""
    """A file that keeps what the sub-model answered, and answers the same prompt of the same task and seed from it
    without asking anybody; nothing unless it is given."""
    output_characters: int = Field(default=4_000, ge=200, le=100_000)
    """How many characters of what a run printed are shown; of more, the middle is cut."""
    max_runs: int = Field(default=20, ge=1, le=1_000)
    """How many runs an episode has; after them only an answer can be submitted."""
    backend: str = "auto"
    """What keeps the code in, as for python-sandbox."""
    min_isolation: Level = "landlock"
    """The weakest boundary to make do with, as for python-sandbox."""
    seconds: float = Field(default=20.0, ge=0.1, le=300, allow_inf_nan=False)
    """Seconds that one run may take, by the clock and in processor time; waiting for the sub-model does not count."""
    memory_mb: int = Field(default=768, ge=128, le=65_536)
    """Megabytes of memory that a session may hold."""
    train_tasks: int = Field(default=10_000, ge=1, le=1_000_000_000)
    """How many tasks the train split has."""
    test_tasks: int = Field(default=1_000, ge=1, le=1_000_000_000)
    """How many tasks the test split has."""

    @field_validator("families")
    @classmethod
    def _known_families(cls, value: str) -> str:
        wanted = value.lower().replace(",", " ").split()
        if unknown := [word for word in wanted if word not in (*FAMILIES, "all")]:
            raise ValueError(f"no family of tasks {unknown[0]!r}; there is: all, {', '.join(FAMILIES)}")
        return "all" if not wanted or "all" in wanted else ",".join(name for name in FAMILIES if name in wanted)

    @field_validator("sub_model")
    @classmethod
    def _known_model(cls, value: str) -> str:
        if value in BY_NAME:
            return value
        kind, _, rest = value.partition(":")
        model, at, url = rest.partition("@")
        if kind != "openai" or not (model and at and url.startswith(("http://", "https://"))):
            raise ValueError(
                f"write one of {', '.join(BY_NAME)}, or openai:MODEL@BASE_URL, as in openai:qwen3@http://127.0.0.1:8000/v1"
            )
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_level > self.max_level:
            raise ValueError(f"min_level={self.min_level} must not be above max_level={self.max_level}")
        if self.sub_model == "recorded" and not self.record:
            raise ValueError("sub_model=recorded needs a record: record=FILE")
        _ = self.sandbox
        return self

    def reaches(self) -> Sequence[str]:
        """The endpoint, the file and the back-end, where they are not this package's own."""
        outside = {"sub_model": self.sub_model not in BY_NAME, "record": bool(self.record)}
        return [*(f"{name}={getattr(self, name)}" for name, there in outside.items() if there), *self.sandbox.reaches()]

    @property
    def family_names(self) -> tuple[str, ...]:
        """The families that tasks are of."""
        return tuple(FAMILIES) if self.families == "all" else tuple(self.families.split(","))

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels that tasks have."""
        return tuple(range(self.min_level, self.max_level + 1))

    @property
    def sandbox(self) -> PythonSandboxConfig:
        """Where the code runs: a Python sandbox with the standard library alone."""
        return PythonSandboxConfig(
            backend=self.backend,
            min_isolation=self.min_isolation,
            packages="none",
            seconds=self.seconds,
            memory_mb=self.memory_mb,
        )

"""What may be configured about wiki search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from mcpgym import Config
from mcpgym_environments.wiki_search.questions.question import KINDS

OPEN = "open"
"""What ``questions`` is for an encyclopedia that somebody asks questions of their own."""
INFOBOXES = "infoboxes"
"""What ``questions`` is where they are made from the infoboxes of the pages."""

Engine = Literal["auto", "fts5", "tantivy", "hybrid"]


class WikiSearchConfig(Config):
    """The encyclopedia, how it is searched, the questions, and what an episode may cost.

    The default is a generated encyclopedia: nothing is downloaded, and nobody can know it by heart.
    """

    corpus: str = "world"
    """The encyclopedia: world (generated), factbook, folder:PATH, zim:FILE, dump:FILE, hf:NAME or sqlite:FILE."""
    pages: int = Field(default=2_000, ge=100, le=5_000_000)
    """How many pages a generated encyclopedia has."""
    world_seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Which of all generated encyclopedias it is."""
    distractors: float = Field(default=0.4, ge=0, le=1, allow_inf_nan=False)
    """How much a generated page says besides its own facts: neighbours, former names, disputed claims; 0 to 1."""
    paraphrase: float = Field(default=0.8, ge=0, le=1, allow_inf_nan=False)
    """How far the wording of a generated page strays from the plainest; 0 to 1."""
    tables: float = Field(default=0.15, ge=0, le=1, allow_inf_nan=False)
    """How often a generated page states facts in tables, not in sentences; 0 to 1."""
    near_duplicates: float = Field(default=0.1, ge=0, le=1, allow_inf_nan=False)
    """How many generated pages have names that are easily taken for another's; 0 to 1."""
    wording: Literal["all", "train", "test"] = "all"
    """Which sentences a generated page is written with: train leaves out those held out, test has only those."""
    engine: Engine = "auto"
    """What searches: fts5 (SQLite), tantivy, hybrid (words and meaning), or auto: what suits the number of pages."""
    results: int = Field(default=5, ge=1, le=20)
    """How many pages a search shows."""
    section_characters: int = Field(default=1_500, ge=200, le=100_000)
    """How many characters of a section are shown at once; longer ones are read in parts."""
    questions: str = ""
    """Where the questions come from: nothing (they are made from what the encyclopedia is known to say), the path of a
    JSONL file, infoboxes (they are made from the facts in the infoboxes of any encyclopedia), or open: there is one
    task, to answer whatever somebody asks."""
    kinds: str = "all"
    """Which kinds of questions are made: all, or some of them with commas between."""
    min_hops: int = Field(default=1, ge=1, le=4)
    """The fewest facts in a row that a made question takes."""
    max_hops: int = Field(default=4, ge=1, le=4)
    """The most facts in a row that a made question takes."""
    thoughts: bool = False
    """Whether the prompt asks to think inside <think> and </think> before each call, and the format is rewarded."""
    max_lookups: int = Field(default=60, ge=1, le=1_000)
    """How many searches, views and reads an episode has; after them only an answer can be submitted."""
    max_characters: int = Field(default=60_000, ge=1_000, le=10_000_000)
    """How many characters the tools show in an episode; after them, likewise. Open questions have neither limit."""
    judge: str = ""
    """A model that is asked whether a submitted answer is right where the typed match says no, as
    openai:MODEL@BASE_URL; nobody unless it is given."""
    judge_decides: bool = False
    """Whether an answer is right when the judge says so; otherwise what it says is only reported."""
    train_tasks: int = Field(default=10_000, ge=1, le=1_000_000_000)
    """How many tasks the train split has, where questions are made."""
    test_tasks: int = Field(default=1_000, ge=1, le=1_000_000_000)
    """How many tasks the test split has, where questions are made."""

    @field_validator("kinds")
    @classmethod
    def _known_kinds(cls, value: str) -> str:
        """The kinds in their own order, each once."""
        wanted = {word.strip().replace("_", " ").replace("-", " ").lower() for word in value.split(",")} - {""}
        if unknown := sorted(wanted - {*KINDS, "all"}):
            raise ValueError(f"no kind of question {unknown[0]!r}; there is: all, {', '.join(KINDS)}")
        if not wanted or "all" in wanted:
            return "all"
        return ", ".join(kind for kind in KINDS if kind in wanted)

    @field_validator("corpus")
    @classmethod
    def _absolute_corpus(cls, value: str) -> str:
        """A path stays right when the current folder becomes another."""
        kind, colon, path = value.strip().partition(":")
        if colon and path and (kind in ("folder", "zim", "dump", "sqlite") or (kind == "hf" and Path(path).exists())):
            return f"{kind}:{Path(path).expanduser().absolute()}"
        return value.strip()

    @field_validator("questions")
    @classmethod
    def _absolute_questions(cls, value: str) -> str:
        known = value.strip() in ("", OPEN, INFOBOXES)
        return value.strip() if known else str(Path(value).expanduser().absolute())

    @field_validator("judge")
    @classmethod
    def _judge_form(cls, value: str) -> str:
        model, at, url = value.removeprefix("openai:").partition("@")
        if value and not (value.startswith("openai:") and model and at and url.startswith(("http://", "https://"))):
            raise ValueError("write it as openai:MODEL@BASE_URL, as in openai:qwen3@http://127.0.0.1:8000/v1")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_hops > self.max_hops:
            raise ValueError(f"min_hops={self.min_hops} must not be above max_hops={self.max_hops}")
        if self.judge_decides and not self.judge:
            raise ValueError("judge_decides=true needs a judge: judge=openai:MODEL@BASE_URL")
        return self

    def reaches(self) -> Sequence[str]:
        """The source of the encyclopedia, the file of questions, and the judge's endpoint, where there are any."""
        outside = {"corpus": ":" in self.corpus, "questions": bool(self.questions_file), "judge": bool(self.judge)}
        return [f"{name}={getattr(self, name)}" for name, there in outside.items() if there]

    @property
    def questions_file(self) -> str:
        """The path of the file of questions; empty where they come from elsewhere."""
        return "" if self.questions in (OPEN, INFOBOXES) else self.questions

    @property
    def question_kinds(self) -> tuple[str, ...]:
        """The kinds of questions that are made."""
        return KINDS if self.kinds == "all" else tuple(self.kinds.split(", "))

    @property
    def hops(self) -> tuple[int, ...]:
        """The numbers of facts in a row that made questions take."""
        return tuple(range(self.min_hops, self.max_hops + 1))

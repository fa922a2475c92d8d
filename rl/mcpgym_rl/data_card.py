"""The card of a set of data: what is in it, where it came from, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Card:
    """What is in a set of data, and what was left out of it."""

    about: dict[str, Any] = field(default_factory=dict)
    played: int = 0
    kept: int = 0
    unscored: Counter[str] = field(default_factory=Counter)
    filtered: int = 0
    duplicates: int = 0
    rewards: list[float] = field(default_factory=list)
    kept_rewards: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    slips: int = 0
    tokens: int = 0
    learnt_tokens: int = 0

    def as_json(self) -> dict[str, Any]:
        """The card as it stands in ``card.json``."""
        made = {
            "played": self.played,
            "kept": self.kept,
            "left_out": {"unscored": dict(self.unscored), "by_keep": self.filtered, "duplicates": self.duplicates},
            "reward": {"all": _mean(self.rewards), "kept": _mean(self.kept_rewards)},
            "outcomes": dict(self.outcomes),
            "turns": {"learnt": self.turns - self.slips, "not_learnt": self.slips},
            **self.about,
        }
        if self.tokens:
            made["tokens"] = {"all": self.tokens, "learnt": self.learnt_tokens}
        return made

    def as_text(self, *, complete: bool) -> str:
        """The card as Markdown."""
        about = self.about
        left = sum(self.unscored.values())
        rows = [
            ("environment", f"{about['environment']} {about['environment_version'] or ''}".strip()),
            ("policy", about["policy"]),
            ("tasks", f"{about['count']} of {about['split']}, from the first; seed {about['seed']}"),
            ("kept", f"{self.kept} of {self.played} rollouts, where {about['keep'] or 'there is a score'}"),
            ("left out", f"{self.filtered} by that, {self.duplicates} duplicates, {left} without a score"),
            ("mean reward", f"{_shown(_mean(self.kept_rewards))} of those kept, {_shown(_mean(self.rewards))} of all"),
            ("turns", f"{self.turns - self.slips} to be learnt, {self.slips} not (a teacher's slips)"),
            ("schema hash", about["schema_hash"] or "–"),
        ]
        if self.outcomes:
            rows.insert(6, ("outcomes", ", ".join(f"{name} {count}" for name, count in self.outcomes.most_common())))
        if self.tokens:
            rows.append(("tokens", f"{self.tokens:,}, of which {self.learnt_tokens:,} are learnt ({about['model']})"))
        cut = "" if complete else "\nThe collection is not complete; the same command goes on with it.\n"
        table = "\n".join(f"| {name} | {_cell(value)} |" for name, value in rows)
        return f"# Collected data\n{cut}\n| | |\n| --- | --- |\n{table}\n"


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")

"""What a run's traces say together: the content of ``summary.json``.

A summary is made from traces as ``traces.jsonl`` has them, one at a time, in any order; the order changes no digit of
it. An episode without a score counts as unscored, with its reason, and enters no mean; so does a component that is
null.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from mcpgym_clients.statistics import Estimate, effective_size, mean, pass_rates, share
from mcpgym_rl.traces import Trace

SCHEMA = "mcpgym.summary/1"
OUTCOMES = ("win", "draw", "loss")
UNFINISHED = "unfinished"
SUCCESS = 1.0
"""The reward from which an episode counts as a success where it is no game, if nothing else is said."""


class Summary:
    """Adds up traces; :meth:`as_json` is the content of ``summary.json``.

    Args:
        success: the reward from which an episode counts as a success (for pass@k). By default it must be won, where
            episodes are games, or have a reward of ``SUCCESS``.
    """

    def __init__(self, success: float | None = None) -> None:
        self.success = success
        self.episodes = 0
        self.unscored: Counter[str] = Counter()
        self.unscored_examples: dict[str, str] = {}
        self.stop_reasons: Counter[str] = Counter()
        self.schema_hashes: Counter[str] = Counter()
        self._tasks: list[str] = []
        self._totals: list[float] = []
        self._components: dict[str, tuple[list[float], list[str]]] = {}
        self._ends: list[str] = []
        self._fingerprints: set[str] = set()
        self._turns: list[int] = []
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._calls = 0
        self._errors = 0

    def add(self, trace: Trace) -> None:
        """Count one trace."""
        self.episodes += 1
        self.stop_reasons[trace.stop_reason] += 1
        self.schema_hashes[trace.schema_hash] += 1
        self._prompt_tokens += trace.usage.prompt_tokens
        self._completion_tokens += trace.usage.completion_tokens
        self._calls += len(trace.calls)
        self._errors += sum(bool(message.get("is_error")) for message in trace.messages)
        if trace.score is None or trace.score.total is None:
            reason, example = why_unscored(trace)
            self.unscored[reason] += 1
            self.unscored_examples.setdefault(reason, example)
            return
        self._tasks.append(trace.task)
        self._totals.append(trace.score.total)
        self._turns.append(trace.turns)
        self._fingerprints.add(trace.fingerprint)
        self._ends.append(trace.score.game_outcome or UNFINISHED)
        for name, value in trace.score.components.items():
            values, tasks = self._components.setdefault(name, ([], []))
            if value is not None:
                values.append(value)
                tasks.append(trace.task)

    @property
    def scored(self) -> int:
        """How many episodes have a score."""
        return len(self._totals)

    @property
    def distinct(self) -> int:
        """How many scored episodes differ from each other in what was seen and done."""
        return len(self._fingerprints)

    @property
    def reward(self) -> Estimate | None:
        """The mean total."""
        return mean(self._totals, self._tasks) if self._totals else None

    @property
    def tasks(self) -> Counter[str]:
        """How many scored episodes there are of each task."""
        return Counter(self._tasks)

    @property
    def effective(self) -> float | None:
        """How many independent episodes the scored ones are worth at the least.

        Repeats of a task that go alike are worth less than their number, and episodes in which the same happened are
        counted once: whether they came about by chance or had to be equal cannot be told from them.
        """
        if not self._totals:
            return None
        return min(effective_size(self._totals, self._tasks), float(self.distinct))

    @property
    def cautious(self) -> Estimate | None:
        """The mean total with the interval that ``effective`` independent episodes would have."""
        if self.effective is None or self.effective >= self.scored:
            return self.reward
        own, few = self.reward, mean(self._totals, self._tasks, size=self.effective)
        assert own is not None
        if own.low is None or own.high is None or few.low is None or few.high is None:
            return few
        return few if few.high - few.low >= own.high - own.low else own

    def components(self) -> dict[str, Estimate | None]:
        """The mean of every component; None where it never had a value."""
        return {name: mean(values, tasks) if values else None for name, (values, tasks) in self._components.items()}

    def outcome_shares(self, confidence: float = 0.95) -> dict[str, Estimate]:
        """How often games were won, drawn and lost, out of all that were scored; empty where nothing is a game.

        Games that reached no end are a share of their own, where there are any: the shares add up to 1.
        """
        ends = set(self._ends)
        if not ends & set(OUTCOMES):
            return {}
        names = [*OUTCOMES, UNFINISHED] if UNFINISHED in ends else list(OUTCOMES)
        return {name: share([end == name for end in self._ends], self._tasks, confidence) for name in names}

    def passes(self) -> dict[str, Any] | None:
        """pass@k and pass^k; None where no task has a second score."""
        if self.scored == len(self.tasks):
            return None
        game = self.success is None and bool(set(self._ends) & set(OUTCOMES))
        least = SUCCESS if self.success is None else self.success
        succeeded = [end == "win" for end in self._ends] if game else [total >= least for total in self._totals]
        rates = pass_rates(succeeded, self._tasks)
        return {
            "success": "win" if game else f"reward >= {least:g}",
            "rates": [
                {
                    "k": rate.k,
                    "tasks": rate.tasks,
                    "pass_at_k": rate.any_of_k.mean,
                    "pass_at_k_interval": rate.any_of_k.interval,
                    "pass_hat_k": rate.all_of_k.mean,
                    "pass_hat_k_interval": rate.all_of_k.interval,
                }
                for rate in rates
            ],
        }

    def penalised(self) -> dict[str, Estimate]:
        """For every component that was ever below 0: in which share of the episodes."""
        return {
            name: share([value < 0 for value in values], tasks)
            for name, (values, tasks) in self._components.items()
            if any(value < 0 for value in values)
        }

    def as_json(self) -> dict[str, Any]:
        """The content of ``summary.json``, but for ``complete`` and ``run``."""
        components, outcomes = self.components(), self.outcome_shares()
        reward = self.reward
        made: dict[str, Any] = {
            "schema": SCHEMA,
            "episodes": self.episodes,
            "scored": self.scored,
            "unscored": dict(sorted(self.unscored.items())),
            "unscored_examples": dict(sorted(self.unscored_examples.items())),
            "reward": {"mean": None, "interval": None, "n": 0} if reward is None else _estimate(reward),
            "components": {name: None if item is None else item.mean for name, item in components.items()},
            "component_intervals": {name: None if item is None else item.interval for name, item in components.items()},
            "component_counts": {name: 0 if item is None else item.n for name, item in components.items()},
            "penalised": {name: _estimate(item, "share") for name, item in self.penalised().items()},
            "distinct_episodes": self.distinct,
            "effective_sample_size": self.effective,
            "cautious_interval": None if self.cautious is None else self.cautious.interval,
            "turns": {
                "mean": sum(self._turns) / len(self._turns) if self._turns else None,
                "min": min(self._turns, default=None),
                "max": max(self._turns, default=None),
            },
            "tool_calls": {"made": self._calls, "errors": self._errors},
            "tokens": {"prompt": self._prompt_tokens, "completion": self._completion_tokens},
            "stop_reasons": dict(sorted(self.stop_reasons.items())),
        }
        if outcomes:
            made["outcomes"] = {name: item.mean for name, item in outcomes.items()}
            made["outcome_intervals"] = {name: item.interval for name, item in outcomes.items()}
        if (passes := self.passes()) is not None:
            made["passes"] = passes
        if "format" in components:
            made["format_rate"] = made["components"]["format"]
        return made


def why_unscored(trace: Trace) -> tuple[str, str]:
    """Why a trace has no score: the word it is counted by, and a sentence."""
    if trace.error is not None:
        return trace.stop_reason, trace.error.message
    components = {} if trace.score is None else trace.score.components
    if missing := sorted(name for name, value in components.items() if value is None):
        return "incomplete_score", f"no value for {', '.join(missing)}"
    return trace.stop_reason, ""


def _estimate(item: Estimate, name: str = "mean") -> dict[str, Any]:
    return {name: item.mean, "interval": item.interval, "n": item.n}

"""When training must stop, or go back to its best state: each guard says why in a sentence that names the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace
from mcpgym_rl.training.sections import Guards


class TrainingStopped(Exception):
    """Training cannot go on as it is; the message says why and what may help. Everything up to here is kept."""


class NothingLeft(TrainingStopped):
    """Every rollout has had the highest reward for a while: training has come to its end, and well."""


@dataclass(slots=True)
class Watch:
    """What the guards remember from batch to batch."""

    batches: int = 0
    without_signal: int = 0
    perfect: int = 0
    valid_once: bool = False
    roll_backs: int = 0

    def batch(
        self, traces: Sequence[Trace], signal: float, guards: Guards, *, tools: bool = True, perfect: bool = False
    ) -> str | None:
        """Look at a batch before it is learnt from; why to go back to the best state, or None.

        Args:
            traces: its rollouts.
            signal: the share of its groups whose rewards differ.
            guards: the limits.
            tools: whether the environment has any; without, no call is missed, and none can be invalid.
            perfect: whether each rollout has the highest reward that there is.

        Raises:
            NothingLeft: so many batches in a row were perfect that there is nothing left to learn.
            TrainingStopped: there is nothing to learn from.
        """
        self.batches += 1
        if not any(trace.scored for trace in traces):
            why = next((trace.error.message for trace in traces if trace.error is not None), "no reason was given")
            raise TrainingStopped(f"none of the batch's {len(traces)} rollouts has a score: {why}")
        if tools and self.batches == 1 and not any(trace.calls for trace in traces):
            if all(trace.turns == trace.given_turns and trace.stop_reason == StopReason.TRUNCATED for trace in traces):
                raise TrainingStopped(
                    "no prompt of the first batch leaves room for a turn: the model's context is too short for them"
                )
            raise TrainingStopped(
                "the policy made no tool call in the first batch, so no reward can tell its tries apart; "
                "warm it up first (a [warm_up] table), or check that its chat template shows the tools"
            )
        self.perfect = self.perfect + 1 if perfect else 0
        if self.perfect >= guards.no_signal_batches:
            raise NothingLeft(f"each rollout of the last {self.perfect} batches had the highest reward there is")
        self.without_signal = 0 if signal > 0 else self.without_signal + 1
        if self.without_signal >= guards.no_signal_batches:
            raise TrainingStopped(
                f"no group of the last {self.without_signal} batches had rewards that differ: there is nothing to "
                "learn from; use harder or more varied tasks, larger groups or a higher temperature"
            )
        invalid = invalid_share(traces) if tools else 0.0
        if invalid <= guards.max_invalid_share / 2:
            self.valid_once = True
        if self.valid_once and invalid > guards.max_invalid_share:
            return f"{invalid:.0%} of the calls were refused or malformed"
        return None

    def agreement(self, log_ratio: float, guards: Guards) -> None:
        """Check that sampler and trainer agree on the log-probabilities of a batch sampled with these very weights.

        Raises:
            TrainingStopped: they do not.
        """
        if not log_ratio <= guards.max_log_ratio:
            raise TrainingStopped(
                f"sampler and trainer differ by {log_ratio:.3g} in a token's log-probability (at most "
                f"{guards.max_log_ratio:g} is allowed): what was sampled is not what would be trained"
            )

    def rolled_back(self, why: str, guards: Guards) -> None:
        """Count a return to the best state.

        Raises:
            TrainingStopped: there were too many in a row.
        """
        self.roll_backs += 1
        if self.roll_backs > guards.max_roll_backs:
            raise TrainingStopped(
                f"training went back to its best state {guards.max_roll_backs} times in a row and got no further "
                f"(last: {why}); the best state is kept. Try a lower learning rate, or larger batches"
            )


def invalid_share(traces: Sequence[Trace]) -> float:
    """The share of tool calls that were refused, malformed ones included; 1 where there are none."""
    answers = [message for trace in traces for message in trace.messages if message["role"] == "tool"]
    return sum(bool(answer.get("is_error")) for answer in answers) / len(answers) if answers else 1.0

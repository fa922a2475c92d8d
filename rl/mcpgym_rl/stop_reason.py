"""Why a rollout ended: every rollout has exactly one of these."""

from __future__ import annotations

from enum import StrEnum


class StopReason(StrEnum):
    """The end of a rollout. The first five are the policy's own ends and are scored; the others leave it unscored."""

    DONE = "done"
    """The environment's rules ended the episode (the game is over)."""
    ANSWERED = "answered"
    """The policy stopped without calling a tool, and the environment had nothing more to say."""
    MAX_TURNS = "max_turns"
    """The limit on turns was reached."""
    MAX_CALLS = "max_calls"
    """The limit on tool calls was reached; calls beyond it were answered with an error, not run."""
    TRUNCATED = "truncated"
    """A turn, or the whole context, ran into the token limit, or an agent product into its limit on time or output;
    what was cut off is not acted on."""
    POLICY_FAILED = "policy_failed"
    """The policy gave no turn (an endpoint failed after its retries, a script ran out)."""
    ENVIRONMENT_FAILED = "environment_failed"
    """The environment or its server broke, or the episode expired."""
    TIMED_OUT = "timed_out"
    """The rollout took longer than it may in all."""
    CANCELLED = "cancelled"
    """The run was stopped from outside while this rollout was under way."""

    @property
    def scored(self) -> bool:
        """Whether a rollout with this end is the policy's doing and has a score."""
        return self in _SCORED


_SCORED = frozenset(
    {StopReason.DONE, StopReason.ANSWERED, StopReason.MAX_TURNS, StopReason.MAX_CALLS, StopReason.TRUNCATED}
)

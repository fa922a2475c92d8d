"""What a run has taken, and what it may take: tokens, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcpgym_clients.amounts import dollars
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.prices import Price, Priced, price_of
from mcpgym_rl.policies import ENDPOINTS
from mcpgym_rl.policy import Policy
from mcpgym_rl.traces import Trace, TraceUsage


class Spending:
    """Counts what rollouts took, those included that are played again.

    Args:
        policy: who plays.
        max_cost: in US dollars; None for no limit.
        max_total_tokens: read and written, together; None for no limit.
        prices: the user's own price file.

    Raises:
        UsageProblem: a limit on the cost cannot be kept, for no price is known.
    """

    def __init__(
        self,
        policy: Policy,
        max_cost: float | None = None,
        max_total_tokens: int | None = None,
        prices: Path | None = None,
    ) -> None:
        self.max_cost, self.max_total_tokens = max_cost, max_total_tokens
        self.price: Price | None = None
        self.endpoint = isinstance(policy, Priced)
        self.usage, self.again = TraceUsage(), TraceUsage()
        self.played_again = 0
        self._policy = policy.name
        self._uncounted = False
        if isinstance(policy, Priced):
            self.price = price_of(policy, prices)
            if max_cost is not None and self.price is None:
                raise UsageProblem(
                    f"--max-cost: the price of {policy.name} is not known; write it into a file, per million tokens "
                    f'(["{policy.model}"], input = USD, output = USD), and name the file: --prices FILE.toml'
                )
        elif max_cost is not None or prices is not None:
            option = "--prices" if max_cost is None else "--max-cost"
            raise UsageProblem(
                f"{option}: {policy.name} costs nothing; only endpoints have a price ({', '.join(ENDPOINTS)})"
            )

    def add(self, trace: Trace) -> None:
        """Count a rollout."""
        self.usage = _sum(self.usage, trace.usage)
        if trace.turns > trace.given_turns and not trace.usage.prompt_tokens + trace.usage.completion_tokens:
            self._uncounted = True

    def add_again(self, trace: Trace) -> None:
        """Count a rollout that was played again, for it had no score."""
        self.again = _sum(self.again, trace.usage)
        self.played_again += 1

    @property
    def tokens(self) -> int:
        """All tokens so far, read and written."""
        return sum(usage.prompt_tokens + usage.completion_tokens for usage in (self.usage, self.again))

    @property
    def usd(self) -> float | None:
        """What they cost; None where no price is known."""
        return None if self.price is None else self.price.of(_sum(self.usage, self.again))

    def met(self) -> str | None:
        """Why no other rollout may begin; None while one may."""
        limits = {"--max-cost": self.max_cost, "--max-total-tokens": self.max_total_tokens}
        given = [name for name, limit in limits.items() if limit is not None]
        if given and self._uncounted:
            return f"{self._policy} does not say how many tokens it takes, so {given[0]} cannot be kept"
        usd = self.usd
        if self.max_cost is not None and usd is not None and usd >= self.max_cost:
            return f"the budget is spent (--max-cost {self.max_cost:g}; it came to {dollars(usd)})"
        if self.max_total_tokens is not None and self.tokens >= self.max_total_tokens:
            return f"the budget is spent (--max-total-tokens {self.max_total_tokens}; it came to {self.tokens:,})"
        return None

    def as_json(self) -> dict[str, Any] | None:
        """The ``cost`` of a summary; None for a policy that is no endpoint."""
        if not self.endpoint:
            return None
        return {
            "usd": self.usd,
            "prices": None if self.price is None else self.price.as_json(),
            "cached_tokens": _sum(self.usage, self.again).cached_tokens,
            "played_again": {
                "episodes": self.played_again,
                "prompt": self.again.prompt_tokens,
                "completion": self.again.completion_tokens,
            },
        }


def _sum(one: TraceUsage, other: TraceUsage) -> TraceUsage:
    cached = [usage.cached_tokens for usage in (one, other) if usage.cached_tokens is not None]
    return TraceUsage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        sum(cached) if cached else None,
    )

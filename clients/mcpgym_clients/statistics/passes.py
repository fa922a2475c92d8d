"""pass@k and pass^k: whether one of k attempts at a task succeeds, and whether all of them do.

Both are worked out for each task from all its attempts, without bias, and averaged over tasks.

References:
    Chen, M. et al. (2021). Evaluating large language models trained on code. arXiv:2107.03374: pass@k and its unbiased
        estimator, 1 - C(n - c, k) / C(n, k).
    Yao, S. et al. (2024). tau-bench: a benchmark for tool-agent-user interaction in real-world domains.
        arXiv:2406.12045: pass^k and its unbiased estimator, C(c, k) / C(n, k).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from mcpgym_clients.statistics.estimates import CONFIDENCE, Estimate, proportion


@dataclass(frozen=True, slots=True)
class PassRate:
    """Both rates for one ``k``, over the ``tasks`` that were tried at least so often."""

    k: int
    tasks: int
    any_of_k: Estimate
    """pass@k; its ``n`` is the number of episodes of those tasks."""
    all_of_k: Estimate
    """pass^k."""


def pass_at_k(attempts: int, successes: int, k: int) -> float:
    """The chance that at least one of ``k`` attempts succeeds, drawn from those that were made.

    Raises:
        ValueError: so many could not be drawn, or more succeeded than were made.
    """
    _require(attempts, successes, k)
    return 1 - math.comb(attempts - successes, k) / math.comb(attempts, k)


def pass_hat_k(attempts: int, successes: int, k: int) -> float:
    """The chance that all of ``k`` attempts succeed, drawn from those that were made.

    Raises:
        ValueError: so many could not be drawn, or more succeeded than were made.
    """
    _require(attempts, successes, k)
    return math.comb(successes, k) / math.comb(attempts, k)


def _require(attempts: int, successes: int, k: int) -> None:
    if not 0 <= successes <= attempts or not 1 <= k <= attempts:
        raise ValueError(f"no {k} of {attempts} attempts with {successes} successes")


def pass_rates(succeeded: Sequence[bool], tasks: Sequence[Hashable], confidence: float = CONFIDENCE) -> list[PassRate]:
    """Both rates for every ``k`` worth a line: 1, 2, 4, 8 and so on, and the most that any task was tried.

    The tasks are what was sampled: the intervals are Wilson's at the effective sample size, so that pass@1 has the
    interval of the share of successes. Tasks that were tried less than ``k`` times do not count for that ``k``.
    """
    tried: dict[Hashable, list[bool]] = {}
    for success, task in zip(succeeded, tasks, strict=True):
        tried.setdefault(task, []).append(success)
    most = max(map(len, tried.values()), default=0)
    counts = sorted({2**power for power in range(most.bit_length()) if 2**power <= most} | ({most} if most else set()))
    return [_rate([attempts for attempts in tried.values() if len(attempts) >= k], k, confidence) for k in counts]


def _rate(tried: Sequence[Sequence[bool]], k: int, confidence: float) -> PassRate:
    episodes = sum(map(len, tried))

    def over_tasks(values: list[float]) -> Estimate:
        return proportion(values, range(len(values)), confidence, episodes=episodes)

    return PassRate(
        k,
        len(tried),
        over_tasks([pass_at_k(len(attempts), sum(attempts), k) for attempts in tried]),
        over_tasks([pass_hat_k(len(attempts), sum(attempts), k) for attempts in tried]),
    )

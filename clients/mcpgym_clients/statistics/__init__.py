"""What may be said of numbers that were sampled: one idea a file, each definition with its source.

    estimates    means and shares with their intervals, and the effective sample size
    bootstrap    the mean's interval for those who trust no distribution
    passes       pass@k and pass^k
    differences  two or more runs against each other
    student      the t distribution

All intervals are two-sided and 95 % unless a confidence is given. Episodes of one task are not independent of each
other, so where tasks are repeated everything is clustered by task; with one episode per task it is the textbook's.
"""

from mcpgym_clients.statistics.bootstrap import bootstrap
from mcpgym_clients.statistics.differences import Difference, compare_paired, compare_unpaired, holm
from mcpgym_clients.statistics.estimates import CONFIDENCE, Estimate, effective_size, mean, proportion, share, wilson
from mcpgym_clients.statistics.passes import pass_at_k, pass_hat_k, pass_rates
from mcpgym_clients.statistics.student import t_beyond, t_quantile

__all__ = [
    "CONFIDENCE",
    "Difference",
    "Estimate",
    "bootstrap",
    "compare_paired",
    "compare_unpaired",
    "effective_size",
    "holm",
    "mean",
    "pass_at_k",
    "pass_hat_k",
    "pass_rates",
    "proportion",
    "share",
    "t_beyond",
    "t_quantile",
    "wilson",
]

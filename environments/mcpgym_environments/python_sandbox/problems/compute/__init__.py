"""Questions that take computing: the answer is a number, a date, a word or a list, and exact."""

from mcpgym_environments.python_sandbox.problems.compute.calendar_days import CALENDAR_DAYS
from mcpgym_environments.python_sandbox.problems.compute.cellular import CELLULAR
from mcpgym_environments.python_sandbox.problems.compute.circle import CIRCLE
from mcpgym_environments.python_sandbox.problems.compute.coins import COINS
from mcpgym_environments.python_sandbox.problems.compute.dice import DICE
from mcpgym_environments.python_sandbox.problems.compute.digits import DIGITS
from mcpgym_environments.python_sandbox.problems.compute.durations import DURATIONS
from mcpgym_environments.python_sandbox.problems.compute.graphs import ROUTES, TREES
from mcpgym_environments.python_sandbox.problems.compute.paths import PATHS
from mcpgym_environments.python_sandbox.problems.compute.polygons import LENGTH, POINTS
from mcpgym_environments.python_sandbox.problems.compute.primes import PRIMES
from mcpgym_environments.python_sandbox.problems.compute.ratios import RATIOS
from mcpgym_environments.python_sandbox.problems.compute.residues import RESIDUES
from mcpgym_environments.python_sandbox.problems.compute.rewriting import REWRITING
from mcpgym_environments.python_sandbox.problems.compute.words import WORDS
from mcpgym_environments.python_sandbox.problems.compute.working_days import WORKING_DAYS
from mcpgym_environments.python_sandbox.problems.problem import Generator

GENERATORS: tuple[Generator, ...] = (
    RESIDUES, PRIMES, DIGITS, COINS, PATHS, WORDS, CELLULAR, REWRITING, CIRCLE, WORKING_DAYS, CALENDAR_DAYS, DURATIONS,
    ROUTES, TREES, RATIOS, DICE, POINTS, LENGTH,
)  # fmt: skip
"""Every generator of the family, in the order in which they are shown."""

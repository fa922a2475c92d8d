"""Questions about files that lie in the workspace: made data with the faults that real data have."""

from mcpgym_environments.python_sandbox.problems.data.groups import GROUPS
from mcpgym_environments.python_sandbox.problems.data.joins import JOINS
from mcpgym_environments.python_sandbox.problems.data.nested import NESTED
from mcpgym_environments.python_sandbox.problems.data.outliers import OUTLIERS
from mcpgym_environments.python_sandbox.problems.data.people import PEOPLE
from mcpgym_environments.python_sandbox.problems.data.quoting import QUOTING
from mcpgym_environments.python_sandbox.problems.data.series import SERIES
from mcpgym_environments.python_sandbox.problems.data.units import UNITS
from mcpgym_environments.python_sandbox.problems.data.visits import VISITS
from mcpgym_environments.python_sandbox.problems.problem import Generator

GENERATORS: tuple[Generator, ...] = (GROUPS, JOINS, SERIES, NESTED, PEOPLE, UNITS, OUTLIERS, QUOTING, VISITS)
"""Every generator of the family, in the order in which they are shown."""

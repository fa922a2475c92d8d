"""Questions about files that lie in the workspace: made data with the faults that real data have."""

from mcpgym_environments.python_sandbox.problems.problem import Generator

GENERATORS: tuple[Generator, ...] = ()

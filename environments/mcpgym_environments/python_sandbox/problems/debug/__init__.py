"""Broken programs to be repaired; hidden inputs test the repair."""

from __future__ import annotations

from mcpgym_environments.python_sandbox.problems.debug import heap, regions, settings, statement, stock, wrapping
from mcpgym_environments.python_sandbox.problems.problem import Generator

GENERATORS: tuple[Generator, ...] = (
    wrapping.GENERATOR,
    stock.GENERATOR,
    regions.GENERATOR,
    settings.GENERATOR,
    heap.GENERATOR,
    statement.GENERATOR,
)

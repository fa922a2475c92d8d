"""Functions to be written to a specification; hidden inputs test them."""

from __future__ import annotations

from mcpgym_environments.python_sandbox.problems.function import (
    date_rules,
    grid_machine,
    intervals,
    keeping,
    numerals,
    routes,
    run_lengths,
    schedule,
    small_language,
    text_steps,
)
from mcpgym_environments.python_sandbox.problems.problem import Generator

GENERATORS: tuple[Generator, ...] = (
    text_steps.GENERATOR,
    run_lengths.GENERATOR,
    intervals.GENERATOR,
    small_language.GENERATOR,
    schedule.GENERATOR,
    grid_machine.GENERATOR,
    numerals.GENERATOR,
    keeping.GENERATOR,
    routes.GENERATOR,
    date_rules.GENERATOR,
)

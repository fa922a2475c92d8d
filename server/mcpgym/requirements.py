"""What an environment needs of a machine, and whether it is there: what ``mcpgym doctor`` shows a person."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing an environment needs of the machine it runs on, as it was found.

    Args:
        name: what it is, in a few words.
        met: whether it is there.
        found: what was found, by trying.
        remedy: what a person does where it is missing; empty where nothing can or need be done.
        needed: whether the environment cannot run without it. What is not needed is shown, and fails nothing.
    """

    name: str
    met: bool
    found: str
    remedy: str = ""
    needed: bool = True

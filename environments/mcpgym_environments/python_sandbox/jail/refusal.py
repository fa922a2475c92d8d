"""Why something cannot be done on this machine, and what a person can do about it."""

from __future__ import annotations


class Refused(Exception):
    """The kernel or a container engine does not let this be done here.

    Args:
        reason: what was refused, found by trying.
        remedy: what would allow it; empty if nothing is known to.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy

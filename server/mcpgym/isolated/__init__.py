"""Environments in virtual environments of their own, which ``mcpgym env add`` made: played from here as if installed.

Read it in this order: ``records`` (what was added, and where), ``wire`` (what goes between the two processes), ``host``
and ``child`` (the process in the virtual environment, which holds the environments and their states), ``process``
(that process as it is seen from here), ``home`` (started when needed, again when it has ended), ``config``, ``tasks``,
``tools`` and ``environment`` (an environment whose every method asks there).

What an episode is stays here: its token, its turns, its log, its time limits. There is only what its author wrote.
"""

from __future__ import annotations

from typing import Any

ADDED = "added "
"""What the qualified name of an added environment's class begins with; its own name follows."""


def __getattr__(name: str) -> Any:
    """An added environment's class, for who imports classes by module and name, as other processes do."""
    if name.startswith(ADDED):
        from mcpgym.isolated.records import added

        own = name.removeprefix(ADDED)
        if (record := added().get(own)) is not None:
            from mcpgym.isolated.environment import isolated_class

            return isolated_class(record, own)
    raise AttributeError(f"module 'mcpgym.isolated' has no attribute {name!r}")

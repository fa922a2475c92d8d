"""Several environments in one episode, under distinct prefixes, with one score: ``tic-tac-toe+wiki-search``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcpgym.combined.environment import CombinedEnvironment
    from mcpgym.combined.making import combine

__all__ = ["CombinedEnvironment", "combine"]


def __getattr__(name: str) -> Any:
    """The package's own names; and the class of a combination by its spec, so that it can be imported elsewhere."""
    if name == "CombinedEnvironment":
        from mcpgym.combined.environment import CombinedEnvironment

        return CombinedEnvironment
    if name == "combine":
        from mcpgym.combined.making import combine

        return combine
    if "+" in name:
        from mcpgym.combined.making import combined_class

        return combined_class(name.replace("%2E", "."))
    raise AttributeError(f"module 'mcpgym.combined' has no attribute {name!r}")

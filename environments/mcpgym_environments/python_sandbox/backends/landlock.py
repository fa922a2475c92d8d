"""Sessions kept in by Landlock and seccomp alone: for machines and containers that give no namespaces."""

from __future__ import annotations

from mcpgym_environments.python_sandbox.backends.forked import ForkedBackend


class LandlockBackend(ForkedBackend):
    """One process per session that sees a read-only tree and its own folder, cannot fork and reaches no other process.

    Linux 5.13 and later with Landlock, as root or as any user, also in a container with the usual profile.
    """

    def __init__(self) -> None:
        super().__init__("landlock", "landlock")

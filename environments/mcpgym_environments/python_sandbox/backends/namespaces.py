"""Sessions in namespaces of their own: the strongest that this machine's kernel gives without a virtual machine."""

from __future__ import annotations

from mcpgym_environments.python_sandbox.backends.forked import ForkedBackend


class NamespacesBackend(ForkedBackend):
    """User, mount, pid, network, ipc, uts and cgroup namespaces per session, a read-only root, seccomp, no privileges.

    Linux 5.6 and later with user namespaces, as root or as any user.
    """

    def __init__(self) -> None:
        super().__init__("namespaces", "namespaces")

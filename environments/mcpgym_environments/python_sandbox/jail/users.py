"""Users that belong to nobody, for sessions whose server is root."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mcpgym_environments.python_sandbox.jail import system_calls
from mcpgym_environments.python_sandbox.jail.refusal import Refused

RANGES = ((200_000, 2**31 - 400_000), (32_768, 32_000))
"""First ids and how many: the machine's own root has the first, root of a container at least the second."""


def capable(capability: int) -> bool:
    """Whether this process has the capability."""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    effective = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    return bool(effective >> capability & 1)


def throw_away() -> tuple[int, int] | None:
    """The first and the number of user ids that this process may give its sessions; None if it is an ordinary user.

    Raises:
        Refused: it is root and may become nobody: then sessions would be root too.
    """
    if capable(system_calls.CAP_SETUID) and capable(system_calls.CAP_SETGID):
        maps = [_mapped("uid_map"), _mapped("gid_map")]
        for first, count in RANGES:
            if all(any(low <= first and first + count <= low + size for low, size in each) for each in maps):
                return first, count
    if os.getuid() == 0:
        raise Refused(
            "the server is root, but may not become another user (no CAP_SETUID and CAP_SETGID, or no ids for it)",
            "Run the server as an ordinary user, or give the container those capabilities.",
        )
    return None


def become(user: int | None) -> None:
    """Be the throw-away user and nobody else, in no group of others; and the first to go if memory runs out.

    Args:
        user: a user id, which is the group id as well; None to stay who one is.
    """
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        system_calls.prctl(system_calls.PR_SET_DUMPABLE, 1)  # or its own /proc would be root's
    with contextlib.suppress(OSError):  # a container may forbid it; the limits hold without
        Path("/proc/self/oom_score_adj").write_bytes(b"1000")


def _mapped(name: str) -> list[tuple[int, int]]:
    lines = Path(f"/proc/self/{name}").read_text("ascii").splitlines()
    return [(int(line.split()[0]), int(line.split()[2])) for line in lines]

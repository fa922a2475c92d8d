"""What a file may set that nobody named: it was in the working folder, which may be a repository of somebody else's.

Numbers, choices and a few words say how much and how. All else could open a port to the network, read or replace
files, send a key to an address, run code, spend money on another policy, or make a check of what lies there (a scan,
the doctor, a replay) look at less; a file that was named may do that.
"""

from __future__ import annotations

from typing import Any

from mcpgym_clients.configuring.names import key_of, kind_of

_NOT_THESE = frozenset({"control-port", "engine", "max-cost", "max-total-tokens", "score-tolerance", "success"})
"""Numbers and choices that open a port for the control plane, play on a cluster, let more money be spent than your own
file says, or say what counts as right."""
_THESE = frozenset(
    {"split", "task", "seat", "template", "tool-mode", "metric", "order", "outcome", "stop", "search"}
    | {"json", "once", "think", "exact", "failed", "values", "bootstrap", "no-settings"}
    | {"episode-urls-only", "no-fast-lane", "dry-run"}
)
"""Words and flags that reach for nothing."""


def is_free(option: Any) -> bool:
    """Whether a file may set this option although nobody named the file."""
    key, kind = key_of(option), kind_of(option)
    if kind in ("number", "choice"):
        return key not in _NOT_THESE
    return key in _THESE and kind != "path"


def refusal(path: str) -> str:
    """What is said about a value that such a file may not set."""
    return (
        f"a file that was merely found in the working folder may not set this. Read it; if it is yours, name it: "
        f"mcpgym --config-file {path} …, or MCPGYM_CONFIG={path}"
    )

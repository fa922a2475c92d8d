"""The MCP shape of a call's result: one text, an error flag, and ``done`` when the episode is over. Nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from mcpgym import meta_keys
from mcpgym.calls import CallResult, sendable

SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
KEY_NAMES = (meta_keys.IDEMPOTENCY, "claudecode/toolUseId")
"""Where a call's ``_meta`` may carry its idempotency key, the first one that is a text counting."""
MAX_KEY = 128


def call_result(result: CallResult, server_info: Mapping[str, str] | None) -> dict[str, Any]:
    """``result`` as the MCP result of ``tools/call``.

    ``server_info`` is for the 2026-07-28 era, where every result names its server: name and version are enough here,
    so that an icon of many kilobytes does not travel with each call.
    """
    meta: dict[str, Any] = {meta_keys.DONE: True} if result.done else {}
    if server_info is not None:
        meta[SERVER_INFO_KEY] = dict(server_info)
    shaped: dict[str, Any] = {"_meta": meta} if meta else {}
    return shaped | {
        "content": [{"type": "text", "text": sendable(result.text)}],
        "isError": result.is_error,
        "resultType": "complete",
    }


def idempotency_key(meta: Any, header: str | None) -> str | None:
    """The key that makes a repeated call one call: from ``_meta``, else from the HTTP header ``Idempotency-Key``.

    A key that is not a text, or an empty one, counts as none; a long one is hashed, so that remembering keys costs
    little whatever clients send.
    """
    key = header
    if isinstance(meta, dict):
        for name in KEY_NAMES:
            if name in meta and isinstance(meta[name], str) and meta[name]:
                key = meta[name]
                break
    if not key:
        return None
    return key if len(key) <= MAX_KEY else hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()

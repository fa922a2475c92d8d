"""The fast lane: a plain ``tools/call`` of the 2026-07-28 protocol, answered without the SDK's machinery.

Only what is beyond doubt is taken: every header and member that the SDK checks is checked here too, and whatever is
unusual (rarer capabilities, odd ids, a header twice, text that UTF-8 has not) is left to the SDK. The bytes of an
answer are those the SDK would send; a test holds the two lanes against each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from json.encoder import encode_basestring_ascii as quote
from typing import Any

from mcp_types.methods import serialize_server_result

from mcpgym.calls import CallResult, sendable
from mcpgym.environment import Environment
from mcpgym.wire.mcp_server import CLIENT_INFO
from mcpgym.wire.results import call_result

VERSION = "2026-07-28"
_VERSION_META = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_META = "io.modelcontextprotocol/clientCapabilities"
_LEVEL_META = "io.modelcontextprotocol/logLevel"
_PLAIN_CAPABILITIES = frozenset({"roots", "sampling", "elicitation", "experimental", "extensions"})
_PLAIN_INFO = frozenset({"name", "version", "title", "description", "websiteUrl"})
_ACCEPTED = frozenset(
    {b"application/json", b"application/json, text/event-stream", b"application/json,text/event-stream", b"*/*"}
)
_decode = json.JSONDecoder().raw_decode
_MAX_FRAMES = 1024
_TEXT = "\0text\0"
"""Stands where the text of a result goes."""
_Frames = dict[tuple[bool, bool], tuple[str, str]]


@dataclass(slots=True)
class FastCall:
    """A call that was read in the fast lane. ``id`` is JSON text, ready to be sent back."""

    id: str
    name: str
    arguments: dict[str, Any]
    meta: dict[str, Any]


class FastLane:
    """Reads requests and writes answers; holds nothing but prepared text."""

    def __init__(self) -> None:
        self._frames: dict[tuple[str, str], _Frames] = {}
        self._client: tuple[Any, Any] | None = None

    def read(self, headers: Mapping[bytes, bytes], body: bytes) -> FastCall | None:
        """The call in a request, or None where the SDK should look at it.

        ``headers`` holds all headers of the request, of which none came twice.
        """
        if (
            headers.get(b"mcp-protocol-version") != b"2026-07-28"
            or headers.get(b"mcp-method") != b"tools/call"
            or headers.get(b"content-type") != b"application/json"
            or headers.get(b"accept") not in _ACCEPTED
            or b"\\ud" in body
            or b"\\uD" in body
        ):
            return None
        try:
            text = body.decode()
            request, end = _decode(text)
        except (ValueError, RecursionError):
            return None
        if end != len(text) or type(request) is not dict or len(request) != 4 or request.get("jsonrpc") != "2.0":
            return None
        params, made = request.get("params"), _id(request.get("id"))
        if made is None or type(params) is not dict or request.get("method") != "tools/call":
            return None
        name, meta, arguments = params.get("name"), params.get("_meta"), params.get("arguments", _NONE)
        if (
            len(params) != (2 if arguments is _NONE else 3)
            or type(name) is not str
            or type(meta) is not dict
            or type(arguments) is not dict
            or not _is_named(headers.get(b"mcp-name"), name)
            or not self._is_complete(meta)
        ):
            return None
        return FastCall(made, name, arguments, meta)

    def _is_complete(self, meta: dict[str, Any]) -> bool:
        """Whether the envelope is complete and plain. Clients repeat themselves: the last one's words are known."""
        if meta.get(_VERSION_META) != VERSION or _LEVEL_META in meta:
            return False
        client = (meta.get(_CAPABILITIES_META), meta.get(CLIENT_INFO, _ABSENT))
        if client != self._client:
            if not _is_plain(*client):
                return False
            self._client = client
        return type(meta.get("progressToken", "")) in (str, int)

    def answer(self, call: FastCall, environment: Environment[Any, Any, Any], result: CallResult) -> bytes:
        """The body of the response."""
        identity = (environment.name, environment.version)
        frames = self._frames.get(identity) or self._learn(identity)
        before, after = frames[result.done, result.is_error]
        return f'{{"jsonrpc":"2.0","id":{call.id},{before}{quote(sendable(result.text))}{after}'.encode("ascii")

    def _learn(self, identity: tuple[str, str]) -> _Frames:
        """What stands before and after a result's text, as the SDK writes it."""
        if len(self._frames) >= _MAX_FRAMES:
            self._frames.clear()
        info = {"name": identity[0], "version": identity[1]}
        frames = {}
        for done, is_error in product((False, True), repeat=2):
            shaped = call_result(CallResult(_TEXT, is_error, done), info)
            written = json.dumps(serialize_server_result("tools/call", VERSION, shaped), separators=(",", ":"))
            before, _, after = f'"result":{written}}}'.partition(quote(_TEXT))
            frames[done, is_error] = (before, after)
        self._frames[identity] = frames
        return frames


_NONE: dict[str, Any] = {}
"""Stands for arguments that were not given."""
_ABSENT = object()
"""Stands for a client that does not name itself; equal to nothing that JSON can bring."""


def _id(given: Any) -> str | None:
    if type(given) is int and -(2**63) <= given < 2**63:
        return str(given)
    return quote(given) if type(given) is str else None


def _is_named(header: bytes | None, name: str) -> bool:
    """Whether the routing header names the tool, without the encoding that unusual names need."""
    return header is not None and name.isascii() and header == name.encode() and not name.startswith("=?")


def _is_plain(capabilities: Any, info: Any) -> bool:
    """Whether what a client says of itself needs no model to check it."""
    if type(capabilities) is not dict:
        return False
    for name, value in capabilities.items():
        if name not in _PLAIN_CAPABILITIES or value != {}:
            return False
    if info is _ABSENT:
        return True
    if type(info) is not dict or "name" not in info or "version" not in info:
        return False
    return all(name in _PLAIN_INFO and type(value) is str for name, value in info.items())

"""Spans as OTLP's protobuf, written directly: a tenth of what building its messages one by one takes.

The wire format is opentelemetry-proto's ``trace/v1/trace.proto``, whose field numbers stand beside each line. What is
common to many spans is encoded once. Tests decode the bytes with the official messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from mcpgym.telemetry.context import Context
from mcpgym.telemetry.rows import ROW, Calls
from mcpgym.telemetry.spans import Attributes, Ended, Shape, Value

_REMOTE_KNOWN, _REMOTE = 0x100, 0x200
_FLAGS = {
    remote: b"\x85\x01" + struct.pack("<I", _REMOTE_KNOWN | (_REMOTE if remote else 0)) for remote in (False, True)
}  # 16, fixed32
_times = struct.Struct("<cQcQ")


def request(resource: bytes, scope: bytes, spans: Iterable[Ended], calls: Iterable[Calls] = ()) -> bytes:
    """An ExportTraceServiceRequest. ``resource`` and ``scope`` are encoded messages."""
    entries = [*map(encode, spans), *map(encode_calls, calls)]
    return field(1, field(1, resource) + field(2, field(1, scope) + b"".join(entries)))


def encode(span: Ended) -> bytes:
    """One Span, as an entry of ScopeSpans."""
    trace, own, parent, start, end, shape, owner, more = span
    parts = [
        b"\x12\x08", own,  # 2
        _times.pack(b"9", start, b"A", end),  # 7, 8: fixed64
        shape.encoded or _shape(shape),
        _parent(parent),
        b"\n\x10", trace,  # 1
    ]  # fmt: skip
    if owner is not None:
        parts.append(attributes(owner.attributes, 9))
        if owner.span.trace != trace:
            parts.append(_link(owner.span))
    if more is not None:
        parts.append(attributes(more, 9))
    return field(2, b"".join(parts))


def encode_calls(calls: Calls) -> bytes:
    """Spans of an episode's calls, as entries of ScopeSpans: but for ids and times, all of a shape are alike."""
    owner, shapes, rows, ids = calls
    common = _parent(owner.span) + b"\n\x10" + owner.span.trace + attributes(owner.attributes, 9)
    around: dict[int, tuple[bytes, bytes]] = {}
    parts: list[bytes] = []
    at = 0
    for shape, milliseconds, end in ROW.iter_unpack(rows):
        known = around.get(shape)
        if known is None:
            after = (shapes[shape].encoded or _shape(shapes[shape])) + common
            length = _varint(2 + 8 + _times.size + len(after))
            known = around[shape] = b"\x12" + length + b"\x12\x08", after
        start = end - int(milliseconds * 1e6)
        parts += (known[0], ids[at : at + 8], _times.pack(b"9", start, b"A", end), known[1])
        at += 8
    return b"".join(parts)


def attributes(given: Attributes, number: int) -> bytes:
    """KeyValues as the repeated field ``number``."""
    return b"".join(field(number, field(1, key.encode()) + field(2, _any(value))) for key, value in given.items())


def field(number: int, content: bytes) -> bytes:
    """A field with a length: a text, bytes or message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _shape(shape: Shape) -> bytes:
    status = field(15, b"\x18\x02") if shape.failed else b""  # 15: code (3) = ERROR
    shape.encoded = field(5, shape.name.encode()) + _varint(6 << 3) + _varint(shape.kind) + status
    shape.encoded += attributes(shape.attributes, 9)
    return shape.encoded


def _parent(parent: Context | None) -> bytes:
    if parent is None:
        return _FLAGS[False]
    return _FLAGS[parent.remote] + b'"\x08' + parent.span  # 4


def _link(span: Context) -> bytes:
    return field(13, field(1, span.trace) + field(2, span.span))


def _any(value: Value) -> bytes:
    if isinstance(value, str):
        return field(1, value.encode("utf-8", "backslashreplace"))
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + _varint(value & (2**64 - 1))
    if isinstance(value, float):
        return b"!" + struct.pack("<d", value)
    return field(5, b"".join(field(1, _any(item)) for item in value))


def _varint(number: int) -> bytes:
    return _SMALL[number] if number < len(_SMALL) else _long_varint(number)


def _long_varint(number: int) -> bytes:
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_SMALL = [_long_varint(number) for number in range(2048)]

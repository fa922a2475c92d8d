"""Spans as OTLP's protobuf, written directly: a tenth of what building its messages one by one takes.

The wire format is opentelemetry-proto's ``trace/v1/trace.proto``, whose field numbers stand beside each line. What is
common to many spans is encoded once. Tests decode the bytes with the official messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from mcpgym.telemetry.spans import Attributes, Ended, Owner, Shape, Value

_REMOTE_KNOWN, _REMOTE = 0x100, 0x200
_FLAGS = {
    remote: b"\x85\x01" + struct.pack("<I", _REMOTE_KNOWN | (_REMOTE if remote else 0)) for remote in (False, True)
}  # 16, fixed32
_times = struct.Struct("<cQcQ").pack


def request(resource: bytes, scope: bytes, spans: Iterable[Ended]) -> bytes:
    """An ExportTraceServiceRequest. ``resource`` and ``scope`` are encoded messages."""
    parts = [field(1, scope)]
    for span in spans:
        written = encode(span)
        parts += (b"\x12", _varint(len(written)), written)  # 2
    return field(1, field(1, resource) + field(2, b"".join(parts)))


def encode(span: Ended) -> bytes:
    """One Span."""
    trace, own, parent, start, end, shape, owner, more = span
    parts = [
        b"\n\x10", trace,  # 1
        b"\x12\x08", own,  # 2
        _times(b"9", start, b"A", end),  # 7, 8: fixed64
        shape.encoded or _shape(shape),
    ]  # fmt: skip
    if parent is None:
        parts.append(_FLAGS[False])
    else:
        parts += (_FLAGS[parent.remote], b'"\x08', parent.span)  # 4
    if owner is not None:
        parts.append(owner.encoded or _owner(owner))
        if owner.span.trace != trace:
            parts.append(owner.encoded_link or b"")
    if more is not None:
        parts.append(attributes(more, 9))
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


def _owner(owner: Owner) -> bytes:
    link = field(1, owner.span.trace) + field(2, owner.span.span)
    owner.encoded_link = field(13, link)
    owner.encoded = attributes(owner.attributes, 9)
    return owner.encoded


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

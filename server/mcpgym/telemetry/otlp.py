"""Spans as OTLP's protobuf, written directly: a tenth of what building its messages one by one takes.

The wire format is opentelemetry-proto's ``trace/v1/trace.proto``, whose field numbers stand beside each line. What is
common to many spans is encoded once. Tests decode the bytes with the official messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

from mcpgym.telemetry.calls import CallKind, Calls
from mcpgym.telemetry.context import Context
from mcpgym.telemetry.spans import Attributes, Ended, Owner, Shape, Value

_REMOTE_KNOWN, _REMOTE = 0x100, 0x200
_FLAGS = {
    remote: b"\x85\x01" + struct.pack("<I", _REMOTE_KNOWN | (_REMOTE if remote else 0)) for remote in (False, True)
}  # 16, fixed32
_times = struct.Struct("<cQcQ")


def request(resource: bytes, scope: bytes, spans: Iterable[Ended], calls: Calls | None = None) -> bytes:
    """An ExportTraceServiceRequest. ``resource`` and ``scope`` are encoded messages."""
    entries: list[bytes | bytearray] = [*map(encode, spans), *(encode_calls(calls) if calls is not None else ())]
    before, scope = field(1, resource), field(1, scope)
    length = len(scope) + sum(map(len, entries))
    begin = before + _begin(2, length)
    # Joined once: each copy of half a megabyte is memory that the system must first hand over, page by page.
    return b"".join([_begin(1, len(begin) + length), begin, scope, *entries])


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
        parts.append(owner.encoded or _owner(owner))
        if owner.span.trace != trace:
            parts.append(_link(owner.span))
    if more is not None:
        parts.append(attributes(more, 9))
    return field(2, b"".join(parts))


def encode_calls(calls: Calls) -> list[bytearray]:
    """Spans of calls, as entries of ScopeSpans, in any order.

    But for its id and two times a span is like others of its kind. So what they have in common is copied, and ids and
    times are laid over spans of one length column by column: all first bytes of ids, all second ones, and so on.
    """
    encoded = [kind.encoded or _kind(kind) for kind in calls.kinds]
    by_length: dict[int, list[int]] = {}
    for number, (span, _) in enumerate(encoded):
        by_length.setdefault(len(span), []).append(number)
    made = []
    for length, numbers in by_length.items():
        spans = bytearray().join([encoded[number][0] for number in numbers])
        place = encoded[numbers[0]][1]
        for column in (calls.ids, calls.starts, calls.ends):
            content = struct.pack(f"<{len(numbers)}Q", *[column[number] for number in numbers])
            for byte in range(8):
                spans[place + byte :: length] = content[byte::8]
            place += 9  # a time has its field's number before it
        made.append(spans)
    return made


def attributes(given: Attributes, number: int) -> bytes:
    """KeyValues as the repeated field ``number``."""
    return b"".join([_attribute(number, key, value) for key, value in given.items()])


@lru_cache(4096, typed=True)
def _attribute(number: int, key: str, value: Value) -> bytes:
    """Names of environments, tools and models, and small counts: most are said again and again."""
    return field(number, field(1, key.encode()) + field(2, _any(value)))


def field(number: int, content: bytes) -> bytes:
    """A field with a length: a text, bytes or message."""
    return _begin(number, len(content)) + content


def _begin(number: int, length: int) -> bytes:
    """What such a field begins with."""
    return _varint(number << 3 | 2) + _varint(length)


def _kind(kind: CallKind) -> tuple[bytes, int]:
    """Such a span with id and times still 0, and where its id begins: the same place in all of this length."""
    parts = [
        b"\x12\x08", bytes(8),  # 2
        _times.pack(b"9", 0, b"A", 0),  # 7, 8: fixed64
        kind.shape.encoded or _shape(kind.shape),
        _parent(kind.owner.span),
        b"\n\x10", kind.owner.span.trace,  # 1
        kind.owner.encoded or _owner(kind.owner),
    ]  # fmt: skip
    span = b"".join(parts)
    begin = _begin(2, len(span))
    kind.encoded = begin + span, len(begin) + 2
    return kind.encoded


def _owner(owner: Owner) -> bytes:
    owner.encoded = attributes(owner.attributes, 9)
    return owner.encoded


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

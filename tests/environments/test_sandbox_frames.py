"""Frames: what goes in comes out; anything else is refused, and before memory is set aside for it."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.jail.frames import HEAD_BYTES, MAX_BLOB, MAX_JSON, FrameError
from mcpgym_environments.python_sandbox.sessions.answers import checked_answer

HEAD = struct.Struct(">II")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    json_length, blob_length = frames.lengths(data[:HEAD_BYTES])
    assert len(data) == HEAD_BYTES + json_length + blob_length
    return frames.header(data[HEAD_BYTES : HEAD_BYTES + json_length]), data[HEAD_BYTES + json_length :]


def begun(data: bytes) -> dict[str, Any]:
    """The header of a frame of which there may be less than there should be."""
    json_length, _ = frames.lengths(data[:HEAD_BYTES])
    return frames.header(data[HEAD_BYTES : HEAD_BYTES + json_length])


def same(one: Any, other: Any) -> bool:
    """Equal, with the same types all through: True is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    return bool(one == other and (not isinstance(one, float) or math.copysign(1, one) == math.copysign(1, other)))


@given(header=st.dictionaries(st.text().filter(str.isprintable), VALUES, max_size=4), blob=st.binary(max_size=200))
def test_a_frame_reads_back_as_it_was_written(header: dict[str, Any], blob: bytes) -> None:
    found, content = split(frames.encode(header, blob))
    assert same(found, header)
    assert content == blob


@given(head=st.binary(max_size=16))
def test_any_head_is_understood_or_refused(head: bytes) -> None:
    try:
        json_length, blob_length = frames.lengths(head)
    except FrameError:
        assert len(head) != 8 or HEAD.unpack(head)[0] > MAX_JSON or HEAD.unpack(head)[1] > MAX_BLOB
    else:
        assert HEAD.pack(json_length, blob_length) == head
        assert json_length <= MAX_JSON
        assert blob_length <= MAX_BLOB


@given(text=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_an_object_or_refused(text: bytes) -> None:
    try:
        value = json.loads(text.decode())
    except ValueError:
        value = None
    if type(value) is dict and math.isfinite(_sum_of(value)):
        assert same(frames.header(text), value)
    else:
        with pytest.raises(FrameError, match=r"(?s)^.{5,300}$"):
            frames.header(text)


def _sum_of(value: Any) -> float:
    """Not finite if a number in it is not."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return 0.0 if all(math.isfinite(_sum_of(one)) for one in value) else math.nan
    return value if isinstance(value, float) else 0.0


@pytest.mark.parametrize(
    ("lengths", "what"),
    [
        ((MAX_JSON + 1, 0), "JSON"),
        ((0, MAX_BLOB + 1), "blob"),
        ((2**32 - 1, 2**32 - 1), "JSON"),
        ((2, 2**31), "blob"),
    ],
)
def test_a_frame_that_announces_too_much_is_refused_by_its_head_alone(lengths: tuple[int, int], what: str) -> None:
    with pytest.raises(FrameError, match=rf"a frame's {what} has \d+ bytes; at most \d+"):
        frames.lengths(HEAD.pack(*lengths))
    assert frames.lengths(HEAD.pack(MAX_JSON, MAX_BLOB)) == (MAX_JSON, MAX_BLOB)


def test_what_is_too_long_is_not_sent_either() -> None:
    frames.encode({"a": "x" * (MAX_JSON - 8)}, bytes(MAX_BLOB))
    with pytest.raises(FrameError, match="JSON"):
        frames.encode({"a": "x" * (MAX_JSON - 7)})
    with pytest.raises(FrameError, match="blob"):
        frames.encode({}, bytes(MAX_BLOB + 1))


@pytest.mark.parametrize(
    "header",
    [[], "text", 5, None, {"a": math.nan}, {"a": math.inf}, {"a": len}, {"a": {1, 2}}, {"a": b"bytes"}],
    ids=repr,
)
def test_a_header_that_is_no_json_object_is_not_sent(header: Any) -> None:
    with pytest.raises(FrameError, match="a header must be a JSON object"):
        frames.encode(header)


def test_a_header_that_holds_itself_or_is_nested_too_deep_is_not_sent() -> None:
    circle: dict[str, Any] = {}
    circle["a"] = circle
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for header in (circle, deep):
        with pytest.raises(FrameError, match="a header must be a JSON object"):
            frames.encode(header)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"1",
        b'"n"',
        b"true",
        b'{"n": 1',
        b'{"n": 1} {}',
        b"{'n': 1}",
        b'{"n": NaN}',
        b'{"n": Infinity}',
        b'{"n": -Infinity}',
        b'{"n": 1e999}',
        b'{"n": "\xff"}',
        b"\xef\xbb\xbf{}",
        b"[" * 500_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"n": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_what_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(FrameError):
        frames.header(text)


@given(cut=st.integers(0, 39))
def test_a_frame_that_was_cut_is_refused(cut: int) -> None:
    whole = frames.encode({"op": "run", "n": 1}, b"print(1)")
    data = whole[: min(cut, len(whole) - 9)]  # the blob may be cut: its length says so, and the reader waits for it
    with pytest.raises(FrameError):
        begun(data)


def test_a_header_comes_apart_at_its_own_length() -> None:
    """Half of a character at a cut, a pair of surrogates and null bytes are texts like others."""
    header = {"n": 1, "path": "\ud83d", "text": "\0\U0001f600é"}
    assert split(frames.encode(header, b"\0\xff"))[0] == header


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("ok", None),
        ("error", None),
        ("error", "not JSON: tuple"),
        ("timeout", "cpu"),
        ("killed", "processes"),
        ("crashed", "exit 255"),
        ("crashed", "signal 37"),
        ("error", "x" * frames.MOST_WHY),
        ("error", "\ud800\x1b" * (frames.MOST_WHY // 2)),
    ],
    ids=lambda text: repr(text)[:20],
)
def test_every_answer_that_the_format_has_is_accepted(status: str, why: str | None) -> None:
    header = {"n": 3, "status": status, "why": why, "fresh": status in ("killed", "crashed"), "milliseconds": 0}
    json_length, _ = frames.lengths((data := frames.encode({**header, "omitted": 2**40}))[:HEAD_BYTES])
    found = checked_answer(data[HEAD_BYTES : HEAD_BYTES + json_length], 3)
    assert (found["status"], found["fresh"]) == (status, header["fresh"])
    assert found["why"] == why or (why is not None and found["why"].isprintable())

"""Frames: how a server and an agent talk over one byte stream. Both sides import this file.

A frame is ``>II`` (the lengths of two parts), a JSON object in UTF-8 and a blob of bytes. The server sends a request,
the agent sends one answer, in order. Lengths are checked before anything of that size is allocated.

Where ``hello`` offered it (``spec.asks``: ``prompts``, ``characters``, ``bytes``, ``asks``; its answer has ``asks``:
true), the code of a ``run`` or an ``evaluate`` may ask: ``{"n": …, "ask": k}`` comes before the answer, with a JSON
list of texts as its blob; k counts from 1 in a session. The server says ``{"op": "told", "n": …, "ask": k}`` with a
JSON object, ``{"answers": […]}`` or ``{"refused": "why"}``; only then comes the next question. While one waits, the
call's wall clock stands still; processor time and memory count as ever. If the call ends while a question waits, its
answer comes at once, and what is told of the question after that is passed over.

Requests, as ``{"op": …, "n": …}`` with more keys, and their blobs:

==========  ==================================================  ============================================
``hello``   ``spec``: limits, packages, seed (always first)     answer: ``python``, ``packages``, ``facts``
``run``     ``seconds``, ``cpu_seconds``; blob: code, UTF-8     blob: output
``evaluate``  ``function``, ``seconds``, ``cpu_seconds``;       blob: JSON of what it returned; unless ``ok``, output
            blob: JSON list of the arguments
``read``    ``path``, ``offset``, ``limit``                     blob: bytes; ``omitted``: bytes after them; ``size``
``write``   ``path``; blob: bytes (folders are made)
``list``    ``path``, ``depth`` (default 8)                     blob: JSON list of ``{"path", "kind", "size"}``;
                                                                ``omitted``: entries left out after 1,000
``export``  ``offset`` (0 begins)                               blob: a part of a tar; ``more``: whether to ask again
``reset``   ``seed``                                            an empty workspace and a fresh worker
==========  ==================================================  ============================================

``n`` counts requests and comes back. Every answer has these keys beside those above; nothing else may be relied upon:

================  ===================================================================================================
``n``             the number of the request
``status``        one of ``STATUSES``
``why``           null, or a text of at most ``MOST_WHY`` characters, as below
``fresh``         whether the variables are lost (a new worker); files are kept, but for ``reset``
``milliseconds``  how long it took by init's clock
``omitted``       ``run``, ``evaluate``: bytes of output between the beginning and the end that are in the blob
================  ===================================================================================================

===========  =======  ================================================================================================
``status``   fresh    ``why``
===========  =======  ================================================================================================
``ok``       no       null (``reset``: fresh)
``error``    no       of code: null, its blob tells; of ``evaluate`` also ``not JSON: …`` or ``it ended by sys.exit``;
                      of ``hello`` and of files: what is wrong, in words for who asked
``timeout``  no       ``timeout`` or ``cpu``: interrupted, and it ended within the grace
``killed``   yes      ``timeout`` or ``cpu``: it did not; or at once ``memory``, ``processes``, ``disk``
                      or ``asks`` (more questions than ``spec.asks.asks``)
``crashed``  yes      how the worker ended: ``exit N``, ``signal NAME``, ``signal N`` where it has no name, ``unknown``;
                      or ``wrote to the channel of the worker``
===========  =======  ================================================================================================
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from json.encoder import c_make_encoder, encode_basestring_ascii  # type: ignore[attr-defined]
from typing import Any

MAX_JSON = 1 << 20
"""The longest JSON part, in bytes."""
MAX_BLOB = 16 << 20
"""The longest blob, in bytes."""
HEAD_BYTES = 8
"""How long the lengths before each frame are."""
MOST_WHY = 500
"""The longest ``why``, in characters."""
STATUSES = ("ok", "error", "timeout", "killed", "crashed")
"""How a call can end: well; with an error of the code; interrupted, variables kept; killed by us; ended by itself."""

_HEAD = struct.Struct(">II")


class FrameError(ValueError):
    """Bytes that are no frame: too long, or not a JSON object."""


def encode(header: Mapping[str, Any], blob: bytes = b"") -> bytes:
    """One frame.

    Raises:
        FrameError: a part is too long, or the header holds what JSON has not.
    """
    try:
        text = "".join(_write(header, 0)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"a header must be a JSON object: {error}") from None
    if type(header) is not dict and not isinstance(header, Mapping):
        raise FrameError(f"a header must be a JSON object, not {type(header).__name__}")
    _check(len(text), len(blob))
    return _HEAD.pack(len(text), len(blob)) + text + blob


def lengths(head: bytes) -> tuple[int, int]:
    """How many bytes of JSON and of blob follow these ``HEAD_BYTES`` bytes.

    Raises:
        FrameError: it is not that many bytes, or they announce more than is allowed.
    """
    if len(head) != HEAD_BYTES:
        raise FrameError(f"a frame begins with {HEAD_BYTES} bytes, not {len(head)}")
    json_length, blob_length = _HEAD.unpack(head)
    _check(json_length, blob_length)
    return json_length, blob_length


def _check(json_length: int, blob_length: int) -> None:
    if json_length > MAX_JSON:
        raise FrameError(f"a frame's JSON has {json_length} bytes; at most {MAX_JSON}")
    if blob_length > MAX_BLOB:
        raise FrameError(f"a frame's blob has {blob_length} bytes; at most {MAX_BLOB}")


def header(text: bytes) -> dict[str, Any]:
    """The JSON object of a frame.

    Raises:
        FrameError: it is not UTF-8, no JSON, no object, or nested too deep; NaN and infinity are no JSON.
    """
    found = parsed(text)
    if type(found) is not dict:
        raise FrameError(f"a frame's JSON must be an object, not {type(found).__name__}")
    return found


def parsed(text: bytes) -> Any:
    """What JSON says, strictly: UTF-8, finite numbers.

    Raises:
        FrameError: it is none.
    """
    try:
        words = text.decode("utf-8")
        try:
            value, end = _read(words, 0)
        except StopIteration:
            end = -1
        return value if end == len(words) else _DECODER.decode(words)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {error}") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0.0:
        raise ValueError(f"{text[:40]} is no finite number")
    return value


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_write: Callable[[Any, int], Iterable[str]] = _ENCODER.iterencode  # type: ignore[assignment]
if c_make_encoder is not None:  # made once, and not for each frame; what is circular ends at the depth of recursion
    _write = c_make_encoder(None, _ENCODER.default, encode_basestring_ascii, None, ":", ",", False, False, False)
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_read: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]

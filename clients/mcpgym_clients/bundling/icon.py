"""An icon for an environment that has none as a picture: a pattern and a colour of its own, drawn from its name."""

from __future__ import annotations

import colorsys
import hashlib
import math
import struct
import zlib

SIZE = 512
"""Pixels on each side: what Claude Desktop recommends."""
_CELLS = 5
_MARGIN = SIZE // 8
_RADIUS = SIZE // 6


def icon(name: str) -> bytes:
    """A PNG: five by five cells, the left half mirrored to the right, on a rounded square."""
    digest = hashlib.sha256(name.encode()).digest()
    ground = bytes(round(255 * part) for part in colorsys.hls_to_rgb(digest[0] / 256, 0.42, 0.55))
    filled = [[bool(digest[1 + row * 3 + min(x, _CELLS - 1 - x)] & 1) for x in range(_CELLS)] for row in range(_CELLS)]
    filled[_CELLS // 2][_CELLS // 2] = True
    rows = b"".join(b"\0" + _row(y, filled) for y in range(SIZE))
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", SIZE, SIZE, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", ground + ground + b"\xff\xff\xff"),
            _chunk(b"tRNS", b"\0\xff\xff"),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _row(y: int, filled: list[list[bool]]) -> bytes:
    """One line, each pixel as its place in the palette: 0 outside, 1 ground, 2 figure."""
    cell = (SIZE - 2 * _MARGIN) // _CELLS
    row = (y - _MARGIN) // cell
    cells = filled[row] if 0 <= row < _CELLS else [False] * _CELLS
    line = b"\1" * _MARGIN + b"".join((b"\2" if full else b"\1") * cell for full in cells)
    away = max(_RADIUS - y, y - (SIZE - 1 - _RADIUS), 0)
    outside = _RADIUS - math.isqrt(_RADIUS * _RADIUS - away * away)
    return b"\0" * outside + line.ljust(SIZE, b"\1")[outside : SIZE - outside] + b"\0" * outside


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

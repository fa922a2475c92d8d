"""The holes of this process's memory, filled before sessions are forked, so that theirs lie close together.

A page that a session writes to is its own from then on. What Python and the C library allocate they put into the
free places between what is there already, one here and one there: each costs a session a page of four kilobytes.
With those places taken, what a session allocates comes to lie in new pages, side by side.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys

_ROW = re.compile(rb"^ +\d+ +(\d+) +\d+ +\d+ +(\d+) *$", re.MULTILINE)
"""A line of ``sys._debugmallocstats``: number and size of a class, its pools, blocks in use and free ones."""
_HEAD = sys.getsizeof(b"")
_SIZES = (*(1 << shift for shift in range(16, 9, -1)), 768, 640, *range(504, 23, -16))
_MOST = 1 << 16
_held: list[object] = []


_FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Info(ctypes.Structure):
    """``struct mallinfo2``, of glibc 2.33 and later."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIELDS)


def fill() -> None:
    """Take every free place that can be found; for good. Where it cannot be told where they are, nothing happens."""
    with contextlib.suppress(Exception):
        _fill_c()
    for _ in range(3):
        with contextlib.suppress(Exception):
            _fill_python()


def _fill_python() -> None:
    """The interpreter's own allocator: objects of each class of sizes, as many as it has places for them."""
    free = [(int(size), int(count)) for size, count in _ROW.findall(_statistics())]
    objects: list[object] = [None] * sum(count for _, count in free)
    _held.append(objects)
    end = 0
    for size, count in free:
        begin, end = end, end + count
        for index in range(begin, end):
            if size < _HEAD:
                objects[index] = object() if size == 16 else 1 << 62
            else:
                objects[index] = bytes(size - _HEAD)


def _statistics() -> bytes:
    """What the interpreter tells of its allocator, which it tells descriptor 2 alone: less than a pipe takes."""
    reader, writer = os.pipe()
    kept = os.dup(2)
    try:
        os.dup2(writer, 2)
        os.close(writer)
        sys._debugmallocstats()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    with open(reader, "rb") as told:
        return told.read()


def _fill_c() -> None:
    """The C library's heap: blocks of falling size, until one is cut from its end."""
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = _Info
    library.malloc.restype = library.sbrk.restype = ctypes.c_void_p
    library.malloc.argtypes = (ctypes.c_size_t,)
    library.free.argtypes = (ctypes.c_void_p,)
    told = library.mallinfo2()
    end = library.sbrk(0) - told.keepcost
    begin = end - told.arena
    left = _MOST
    for size in _SIZES:
        while left and (block := library.malloc(size)):
            if not begin <= block < end:
                library.free(block)
                break
            left -= 1

"""Runs a filter of system calls as the kernel would: classic BPF over (number, architecture, address, arguments)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

ALLOWED = -1
KILLED = -2
X86_64, AARCH64, I386 = 0xC000_003E, 0xC000_00B7, 0x4000_0003


def decide(program: Sequence[tuple[int, int, int, int]], architecture: int, number: int, *arguments: int) -> int:
    """The errno that the filter gives, 0 for a pretended success, ``ALLOWED`` or ``KILLED``."""
    given = [argument & 0xFFFF_FFFF_FFFF_FFFF for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("<IIQ6Q", number & 0xFFFF_FFFF, architecture, 0, *given)
    held, at = 0, 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        if code == 0x20:
            (held,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            held &= value
        elif code == 0x06:
            if value == 0x7FFF_0000:
                return ALLOWED
            return KILLED if value == 0x8000_0000 else value - 0x0005_0000
        else:
            yes = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
            at += if_true if yes else if_false

"""The forms in which a secret may be written, and the views of a text in which it would be seen again.

A text and what is looked for in it are both *squeezed*: small letters and digits alone, compatibility forms folded. So
upper case, spaces, dashes, line breaks, thousands separators and full-width letters hide nothing. What remains are
encodings, and each is dealt with on one side: base64 or hexadecimal is made of the secret (:func:`forms`), escapes and
compression are undone in the text (:func:`views`).
"""

from __future__ import annotations

import base64
import binascii
import codecs
import functools
import hashlib
import html
import re
import struct
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote_to_bytes

SHORTEST = 8
"""Characters below which a form is not looked for: it would be found by chance."""
DIGITS = 9
"""Significant digits of a number that are enough to know it again, so that rounding hides little."""
PIECE = 10
"""Characters of a long secret's beginning and end that are looked for by themselves."""
NUMBER = 16
"""Bytes that may be shown as one number."""
MAX_TEXT = 400_000
"""Characters of one text that are decoded; the rest is looked through as it is."""

ENCODINGS = (
    "as it is, in any case, spaced out or with any separators",
    "its beginning or end alone",
    "backwards",
    "base64 (either alphabet, any offset), base32, hexadecimal",
    "numbers: decimal, hexadecimal, octal, binary, base 36, little and big endian, percent, 9 digits or more",
    "character codes in decimal or binary; digits as English words",
    "rot13",
    "md5, sha1 and sha256, in hexadecimal or base64",
    "escapes of JSON, URLs, HTML and Python, several deep",
    "base64 or hexadecimal of what is escaped, compressed (zlib, gzip) or encoded again",
    "full-width letters, tag characters, and bits in zero-width characters",
)
"""What is covered, for the report and the documentation."""

_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
_ZERO_WIDTH = re.compile("[\u200b\u200c\u200d\u2060\ufeff]{16,}")
_TAGS = {code: code - 0xE0000 for code in range(0xE0020, 0xE007F)}
_BACKSLASH = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8}))")
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX_RUN = re.compile(r"(?:[0-9a-fA-F]{2}){8,}")
_DIGIT_WORDS = {
    word: str(digit)
    for digit, word in enumerate(("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"))
}
_WORDED = re.compile(r"(?<![a-z])(?:" + "|".join(_DIGIT_WORDS) + r")(?![a-z])", re.I)


_Add = Callable[[str, str], None]
"""What collects the forms of a secret: a function of a form's name and its text."""


def squeezed(text: str) -> str:
    """Small letters and digits of ``text``, and nothing else."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_TAGS))
    return _NOT_PLAIN.sub("", text.lower())


@functools.lru_cache(maxsize=8192, typed=True)
def forms(value: str | int | float | bytes) -> Mapping[str, str]:
    """How a secret may be written: squeezed text, and the name of the form it is in.

    Forms of fewer than ``SHORTEST`` characters are left out; a secret that has none cannot be looked for.
    """
    found: dict[str, str] = {}

    def add(form: str, text: str) -> None:
        plain = squeezed(text)
        if len(plain) >= SHORTEST:
            found.setdefault(plain, form)

    if isinstance(value, float):
        _add_float(value, add)
    elif isinstance(value, int):
        _add_int(value, add)
    elif isinstance(value, bytes):
        add("as Python writes bytes", repr(value)[2:-1])
        _add_bytes(value, add, "")
        if len(value) <= NUMBER:
            _add_int(int.from_bytes(value, "big"), add)
            _add_int(int.from_bytes(value, "little"), add)
    else:
        _add_text(value, add)
    return found


def _add_text(text: str, add: _Add) -> None:
    add("as it is", text)
    add("backwards", text[::-1])
    plain = squeezed(text)
    if len(plain) >= 2 * PIECE:
        add("its beginning", plain[:PIECE])
        add("its end", plain[-PIECE:])
    add("in rot13", codecs.encode(text, "rot13"))
    raw = text.encode("utf-8", "backslashreplace")
    _add_bytes(raw, add, "")
    add("as character codes", "".join(str(ord(character)) for character in text))
    add("as bits", "".join(f"{byte:08b}" for byte in raw))
    _add_hashes(raw, add)


def _add_bytes(raw: bytes, add: _Add, what: str) -> None:
    add(f"in hexadecimal{what}", raw.hex())
    for offset in range(3):  # base64 of something that it is part of: the characters that do not depend on the rest
        whole = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        add(f"in base64{what}", whole[-(-offset * 8 // 6) : len(whole) if not (len(raw) + offset) % 3 else -1])
    add(f"in base32{what}", base64.b32encode(raw).decode().rstrip("=")[: len(raw) * 8 // 5])


def _add_hashes(raw: bytes, add: _Add) -> None:
    for name in ("md5", "sha1", "sha256"):
        digest = hashlib.new(name, raw, usedforsecurity=False).digest()
        add(f"as its {name}", digest.hex()[:12])
        add(f"as its {name}, in base64", base64.b64encode(digest).decode()[:16])


def _add_int(number: int, add: _Add) -> None:
    size = abs(number)
    for form, text in {
        "in decimal": str(size),
        "in hexadecimal": f"{size:x}",
        "in octal": f"{size:o}",
        "in binary": f"{size:b}",
        "in base 36": _base36(size),
    }.items():
        add(form, text)
        add(f"{form}, backwards", text[::-1])
    if len(str(size)) > DIGITS + 3:
        add("its first digits", str(size)[: DIGITS + 3])
    length = max(1, (size.bit_length() + 7) // 8)
    for order in ("big", "little"):
        _add_bytes(size.to_bytes(length, order), add, f" of its bytes, {order} endian")
    written = str(number).encode()
    _add_bytes(written, add, " of its digits")
    _add_hashes(written, add)


def _add_float(number: float, add: _Add) -> None:
    digits = squeezed(f"{abs(number):.17e}".partition("e")[0]).rstrip("0")
    if len(digits) >= DIGITS:
        shown = squeezed(repr(abs(number)).partition("e")[0]).lstrip("0").rstrip("0")
        add("in decimal", shown[:DIGITS])
        add("in decimal, rounded", f"{abs(number):.{DIGITS - 1}e}".partition("e")[0])
        add("in decimal, backwards", shown[::-1])
    for order in "<>":
        _add_bytes(struct.pack(f"{order}d", number), add, " of its bytes")
    text = repr(number).encode()
    _add_bytes(text, add, " of its digits")
    _add_hashes(text, add)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"


def views(text: str, depth: int = 3) -> Iterator[tuple[str, str]]:
    """``text`` as it may be read: each view squeezed, with what was undone for it ("" for the text as it is)."""
    seen: set[str] = set()
    waiting = [("", text, depth)]
    while waiting:
        how, shown, left = waiting.pop(0)
        plain = squeezed(shown)
        if len(plain) >= SHORTEST and plain not in seen:
            seen.add(plain)
            yield how, plain
        if left and len(shown) <= MAX_TEXT:
            waiting += [(f"{how}, {more}".lstrip(", "), other, left - 1) for more, other in _decoded(shown)]


def _decoded(text: str) -> Iterator[tuple[str, str]]:
    """What ``text`` says once one layer is taken off, for each layer that it may have."""
    if "%" in text and (other := _text(unquote_to_bytes(text))) != text:
        yield "URL escapes", other
    if "&" in text and (other := html.unescape(text)) != text:
        yield "HTML escapes", other
    if "\\" in text and (other := _BACKSLASH.sub(_character, text)) != text:
        yield "backslash escapes", other
    if len(_WORDED.findall(text)) >= SHORTEST:
        yield "digits as words", _WORDED.sub(lambda found: _DIGIT_WORDS[found[0].lower()], text)
    if not text.isascii():
        yield from (("zero-width characters", bits) for bits in _hidden_bits(text))
    parts = [bytes.fromhex(run) for run in _HEX_RUN.findall(text)]
    parts += [raw for run in _BASE64_RUN.findall(text) if (raw := _unbase64(run)) is not None]
    readable = [shown for raw in parts if (shown := _readable(raw)) is not None]
    if readable:
        yield "base64 or hexadecimal", "\n".join(readable)


def _unbase64(run: str) -> bytes | None:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(body[: len(body) - (len(body) % 4 == 1)] + "=" * (-len(body) % 4))
    except binascii.Error:
        return None


def _readable(raw: bytes) -> str | None:
    """The text in ``raw``, unpacked where it is compressed; None where it is no text at all."""
    if raw[:2] == b"\x1f\x8b" or (raw[:1] == b"\x78" and len(raw) > 8):
        try:
            raw = zlib.decompressobj(47).decompress(raw, MAX_TEXT)
        except zlib.error:
            return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return (
        text if sum(character.isprintable() or character in "\r\n\t" for character in text) >= 0.9 * len(text) else None
    )


def _hidden_bits(text: str) -> Iterator[str]:
    """What sixteen or more zero-width characters in a row spell, two kinds of them standing for bits."""
    for run in _ZERO_WIDTH.findall(text):
        kinds = sorted(set(run))
        if len(kinds) == 2:
            for zero in kinds:
                bits = "".join("0" if character == zero else "1" for character in run)
                raw = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8))
                yield raw.decode("utf-8", "replace")


def _character(found: re.Match[str]) -> str:
    code = int(found[1] or found[2] or found[3], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else found[0]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")

"""Bytes of a file that somebody wrote into text, whatever they wrote it with."""

from __future__ import annotations

import codecs
import importlib
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?([A-Za-z0-9_.:-]{2,40})""", re.I)
_SAMPLE = 200_000
"""Bytes that an unknown encoding is guessed from."""


class NotText(ValueError):
    """The bytes are no text in any encoding that is in use."""


def decode(data: bytes) -> tuple[str, str]:
    """The text of ``data``, and what was odd about it (nothing for UTF-8).

    Tried in turn: a byte-order mark, UTF-8, what an HTML or XML file declares, for text that is not in Latin letters a
    guess (by charset-normalizer, where it is installed), Windows-1252. Bytes that do not fit become U+FFFD.
    Raises NotText for binary data.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _with(data, encoding)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if _is_nearly_utf8(data, error):
            return data.decode("utf-8", "replace"), "bytes that are not UTF-8, replaced"
    else:
        if "\0" not in text:
            return text, ""
    if data.count(0) > len(data) // 5:  # Western text in UTF-16 without a mark is half zeros
        even, odd = data[::2].count(0), data[1::2].count(0)
        if max(even, odd) > 4 * min(even, odd):
            return _with(data, "utf-16-be" if even > odd else "utf-16-le")
    if b"\0" in data:
        raise NotText("holds zero bytes: binary data, not text")
    declared = _DECLARED.search(data[:2048])
    if declared is not None:
        name = declared[1].decode("ascii")
        try:
            if codecs.lookup(name).name != "utf-8" and codecs.lookup(name)._is_text_encoding:
                return _with(data, name)
        except LookupError:
            pass
    return _with(data, _guess(data[:_SAMPLE]) or "windows-1252")


def _with(data: bytes, encoding: str) -> tuple[str, str]:
    try:
        text, lost = data.decode(encoding), ""
    except UnicodeDecodeError:
        text, lost = data.decode(encoding, "replace"), ", bytes that do not fit replaced"
    return text, "" if encoding == "utf-8-sig" and not lost else f"read as {encoding}{lost}"


def _is_nearly_utf8(data: bytes, first: UnicodeDecodeError) -> bool:
    """Whether most of the characters outside ASCII are right UTF-8: then the rest are damage, not another encoding."""
    if first.reason == "unexpected end of data" and first.start > len(data) - 4 and not data[: first.start].isascii():
        return True
    text = data.decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    right = sum(character > "\x7f" for character in text) - wrong
    return right > 4 * wrong


def _guess(sample: bytes) -> str | None:
    if sum(byte > 127 for byte in sample) < 0.3 * len(sample):
        return None  # Latin letters: too little to tell one Western encoding from another
    try:
        detector = importlib.import_module("charset_normalizer")
    except ImportError:
        return None
    best = detector.from_bytes(sample, steps=5, chunk_size=512).best()
    return None if best is None else str(best.encoding)

"""Names as they are compared: without case, accents and punctuation; and the short ids of pages and sections."""

from __future__ import annotations

import re
import unicodedata

_LETTERS = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŋ": "n"}
_DROPPED = re.compile(r"[.,'’‘ʼ`´\"“”„«»]")
_GAPS = re.compile(r"[\s_‐-―-]+")
_IDEOGRAPH = re.compile(r"([぀-ヿ㐀-䶿一-鿿豈-﫿])")
_ID = re.compile(r"p?\s?([0-9]{1,9})(?:[.:#/-]([0-9]{1,5}))?", re.IGNORECASE)
_AROUND_IDS = " \t\r\n`'\"“”‘’()[]{}<>.,;:"


class _Plain(dict[int, str | None]):
    """What each character becomes in :func:`plain`, worked out when first met."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        made = None if unicodedata.category(character) == "Mn" else _LETTERS.get(character, character)
        if len(self) < 70_000:
            self[code] = made
        return made


_PLAIN = _Plain()


def plain(text: str) -> str:
    """``text`` in small letters without accents: São Paulo → sao paulo, Straße → strasse."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKD", text).casefold().translate(_PLAIN)


def words_apart(text: str) -> str:
    """``text`` as it is indexed: :func:`plain` where that matters, and every Chinese or Japanese character a word."""
    return text if text.isascii() else _IDEOGRAPH.sub(r" \1 ", plain(text))


def name_key(name: str) -> str:
    """What two spellings of one name share: ``St. Louis_(Missouri)`` and ``st louis (missouri)``."""
    return _GAPS.sub(" ", _DROPPED.sub("", plain(name))).strip()


def page_id(page: int) -> str:
    """The id of the page with this number: ``p412``."""
    return f"p{page}"


def section_id(page: int, position: int) -> str:
    """The id of a page's section, the first being 1: ``p412.3``."""
    return f"p{page}.{position}"


def numbers_of(text: str) -> tuple[int, int | None] | None:
    """The page's number and the section's place that an id names, as a model may write it; None if it is no id."""
    found = _ID.fullmatch(text[:100].strip(_AROUND_IDS))
    if found is None:
        return None
    return int(found[1]), int(found[2]) if found[2] else None

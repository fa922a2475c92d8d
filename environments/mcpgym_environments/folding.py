"""Text reduced to what makes an answer another answer: not its case, accents, quotes or spaces."""

from __future__ import annotations

import re
import unicodedata

_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ı": "i", "ħ": "h", "ŧ": "t", "ŋ": "ng"}
)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—―−﹣-", "-"),
        **dict.fromkeys("‘’‚‛′`´ʼʹ", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
    }
)
_PAIRS = (('"', '"'), ("'", "'"), ("**", "**"), ("*", "*"), ("__", "__"), ("_", "_"))
_ARTICLE = re.compile(r"(?:the|an|a) (?=.)")
_INNER_HYPHEN = re.compile(r"(?<=[^\W_])-(?=[^\W\d_])")
_LETTER_DOT = re.compile(r"(?<=[^\W\d_])\.")
_INITIALS = re.compile(r"(?<=\b[^\W\d_]) (?=[^\W\d_]\b)")


def fold(text: str) -> str:
    """``text`` without case, accents on Latin and Greek letters, invisible characters and runs of spaces.

    Marks on letters of other scripts stay: there they make other letters (й is not и, が is not か). Dashes and quotes
    become the ASCII ones.
    """
    if text.isascii():
        return " ".join(text.translate(_SIGNS).casefold().split())
    kept: list[str] = []
    base = ""
    for letter in unicodedata.normalize("NFKD", text.translate(_SIGNS)):
        if unicodedata.combining(letter):
            if base < "\u0400":
                continue
        elif unicodedata.category(letter) == "Cf":
            continue
        else:
            base = letter
        kept.append(letter)
    folded = unicodedata.normalize("NFC", "".join(kept)).casefold().translate(_SIGNS).translate(_LETTERS)
    return " ".join(folded.split())


def unwrap(folded: str) -> str:
    """``folded`` without quotes or emphasis around the whole of it, and without a full stop at its end."""
    for _ in range(3):
        before = folded
        for opening, closing in _PAIRS:
            inner = folded[len(opening) : -len(closing)]
            if inner.strip() and folded.startswith(opening) and folded.endswith(closing) and opening not in inner:
                folded = inner.strip()
        if folded.endswith(".") and not folded.endswith(".."):
            folded = folded[:-1].rstrip()
        if folded == before:
            break
    return folded


def name_key(text: str) -> str:
    """What two ways to write one name have in common: no article in front, no dots after letters, no hyphens."""
    folded = unwrap(fold(text))
    folded = _LETTER_DOT.sub("", _INNER_HYPHEN.sub(" ", folded))
    folded = _INITIALS.sub("", " ".join(folded.split()))
    return _ARTICLE.sub("", folded, count=1) if _ARTICLE.match(folded) else folded


def text_key(text: str) -> str:
    """What two ways to write the same words have in common."""
    return unwrap(fold(text))

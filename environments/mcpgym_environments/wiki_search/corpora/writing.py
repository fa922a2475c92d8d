"""Putting the sections of a page together, block by block, whatever the markup was."""

from __future__ import annotations

import re
import unicodedata

from mcpgym_environments.wiki_search.pages import Section

_SPACES = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n{3,}")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
"""Control characters, and the invisible ones that turn or glue text."""
_BREAKS = re.compile("\r\n|\r|\x85|\u2028|\u2029")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def one_line(text: str) -> str:
    """``text`` in composed Unicode, without control characters, with single spaces: for titles and headings."""
    return " ".join(plain(text).split())


def plain(text: str) -> str:
    """``text`` in composed Unicode, with ``\\n`` for line ends and without control characters (but tabs)."""
    text = _CONTROL.sub("", _BREAKS.sub("\n", text))
    if not text.isascii():
        text = unicodedata.normalize("NFC", _LONE_SURROGATE.sub("\ufffd", text))
    return text


class Writer:
    """Collects headings and blocks of text, and gives the sections that they make.

    What stands before the first heading is the lead, whose heading is the page's title and whose level is 1.
    """

    def __init__(self, title: str) -> None:
        self._sections: list[tuple[str, int, list[str]]] = [(title, 1, [])]
        self._tight = False

    def heading(self, text: str, level: int) -> None:
        """Begin a section; ``level`` counts as in HTML, and none stands as high as the title."""
        text = one_line(text)
        if text:
            self._sections.append((text, max(2, min(level, 6)), []))
            self._tight = False

    def paragraph(self, text: str) -> None:
        """Add a block with an empty line before it; spaces are made single."""
        self._add("\n".join(line for line in map(_spaced, plain(text).split("\n")) if line), tight=False)

    def line(self, text: str) -> None:
        """Add a line of a list or a table: it follows a line before it without an empty line; its indent stays."""
        text = plain(text).replace("\n", " ")
        indent = text[: len(text) - len(text.lstrip(" "))]
        self._add(indent + _spaced(text) if text.strip() else "", tight=True)

    def gap(self) -> None:
        """An empty line before the next line: another list or table begins."""
        self._tight = False

    def verbatim(self, text: str) -> None:
        """Add a block as it is: code, poems."""
        self._add(_EMPTY_LINES.sub("\n\n", plain(text).strip("\n").rstrip()), tight=False)

    def sections(self) -> tuple[Section, ...]:
        """Every section in order; the lead is there even when nothing stands before the first heading."""
        return tuple(Section(heading, level, "".join(blocks)) for heading, level, blocks in self._sections)

    def _add(self, text: str, *, tight: bool) -> None:
        if not text.strip():
            return
        blocks = self._sections[-1][2]
        if blocks:
            blocks.append("\n" if tight and self._tight else "\n\n")
        blocks.append(text)
        self._tight = tight


def _spaced(line: str) -> str:
    return _SPACES.sub(" ", line).strip()


def unique(names: list[str], *, but: str = "") -> tuple[str, ...]:
    """``names`` as single lines in their order, each once, without the empty one and ``but``."""
    return tuple(dict.fromkeys(name for name in map(one_line, names) if name and name != but))

"""The pages of a MediaWiki XML dump as they pass, one at a time.

Only the standard library's expat: a tree of elements, even one whose elements are cleared, grows with every page of a
dump (hundreds of bytes each, over tens of millions of pages), and a strict reader stops at the first element that a
newer MediaWiki has added. Format: https://www.mediawiki.org/wiki/Help:Export
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedIOBase
from xml.parsers import expat

CHUNK = 1 << 16
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
LONGEST_TEXT = 4_000_000
"""Characters of one page's text that are kept; MediaWiki takes no more than 2 MiB."""


@dataclass(slots=True)
class RawPage:
    """A page as the dump has it: ``text`` is that of its last revision; ``redirect`` is the title it leads to."""

    title: str = ""
    namespace: int = 0
    id: str = ""
    redirect: str = ""
    text: str = ""
    model: str = "wikitext"
    cut: bool = False


@dataclass(slots=True)
class Site:
    """What the head of the dump says; ``namespaces`` are names by number."""

    name: str = ""
    language: str = ""
    namespaces: dict[int, str] = field(default_factory=dict)


class Damaged(Exception):
    """The XML ends or breaks here; every page before has been given."""


class DumpReader:
    """Reads a dump from ``file``; ``site`` is filled when the first page comes."""

    def __init__(self, file: BufferedIOBase, *, longest_text: int = LONGEST_TEXT) -> None:
        self.site = Site()
        self.replaced = 0
        """Bytes that were no UTF-8."""
        self._file = file
        self._longest = longest_text
        self._ready: list[RawPage] = []
        self._page: RawPage | None = None
        self._path: list[str] = []
        self._text: list[str] = []
        self._length = 0
        self._namespace = 0

    def __iter__(self) -> Iterator[RawPage]:
        """Every page in order. Raises Damaged where the dump does not go on as XML, and OSError, EOFError and the
        like from ``file``."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            chunk = self._file.read1(CHUNK)  # what is whole before a file breaks off; read() would lose it
            text = decoder.decode(chunk, final=not chunk)
            if not text.isascii():
                self.replaced += text.count("\ufffd")
            try:
                parser.Parse(_NOT_XML.sub("\ufffd", text), not chunk)
            except expat.ExpatError as error:
                yield from self._taken()
                raise Damaged(str(error)) from error
            yield from self._taken()
            if not chunk:
                return

    def _taken(self) -> list[RawPage]:
        ready, self._ready = self._ready, []
        return ready

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        self._text, self._length = [], 0
        match self._path[1:]:
            case ["page"]:
                self._page = RawPage()
            case ["page", "redirect"] if self._page is not None:
                self._page.redirect = attributes.get("title", "")
            case ["siteinfo", "namespaces", "namespace"]:
                key = attributes.get("key", "")
                self._namespace = int(key) if re.fullmatch(r"-?\d{1,6}", key) else 0
        if not self._path[1:]:
            self.site.language = attributes.get("xml:lang", "")

    def _data(self, data: str) -> None:
        if self._length < self._longest:
            self._text.append(data[: self._longest - self._length])
        self._length += len(data)

    def _end(self, name: str) -> None:
        page, text = self._page, self._text
        match self._path[1:]:
            case ["page"] if page is not None:
                self._ready.append(page)
                self._page = None
            case ["page", "title"] if page is not None:
                page.title = "".join(text)
            case ["page", "ns"] if page is not None:
                number = "".join(text).strip()
                page.namespace = int(number) if re.fullmatch(r"-?\d{1,6}", number) else 0
            case ["page", "id"] if page is not None:
                page.id = "".join(text).strip()
            case ["page", "revision", "model"] if page is not None:
                page.model = "".join(text).strip()
            case ["page", "revision", "text"] if page is not None:
                page.text, page.cut = "".join(text), self._length > self._longest
            case ["siteinfo", "sitename"]:
                self.site.name = "".join(text).strip()
            case ["siteinfo", "namespaces", "namespace"]:
                self.site.namespaces[self._namespace] = "".join(text).strip()
        self._path.pop()
        self._text, self._length = [], 0

"""A MediaWiki XML dump (Wikipedia's ``pages-articles``, or any wiki's export) as an encyclopedia."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.corpora.dump_xml import Damaged, DumpReader, RawPage, Site
from mcpgym_environments.wiki_search.corpora.extras import needed
from mcpgym_environments.wiki_search.corpora.files import LOADERS, existing_file, stamp_of
from mcpgym_environments.wiki_search.corpora.redirects import Redirects
from mcpgym_environments.wiki_search.corpora.titles import told_apart
from mcpgym_environments.wiki_search.corpora.wikitext import read_wikitext
from mcpgym_environments.wiki_search.corpora.writing import one_line, unique
from mcpgym_environments.wiki_search.pages import Page, Problems

_REDIRECT = re.compile(r"\s*#[^\s\[:]{4,20}\s*:?\s*\[\[\s*:?([^\[\]|#\n]+)")
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, Damaged)


class Dump:
    """The articles (namespace 0) of a dump, in its order; keys are the wiki's own page numbers.

    The file is read as a stream, twice: for the redirects, then for the pages; memory stays bounded. Of several
    revisions the last counts. A dump that breaks off gives what stands before.
    Raises ConfigurationError when there is no such file, when it is no dump, or without mwparserfromhell.
    """

    def __init__(self, path: str | Path) -> None:
        self._spec = f"dump:{path}"
        self._path = existing_file(self._spec, path)
        needed("mwparserfromhell", self._spec)
        self._open = _opener(self._spec, self._path)
        try:
            with self._open() as file:
                head = file.read1(65536)
        except _BROKEN as error:
            raise ConfigurationError(f"{self._spec}: {self._path} cannot be read: {error}") from error
        if b"<mediawiki" not in head:
            raise ConfigurationError(
                f"{self._spec}: {self._path} is no MediaWiki XML dump: no <mediawiki> at its beginning "
                "(the SQL dumps of single tables are not what is needed: take pages-articles.xml)"
            )

    @cached_property
    def about(self) -> Mapping[str, str]:
        """What it is, as its head says."""
        site = Site()
        try:
            with self._open() as file:
                reader = DumpReader(file)
                site = reader.site
                next(iter(reader), None)
        except _BROKEN:
            pass
        about = {"kind": "dump", "source": str(self._path), "title": site.name or self._path.name}
        return {**about, "language": site.language} if site.language else about

    @cached_property
    def fingerprint(self) -> str:
        """Of the file."""
        return f"dump-{LOADERS}-{stamp_of(self._path)}"

    @property
    def size(self) -> int | None:
        """Not known before it is read."""
        return None

    def pages(self, problems: Problems) -> Iterator[Page]:
        """Every article; what cannot be read is noted and left out."""
        yield from told_apart(self._articles(problems), problems)

    def _articles(self, problems: Problems) -> Iterator[Page]:
        redirects = Redirects(self._redirects())
        last, count = "the beginning", 0
        try:
            with self._open() as file:
                reader = DumpReader(file)
                for raw in reader:
                    last, count = raw.title, count + 1
                    page = _page(raw, reader.site, redirects, problems)
                    if page is not None:
                        yield page
                if reader.replaced:
                    problems.note("encoding", f"{reader.replaced} bytes that are not UTF-8, replaced")
        except _BROKEN as error:
            problems.note("truncated dump", f"breaks off after {last!r} ({count} pages): {error}")

    def _redirects(self) -> Iterator[tuple[str, str]]:
        try:
            with self._open() as file:
                for raw in DumpReader(file, longest_text=300):
                    target = _redirect(raw)
                    if raw.namespace == 0 and target:
                        yield target, one_line(raw.title)
        except _BROKEN:
            return  # said when the pages are read


def _page(raw: RawPage, site: Site, redirects: Redirects, problems: Problems) -> Page | None:
    title = one_line(raw.title)
    if raw.namespace != 0 or _redirect(raw):
        return None
    if not title:
        problems.note("page without a title", f"page number {raw.id or '?'}")
        return None
    if raw.model not in ("", "wikitext"):
        problems.note("not wikitext", f"{title}: {raw.model}")
        return None
    if raw.cut:
        problems.note("page cut", f"{title}: longer than {len(raw.text)} characters")
    article, oddity = read_wikitext(raw.text, title, site.namespaces)
    if oddity:
        problems.note("wikitext", f"{title}: {oddity}")
    if not any(section.text for section in article.sections):
        problems.note("empty page", title)
        return None
    return Page(
        raw.id or title,
        title,
        article.sections,
        redirects=unique(redirects.to(title), but=title),
        links=unique(article.links, but=title),
    )


def _redirect(raw: RawPage) -> str:
    """The title that a page leads to, or nothing; old dumps say so only in the text."""
    target = raw.redirect
    if not target and raw.text.lstrip().startswith("#") and (found := _REDIRECT.match(raw.text)):
        target = found[1]
    target = one_line(target.partition("#")[0].replace("_", " "))
    return target[:1].upper() + target[1:]


def _opener(spec: str, path: Path) -> Callable[[], BufferedIOBase]:
    """How to open the file, by its first bytes rather than by its name."""
    with path.open("rb") as file:
        magic = file.read(6)
    openers: dict[bytes, Any] = {
        b"BZh": bz2.open,
        b"\x1f\x8b": gzip.open,
        b"\xfd7zXZ\0": lzma.open,
        b"\x28\xb5\x2f\xfd": lambda file: needed("zstandard", spec).open(file, "rb"),
    }
    if magic.startswith(b"7z\xbc\xaf\x27\x1c"):
        raise ConfigurationError(f"{spec}: {path} is a 7z archive: unpack it first, or take the .bz2")
    for beginning, opener in openers.items():
        if magic.startswith(beginning):
            return lambda: cast(BufferedIOBase, opener(path))
    return lambda: path.open("rb")

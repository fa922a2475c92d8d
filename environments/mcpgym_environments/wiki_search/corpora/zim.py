"""A ZIM file (Kiwix's Wikipedia and others) as an encyclopedia.

Reading one needs libzim, which is under the GNU General Public Licence, version 3 or later. It is imported here and
nowhere else, and installed only with the extra ``wiki``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.corpora.decoding import NotText, decode
from mcpgym_environments.wiki_search.corpora.extras import needed
from mcpgym_environments.wiki_search.corpora.files import LOADERS, existing_file, stamp_of
from mcpgym_environments.wiki_search.corpora.html import read_html
from mcpgym_environments.wiki_search.corpora.nesting import NestedTooDeeply
from mcpgym_environments.wiki_search.corpora.redirects import Redirects
from mcpgym_environments.wiki_search.corpora.titles import told_apart
from mcpgym_environments.wiki_search.corpora.writing import one_line, unique
from mcpgym_environments.wiki_search.pages import Page, Problems

_FARTHEST = 8
"""Redirects to redirects that are followed."""
LARGEST = 32 * 1024 * 1024
"""Bytes of an article; a larger one is left out."""


class ZimFile:
    """The HTML articles of a ZIM file, in the order of their paths, which are their keys.

    Redirects are gathered first. Raises ConfigurationError when there is no such file, when it is none, or without
    libzim.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = existing_file(f"zim:{path}", path)
        reader = needed("libzim.reader", f"zim:{path}")
        try:
            self._archive: Any = reader.Archive(self._path)
        except RuntimeError as error:
            raise ConfigurationError(f"zim:{path}: {self._path} is no ZIM file, or a damaged one: {error}") from error

    @cached_property
    def about(self) -> Mapping[str, str]:
        """What it is, as its own metadata say."""
        about = {"kind": "zim", "source": str(self._path)}
        for field, name in (("title", "Title"), ("language", "Language"), ("licence", "License"), ("date", "Date")):
            try:
                text = one_line(self._archive.get_metadata(name).decode("utf-8", "replace"))
            except (KeyError, RuntimeError):
                continue
            if text:
                about[field] = text[:200]
        return {"title": self._path.stem, **about}

    @cached_property
    def fingerprint(self) -> str:
        """Of the archive's own id and of the file."""
        return f"zim-{LOADERS}-{self._archive.uuid}-{stamp_of(self._path)}"

    @property
    def size(self) -> int | None:
        """Not known: what counts as an article is only seen on the way."""
        return None

    def pages(self, problems: Problems) -> Iterator[Page]:
        """Every article; damaged ones are noted and left out."""
        yield from told_apart(self._articles(problems), problems)

    def _articles(self, problems: Problems) -> Iterator[Page]:
        redirects = Redirects(self._redirects(problems))
        for number in range(self._archive.all_entry_count):
            path = f"entry {number}"
            try:
                entry = self._archive._get_entry_by_id(number)
                path = str(entry.path)
                if entry.is_redirect:
                    continue
                item = entry.get_item()
                if not self._is_article(path, str(item.mimetype)):
                    continue
                if item.size > LARGEST:
                    problems.note("article too large", f"{path}: {item.size} bytes, more than {LARGEST}")
                    continue
                title, content = str(entry.title), bytes(item.content)
            except (RuntimeError, IndexError, KeyError, UnicodeDecodeError) as error:
                problems.note("unreadable entry", f"{path}: {error}")
                continue
            page = self._page(path, title, content, problems)
            if page is not None:
                others = unique(redirects.to(path), but=page.title)
                yield Page(page.key, page.title, page.sections, redirects=others, links=page.links)

    def _page(self, path: str, title: str, content: bytes, problems: Problems) -> Page | None:
        try:
            markup, oddity = decode(content)
        except NotText as error:
            problems.note("unreadable entry", f"{path}: {error}")
            return None
        if oddity:
            problems.note("encoding", f"{path}: {oddity}")
        title = one_line(title) or path
        try:
            document = read_html(markup, title=title, named=title != path)  # where there is no title, it is the path
        except NestedTooDeeply as error:
            problems.note("unreadable entry", f"{path}: {error}")
            return None
        if not any(section.text for section in document.sections):
            problems.note("empty page", path)
            return None
        links = unique([self._target(link, path) for link in document.links], but=document.title)
        return Page(path, document.title, document.sections, links=links)

    def _is_article(self, path: str, kind: str) -> bool:
        if kind.split(";")[0].strip().lower() not in ("text/html", "application/xhtml+xml"):
            return False
        return bool(self._archive.has_new_namespace_scheme) or path.startswith("A/")

    def _redirects(self, problems: Problems) -> Iterator[tuple[str, str]]:
        for number in range(self._archive.all_entry_count):
            try:
                entry = self._archive._get_entry_by_id(number)
                if not entry.is_redirect:
                    continue
                title = one_line(str(entry.title))
                target = self._end(entry)
            except (RuntimeError, IndexError, KeyError, UnicodeDecodeError):
                problems.note("broken redirect", f"entry {number}")
                continue
            if target is None:
                problems.note("broken redirect", f"{title}: goes round in circles")
            else:
                yield str(target.path), title

    def _end(self, entry: Any) -> Any:
        """Where a redirect leads in the end; None when it does not."""
        for _ in range(_FARTHEST):
            if not entry.is_redirect:
                return entry
            entry = entry.get_redirect_entry()
        return None

    def _target(self, link: str, path: str) -> str:
        """The title of the article that a link leads to; empty for what is not in here."""
        try:
            parts = urlsplit(link)
        except ValueError:
            return ""
        if parts.scheme or parts.netloc or not parts.path:
            return ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path))).lstrip("/")
        try:
            if not self._archive.has_entry_by_path(target):
                return ""
            entry = self._end(self._archive.get_entry_by_path(target))
            if entry is None or not self._is_article(str(entry.path), str(entry.get_item().mimetype)):
                return ""
            return one_line(str(entry.title))
        except (RuntimeError, KeyError, ValueError):
            return ""

"""A folder of Markdown, HTML, text and JSONL files as an encyclopedia."""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.corpora.decoding import NotText, decode
from mcpgym_environments.wiki_search.corpora.files import LOADERS
from mcpgym_environments.wiki_search.corpora.html import read_html
from mcpgym_environments.wiki_search.corpora.markdown import Document, read_markdown, title_of
from mcpgym_environments.wiki_search.corpora.nesting import NestedTooDeeply
from mcpgym_environments.wiki_search.corpora.records import read_jsonl
from mcpgym_environments.wiki_search.corpora.titles import Taken, renamed, told_apart
from mcpgym_environments.wiki_search.corpora.writing import Writer, one_line, unique
from mcpgym_environments.wiki_search.kept import Kept, digest_of
from mcpgym_environments.wiki_search.pages import Page, Problems, Section

_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
_HTML = frozenset({".html", ".htm", ".xhtml"})
_TEXT = frozenset({".txt", ".text"})
_RECORDS = frozenset({".jsonl", ".ndjson"})
_KINDS = _MARKDOWN | _HTML | _TEXT | _RECORDS
LARGEST = 32 * 1024 * 1024
"""Bytes of a file that is one page; a larger one is left out."""


class Folder:
    """Every Markdown, HTML, text and JSONL file below a folder (or one such file), in the order of their names.

    A page's key is its path below the folder. Its title is what the document names itself, else its file's name. Files
    and folders whose names begin with a dot are left out, and so are links to what lies outside.
    Raises ConfigurationError when there is no such folder or no such file in it.
    """

    def __init__(self, path: str | Path) -> None:
        self._root = Path(path).expanduser().absolute()
        if not self._root.exists():
            raise ConfigurationError(f"folder:{path}: there is no {self._root}")
        self._outside: list[str] = []
        self._files = dict(self._found())
        if not self._files:
            raise ConfigurationError(
                f"folder:{path}: {self._root} holds no file that ends in {', '.join(sorted(_KINDS))}"
            )

    @property
    def about(self) -> Mapping[str, str]:
        """What it is."""
        return {"kind": "folder", "source": str(self._root), "title": self._root.name}

    @property
    def size(self) -> int | None:
        """The number of files, unless some hold many pages."""
        return None if any(_ending(name) in _RECORDS for name in self._files) else len(self._files)

    @cached_property
    def fingerprint(self) -> str:
        """Of the files' names, sizes and times."""
        digest = blake2b(digest_size=16)
        for name, (size, changed) in self._files.items():
            digest.update(f"{name}\0{size}\0{changed}\n".encode("utf-8", "surrogatepass"))
        return f"folder-{LOADERS}-{digest.hexdigest()}"

    def pages(self, problems: Problems) -> Iterator[Page]:
        """Every page, in the order of the files' names."""
        return self.pages_from(Kept(), problems)

    def pages_from(self, kept: Kept, problems: Problems) -> Iterator[Page]:
        """Every page; files, and lines of JSONL, that are ``kept`` from an earlier build are not read again."""
        for name in self._outside:
            problems.note("link to the outside", f"{name}: leads out of the folder, left out")
        yield from told_apart(self._all(kept, problems), problems)

    def _all(self, kept: Kept, problems: Problems) -> Iterator[Page]:
        titles, same = self._titles(kept)
        by_name = {Path(name).stem.casefold(): title for name, title in reversed(titles.items())}
        known = set(titles.values())
        for name in self._files:
            if _ending(name) in _RECORDS:
                yield from read_jsonl(self._path(name), name, problems, kept)
                continue
            document = self._document(name, same.get(name), kept, problems)
            if document is None:
                continue
            if not any(section.text for section in document.sections):
                problems.note("empty page", name)
                continue
            links = [_target(link, name, titles, by_name, known) for link in document.links]
            page = Page(
                name,
                document.title,
                document.sections,
                aliases=unique(document.aliases, but=document.title),
                links=unique(links, but=document.title),
            )
            title = titles.get(name, page.title)
            if title != page.title:
                problems.note("duplicate title", f"{page.title!r} again in {name}: there as {title!r}")
                page = renamed(page, title)
            yield page

    def _titles(self, kept: Kept) -> tuple[dict[str, str], dict[str, bytes]]:
        """The title of every file that is one page, each its own, so that links by path can be followed.

        And the hash of every file that is kept.
        """
        taken, titles, same = Taken(), {}, {}
        silent = Problems()
        for name in self._files:
            data = None if _ending(name) in _RECORDS else self._data(name, silent)
            if data is None:
                continue
            digest = _digest(name, data)
            found = kept.find(digest)
            if found is None:
                title = _title_of(name, data)
            else:
                title, same[name] = _Reading.of(found).title, digest
            if title is not None:
                titles[name] = taken.own(title, name)
        return titles, same

    def _document(self, name: str, digest: bytes | None, kept: Kept, problems: Problems) -> Document | None:
        """What the file holds, noting what is wrong with it; ``digest`` is its hash where it is kept."""
        found = None if digest is None else kept.carry(digest)
        if found is not None:
            reading = _Reading.of(found)
        else:
            data = self._data(name, problems)
            if data is None:
                return None
            reading = _read(name, data)
            kept.put(_digest(name, data), reading.value())
        for kind, example in reading.notes:
            problems.note(kind, example)
        return reading.document

    def _data(self, name: str, problems: Problems) -> bytes | None:
        if self._files[name][0] > LARGEST:
            problems.note("file too large", f"{name}: {self._files[name][0]} bytes, more than {LARGEST}")
            return None
        try:
            return self._path(name).read_bytes()
        except OSError as error:
            problems.note("unreadable file", f"{name}: {error.strerror}")
            return None

    def _path(self, name: str) -> Path:
        return self._root / name if self._root.is_dir() else self._root

    def _found(self) -> Iterator[tuple[str, tuple[int, int]]]:
        if not self._root.is_dir():
            if _ending(self._root.name) in _KINDS:
                yield self._root.name, _stamp(self._root)
            return
        real = self._root.resolve()
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                path = Path(folder, name)
                if name.startswith(".") or _ending(name) not in _KINDS:
                    continue
                shown = path.relative_to(self._root).as_posix()
                if path.is_symlink() and not path.resolve().is_relative_to(real):
                    self._outside.append(shown)
                elif path.is_file():
                    yield shown, _stamp(path)


@dataclass(slots=True)
class _Reading:
    """What a file of one page was read as, which depends on nothing but its name and its bytes.

    ``title`` is None for what is not text, ``notes`` are kinds and examples of problems.
    """

    title: str | None
    document: Document | None = None
    notes: list[tuple[str, str]] = field(default_factory=list)

    def value(self) -> list[Any]:
        """In what JSON can hold."""
        read = self.document
        parts = [(part.heading, part.level, part.text) for part in read.sections] if read else []
        return [self.title, self.notes, [read.title, parts, read.aliases, read.links] if read else None]

    @classmethod
    def of(cls, value: list[Any]) -> _Reading:
        """From what :meth:`value` gave."""
        title, notes, read = value
        document = read and Document(read[0], tuple(Section(*part) for part in read[1]), read[2], read[3])
        return cls(title, document, [(kind, example) for kind, example in notes])


def _read(name: str, data: bytes) -> _Reading:
    try:
        text, oddity = decode(data)
    except NotText as error:
        return _Reading(None, notes=[("unreadable file", f"{name}: {error}")])
    reading = _Reading(_title(name, text))
    if oddity:
        reading.notes.append(("encoding", f"{name}: {oddity}"))
    try:
        reading.document = _parsed(name, reading.title or "", text)
    except NestedTooDeeply as error:
        reading.notes.append(("unreadable file", f"{name}: {error}"))
    return reading


def _parsed(name: str, title: str, text: str) -> Document:
    ending = _ending(name)
    if ending in _HTML:
        return read_html(text, title=_name(name))
    if ending in _MARKDOWN:
        return read_markdown(text, title)
    writer = Writer(title)
    writer.verbatim(text)
    return Document(title, writer.sections())


def _digest(name: str, data: bytes) -> bytes:
    return digest_of("file", str(LOADERS), name, data)


def _title_of(name: str, data: bytes) -> str | None:
    """The title of a file with these bytes; None for what is not text."""
    try:
        return _title(name, decode(data)[0])
    except NotText:
        return None


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _ending(name: str) -> str:
    return posixpath.splitext(name)[1].lower()


def _name(name: str) -> str:
    """The title that a file's name gives; an index is named after its folder."""
    folder, file = posixpath.split(name)
    stem = posixpath.splitext(file)[0]
    if stem.lower() in ("index", "readme") and folder:
        stem = posixpath.basename(folder)
    return one_line(stem.replace("_", " ")) or stem


def _title(name: str, text: str) -> str:
    ending = _ending(name)
    if ending in _HTML:
        with contextlib.suppress(NestedTooDeeply):
            return read_html(text, title=_name(name)).title
    return (title_of(text) if ending in _MARKDOWN else "") or _name(name)


def _target(link: str, name: str, titles: Mapping[str, str], by_name: Mapping[str, str], known: set[str]) -> str:
    """The title of the page that ``link``, standing in the file ``name``, leads to; empty for what is none of ours."""
    if link.startswith("[["):
        target = one_line(link[2:])
        return target if target in known else by_name.get(posixpath.basename(target).casefold(), target)
    try:
        parts = urlsplit(link)
    except ValueError:
        return ""
    path = unquote(parts.path)
    if parts.scheme or parts.netloc or not path:
        return ""
    path = posixpath.normpath(path[1:] if path.startswith("/") else posixpath.join(posixpath.dirname(name), path))
    for candidate in (
        path,
        f"{path}.md",
        f"{path}.html",
        f"{path}/index.md",
        f"{path}/README.md",
        f"{path}/index.html",
    ):
        if candidate in titles:
            return titles[candidate]
    return ""

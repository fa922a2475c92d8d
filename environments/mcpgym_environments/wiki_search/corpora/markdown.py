"""Markdown (CommonMark, tables, wiki links, front matter) into sections of plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from mcpgym_environments.wiki_search.corpora.nesting import NestedTooDeeply, brackets_nest_deeper
from mcpgym_environments.wiki_search.corpora.writing import Writer, one_line
from mcpgym_environments.wiki_search.pages import Section

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#\n]*)(?:#([^\[\]|\n]*))?(?:\\?\|([^\[\]\n]*))?\]\]")
_HEAD = 4000
"""Characters at the beginning in which the heading that names the page is looked for."""


_DEEPEST = 1000


@dataclass(slots=True)
class Document:
    """What a file holds, before it is known how its page is called; ``links`` are as written (paths or titles)."""

    title: str
    sections: tuple[Section, ...]
    aliases: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


@lru_cache(maxsize=4)
def title_of(text: str) -> str:
    """The title that the front matter or the first heading of the first level gives; empty where none does."""
    front, body = _split(text)
    if title := one_line(_values(front, "title")[0] if _values(front, "title") else ""):
        return title
    return next((_heading_text(tokens) for tokens in _titles(_parser().parse(body[:_HEAD]))), "")


def read_markdown(text: str, title: str) -> Document:
    """The page that ``text`` is, under ``title``: see :func:`title_of`; the heading that gave it makes no section.

    ``#`` begins a heading only where Markdown says so: never within code.
    Raises NestedTooDeeply for more square brackets that are not closed than anybody writes.
    """
    front, body = _split(text)
    if brackets_nest_deeper(body.replace("{", ""), _DEEPEST):
        raise NestedTooDeeply(f"has more than {_DEEPEST} brackets that are not closed")
    links: list[str] = []
    writer = Writer(title)
    tokens = _parser().parse(body)
    named = title_of(text)
    own = next((pair[0] for pair in _titles(tokens) if _heading_text(pair) == named), None) if named else None
    items: list[str] = []  # the bullets of the lists that are open; an empty one has been written
    row: list[str] | None = None
    counters: list[int | None] = []
    for position, token in enumerate(tokens):
        match token.type:
            case "inline":
                before = tokens[position - 1]
                content = _inline(token.children or (), links)
                if before.type == "heading_open":
                    if before is not own:
                        writer.heading(content, int(before.tag[1]))
                elif row is not None:
                    row.append(content)
                elif items:
                    indent = "  " * (len(items) - 1)
                    writer.line(f"{indent}{items[-1] or '  '}{content}")
                    items[-1] = ""
                else:
                    writer.paragraph(content)
            case "bullet_list_open" | "ordered_list_open":
                if not counters:
                    writer.gap()
                ordered = token.type == "ordered_list_open"
                counters.append(int(str(token.attrs.get("start", 1))) if ordered else None)
            case "bullet_list_close" | "ordered_list_close":
                counters.pop()
            case "list_item_open":
                number = counters[-1]
                items.append("- " if number is None else f"{number}. ")
                if number is not None:
                    counters[-1] = number + 1
            case "list_item_close":
                items.pop()
            case "tr_open":
                row = []
            case "tr_close":
                writer.line(" | ".join(row or ()))
                row = None
            case "table_open":
                writer.gap()
            case "fence" | "code_block":
                writer.verbatim(token.content)
            case "html_block":
                writer.paragraph(_without_tags(token.content))
    aliases = _values(front, "aliases") + _values(front, "alias")
    return Document(title, writer.sections(), aliases, links)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": 40}).enable(["table", "strikethrough"])


def _titles(tokens: Sequence[Token]) -> list[tuple[Token, Token]]:
    """Headings of the first level, with their text's token."""
    return [
        (token, tokens[position + 1])
        for position, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == "h1" and token.level == 0
    ]


def _heading_text(pair: tuple[Token, Token]) -> str:
    return one_line(_inline(pair[1].children or (), []))


def _inline(tokens: Sequence[Token], links: list[str]) -> str:
    parts: list[str] = []
    for token in tokens:
        match token.type:
            case "text":
                parts.append(token.content)
            case "code_inline":
                parts.append(token.content.replace("[[", "[\0["))
            case "softbreak":
                parts.append(" ")
            case "hardbreak":
                parts.append("\n")
            case "link_open":
                links.append(str(token.attrs.get("href", "")))
            case "html_inline" if token.content.lower().startswith("<br"):
                parts.append("\n")

    def shown(match: re.Match[str]) -> str:
        target, heading, label = match.groups()
        if target.strip():
            links.append(f"[[{target.strip()}")
        return str(label or target or heading or "").strip()

    return _WIKI_LINK.sub(shown, "".join(parts)).replace("[\0[", "[[")


def _split(text: str) -> tuple[str, str]:
    """Front matter and body."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = _FRONT_MATTER.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def _values(front: str, name: str) -> list[str]:
    """The value or list of values of ``name``, of the YAML that front matter is written in: no nesting, no anchors."""
    found = re.search(
        rf"^{name}[ \t]*:[ \t]*(.*)\n((?:[ \t]*-[ \t]+.*\n?)*)", front + "\n", re.MULTILINE | re.IGNORECASE
    )
    if found is None:
        return []
    inline, lines = found[1].strip(), found[2]
    if inline.startswith("[") and inline.endswith("]"):
        values = re.findall(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]+)""", inline[1:-1])
    elif inline and inline not in ("|", ">", "~", "null"):
        values = [inline]
    else:
        values = [line.strip()[1:] for line in lines.splitlines()]
    return [value for value in map(_unquoted, values) if value]


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return re.sub(r"\s+#.*", "", value)


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in ("script", "style")))

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def _without_tags(markup: str) -> str:
    reader = _Text()
    reader.feed(markup)
    reader.close()
    return "".join(reader.parts)

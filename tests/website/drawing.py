"""Drawings as SVG: boxes with lines of text, and arrows between them, in colours that follow the reader's.

A drawing is an image wherever Markdown is read, and then has the colours that the system asks for. On the site it is
part of the page (``tests/website/hooks.py``), where docs/assets/site.css gives it those of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

LINE = 18
"""Pixels from one line of text to the next."""
WIDTHS = {"title": 8.8, "code": 7.3, "dim": 6.8, "bad": 6.8}
"""Pixels that a character of a line takes, at most, in the widest of the fonts."""
Look = Literal["plain", "strong", "ghost"]
LIGHT = {
    "ink": "#1a1d24", "dim": "#5d6778", "line": "#b9bfcc", "panel": "#ffffff", "strong": "#eceefc",
    "accent": "#4f5bd5", "bad": "#b02a21",
}  # fmt: skip
DARK = {
    "ink": "#e6e9ef", "dim": "#a3acba", "line": "#4a5264", "panel": "#1b2029", "strong": "#262b4f",
    "accent": "#939cff", "bad": "#f78d84",
}  # fmt: skip
"""Colours by what they are for; docs/assets/site.css has them again, for the site's own light and dark."""
RULES = """
.drawing { font: 13px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
.drawing text { fill: var(--ink) } .drawing .title { font-weight: 650; font-size: 15px }
.drawing .dim { fill: var(--dim) } .drawing .bad { fill: var(--bad) }
.drawing .code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 12px }
.drawing rect { fill: var(--panel); stroke: var(--line); stroke-width: 1.25 }
.drawing .strong { fill: var(--strong); stroke: var(--accent) } .drawing .ghost { fill: none; stroke-dasharray: 5 4 }
.drawing path { fill: none; stroke: var(--accent); stroke-width: 1.75 }
.drawing .head { fill: var(--accent); stroke: none }
"""


def colours(of: dict[str, str]) -> str:
    """Colours as CSS declares them."""
    return "; ".join(f"--{name}: {colour}" for name, colour in of.items())


STYLE = f"""
.drawing {{ {colours(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ .drawing {{ {colours(DARK)} }} }}
{RULES.strip()}
"""


@dataclass(frozen=True)
class Box:
    """A box. Its first line is its title; lines that begin with a back-tick are code, with ``!`` warnings."""

    x: int
    y: int
    width: int
    height: int
    lines: Sequence[str] = ()
    look: Look = "plain"


@dataclass(frozen=True)
class Arrow:
    """An arrow through some points, with heads at its end or at both, and a word beside its middle."""

    points: Sequence[tuple[int, int]]
    both: bool = False
    word: str = ""


@dataclass(frozen=True)
class Drawing:
    """What is drawn, in order. ``about`` is for those who do not see it."""

    width: int
    height: int
    about: str
    parts: Sequence[Box | Arrow] = field(default_factory=list)

    def svg(self) -> str:
        """The whole file."""
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        said = f'class="drawing" role="img" aria-label={quoteattr(self.about)}'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {said} {size}>'
        return "\n".join([head, f"<style>{STYLE}</style>", *(_part(part) for part in self.parts), "</svg>\n"])


def _part(part: Box | Arrow) -> str:
    return _box(part) if isinstance(part, Box) else _arrow(part)


def _box(box: Box) -> str:
    size = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
    shape = f'<rect class="{box.look}" {size} rx="9"/>'
    texts = []
    if 24 + (len(box.lines) - 1) * LINE + 8 > box.height:
        raise ValueError(f"{len(box.lines)} lines do not fit into a box {box.height} pixels high: {box.lines[0]!r}")
    for number, line in enumerate(box.lines):
        kind = "title" if number == 0 else {"`": "code", "!": "bad"}.get(line[:1], "dim")
        text = escape(line.lstrip("`!"))
        if len(line) * WIDTHS[kind] > box.width - 32:
            raise ValueError(f"{line!r} does not fit into a box {box.width} pixels wide")
        texts.append(f'<text class="{kind}" x="{box.x + 16}" y="{box.y + 24 + number * LINE}">{text}</text>')
    return "\n".join([shape, *texts])


def _arrow(arrow: Arrow) -> str:
    way = " ".join(f"{'L' if number else 'M'}{x} {y}" for number, (x, y) in enumerate(arrow.points))
    parts = [f'<path d="{way}"/>', _head(*arrow.points[-2:])]
    if arrow.both:
        parts.append(_head(arrow.points[1], arrow.points[0]))
    if arrow.word:
        (x1, y1), (x2, y2) = arrow.points[:2]
        x, y, where = ((x1 + x2) // 2, y1 - 8, "middle") if y1 == y2 else (x1 + 9, (y1 + y2) // 2 + 4, "start")
        parts.append(f'<text class="dim" x="{x}" y="{y}" text-anchor="{where}">{escape(arrow.word)}</text>')
    return "\n".join(parts)


def _head(before: tuple[int, int], tip: tuple[int, int]) -> str:
    """The head of an arrow that runs straight along an axis into ``tip``."""
    (x, y), along = tip, ((tip[0] > before[0]) - (tip[0] < before[0]), (tip[1] > before[1]) - (tip[1] < before[1]))
    back, side = 9, 5
    left, right = (
        (x - back * along[0] + turn * side * along[1], y - back * along[1] + turn * side * along[0]) for turn in (1, -1)
    )
    return f'<path class="head" d="M{x} {y}L{left[0]} {left[1]}L{right[0]} {right[1]}Z"/>'

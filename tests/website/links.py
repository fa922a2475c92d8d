"""Whether a built site's links lead somewhere, and whether it loads anything from elsewhere. Nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

LOADING = ("script", "img", "source", "video", "audio", "iframe", "embed", "object", "link", "track", "image", "use")
"""Elements whose addresses a browser fetches by itself."""
POINTING = ("canonical", "prev", "next", "alternate", "edit")
"""Relations of ``link`` that are not fetched."""
IN_CSS = re.compile(r"""(?:url\(\s*|@import\s+)["']?(?P<address>[^"')\s]+)""")


@cache
def page(path: Path) -> LexborHTMLParser:
    """A page, parsed."""
    return LexborHTMLParser(path.read_text("utf-8"))


@cache
def anchors(path: Path) -> frozenset[str]:
    """What can be pointed at on a page."""
    nodes = page(path).css("[id], a[name]")
    return frozenset(name for node in nodes for key in ("id", "name") if (name := node.attributes.get(key)))


def pages(site: Path) -> list[Path]:
    """All pages of a site."""
    return sorted(site.rglob("*.html"))


def broken(site: Path) -> list[str]:
    """Links within the site that lead nowhere, and links out of it that are no addresses."""
    return [
        f"{path.relative_to(site)}: {address}: {fault}"
        for path in pages(site)
        for node in page(path).css("a[href]")
        if (fault := _fault(site, path, address := node.attributes["href"] or ""))
    ]


def outside(site: Path) -> set[str]:
    """The addresses out of the site that its pages link to."""
    found = (node.attributes["href"] or "" for path in pages(site) for node in page(path).css("a[href]"))
    return {address for address in found if urlsplit(address).scheme}


def fetched(site: Path) -> list[str]:
    """What the site would load from elsewhere, and what it would load from itself that is not there."""
    return [
        f"{path.relative_to(site)}: {address}"
        for path in [*pages(site), *sorted(site.rglob("*.css")), *sorted(site.rglob("*.svg"))]
        for address in (_of_html(path) if path.suffix == ".html" else _of_css(path.read_text("utf-8")))
        if not address.startswith(("data:", "#"))
        and (_is_elsewhere(address) or not _place(site, path, address).exists())
    ]


def _of_html(path: Path) -> Iterator[str]:
    """What a browser fetches for a page."""
    for node in page(path).css(", ".join(LOADING)):
        if node.tag == "link" and (node.attributes.get("rel") or "") in POINTING:
            continue
        for key in ("src", "href", "data", "poster", "xlink:href"):
            if address := node.attributes.get(key):
                yield address
        yield from (part.split()[0] for part in (node.attributes.get("srcset") or "").split(",") if part.strip())
    for node in page(path).css("style, [style]"):
        yield from _of_css(node.text() if node.tag == "style" else node.attributes["style"] or "")
    if page(path).css_first(".mermaid") is not None:
        yield "https://a-block-of-mermaid"  # which Material's script would then fetch


def _of_css(text: str) -> Iterator[str]:
    return (found["address"] for found in IN_CSS.finditer(text))


def _is_elsewhere(address: str) -> bool:
    return bool(urlsplit(address).scheme or urlsplit(address).netloc)


def _place(site: Path, path: Path, address: str) -> Path:
    """The file that an address of the site means on a page of it."""
    wanted = unquote(urlsplit(address).path)
    base = site if wanted.startswith("/") else path.parent
    place = (base / wanted.lstrip("/")).resolve() if wanted else path
    return place / "index.html" if place.is_dir() else place


def _fault(site: Path, path: Path, address: str) -> str | None:
    """What is wrong with a link, or None."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        good = parts.scheme in ("http", "https") and parts.hostname and re.fullmatch(r"\S+", address)
        return None if good or parts.scheme == "mailto" else "is no address that can be opened"
    place = _place(site, path, address)
    if not place.is_relative_to(site.resolve()):
        return "leads out of the site"
    if not place.is_file():
        return "is not there"
    if place.suffix == ".html" and parts.fragment and unquote(parts.fragment) not in anchors(place):
        return "there is no such anchor"
    return None

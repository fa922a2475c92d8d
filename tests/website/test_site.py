"""The site builds without a warning, its links lead somewhere, it loads nothing from elsewhere, and it says what the
documents say."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser, LexborNode
from tests.website import commands, links, pictures
from tests.website.made import MADE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
IMPORT = re.compile(r"^from (mcpgym[\w.]*) import (?:\(\n)?([^()\n]+|[^()]+\n\))", re.MULTILINE)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly."""
    folder = tmp_path_factory.mktemp("site").resolve()
    pictures.build(folder)
    return folder


def test_every_document_and_every_page_that_is_made_is_there(site: Path) -> None:
    wanted = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    wanted |= {place.replace(".md", ".html") for place in MADE}
    assert {path.relative_to(site).as_posix() for path in links.pages(site)} == wanted | {"404.html"}


def test_its_links_lead_somewhere(site: Path) -> None:
    assert links.broken(site) == []
    assert len(links.outside(site)) > 5


def test_it_loads_nothing_from_elsewhere(site: Path) -> None:
    assert links.fetched(site) == []


@pytest.mark.parametrize("document", sorted(DOCS.rglob("*.md")), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_page_shows_what_a_forge_shows(site: Path, document: Path) -> None:
    """Two readers of Markdown agree: no list, table or block is taken for something else by either."""
    here = links.page(site / document.relative_to(DOCS).with_suffix(".html")).css_first("article")
    assert here is not None
    text = re.sub(r"^(```+\w+).*$", r"\1", document.read_text("utf-8"), flags=re.MULTILINE)
    there = LexborHTMLParser(MarkdownIt("commonmark", {"html": True}).enable("table").render(text)).root
    assert there is not None
    assert parts(here) == parts(there)


def parts(shown: LexborNode) -> dict[str, Counter[str]]:
    """What a page is made of: its headings, cells, points and blocks, without the spaces and formulas in them."""
    for node in shown.css(".headerlink, .filename, math, svg, .md-source-file, .footnote-backref"):
        node.decompose()
    of = {"heading": "h1, h2, h3, h4", "cell": "td, th", "point": "li", "block": "pre"}
    found = {name: Counter(_bare(node.text()) for node in shown.css(tags)) for name, tags in of.items()}
    return found


def _bare(text: str) -> str:
    """The letters and digits of a text: formulas, which are written otherwise, and signs aside."""
    return re.sub(r"\$[^$]+\$|[\W_]+", "", text)


def test_what_the_documents_import_is_in_the_reference(site: Path) -> None:
    """A name that a reader meets on a page can be looked up."""
    known = set[str]().union(*(links.anchors(path) for path in (site / "reference").rglob("*.html")))
    used = {
        f"{module}.{name.strip()}"
        for path in [ROOT / "README.md", *DOCS.rglob("*.md")]
        for module, names in IMPORT.findall(path.read_text("utf-8"))
        for name in names.replace(")", "").replace("\n", "").split(",")
        if name.strip()
    }
    assert len(used) > 20
    assert sorted(used - known) == [], "give them a place in tests/website/python_pages.py"


def test_every_command_has_a_place(site: Path) -> None:
    """A command that no subject names stands under the last heading, where nobody looks."""
    shown = (site / "reference" / "commands.html").read_text("utf-8")
    assert commands.OTHERS not in shown, "give it a subject in tests/website/commands.py"


def test_in_a_browser(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a phone too: no error, nothing from elsewhere, nothing wider than the window; it can be searched."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "clients"))
    from viewer_runs import browser, errors_on

    with pictures.served(site) as url, browser() as chromium:
        formulas = ("how-it-works/losses.html", pictures.PHONE, "light")
        for place, (width, height), scheme in [*pictures.PICTURES.values(), formulas]:
            page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            wrong, asked = errors_on(page), list[str]()
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            assert len(pictures.take(page, f"{url}/{place}", tmp_path / "picture.png")) > 10_000
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert [address for address in asked if not address.startswith((url, "data:"))] == []
            if width > 1000:
                page.locator(".md-search__input").click()
                page.get_by_text(
                    "Type to start searching"
                ).wait_for()  # what is typed before is not always searched for
                page.locator(".md-search__input").press_sequentially("certificate")
                page.locator(".md-search-result__link").first.wait_for()
                assert page.locator(".md-search-result__link[href*=certificates]").count() > 0
            if place == "index.html":
                copied = "code => { code.setAttribute('data-md-copying', ''); return code.innerText }"
                assert page.locator(".highlight code").first.evaluate(copied).startswith("mcpgym eval")
            assert wrong == []
            page.close()

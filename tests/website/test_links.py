"""What is wrong with a site's links is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.website import links


def site(folder: Path, body: str, **files: str) -> Path:
    (folder / "below").mkdir(parents=True)
    (folder / "index.html").write_text(f"<html><body>{body}</body></html>")
    (folder / "below" / "other.html").write_text('<h1 id="here">Here</h1><a href="../index.html">up</a>')
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder.resolve()


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("below/other.html", None),
        ("below/other.html#here", None),
        ("/below/other.html#here", None),
        ("https://example.com/a", None),
        ("below/other.html#there", "there is no such anchor"),
        ("#nowhere", "there is no such anchor"),
        ("below/another.html", "is not there"),
        ("below/", "is not there"),
        ("../../outside.html", "leads out of the site"),
        ("https:///a", "is no address that can be opened"),
        ("javascript:alert()", "is no address that can be opened"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, address: str, fault: str | None) -> None:
    found = links.broken(site(tmp_path / "site", f'<a href="{address}">a</a>'))
    assert found == ([f"index.html: {address}: {fault}"] if fault else [])


@pytest.mark.parametrize(
    ("body", "address"),
    [
        ('<script src="https://cdn.example.com/a.js"></script>', "https://cdn.example.com/a.js"),
        ('<link rel="stylesheet" href="//fonts.example.com/css">', "//fonts.example.com/css"),
        ('<link rel="preconnect" href="https://fonts.example.com">', "https://fonts.example.com"),
        ('<img src="gone.png">', "gone.png"),
        ('<img srcset="here.css 1x, https://example.com/b.png 2x">', "https://example.com/b.png"),
        ("<style>@import 'https://example.com/a.css'</style>", "https://example.com/a.css"),
        ('<p style="background: url(https://example.com/c.png)">', "https://example.com/c.png"),
        ('<pre class="mermaid">graph</pre>', "https://a-block-of-mermaid"),
        ('<img src="data:image/gif;base64,"><link rel="canonical" href="https://example.com/">', None),
    ],
)
def test_what_would_be_fetched_from_elsewhere_is_found(tmp_path: Path, body: str, address: str | None) -> None:
    found = links.fetched(site(tmp_path / "site", body, here_css="a { color: red }"))
    assert found == ([f"index.html: {address}"] if address else [])


def test_styles_are_read_too(tmp_path: Path) -> None:
    made = site(tmp_path / "site", "", own_css='a { background: url("https://example.com/d.png") }')
    assert links.fetched(made) == ["own.css: https://example.com/d.png"]

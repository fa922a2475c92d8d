"""Files that the loaders of wiki search read in tests."""

from __future__ import annotations

from pathlib import Path

from mcpgym_environments.wiki_search.corpora import corpus_of
from mcpgym_environments.wiki_search.pages import Corpus, Page, Problems

DUMP_HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo>
    <sitename>Almanac</sitename>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="10" case="first-letter">Template</namespace>
    </namespaces>
  </siteinfo>
"""


def read(spec: str) -> tuple[list[Page], Problems]:
    """Every page of a corpus, and what was wrong with it."""
    return read_corpus(corpus_of(spec))


def read_corpus(corpus: Corpus) -> tuple[list[Page], Problems]:
    problems = Problems()
    pages = list(corpus.pages(problems))
    assert len({page.title for page in pages}) == len(pages), "titles are told apart"
    assert len({page.key for page in pages}) == len(pages)
    for page in pages:
        assert page.sections[0].heading == page.title
        assert page.sections[0].level == 1
        assert all(section.level > 1 for section in page.sections[1:])
    return pages, problems


def text_of(page: Page, heading: str = "") -> str:
    """The text of the section under ``heading``; the lead's without one."""
    return next(section.text for section in page.sections if section.heading == (heading or page.title))


def dump_page(
    number: int, title: str, text: str, *, namespace: int = 0, redirect: str = "", model: str = "wikitext"
) -> str:
    """A page as a dump has it."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;")
    leads = f'\n    <redirect title="{redirect}" />' if redirect else ""
    return f"""  <page>
    <title>{title}</title>
    <ns>{namespace}</ns>
    <id>{number}</id>{leads}
    <revision>
      <id>{number + 1000}</id>
      <model>{model}</model>
      <text bytes="{len(text)}" xml:space="preserve">{safe}</text>
    </revision>
  </page>
"""


LORN = """{{Short description|River}}
{{Infobox river
| name = Lorn
| image = lorn.jpg
| length = {{convert|412|km|mi}}<ref>{{cite book|title=Rivers}}</ref>
| mouth = [[Bay of Verde]]
}}
The '''Lorn''' ({{IPAc-en|l|ɔː|n}}; {{lang-la|Lornus}}) is a [[river]] of {{val|412|u=km}} in
[[Verde#South|Verde]].<ref name="a">A note.</ref>
It carries [[water]]s &amp; boats.

[[File:Lorn.jpg|thumb|The [[bridge]] in ''spring'']]
[[Datei:Karte.png]]
== Course ==
* rises at [[Mount Ash]]
** in a cave
# first
# second
{| class="wikitable"
! Town !! Inhabitants
|-
| [[Odre]] || 12,345
|-
| Vell
| 678
|}
=== Floods ===
<syntaxhighlight lang="c">
int  flood(void);
</syntaxhighlight>
The worst was in 1951. [http://example.org The report] says so.
[[Category:Rivers]] [[fr:Lorne]]
"""


def write_dump(path: Path) -> Path:
    """A small dump: two articles, redirects before and after their target, a template, a talk page."""
    pages = [
        dump_page(3, "Lornus", "#REDIRECT [[Lorn]]", redirect="Lorn"),
        dump_page(4, "Template:Infobox river", "nothing to read", namespace=10),
        dump_page(5, "Lorn", LORN),
        dump_page(6, "Talk:Lorn", "I disagree.", namespace=1),
        dump_page(7, "River Lorn", "#redirect:[[lorn#Course]]"),
        dump_page(
            8,
            "Odre",
            "'''Odre''' is a town on the [[Lorn]].",
        ),
        dump_page(9, "Data.json", "{}", model="json"),
    ]
    path.write_text(DUMP_HEAD + "".join(pages) + "</mediawiki>\n", "utf-8")
    return path


LORN_NOTE = """---
title: Lorn
aliases: [River Lorn, "Lornus"]
---
# Lorn

The *Lorn* is a river of 412 km. It passes [Odre](towns/odre.html#x)
and [[Vell|the port]]. `# no heading`, `[[no link]]`

```
# a comment, no heading
```

## Course

1. rises
   - in a cave
2. falls

| Town | Inhabitants |
| --- | --- |
| Odre | 12,345 |
"""
ODRE_PAGE = """<html><head><title>x</title><style>p{}</style></head><body><nav>Home</nav><h1>Odre</h1>
<p>Odre &amp; its <b>mill</b>.<script>bad()</script><img src=a.png alt=A></p><h2>People</h2>
<ul><li>Ann<ul><li>Bo</ul><li>Cy</ul><table><tr><th>Year<td>1951<tr><td>1960<td>7</table><pre>a
  b</pre></body></html>"""


def write_notes(folder: Path) -> Path:
    """A small folder: Markdown, HTML, text and JSONL that link to each other."""
    (folder / "towns").mkdir(parents=True)
    (folder / "lorn.md").write_text(LORN_NOTE, "utf-8")
    (folder / "towns" / "odre.html").write_text(ODRE_PAGE, "utf-8")
    (folder / "vell.txt").write_text("Vell is a port.\n\nIt has 678 inhabitants.\n", "utf-8")
    (folder / "more.jsonl").write_text(
        '{"id": 7, "title": "Ash", "text": "A mountain of 2,311 m near [[Lorn]].\\n\\n## Climbs\\n\\nFirst in 1888.", '
        '"aliases": ["Mount Ash"], "links": ["Odre"]}\n'
        '{"title": "Cave", "sections": [{"heading": "Cave", "text": "A cave."}, {"heading": "Bats", "text": "Many."}'
        "]}\n",
        "utf-8",
    )
    return folder


def write_zim(path: Path) -> Path:
    """A small ZIM file."""
    from libzim.writer import Creator, Hint, Item, StringProvider

    class Article(Item):  # type: ignore[misc]
        def __init__(self, path: str, title: str, content: str, kind: str) -> None:
            super().__init__()
            self.given = path, title, content, kind

        def get_path(self) -> str:
            return self.given[0]

        def get_title(self) -> str:
            return self.given[1]

        def get_mimetype(self) -> str:
            return self.given[3]

        def get_contentprovider(self) -> StringProvider:
            return StringProvider(self.given[2])

        def get_hints(self) -> dict[Hint, int]:
            return {Hint.FRONT_ARTICLE: self.given[3] == "text/html"}

    html = "<html><head><title>t</title></head><body>{}</body></html>"
    with Creator(path).config_indexing(False, "eng") as creator:
        creator.add_metadata("Title", "Small wiki")
        creator.add_metadata("Language", "eng")
        for place, title, content, kind in (
            (
                "Lorn",
                "Lorn",
                html.format(
                    "<h1>Lorn</h1><p>The Lorn is a river of 412 km near <a href='./Odre#Mill'>Odre</a>, <a href='"
                    "Odra'>Odra</a>, <a href='style.css'>x</a>, <a href='https://example.org/'>y</a>.<sup class="
                    "'reference'>[1]</sup></p><h2>Course</h2><img src='a.png'><p>It rises at Ash.</p>"
                ),
                "text/html",
            ),
            ("Odre", "Odre (town)", html.format("<p>Odre is a town.</p>"), "text/html"),
            ("other/Lorn", "Lorn", html.format("<p>Another Lorn. <a href='../Odre'>Odre</a></p>"), "text/html"),
            ("empty", "Empty", html.format("<p> </p>"), "text/html"),
            ("style.css", "", "p{}", "text/css"),
        ):
            creator.add_item(Article(place, title, content, kind))
        creator.add_redirection("Odra", "Odra", "Odre", {})
        creator.add_redirection("Old_Odra", "Old Odra", "Odra", {})
    return path

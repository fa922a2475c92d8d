"""MediaWiki dumps: what is an article, what its wikitext says, and dumps that break off."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wiki_sources import DUMP_HEAD, dump_page, read, text_of, write_dump

from mcpgym import ConfigurationError
from mcpgym_environments.wiki_search.corpora import corpus_of
from mcpgym_environments.wiki_search.corpora.wikitext import read_wikitext
from mcpgym_environments.wiki_search.pages import Page, Problems

LEAD = """The Lorn (Lornus) is a river of 412 km in Verde. It carries waters & boats.

name | Lorn
length | 412 km
mouth | Bay of Verde"""
COURSE = "- rises at Mount Ash\n  - in a cave\n1. first\n2. second\n\nTown | Inhabitants\nOdre | 12,345\nVell | 678"


def test_articles_are_read_with_their_infobox_tables_and_redirects(tmp_path: Path) -> None:
    spec = f"dump:{write_dump(tmp_path / 'wiki.xml')}"
    assert dict(corpus_of(spec).about) == {
        "kind": "dump", "source": str(tmp_path / "wiki.xml"), "title": "Almanac", "language": "en",
    }  # fmt: skip
    pages, problems = read(spec)
    assert [(page.key, page.title) for page in pages] == [("5", "Lorn"), ("8", "Odre")]
    lorn = pages[0]
    assert [(part.heading, part.level) for part in lorn.sections] == [("Lorn", 1), ("Course", 2), ("Floods", 3)]
    assert text_of(lorn) == LEAD
    assert text_of(lorn, "Course") == COURSE
    assert text_of(lorn, "Floods") == "int  flood(void);\n\nThe worst was in 1951. The report says so."
    assert lorn.redirects == ("Lornus", "River Lorn")
    assert lorn.links == ("Bay of Verde", "River", "Verde", "Water", "Mount Ash", "Odre")
    assert problems.counts == {"not wikitext": 1}


def test_a_packed_dump_is_the_same_whatever_it_is_called(tmp_path: Path) -> None:
    plain = write_dump(tmp_path / "wiki.xml")
    expected, _ = read(f"dump:{plain}")
    for name, packed in (
        ("wiki.xml.bz2", bz2.compress(plain.read_bytes())),
        ("wiki.xml.gz", gzip.compress(plain.read_bytes())),
        ("wiki.xml.xz", lzma.compress(plain.read_bytes())),
        ("misnamed.xml", bz2.compress(plain.read_bytes()[:500]) + bz2.compress(plain.read_bytes()[500:])),
    ):
        (tmp_path / name).write_bytes(packed)
        assert read(f"dump:{tmp_path / name}")[0] == expected


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lambda data: lzma.compress(data, preset=0)])
def test_a_dump_that_breaks_off_gives_what_stands_before(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    words = random.Random(1)
    filler = [" ".join(str(words.random()) for _ in range(200)) for _ in range(400)]  # more than a block of bzip2
    whole = DUMP_HEAD + "".join(dump_page(n, f"Page {n}", text) for n, text in enumerate(filler)) + "</mediawiki>"
    data = pack(whole.encode())
    (tmp_path / "cut").write_bytes(data[: len(data) * 3 // 4])
    pages, problems = read(f"dump:{tmp_path / 'cut'}")
    assert 50 < len(pages) < 400
    assert [page.title for page in pages] == [f"Page {n}" for n in range(len(pages))]
    assert problems.counts == {"truncated dump": 1}
    assert f"after 'Page {len(pages) - 1}' ({len(pages)} pages)" in problems.examples["truncated dump"][0]


def test_what_is_no_dump_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.sql.gz").write_bytes(gzip.compress(b"INSERT INTO page VALUES (1);"))
    (tmp_path / "wiki.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(20))
    (tmp_path / "cut.bz2").write_bytes(bz2.compress(b"<mediawiki>" * 10)[:20])
    for name, said in (
        ("page.sql.gz", "no MediaWiki XML dump"), ("wiki.7z", "unpack it first"), ("cut.bz2", "cannot be read"),
        ("none.xml", "there is no file"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match=said):
            corpus_of(f"dump:{tmp_path / name}")


def test_the_last_revision_counts_and_two_pages_of_a_title_are_told_apart(tmp_path: Path) -> None:
    history = dump_page(1, "Lorn", "Old text.").replace(
        "  </page>", "    <revision><id>9</id><text>New text.</text></revision>\n    <new>?</new>\n  </page>"
    )
    again = dump_page(2, "Lorn", "Again.") + dump_page(3, "Lornus", "#REDIRECT [[Lorn]]", redirect="Lorn")
    (tmp_path / "d.xml").write_text(f"{DUMP_HEAD}{history}{again}</mediawiki>")
    pages, problems = read(f"dump:{tmp_path / 'd.xml'}")
    assert [(page.title, text_of(page), page.redirects) for page in pages] == [
        ("Lorn", "New text.", ("Lornus",)),
        ("Lorn (2)", "Again.", ()),
    ]
    assert problems.counts == {"duplicate title": 1}


def test_bytes_that_are_no_utf8_and_control_characters_are_replaced_and_noted(tmp_path: Path) -> None:
    page = dump_page(1, "Lorn", "Caf@ and #.").encode().replace(b"@", b"\xe9").replace(b"#", b"\x02")
    (tmp_path / "d.xml").write_bytes(DUMP_HEAD.encode() + page + b"</mediawiki>")
    pages, problems = read(f"dump:{tmp_path / 'd.xml'}")
    assert text_of(pages[0]) == "Caf\ufffd and \ufffd."
    assert problems.counts == {"encoding": 1}


def test_a_bomb_of_entities_is_refused_by_the_parser(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE m [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefghi", "bcdefghij", strict=True)
    )
    (tmp_path / "d.xml").write_text(bomb + "]>" + DUMP_HEAD + dump_page(1, "A", "x").replace(">x<", ">&j;<"))
    pages, problems = read(f"dump:{tmp_path / 'd.xml'}")
    assert pages == []
    assert problems.counts == {"truncated dump": 1}


def test_memory_does_not_grow_with_the_pages(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.xml"
        with path.open("w") as file:
            file.write(DUMP_HEAD)
            for n in range(count):
                file.write(
                    dump_page(n, f"Redirect {n}", "#REDIRECT [[A]]", redirect="A")
                    if n % 2
                    else dump_page(n, f"P {n}", "x")
                )
            file.write("</mediawiki>")
        tracemalloc.start()
        seen = sum(1 for _ in _pages(f"dump:{path}"))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert seen == count // 2
        return most

    peak(20)
    small = peak(600)
    assert peak(3000) < small * 1.3


def _pages(spec: str) -> Iterator[Page]:
    return iter(corpus_of(spec).pages(Problems()))


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("{{convert|12|-|15|km|mi}} long", "12-15 km long"),
        ("born {{birth date|1815|12|10}} in {{nowrap|Port Lorn}}", "born 10 December 1815 in Port Lorn"),
        ("{{birth date and age|1961|8|4|mf=yes}}", "August 4, 1961"),
        ("{{start date|1999|5}} and {{start date|1999}}", "May 1999 and 1999"),
        ("{{lang|fr|Été}} ({{circa|1900}}), {{frac|1|2}} {{val|5.1|u=kg}}", "Été (c. 1900), 1/2 5.1 kg"),
        ("{{unknown thing|with text}} stays out", "stays out"),
        ("a {{ndash}} b{{snd}}c &ndash; d &#8212; e", "a – b – c – d — e"),
        ("'''Bold''' and ''italic'' and '''''both'''''", "Bold and italic and both"),
        ("[[a|b]] [[:Category:X]] [[Category:Y]] [[File:Z.jpg|thumb|[[q]] w]] [[#part|here]]", "b Category:X here"),
        ("one<br>two<br />three", "one two three"),
        ("H<sub>2</sub>O<ref>no</ref><!-- no -->", "H2O"),
        ("<nowiki>''kept''</nowiki>", "kept"),
        ("; Term : meaning\n: indented", "Term: meaning\nindented"),
        ("__NOTOC__\nText {{{1|default}}}", "Text default"),
        ("{{plainlist|\n* a\n* b\n}}", "a, b"),
        ("{{formatnum:1234}} {{uc:abc}}", "1234 ABC"),
        ("unclosed {{template and [[link", "unclosed {{template and [[link"),
        ("(; ) x ( , y)", "x (y)"),
    ],
)
def test_wikitext_is_read_as_it_is_shown(wikitext: str, text: str) -> None:
    document, oddity = read_wikitext(wikitext, "T")
    assert document.sections[0].text == text
    assert oddity == ""


@pytest.mark.parametrize(
    "unit", ["{{a|", "{|\n", "<b>", "[http://a ", "[[", "<!--", "<ref>", "*", "{{a|[[", "( ", "''"]
)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_wikitext_that_would_take_the_parser_hours_is_read_without_it(unit: str) -> None:
    begun = time.process_time()
    document, _ = read_wikitext("Before [[a|b]].\n== Part ==\nafter " + unit * 100_000, "T")
    assert time.process_time() - begun < 3
    assert document.sections[0].text == "Before b."
    assert document.sections[1].text.startswith("after")


def test_wikitext_that_nests_too_deeply_says_so() -> None:
    document, oddity = read_wikitext("Before [[a|b]]. " + "{{a|" * 500 + "x" + "}}" * 500 + " After.", "T")
    assert document.sections[0].text.startswith("Before b.")
    assert document.sections[0].text.endswith("After.")
    assert oddity == "nested too deeply: read without its templates"


@given(st.text(alphabet="[]{}|=*#:;'<>/!-\n abrefT\ue000&", max_size=120))
@example("{|\n|}\n|-\n{{{{{{[[[[")
def test_any_wikitext_is_read_without_an_error(text: str) -> None:
    document, _ = read_wikitext(text, "T", {6: "File", 14: "Category"})
    assert document.sections[0].heading == "T"
    assert all("\ue000" not in section.text and "\ue001" not in section.text for section in document.sections)

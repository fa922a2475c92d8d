"""A folder of files as an encyclopedia: what is read of each kind, and what becomes of files that are wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wiki_sources import read, text_of, write_notes

from mcpgym import ConfigurationError
from mcpgym_environments.wiki_search.corpora import corpus_of
from mcpgym_environments.wiki_search.corpora.decoding import NotText, decode
from mcpgym_environments.wiki_search.corpora.html import read_html
from mcpgym_environments.wiki_search.corpora.markdown import read_markdown, title_of


def test_every_kind_of_file_becomes_pages(tmp_path: Path) -> None:
    pages, problems = read(f"folder:{write_notes(tmp_path)}")
    assert problems.counts == {}
    by_title = {page.title: page for page in pages}
    assert [page.key for page in pages] == [
        "lorn.md",
        "more.jsonl#7",
        "more.jsonl#line-2",
        "vell.txt",
        "towns/odre.html",
    ]

    lorn = by_title["Lorn"]
    assert lorn.aliases == ("River Lorn", "Lornus")
    assert lorn.links == ("Odre", "vell")
    assert text_of(lorn) == (
        "The Lorn is a river of 412 km. It passes Odre and the port. # no heading, [[no link]]\n\n"
        "# a comment, no heading"
    )
    assert text_of(lorn, "Course") == "1. rises\n  - in a cave\n2. falls\n\nTown | Inhabitants\nOdre | 12,345"

    odre = by_title["Odre"]
    assert [(part.heading, part.level) for part in odre.sections] == [("Odre", 1), ("People", 2)]
    assert text_of(odre) == "Odre & its mill."
    assert text_of(odre, "People") == "- Ann\n  - Bo\n- Cy\n\nYear | 1951\n1960 | 7\n\na\n  b"

    assert text_of(by_title["vell"]) == "Vell is a port.\n\nIt has 678 inhabitants."
    assert by_title["Ash"].aliases == ("Mount Ash",)
    assert by_title["Ash"].links == ("Odre", "Lorn")
    assert text_of(by_title["Ash"], "Climbs") == "First in 1888."
    assert [part.heading for part in by_title["Cave"].sections] == ["Cave", "Bats"]


def test_pages_of_one_title_are_told_apart_and_links_by_path_lead_to_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.md").write_text("# Mercury\n\nA planet, not [the metal](b/m.md).")
    (tmp_path / "b" / "m.md").write_text("# Mercury\n\nA metal.")
    (tmp_path / "c.jsonl").write_text('{"title": "Mercury", "text": "A god."}')
    pages, problems = read(f"folder:{tmp_path}")
    assert {page.key: page.title for page in pages} == {
        "a.md": "Mercury",
        "c.jsonl#line-1": "Mercury (c.jsonl#line-1)",
        "b/m.md": "Mercury (b/m.md)",
    }
    assert pages[0].links == ("Mercury (b/m.md)",)
    assert all(page.aliases == ("Mercury",) for page in pages[1:])
    assert problems.counts == {"duplicate title": 2}


def test_what_cannot_be_read_is_noted_and_the_rest_stays(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("Fine.")
    (tmp_path / "latin.txt").write_bytes("Café, naïve façade: São Verde".encode("latin-1"))
    (tmp_path / "utf16.txt").write_bytes("Odre liegt an der Lorn, östlich von Vell.".encode("utf-16-le"))
    (tmp_path / "marked.txt").write_bytes("Ash".encode("utf-8-sig"))
    (tmp_path / "torn.txt").write_bytes("Käse, Öl, Bär und über".encode() + b"\xc3")
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)) * 3)
    (tmp_path / "empty.md").write_text("# Nothing\n")
    (tmp_path / "secret.md").symlink_to("/etc/hostname")
    (tmp_path / ".hidden.md").write_text("Hidden.")
    (tmp_path / "bad.jsonl").write_text(
        '{"title": "A"}\n{"text": "B"}\nnot json\n[1]\n{"title": "C", "text": "c", "links": 3}\n'
        '{"title": "D", "text": "d"}\n' + "[" * 100_000 + "\n"
    )
    pages, problems = read(f"folder:{tmp_path}")
    texts = {page.title: text_of(page) for page in pages}
    assert texts == {
        "D": "d",
        "good": "Fine.",
        "latin": "Café, naïve façade: São Verde",
        "marked": "Ash",
        "torn": "Käse, Öl, Bär und über\ufffd",
        "utf16": "Odre liegt an der Lorn, östlich von Vell.",
    }
    assert problems.counts == {
        "bad record": 6,
        "unreadable file": 1,
        "empty page": 1,
        "encoding": 3,
        "link to the outside": 1,
    }
    assert "latin.txt: read as windows-1252" in problems.examples["encoding"]
    assert "bad.jsonl:2: has no title" in problems.examples["bad record"]


def test_a_folder_without_pages_and_a_path_that_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no .*nowhere"):
        corpus_of(f"folder:{tmp_path}/nowhere")
    with pytest.raises(ConfigurationError, match=r"holds no file that ends in .*\.md"):
        corpus_of(f"folder:{tmp_path}")


def test_the_fingerprint_changes_when_a_file_does(tmp_path: Path) -> None:
    write_notes(tmp_path)
    before = corpus_of(f"folder:{tmp_path}").fingerprint
    assert corpus_of(f"folder:{tmp_path}").fingerprint == before
    os.utime(tmp_path / "vell.txt", (1, 1))
    touched = corpus_of(f"folder:{tmp_path}").fingerprint
    (tmp_path / "new.md").write_text("New.")
    assert len({before, touched, corpus_of(f"folder:{tmp_path}").fingerprint}) == 3


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# One\n\ntext", "One"),
        ("One\n===\n", "One"),
        ("![logo](x.png)\n\n# *One* `two`\n", "One two"),
        ("## Second level only\n", ""),
        ("---\ntitle: 'It''s'\n---\n# Other\n", "It's"),
        ('---\ntitle: "A: b" \n...\ntext', "A: b"),
        ("```\n# One\n```\n", ""),
        ("    # One\n", ""),
        ("#One\n", ""),
        ("", ""),
    ],
)
def test_a_title_is_what_the_front_matter_or_the_first_heading_says(text: str, title: str) -> None:
    assert title_of(text) == title


def test_markdown_keeps_the_first_of_two_titles_and_front_matter_lists_in_lines() -> None:
    document = read_markdown(
        "---\naliases:\n  - A b\n  - 'C'\n---\n# T\n\nlead\n\n# Second\n\nmore\n\n> quoted\n> on\n", "T"
    )
    assert document.aliases == ["A b", "C"]
    assert [(part.heading, part.level, part.text) for part in document.sections] == [
        ("T", 1, "lead"),
        ("Second", 2, "more\n\nquoted on"),
    ]


@given(st.text(max_size=300))
@example("[[" * 200)
@example("> " * 500 + "x")
@example("- " * 300 + "x")
@example("\x00\ud800\u202e[[a|b]] <b")
def test_any_markdown_and_any_html_is_read_without_an_error(text: str) -> None:
    for document in (read_markdown(text, "T"), read_html(text.replace("\ud800", ""), title="T")):
        assert document.sections
        for section in document.sections:
            section.text.encode()  # no half surrogates
            assert "\0" not in section.text


def test_what_nests_without_end_is_left_out_and_the_rest_is_not(tmp_path: Path) -> None:
    (tmp_path / "open.md").write_text("[" * 500_000)
    (tmp_path / "open.jsonl").write_text(json.dumps({"title": "A", "text": "![[" * 200_000}))
    (tmp_path / "deep.html").write_text("<div>" * 500_000 + "deep")
    (tmp_path / "sly.html").write_text("<DIV></x>" * 500_000 + "deep")
    (tmp_path / "long.html").write_text("<p>a" * 5000 + "<div>b</div>" * 5000 + "<ul>" + "<li>c" * 5000)
    pages, problems = read(f"folder:{tmp_path}")
    assert [page.key for page in pages] == ["long.html"]
    assert problems.counts == {"unreadable file": 3, "bad record": 1}
    nested = read_html("<div>" * 1500 + "deep" + "</div>" * 1500)
    assert nested.sections[0].text == "deep"


@pytest.mark.parametrize(
    ("data", "text", "said"),
    [
        ("Größe".encode(), "Größe", ""),
        (b"\xef\xbb\xbfa", "a", ""),
        ("\ufeffa".encode("utf-16-le"), "a", "read as utf-16"),
        (
            "<meta charset='iso-8859-2'>Łódź".encode("iso-8859-2"),
            "<meta charset='iso-8859-2'>Łódź",
            "read as iso-8859-2",
        ),
        ("<meta charset=nonsense>é".encode("cp1252"), "<meta charset=nonsense>é", "read as windows-1252"),
        ("“quoted” – 5 €".encode("cp1252"), "“quoted” – 5 €", "read as windows-1252"),
        (
            ("Это обычный русский текст о реке и городе. " * 8).encode("cp1251"),
            "Это обычный русский текст о реке и городе. " * 8,
            "read as cp1251",
        ),
    ],
)
def test_encodings_are_told_apart(data: bytes, text: str, said: str) -> None:
    assert decode(data) == (text, said)


@given(st.binary(max_size=400))
def test_any_bytes_are_text_or_said_not_to_be(data: bytes) -> None:
    try:
        text, _ = decode(data)
    except NotText:
        return
    assert isinstance(text, str)

"""ZIM files: articles, redirects and links, and files that are none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from wiki_sources import read, text_of, write_zim

from mcpgym import ConfigurationError
from mcpgym_environments.wiki_search.corpora import corpus_of

pytest.importorskip("libzim")


def test_articles_redirects_and_links_are_read(tmp_path: Path) -> None:
    spec = f"zim:{write_zim(tmp_path / 'small.zim')}"
    corpus = corpus_of(spec)
    assert corpus.about["title"] == "Small wiki"
    assert corpus.about["language"] == "eng"
    pages, problems = read(spec)
    assert [(page.key, page.title) for page in pages] == [
        ("Lorn", "Lorn"),
        ("Odre", "Odre (town)"),
        ("other/Lorn", "Lorn (other/Lorn)"),
    ]
    lorn, odre, other = pages
    assert text_of(lorn) == "The Lorn is a river of 412 km near Odre, Odra, x, y."
    assert text_of(lorn, "Course") == "It rises at Ash."
    assert lorn.links == ("Odre (town)",)
    assert odre.redirects == ("Odra", "Old Odra")
    assert other.links == ("Odre (town)",)
    assert other.aliases == ("Lorn",)
    assert problems.counts == {"duplicate title": 1, "empty page": 1}


def test_a_file_that_is_none_cut_off_or_missing_is_refused(tmp_path: Path) -> None:
    whole = write_zim(tmp_path / "small.zim").read_bytes()
    (tmp_path / "cut.zim").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.zim").write_text("no archive")
    for name, said in (
        ("cut.zim", "damaged"),
        ("text.zim", "no ZIM file"),
        ("none.zim", "there is cut.zim, small.zim"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            corpus_of(f"zim:{tmp_path / name}")
    with pytest.raises(ConfigurationError, match="is a folder"):
        corpus_of(f"zim:{tmp_path}")


def test_a_damaged_article_is_noted_and_the_others_stay(tmp_path: Path) -> None:
    path = write_zim(tmp_path / "small.zim")
    whole = path.read_bytes()
    start = int.from_bytes(whole[48:56], "little")  # the list of clusters
    cluster = int.from_bytes(whole[start : start + 8], "little")
    path.write_bytes(whole[: cluster + 1] + bytes(40) + whole[cluster + 41 :])
    pages, problems = read(f"zim:{path}")
    assert len(pages) < 3
    assert problems.counts["unreadable entry"] >= 1


def test_reading_writes_nothing_to_standard_output(tmp_path: Path) -> None:
    path = write_zim(tmp_path / "small.zim")
    code = (
        "import sys; from mcpgym_environments.wiki_search.corpora import corpus_of\n"
        "from mcpgym_environments.wiki_search.pages import Problems\n"
        "print(len(list(corpus_of(sys.argv[1]).pages(Problems()))), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, f"zim:{path}"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "3\n")  # standard output may be the wire of an MCP server

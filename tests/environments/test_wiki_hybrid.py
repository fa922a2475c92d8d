"""Search by meaning finds what no word of the query says; search by words still finds the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from wiki_toys import TOWNS, ToyCorpus, page

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.building import open_library
from mcpgym_environments.wiki_search.library import Library
from mcpgym_environments.wiki_search.search import engines

PAGES = (
    *TOWNS,
    page("Felis", "A small domesticated carnivore that purrs and catches mice.", "It sleeps by day.", key="cat"),
    page("Ombrel", "A canopy on a stick, carried against rain.", key="umbrella"),
    page("Kardia", "The muscle that pumps blood through the body.", key="heart"),
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    if "hybrid" not in engines.available():
        pytest.skip("the extra wiki-dense is not installed")
    opened = open_library(ToyCorpus(PAGES), "hybrid", folder=tmp_path_factory.mktemp("cache"))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("kitten pet animal", "cat"),
        ("what keeps me dry in wet weather", "umbrella"),
        ("cardiac organ", "heart"),
        ("12,345", "key of São Verde"),
        ("who founded Sao Verde", "key of São Verde"),
        ("Ines Carvalo", "key of Ines Carvalho"),
    ],
)
def test_words_and_meaning_both_find(library: Library, query: str, key: str) -> None:
    hits = library.search(query, 3)
    found = library.page(hits[0].page_id)
    assert found is not None
    assert found.key == key


def test_a_section_found_by_its_words_is_the_one_that_is_shown(library: Library) -> None:
    assert library.search("sleeps by day")[0].heading == "Part 1"


def test_equal_searches_give_equal_hits(library: Library, tmp_path: Path) -> None:
    again = open_library(ToyCorpus(PAGES), "hybrid", folder=tmp_path)
    for query in ("animal", "a river town", "planet or metal", ""):
        assert library.search(query) == again.search(query)


def test_an_engine_that_is_not_installed_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = ToyCorpus(TOWNS)
    monkeypatch.setattr(engines, "find_spec", lambda package: None)
    for engine, extra in (("tantivy", "wiki"), ("hybrid", "wiki-dense")):
        with pytest.raises(ConfigurationError, match=rf"pip install 'mcpgym\[{extra}\]'.*auto, fts5"):
            open_library(corpus, engine, folder=tmp_path)
    assert corpus.reads == 0
    assert open_library(corpus, "auto", folder=tmp_path).engine == "fts5"
    assert engines.engine_named("auto", 1_000_000).name == "fts5"


def test_large_corpora_get_tantivy() -> None:
    pytest.importorskip("tantivy")
    assert engines.engine_named("auto", 1_000_000).name == "tantivy"
    assert engines.engine_named("auto", 1_000).name == "fts5"


def test_another_engine_is_added_to_a_library_that_is_built(tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    corpus = ToyCorpus(TOWNS)
    for engine in ("fts5", "tantivy", "fts5"):
        library = open_library(corpus, engine, folder=tmp_path)
        assert (library.engine, library.search("lorn")[0].title) == (engine, "Lorn")
    assert corpus.reads == 1

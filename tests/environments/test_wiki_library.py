"""A library gives pages by id and name, and search finds them, whatever it is asked."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wiki_toys import TOWNS, ToyCorpus, many, page

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.building import open_library
from mcpgym_environments.wiki_search.library import Library
from mcpgym_environments.wiki_search.names import name_key
from mcpgym_environments.wiki_search.search.engines import available
from mcpgym_environments.wiki_search.search.query import parse_query
from mcpgym_environments.wiki_search.search.snippets import snippet
from mcpgym_environments.wiki_search.sqlite_files import LibraryClosed

ENGINES = [name for name in ("fts5", "tantivy") if name in available()]


@pytest.fixture(scope="module", params=ENGINES)
def towns(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    corpus = ToyCorpus(TOWNS, noted=(("odd page", "it was odd"),))
    library = open_library(corpus, request.param, folder=tmp_path_factory.mktemp("cache"))
    yield library
    library.close()


@pytest.fixture(scope="module", params=ENGINES)
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    library = open_library(ToyCorpus(many(600)), request.param, folder=tmp_path_factory.mktemp("cache"))
    yield library
    library.close()


def titles(library: Library, query: str, limit: int = 10) -> list[str]:
    return [hit.title for hit in library.search(query, limit)]


def test_ids_count_pages_and_sections_in_the_corpus_order(towns: Library) -> None:
    first = towns.page("p1")
    assert first is not None
    assert (first.title, first.key, first.sections) == ("São Verde", "key of São Verde", 3)
    assert [(entry.id, entry.heading, entry.level) for entry in towns.sections("p1")] == [
        ("p1.1", "São Verde", 1),
        ("p1.2", "History", 2),
        ("p1.3", "Population", 2),
    ]
    part = towns.section("p1.2")
    assert part is not None
    assert part.text == "It was founded in 1204 by Ines Carvalho, a navigator."
    assert (part.page_id, part.page_key, part.title, part.heading) == ("p1", first.key, "São Verde", "History")
    assert towns.sections("p1")[1].characters == len(part.text)


@pytest.mark.parametrize("written", ["p1", "P1", " `p1` ", '"p1"', "[p1]", "1", "p1.", "(P1)"])
def test_an_id_may_be_written_as_models_write_it(towns: Library, written: str) -> None:
    found = towns.page(written)
    assert found is not None
    assert found.id == "p1"


@pytest.mark.parametrize("written", ["", "p", "p0", "p99", "p1.2", "page one", "p-1", "1e3", "p1\0", "¹", "p" * 10_000])
def test_what_is_no_page_is_none(towns: Library, written: str) -> None:
    assert towns.page(written) is None
    assert towns.links(written) == []
    assert towns.sections(written) == []


@pytest.mark.parametrize("written", ["p1", "p1.0", "p1.4", "p99.1", "p1.2.3", "History", "p1.99999"])
def test_what_is_no_section_is_none(towns: Library, written: str) -> None:
    assert towns.section(written) is None


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("sao verde", "São Verde"),
        ("SÃO_VERDE", "São Verde"),
        ("green harbour", "São Verde"),
        ("Sao Verde (port)", "São Verde"),
        ("C", "C"),
        ("c++", "C++"),
        ("Strassburg", "Straßburg"),
        ("東京", "東京"),
        ("who", "The Who"),
    ],
)
def test_a_page_is_found_by_any_of_its_names(towns: Library, name: str, title: str) -> None:
    found = towns.page_by_title(name)
    assert found is not None
    assert found.title == title
    assert towns.page_by_title(f"{name} not") is None


def test_pages_of_one_title_are_told_apart_by_key(towns: Library) -> None:
    one, other = towns.page_by_key("mercury-1"), towns.page_by_key("mercury-2")
    assert one is not None
    assert other is not None
    assert one.id != other.id
    assert towns.page_by_title("mercury") == one, "the first of the corpus"


def test_links_lead_to_pages_or_are_said_to_lead_nowhere(towns: Library) -> None:
    assert [(link.title, link.page_id) for link in towns.links("p1")] == [
        ("Lorn", "p2"),
        ("Ines Carvalho", "p3"),
        ("Nowhere", None),
    ]
    assert len(towns.links("p10")) == 1, "a link given twice is one"


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("founded 1204", "São Verde"),
        ("When was Sao Verde founded?", "São Verde"),
        ('"port on the river"', "São Verde"),
        ("12,345", "São Verde"),
        ("c++", "C++"),
        ("programming language of 1985", "C++"),
        ("the who", "The Who"),
        ("首都", "東京"),
        ("liquid metal", "Mercury"),
        ("well-known cathedral", "Straßburg"),
        ("strassburg rhine", "Straßburg"),
        ("Ines Carvalo", "Ines Carvalho"),
        ("Inse Carvalho navigator born", "Ines Carvalho"),
        ("founding navigators", "São Verde"),
    ],
)
def test_search_finds(towns: Library, query: str, title: str) -> None:
    assert titles(towns, query)[:1] == [title]


def test_a_hit_shows_the_section_that_fits_and_the_words_in_it(towns: Library) -> None:
    hit = towns.search("population of Sao Verde 1950")[0]
    assert (hit.page_id, hit.section_id, hit.heading) == ("p1", "p1.3", "Population")
    assert "12,345" in hit.snippet
    assert [hit.page_id for hit in towns.search("navigator")] == list(
        dict.fromkeys(hit.page_id for hit in towns.search("navigator"))
    ), "a page is one hit"


def test_a_query_without_a_match_finds_nothing(towns: Library) -> None:
    for query in ("", "   ", "zzzzqqq", "?!", '""', "🦊"):
        assert towns.search(query) == []
        assert towns.nearest(query) == []


def test_a_limit_is_kept(large: Library) -> None:
    assert len(large.search("marker1 marker2 marker3 marker4", 3)) == 3
    assert large.search("marker1", 0) == large.search("marker1", -1) == []


def test_sections_with_all_words_come_before_those_with_some(large: Library) -> None:
    part = large.section("p300.2")
    assert part is not None
    words = part.text.split()
    hits = large.search(f"{words[0]} {words[5]} marker299")
    assert (hits[0].page_id, hits[0].section_id.partition(".")[0]) == ("p300", "p300")
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_the_nearest_titles_come_first(large: Library) -> None:
    for number in (3, 77, 412):
        title = large.page(f"p{number}").title  # type: ignore[union-attr]
        misspelt = title[:2] + "x" + title[3:]
        assert large.nearest(misspelt)[0].title == title
        assert large.nearest(title.lower()[:-4])
        assert large.search(misspelt)[0].title == title


def test_equal_searches_give_equal_hits_in_every_thread(large: Library) -> None:
    queries = [large.section(f"p{n}.2").text[:40] for n in range(1, 60)]  # type: ignore[union-attr]
    expected = [large.search(query) for query in queries]
    wrong: list[str] = []

    def look() -> None:
        wrong.extend(query for query, hits in zip(queries, expected, strict=True) if large.search(query) != hits)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


ODD = st.text(max_size=60) | st.text(st.sampled_from("\"'()*:^-+{}[]. ANDORNEAR\0\ud800é東title:"), max_size=60)


@settings(deadline=None, max_examples=150)
@given(ODD)
def test_no_text_is_an_error(towns: Library, text: str) -> None:
    for hit in towns.search(text):
        assert len(hit.snippet) <= 200
        assert towns.section(hit.section_id) is not None
    towns.nearest(text)
    towns.page_by_title(text)
    towns.page_by_key(text)
    towns.page(text)
    towns.section(text)


@pytest.mark.parametrize(
    "text", ["word " * 50_000, "a" * 100_000, '"' * 10_000, "NOT " * 9_999, "p1.1" * 9_999, "é" * 9_999]
)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_a_huge_query_takes_no_time(towns: Library, text: str) -> None:
    started = time.process_time()
    towns.search(text)
    towns.nearest(text)
    towns.page_by_title(text)
    assert time.process_time() - started < 0.5


def test_a_query_of_frequent_words_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpgym_environments.wiki_search.search import fts5

    monkeypatch.setattr(fts5, "RANKED", 50)
    monkeypatch.setattr(fts5, "READ", 100)
    corpus = ToyCorpus([page(f"Town {n}", f"The common word, {'rare' if n == 180 else 'plain'}.") for n in range(200)])
    library = open_library(corpus, "fts5", folder=tmp_path)
    assert len(library.search("common word", 100)) == 50
    assert titles(library, "common rare word")[0] == "Town 180"
    assert titles(library, "plain common rare")[0] == "Town 180"


def test_a_search_on_a_machine_that_stands_still_finds_what_it_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two steps of it a minute passes; yet what a query finds is a matter of the text alone."""
    corpus = ToyCorpus([page(f"Town {n}", f"The common word of town {n}, no other.") for n in range(3000)])
    library = open_library(corpus, "fts5", folder=tmp_path)
    found = library.search("common word town", 20)
    assert len(found) == 20
    library.close()
    minutes = itertools.count(step=60)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(minutes)))
    late = open_library(corpus, "fts5", folder=tmp_path)
    assert late.search("common word town", 20) == found
    late.close()


def test_a_closed_library_says_so(tmp_path: Path) -> None:
    library = open_library(ToyCorpus(TOWNS), "fts5", folder=tmp_path)
    library.close()
    with pytest.raises(LibraryClosed, match="closed"):
        library.search("lorn")


def test_problems_of_the_corpus_are_kept(towns: Library) -> None:
    assert towns.problems.counts == {"odd page": 1}
    assert towns.problems.examples == {"odd page": ["it was odd"]}


def test_what_no_text_can_hold_is_replaced_and_a_key_used_twice_left_out(tmp_path: Path) -> None:
    corpus = ToyCorpus([page("A\0b", "one \ud800 two"), page("B", "b", key="k"), page("C", "c", key="k")])
    library = open_library(corpus, folder=tmp_path)
    assert library.pages == 2
    part = library.section("p1.1")
    assert part is not None
    assert (part.title, part.text) == ("Ab", "one ? two")
    assert len(library.problems.counts) == 2


def test_a_corpus_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"toys has no pages \(bad file: x.md\)"):
        open_library(ToyCorpus([], noted=(("bad file", "x.md"),)), folder=tmp_path)


def test_stop_words_are_left_out_unless_there_is_nothing_else() -> None:
    assert parse_query("What is the capital of Verde?").words == ("capital", "verde")
    assert parse_query("the who").words == ("the", "who")
    assert parse_query('"the river lorn" length').phrases == (("the", "river", "lorn"),)
    assert parse_query("1,234.5 m").phrases == (("1", "234", "5"),)


@pytest.mark.parametrize(
    "text", ["a b", "x" * 500, "word " * 200, "é" * 400 + " needle " + "ü" * 400, "", "\n\n a \n b"]
)
def test_a_snippet_is_short_and_cut_at_words(text: str) -> None:
    made = snippet(text, ("needle",))
    assert len(made) <= 200
    assert "\n" not in made
    if "needle" in text:
        assert "needle" in made


def test_a_snippet_shows_as_many_different_words_as_it_can() -> None:
    text = "alpha " + "filler " * 100 + "alpha and the Bêta city " + "filler " * 100
    made = snippet(text, ("alpha", "beta", "cities"))
    assert "alpha and the Bêta city" in made
    assert made.startswith("… ")
    assert made.endswith(" …")


@given(st.text(max_size=40))
def test_a_name_folds_to_itself(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What is the home port of Green Harbour's ferry on the Lorn?", ["São Verde", "Lorn"]),
        ("C++ or C", ["C++", "C"]),
        ("mercury", ["Mercury", "Mercury"]),
        ("Which band is 'the who'?", ["The Who"]),
        ("Tell me about Lorn: is it a river?", ["Lorn"]),
    ],
)
def test_pages_that_a_question_names_come_first(towns: Library, query: str, expected: list[str]) -> None:
    assert titles(towns, query)[: len(expected)] == expected
    scores = [hit.score for hit in towns.search(query)]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
def test_most_questions_about_the_world_find_the_page_they_are_about(tmp_path: Path) -> None:
    import random

    from mcpgym_environments.wiki_search.world import World

    world = World(3, 1_000)
    knowledge, source = world.knowledge, random.Random(0)
    library = open_library(world, "fts5", folder=tmp_path)
    asked = found = 0
    for name, relation in sorted(knowledge.relations.items()):
        for entity in source.sample(list(knowledge.entities(relation.subject)), 3):
            if knowledge.values(entity, name):
                asked += 1
                keys = [
                    entry.key
                    for hit in library.search(relation.questions[0].format(entity.name), 3)
                    if (entry := library.page(hit.page_id))
                ]
                found += knowledge.evidence(entity, name).page in keys
    assert asked > 100
    assert found >= 0.98 * asked


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("tied", [4_096, 20])
def test_equals_come_in_the_order_of_the_corpus(
    engine: str, tied: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "tantivy":
        monkeypatch.setattr("mcpgym_environments.wiki_search.search.with_tantivy.TIED", tied)
    pages = [page(f"T{n}x", "alike in every word" + (" and better better" if n == 250 else "")) for n in range(300)]
    library = open_library(ToyCorpus(pages), engine, folder=tmp_path)
    assert [hit.page_id for hit in library.search("alike", 8)] == [f"p{n}" for n in range(1, 9)]
    expected = ["p251", *(f"p{n}" for n in range(1, 8))]
    assert [hit.page_id for hit in library.search("alike better", 8)] == expected


def test_the_same_text_finds_the_same_in_another_process(tmp_path: Path) -> None:
    import subprocess
    import sys

    script = (
        "import sys; sys.path[:0] = [sys.argv[2]]\n"
        "from pathlib import Path\nfrom wiki_toys import ToyCorpus, many\n"
        "from mcpgym_environments.wiki_search.building import open_library\n"
        "library = open_library(ToyCorpus(many(80)), 'fts5', folder=Path(sys.argv[1]))\n"
        "print([library.search(library.section(f'p{n}.2').text[:60]) for n in range(1, 40)], library.content)\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / seed), str(Path(__file__).parent)],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1

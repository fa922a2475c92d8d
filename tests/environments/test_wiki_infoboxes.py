"""Questions from infoboxes: a hand-made encyclopedia, as a dump and as a folder, with clean values and unclean ones."""

from __future__ import annotations

import asyncio
from datetime import date
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from episode_driver import drive
from test_wiki_questions import given, wanted
from wiki_solver import Solver
from wiki_sources import DUMP_HEAD, dump_page

from mcpgym import ConfigurationError
from mcpgym.episodes import Episodes
from mcpgym.registry import configure
from mcpgym_environments.wiki_search.environment import WikiSearch
from mcpgym_environments.wiki_search.gold import find_section
from mcpgym_environments.wiki_search.infoboxes import InfoboxKnowledge
from mcpgym_environments.wiki_search.knowledge import Entity, Quantity, Value
from mcpgym_environments.wiki_search.library import Library
from mcpgym_environments.wiki_search.questions import Questions
from mcpgym_environments.wiki_search.questions.splits import SPLITS, split_of

TOWNS = [f"{first}{second}" for first in ("Ald", "Bren", "Cor", "Dun", "Esk", "Far", "Gil", "Hart") for second in
         ("wick", "mere", "holm", "stead", "burgh", "ley")]  # fmt: skip
RIVERS = ["Lorn", "Tave", "Ouden", "Wyle", "Isk", "Nare", "Orm", "Pell", "Quill", "Rhys", "Sarn", "Usk"]

Facts = dict[str, dict[str, Value | str]]
"""For each relation and title the value; an entity by its title."""


def encyclopedia() -> tuple[dict[str, dict[str, str]], Facts]:
    """The infobox of each page (``[[…]]`` is a link), and what it says clearly."""
    pages: dict[str, dict[str, str]] = {}
    facts: Facts = {}

    def say(title: str, kind: str, field: str, written: str, value: Value | str | None) -> None:
        pages.setdefault(title, {"name": title, "kind": kind})[field] = written
        if value is not None:
            facts.setdefault(f"{kind}: {field}", {})[title] = value

    for n, town in enumerate(TOWNS):
        people, area, founded, twin = (
            1_234 + 977 * n,
            Fraction(105 + 7 * n, 10),
            1100 + 13 * n,
            TOWNS[(n + 7) % len(TOWNS)],
        )
        opened = date(1850 + n, 1 + n % 12, 1 + n % 28)
        say(town, "town", "population", f"{people:,}", Quantity(Fraction(people)))
        say(town, "town", "area", f"{float(area)} km²", Quantity(area, "km²"))
        say(town, "town", "founded", str(founded), Quantity(Fraction(founded), "year"))
        say(town, "town", "river", f"[[{RIVERS[n % 12]}]]", RIVERS[n % 12])
        say(town, "town", "twin town", f"[[{twin}]]", twin)
        say(town, "town", "station_opened", f"{opened:%-d %B %Y}", None)  # no noun
        say(town, "town", "market_day", f"{opened:%-d %B %Y}", None)
        facts.setdefault("town: market day", {})[town] = opened
        say(town, "town", "motto", f"Ever {TOWNS[-n][::-1].lower()}", f"Ever {TOWNS[-n][::-1].lower()}")
        say(town, "town", "twin_since", "1951 or 1952", None)
    for n, river in enumerate(RIVERS):
        say(river, "river", "length", f"{40 + 9 * n} km ({25 + 6 * n} mi)", Quantity(Fraction(40 + 9 * n), "km"))
        say(river, "river", "mouth", f"[[{TOWNS[3 * n]}]]", TOWNS[3 * n])
    unclean = [
        ("population", ["about 5,000", "5,000 (2001)", "1.234", "3,000-4,000"]),
        ("area", ["12 hides", "10.5 sq mi", "?", "12 km² and 3 ha"]),
        ("river", ["[[Lorn]], [[Tave]]", "[[Lorn]] and Tave", "Black Water", "Brook"]),
        ("twin town", ["the other one (since 1951)", "Old Lorn", "none", "[[Elsewhere]]"]),
        ("motto", ["Ever up; ever on", "This or that", "May 1901", "17"]),
    ]
    for field, values in unclean:
        for town, written in zip(TOWNS[4:], values, strict=False):
            pages[town][field] = written
            facts[f"town: {field}"].pop(town)
    return pages, facts


PROSE = "It lies in the valley.\n\n"
OTHERS = {"Brook": "A brook is a small river.", "Vales": "The vales are many. Nobody counted them."}
TWICE = "Aldwick"
"""The town whose population stands in a second table, otherwise."""


def write(folder: Path, form: str, kinds: bool = True) -> str:
    """The encyclopedia as files: what ``corpus`` is then. ``kinds``: whether the infoboxes say what is a town."""
    pages, _ = encyclopedia()
    for fields in () if kinds else pages.values():
        del fields["kind"]
    if form == "folder":
        for title, fields in pages.items():
            rows = "".join(f"| {field.replace('_', ' ').title()} | {value} |\n" for field, value in fields.items())
            text = f"# {title}\n\n{PROSE}## Facts\n\n| Field | Value |\n|---|---|\n{rows}"
            if title == TWICE:
                text += "\n## Later\n\n| Population | 99 |\n|---|---|\n| 1900 | 12 |\n"
            (folder / f"{title.lower()}.md").write_text(text, "utf-8")
        for title, text in OTHERS.items():
            (folder / f"{title.lower()}.md").write_text(f"# {title}\n\n{text}\n", "utf-8")
        return f"folder:{folder}"
    written = []
    for number, (title, fields) in enumerate(pages.items(), start=1):
        rows = "".join(f"| {field} = {value}\n" for field, value in fields.items())
        text = f"{{{{Infobox place\n{rows}}}}}\n{PROSE}"
        if title == TWICE:
            text += "\n== Later ==\n{|\n! Population !! 99\n|-\n| 1900 || 12\n|}\n"
        written.append(dump_page(number, title, text))
    written += [dump_page(100 + n, title, text) for n, (title, text) in enumerate(OTHERS.items())]
    written.append(dump_page(200, "Old Lorn", "#REDIRECT [[Lorn]]", redirect="Lorn"))
    (folder / "wiki.xml").write_text(DUMP_HEAD + "".join(written) + "</mediawiki>\n", "utf-8")
    return f"dump:{folder / 'wiki.xml'}"


@pytest.fixture(scope="module", params=["folder", "dump"])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if request.param == "dump":
        pytest.importorskip("mwparserfromhell")
    corpus = write(tmp_path_factory.mktemp(request.param), request.param)
    return configure(WikiSearch, {"corpus": corpus, "questions": "infoboxes"})


@pytest.fixture(scope="module")
def library(environment: Any) -> Library:
    found: Library = environment.library()
    return found


@pytest.fixture(scope="module")
def knowledge(library: Library) -> InfoboxKnowledge:
    return InfoboxKnowledge(library)


def test_every_clean_fact_is_known_and_no_other(knowledge: InfoboxKnowledge) -> None:
    _, facts = encyclopedia()
    facts["town: population"].pop(TWICE)
    known: Facts = {}
    for name, relation in knowledge.relations.items():
        for entity in knowledge.entities(relation.subject):
            for value in knowledge.values(entity, name):
                known.setdefault(name, {})[entity.name] = value.name if isinstance(value, Entity) else value
                assert entity in knowledge.subjects(name, value)
    assert known == facts
    assert {kind: len(knowledge.entities(kind)) for kind in knowledge.kinds} == {"town": 48, "river": 12}
    assert dict(knowledge.kinds) == {"town": "towns", "river": "rivers"}
    assert knowledge.relations["town: twin town"].object == "town"
    assert knowledge.relations["river: mouth"].inverse_functional
    assert not knowledge.relations["town: river"].inverse_functional


def test_the_evidence_is_the_section_with_the_line(library: Library, knowledge: InfoboxKnowledge) -> None:
    pages, _ = encyclopedia()
    checked = 0
    for name, relation in knowledge.relations.items():
        field = name.partition(": ")[2]
        for entity in knowledge.entities(relation.subject):
            if knowledge.values(entity, name):
                section = find_section(library, knowledge.evidence(entity, name))
                assert section is not None
                stated = library.section(section.id)
                assert stated is not None
                written = {key.replace("_", " "): value for key, value in pages[entity.name].items()}[field]
                line = f"{field} | {written.replace('[[', '').replace(']]', '')}".lower()
                assert line in stated.text.lower().replace("_", " ").split("\n")
                checked += 1
    assert checked > 250


def test_questions_have_one_answer_and_keep_to_their_split(knowledge: InfoboxKnowledge) -> None:
    questions, reader = Questions(knowledge), Solver(knowledge)
    texts = {}
    for split in SPLITS:
        made = [questions.question(split, index) for index in range(150)]
        kinds = {one.kind for one in made}
        assert kinds == {"chain", "comparison", "date arithmetic", "number arithmetic", "yes or no"}
        assert [one.text for one in made if given(reader.answers(one.kind, one.text)) != {wanted(one)}] == []
        assert {split_of(step.page) for one in made for step in one.path} == {split}
        texts[split] = {one.text for one in made}
        held_out = [text for text in texts[split] if " given for " in text or " given as " in text]
        assert bool(held_out) == (split == "test")
    assert not texts["train"] & texts["test"]


@pytest.mark.parametrize("split", SPLITS)
def test_the_expert_is_right_over_the_real_tools(environment: Any, split: str) -> None:
    act = environment.reference_policies()["expert"]
    episodes = Episodes({environment.name: environment})

    async def main() -> list[tuple[float | None, float | None]]:
        found = []
        for index in range(40):
            episode = await episodes.open(environment.name, split=split, index=index, seed=0)
            score = await episode.score(await drive(episode, act, Random(index)))
            found.append((score.components["correct"], score.components["evidence"]))
        return found

    assert asyncio.run(main()) == [(1.0, 1.0)] * 40


def test_an_encyclopedia_with_too_few_facts_is_refused(tmp_path: Path) -> None:
    for n in range(12):
        text = f"# Hill {n}\n\n| Height | {n + 100} m |\n|---|---|\n| Rock | chalk |\n"
        (tmp_path / f"{n}.md").write_text(text, "utf-8")
    hills = configure(WikiSearch, {"corpus": f"folder:{tmp_path}", "questions": "infoboxes"})
    with pytest.raises(ConfigurationError, match=r"of 12 pages 12 have lines .* with 12 clean facts .* it takes 30"):
        hills.tasks("test")[0]


def test_where_nothing_is_said_the_visit_stays_open(tmp_path: Path) -> None:
    (tmp_path / "hill.md").write_text("# Hill\n\nA hill.\n", "utf-8")
    assert len(configure(WikiSearch, {"corpus": f"folder:{tmp_path}"}).tasks("test")) == 1


def test_infoboxes_that_name_no_kind_are_of_one(tmp_path: Path) -> None:
    environment = configure(WikiSearch, {"corpus": write(tmp_path, "folder", kinds=False), "questions": "infoboxes"})
    library: Library = environment.library()
    knowledge, facts = InfoboxKnowledge(library), encyclopedia()[1]
    assert set(knowledge.relations) == {f"one: {name.partition(': ')[2]}" for name in facts}
    questions, reader = Questions(knowledge), Solver(knowledge)
    made = [questions.question("train", index) for index in range(60)]
    assert [one.text for one in made if given(reader.answers(one.kind, one.text)) != {wanted(one)}] == []
    assert any(" of that one" in one.text for one in made)

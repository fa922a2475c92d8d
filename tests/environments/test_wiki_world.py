"""The generated world: facts that agree with each other, and pages that say them where the knowledge says they do."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from datetime import date
from fractions import Fraction
from itertools import islice

import pytest

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.knowledge import Entity, Knowledge, Quantity, Value
from mcpgym_environments.wiki_search.pages import Corpus, Page, Problems
from mcpgym_environments.wiki_search.world import World
from mcpgym_environments.wiki_search.world.columns import SMALLEST
from mcpgym_environments.wiki_search.world.headings import PART_OF
from mcpgym_environments.wiki_search.world.prose.values import UNITS, day_texts
from mcpgym_environments.wiki_search.world.prose.wording import remarks, wordings
from mcpgym_environments.wiki_search.world.world import VERSION

DIALS: list[dict[str, object]] = [
    {},
    {"tables": 1.0},
    {"distractors": 1.0, "paraphrase": 1.0, "near_duplicates": 0.5, "tables": 0.0},
    {"distractors": 0.0, "paraphrase": 0.0, "near_duplicates": 0.0, "tables": 0.0},
    {"wording": "train"},
    {"wording": "test", "tables": 0.0},
]


@pytest.fixture(scope="module")
def world() -> World:
    return World(3, 900)


def every(world: World) -> list[Page]:
    problems = Problems()
    pages = list(world.pages(problems))
    assert not problems.counts
    return pages


def digest(pages: list[Page]) -> str:
    return hashlib.sha256(repr(pages).encode()).hexdigest()


def forms_of(value: Value) -> tuple[str, ...]:
    if isinstance(value, Entity):
        return value.name, *value.aliases
    if isinstance(value, Quantity):
        return tuple(form.format(int(value.number)) for form in UNITS[value.unit])
    return day_texts(value) if isinstance(value, date) else (value,)


def says(text: str, value: Value) -> bool:
    return any(re.search(rf"(?<![\w,]){re.escape(form)}(?!\w|,\d)", text) for form in forms_of(value))


@pytest.mark.parametrize("dials", DIALS, ids=str)
def test_every_fact_stands_in_its_section_and_nothing_is_missing(dials: dict[str, object]) -> None:
    world = World(11, 500, **dials)  # type: ignore[arg-type]
    knowledge = world.knowledge
    stated = 0
    for kind in knowledge.kinds:
        for entity in knowledge.entities(kind):
            sections = {section.heading: section.text for section in world.page(entity.key).sections}
            for name, relation in knowledge.relations.items():
                if relation.subject != kind:
                    continue
                evidence = knowledge.evidence(entity, name)
                assert evidence.page == entity.key
                for value in knowledge.values(entity, name):
                    assert says(sections[evidence.heading], value), (entity, name, sections[evidence.heading])
                    stated += 1
    assert stated > 5 * 500


def test_without_distractors_a_section_names_no_value_that_is_not_known() -> None:
    world = World(11, 300, distractors=0, near_duplicates=0)
    knowledge = world.knowledge
    names = {entity.name: entity for kind in knowledge.kinds for entity in knowledge.entities(kind)}
    for page in every(world):
        known = {
            value.name
            for name in knowledge.relations
            for value in knowledge.values(names[page.title], name)
            if isinstance(value, Entity)
        }
        also = {
            line[2:] for section in page.sections if section.heading == "See also" for line in section.text.split("\n")
        }
        assert set(page.links) <= known | also


def test_the_same_seed_gives_the_same_bytes_in_every_process() -> None:
    program = (
        "import hashlib; from mcpgym_environments.wiki_search.world import World; "
        "from mcpgym_environments.wiki_search.pages import Problems; "
        "print(hashlib.sha256(repr(list(World(5, 200).pages(Problems()))).encode()).hexdigest())"
    )
    for salt in ("1", "77"):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": salt}
        )
        assert done.stdout.strip() == digest(every(World(5, 200)))
    assert digest(every(World(6, 200))) != digest(every(World(5, 200)))


def test_when_pages_change_the_version_does_and_indexes_are_built_anew() -> None:
    pinned = ("7", "a6d585d51029e7a46f64f37dca8c1005eaedae411b0445b42afa4bc637ebeefd")
    assert (VERSION, digest(every(World(5, 200)))) == pinned, "raise VERSION in world.py, and pin its digest here"


def test_a_page_is_the_same_alone_and_among_the_others(world: World) -> None:
    fresh = World(3, 900)
    for page in islice(world.pages(Problems()), 0, None, 7):
        assert fresh.page(page.key) == page


def test_pages_are_whole_and_titles_and_further_names_lead_to_one_page(world: World) -> None:
    pages = every(world)
    assert len(pages) == world.size == 900
    titles = {page.title for page in pages}
    assert len(titles) == len({page.key for page in pages}) == 900
    further = [name for page in pages for name in (*page.aliases, *page.redirects)]
    assert len(set(further)) == len(further) > 300
    assert not titles & set(further)
    for page in pages:
        headings = [section.heading for section in page.sections]
        assert headings[0] == page.title
        assert len(set(headings)) == len(headings)
        assert [section.level for section in page.sections] == [1] + [2] * (len(headings) - 1)
        assert set(page.links) <= titles - {page.title}


def test_the_text_is_clean_and_of_readable_length(world: World) -> None:
    lengths = []
    for page in every(world):
        for section in page.sections:
            assert not re.search(r"[{}\[\]]|  |\.\.| \.|\bNone\b|-1\b|^[a-z]", section.text), section.text
            assert re.search(r"[.\w)]$", section.text)
            assert not re.search(r"\b([Aa]n (?!hour)[b-df-hj-np-tv-z]|[Aa] [aeio])", section.text), section.text
            if section.heading != "See also":
                lengths.append(len(section.text))
                for sentence in re.split(r"(?<=\.) ", section.text.split("\n\n")[0]):
                    assert sentence[0].isupper() or " | " in sentence, section.text
    lengths.sort()
    assert lengths[len(lengths) // 20] > 140
    assert lengths[-1] < 1200


def test_pronouns_stand_in_their_right_cases(world: World) -> None:
    for page in every(world):
        for section in page.sections:
            assert not re.search(r"\b([Hh]e|[Ss]he)[.,;]|\b(of|for|to|by|with|trusted) (he|she|its)\.", section.text)
            assert not re.search(r"\b(him|them|his|its) (is|was|has|had) ", section.text), section.text


def test_names_of_subjects_come_before_pronouns(world: World) -> None:
    for page in every(world):
        for section in page.sections:
            assert not re.match(
                r"(He|She|It|His|Her|Its) (?!(was|is) (in )?[A-Z]|was the |is the |all )", section.text
            ), section.text


def test_lives_and_deeds_agree(world: World) -> None:
    knowledge = world.knowledge

    def one(entity: Entity, relation: str) -> Value | None:
        return next(iter(knowledge.values(entity, relation)), None)

    def year(value: Value | None) -> int:
        return value.year if isinstance(value, date) else int(value.number) if isinstance(value, Quantity) else 0

    deeds = {
        "work": ("work_creator", "work_year"),
        "event": ("event_leader", "event_date"),
        "ship": ("ship_captain", "ship_launched"),
        "species": ("species_describer", "species_described"),
        "institution": ("institution_founder", "institution_founded"),
        "mountain": ("mountain_climber", "mountain_climbed"),
        "settlement": ("settlement_founder", "settlement_founded"),
    }
    seen = 0
    for kind, (who, when) in deeds.items():
        for entity in knowledge.entities(kind):
            actor = one(entity, who)
            if isinstance(actor, Entity):
                assert 20 < year(one(entity, when)) - year(one(actor, "person_born")) < 46
                seen += 1
    assert seen > 250
    for person in knowledge.entities("person"):
        born, died = one(person, "person_born"), one(person, "person_died")
        assert isinstance(born, date)
        place = one(person, "person_birthplace")
        assert isinstance(place, Entity)
        assert year(one(place, "settlement_founded")) < born.year
        assert (died is None) == (one(person, "person_home") is not None) == (one(person, "person_deathplace") is None)
        if isinstance(died, date):
            assert 44 < died.year - born.year < 97
        for relation, low, high in (("person_mother", 20, 40), ("person_mentor", 2, 30), ("person_spouse", -15, 15)):
            other = one(person, relation)
            if isinstance(other, Entity):
                assert low <= born.year - year(one(other, "person_born")) <= high
                if relation == "person_spouse":
                    assert one(other, relation) == person
        university = one(person, "person_university")
        assert university is None or year(one(university, "institution_founded")) <= born.year + 18  # type: ignore[arg-type]
    offices = ("country_head", "region_governor", "settlement_mayor", "institution_head")
    holders = [
        value
        for name in offices
        for each in knowledge.entities(name.partition("_")[0])
        for value in knowledge.values(each, name)
    ]
    assert len(holders) == len(set(holders)) > 20
    assert all(isinstance(holder, Entity) and not knowledge.values(holder, "person_died") for holder in holders)


def test_parts_lie_in_their_wholes_and_add_up(world: World) -> None:
    knowledge = world.knowledge

    def number(entity: Entity, relation: str) -> int:
        (value,) = knowledge.values(entity, relation)
        assert isinstance(value, Quantity)
        return int(value.number)

    for country in knowledge.entities("country"):
        regions = [each for each in knowledge.values(country, "country_regions") if isinstance(each, Entity)]
        towns = [
            town
            for region in regions
            for town in knowledge.values(region, "region_settlements")
            if isinstance(town, Entity)
        ]
        assert knowledge.values(country, "country_capital")[0] in towns
        assert number(country, "country_area") == sum(number(each, "region_area") for each in regions)
        assert number(country, "country_population") == sum(number(each, "region_population") for each in regions)
        for metropolis in knowledge.values(country, "country_metropolis"):
            assert isinstance(metropolis, Entity)
            populations = sorted(number(each, "settlement_population") for each in towns)
            assert number(metropolis, "settlement_population") == populations[-1] > populations[-2]
        for other in knowledge.values(country, "country_neighbours"):
            assert isinstance(other, Entity)
            assert country in knowledge.values(other, "country_neighbours")
    for river in knowledge.entities("river"):
        for larger in knowledge.values(river, "river_into"):
            assert isinstance(larger, Entity)
            assert number(larger, "river_length") >= number(river, "river_length")
            assert knowledge.values(river, "river_country") == knowledge.values(larger, "river_country")
        for town in knowledge.values(river, "river_settlements"):
            assert isinstance(town, Entity)
            (region,) = knowledge.values(town, "settlement_region")
            assert isinstance(region, Entity)
            assert knowledge.values(region, "region_country") == knowledge.values(river, "river_country")


def test_subjects_are_the_inverse_of_values_and_flags_are_true(world: World) -> None:
    knowledge: Knowledge = world.knowledge
    for name, relation in knowledge.relations.items():
        owners: dict[Value, list[Entity]] = {}
        for entity in knowledge.entities(relation.subject):
            values = knowledge.values(entity, name)
            assert not relation.functional or len(values) <= 1
            assert len(set(values)) == len(values)
            for value in values:
                owners.setdefault(value, []).append(entity)
                if isinstance(value, Entity):
                    assert value.kind == relation.object
        assert owners, name
        for value, entities in owners.items():
            assert list(knowledge.subjects(name, value)) == entities
            assert not relation.inverse_functional or len(entities) == 1
        assert not knowledge.subjects(name, "nothing of the kind")
        assert not knowledge.subjects(name, Quantity(Fraction(1, 3), relation.unit))


def test_every_relation_is_asked_and_worded_in_many_ways_some_of_them_held_out(world: World) -> None:
    relations = world.knowledge.relations
    assert len(relations) > 100
    assert set(relations) == set(PART_OF)
    everything, train, test = wordings("all"), wordings("train"), wordings("test")
    assert set(everything) == set(relations)
    for name, relation in relations.items():
        for forms in (relation.phrases, relation.questions):
            assert len(set(forms)) == len(forms) >= 4, name
            assert all(form.count("{}") == 1 for form in forms), name
        assert all(question.endswith("?") for question in relation.questions)
        known = {*train[name].predicates, *train[name].sentences, *train[name].openings}
        held_out = {*test[name].predicates, *test[name].sentences}
        assert len({*everything[name].predicates, *everything[name].sentences}) >= 6, name
        assert len(held_out) >= 2, name
        assert not held_out & known, name
    assert all(len(variants) >= 8 for variants in remarks().values())


def test_names_alike_are_as_many_as_the_dial_says_and_are_told_apart() -> None:
    none, many = World(8, 600, near_duplicates=0), World(8, 600, near_duplicates=0.8)
    assert not any(none.knowledge.titles.similar.values())
    people = many.knowledge.titles.similar["person"]
    assert len(people) > 60
    for row, other in people.items():
        page, like = many.page(f"person-{row}"), many.page(f"person-{other}")
        assert page.title != like.title
        assert f"{page.title} is not to be confused with {like.title}" in page.sections[0].text
    assert any("(" in many.page(f"person-{row}").title for row in people)


def test_dials_do_what_they_say() -> None:
    def share(pattern: str, **dials: float) -> float:
        texts = [section.text for page in every(World(2, 300, **dials)) for section in page.sections]  # type: ignore[arg-type]
        return sum(bool(re.search(pattern, text)) for text in texts) / len(texts)

    assert share(r" \| ", tables=0) == 0
    assert 0.2 < share(r" \| ", tables=0.4) < 0.5
    astray = (
        "by contrast|for comparison|on the other hand|to take another case|mistake|error|false|misprint|legend without"
    )
    assert share(astray, distractors=0, near_duplicates=0) < 0.05
    assert share(astray, distractors=1, near_duplicates=0) > 0.5


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"pages": SMALLEST - 1}, f"at least {SMALLEST} pages"),
        ({"tables": 1.5}, "tables must lie between 0 and 1"),
        ({"distractors": float("nan")}, "distractors must lie"),
        ({"wording": "verse"}, "all, train or test"),
    ],
)
def test_what_cannot_be_made_is_refused(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        World(1, **arguments)  # type: ignore[arg-type]


def test_the_smallest_world_is_whole() -> None:
    for pages in (SMALLEST, SMALLEST + 1, SMALLEST + 17, 2 * SMALLEST):
        corpus: Corpus = World(1, pages)
        assert len(list(corpus.pages(Problems()))) == pages


def test_the_fingerprint_changes_with_everything_that_changes_pages(world: World) -> None:
    prints = {World(3, 200, **dials).fingerprint for dials in DIALS}  # type: ignore[arg-type]
    prints |= {World(4, 200).fingerprint, World(3, 201).fingerprint}
    assert len(prints) == len(DIALS) + 2
    assert World(3, 900).fingerprint == world.fingerprint


def test_unknown_keys_are_refused(world: World) -> None:
    for key in ("person-900000", "person-", "person-01x", "dragon-1", "", "person--1"):
        with pytest.raises(KeyError):
            world.page(key)

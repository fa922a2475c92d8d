"""Which section of a page says what, and what the section is called."""

from __future__ import annotations

from dataclasses import dataclass

from mcpgym_environments.wiki_search.knowledge import Entity


@dataclass(frozen=True, slots=True)
class Part:
    """A section of every page of a kind: what it may be called (nothing: the page's title), and its relations."""

    headings: tuple[str, ...]
    relations: tuple[str, ...]


def _part(headings: str, relations: str, kind: str) -> Part:
    return Part(
        tuple(each.strip() for each in headings.split("|") if each.strip()),
        tuple(f"{kind}_{name}" for name in relations.split()),
    )


def _parts(kind: str, *parts: tuple[str, str]) -> tuple[Part, ...]:
    return tuple(_part(headings, relations, kind) for headings, relations in parts)


PARTS: dict[str, tuple[Part, ...]] = {
    "country": _parts(
        "country",
        ("", "capital language"),
        ("Geography | Land | Physical geography", "area summit river neighbours"),
        ("History and government | Government | State and history", "independence head regions"),
        ("People and economy | Population and economy | Society", "population currency metropolis animal"),
    ),
    "region": _parts(
        "region",
        ("", "country formed"),
        ("Geography | Land | Landscape", "area mountains"),
        ("Administration | Government | Public administration", "seat governor population"),
        ("Settlements | Towns and villages | Populated places", "settlements"),
        ("Wildlife | Ecology | Fauna", "species"),
    ),
    "settlement": _parts(
        "settlement",
        ("", "region population"),
        ("Geography | Location | Setting", "elevation river area distance"),
        ("History | Origins | Past", "founded founder"),
        ("Economy and administration | Town life | Economy", "trade mayor twin institutions"),
        ("Notable people | People | Natives", "natives"),
    ),
    "person": _parts(
        "person",
        ("", "occupation born"),
        ("Early life | Early years | Youth", "birthplace mother university mentor"),
        ("Career | Work | Professional life", "employer pupils works"),
        ("Personal life | Family | Private life", "spouse children home"),
        ("Death | Last years | Later years and death", "died deathplace"),
    ),
    "river": _parts(
        "river",
        ("", "country length"),
        ("Course | Route | Path", "source into settlements"),
        ("Hydrology | Water | Basin and flow", "discharge basin tributaries"),
    ),
    "mountain": _parts(
        "mountain",
        ("", "region range"),
        ("Geography | Topography | Form", "height prominence"),
        ("Ascents | Climbing history | Mountaineering", "climbed climber"),
    ),
    "species": _parts(
        "species",
        ("", "region habitat"),
        ("Description | Appearance | Characteristics", "length mass"),
        ("Ecology | Behaviour | Life", "prey predators gestation"),
        ("Discovery | Taxonomy | Scientific history", "describer described"),
    ),
    "institution": _parts(
        "institution",
        ("", "seat emblem"),
        ("History | Foundation | Origins", "founded founder"),
        ("Organisation | Structure | Today", "head members rival"),
        ("Notable members | People | Associated people", "alumni staff"),
    ),
    "work": _parts(
        "work",
        ("", "creator form"),
        ("Background | Creation | Origin", "model dedicatee descendants"),
        ("Content | Subject | Synopsis", "theme setting"),
        ("Reception | Presentation | First showing and reception", "year premiere owner"),
    ),
    "event": _parts(
        "event",
        ("", "date place"),
        ("Background | Causes | Prelude", "cause before"),
        ("Course | Proceedings | What happened", "leader opponent attendance days"),
        ("Aftermath | Consequences | Legacy", "after"),
    ),
    "ship": _parts(
        "ship",
        ("", "port captain"),
        ("Construction | Design and construction | Building", "builder launched length tonnage"),
        ("Service | Career | Years of service", "crew cargo retired"),
    ),
}
PART_OF: dict[str, int] = {
    relation: number for parts in PARTS.values() for number, part in enumerate(parts) for relation in part.relations
}


def part_heading(seed: int, entity: Entity, number: int) -> str:
    """What the section of a number is called on the page of ``entity``."""
    names = PARTS[entity.kind][number].headings
    if not names:
        return entity.name
    row = int(entity.key[len(entity.kind) + 1 :])
    return names[(row * 7919 + seed * 104_729 + number * 15_485_863 >> 3) % len(names)]


def heading(seed: int, entity: Entity, relation: str) -> str:
    """What the section is called that states ``relation`` of ``entity``."""
    return part_heading(seed, entity, PART_OF[relation])

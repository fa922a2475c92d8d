"""Small corpora for the tests of wiki search."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcpgym_environments.wiki_search.pages import Page, Problems, Section


@dataclass
class ToyCorpus:
    """A corpus of given pages; counts how often it is read."""

    given: Sequence[Page]
    fingerprint: str = "toy 1"
    source: str = "toys"
    reads: int = 0
    noted: tuple[tuple[str, str], ...] = ()
    about: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.about = {"kind": "toy", "source": self.source}

    @property
    def size(self) -> int | None:
        return len(self.given)

    def pages(self, problems: Problems) -> Iterable[Page]:
        self.reads += 1
        for kind, example in self.noted:
            problems.note(kind, example)
        yield from self.given


def page(title: str, *parts: str, key: str = "", heads: Sequence[str] = (), **more: tuple[str, ...]) -> Page:
    """A page whose first section is the first part; later ones have ``heads`` or numbered headings."""
    sections = [
        Section(
            title if not place else (heads[place - 1] if place <= len(heads) else f"Part {place}"), 1 + (place > 0), t
        )
        for place, t in enumerate(parts)
    ]
    return Page(key or f"key of {title}", title, tuple(sections), **more)


TOWNS = (
    page(
        "São Verde",
        "São Verde is a port on the river Lorn.",
        "It was founded in 1204 by Ines Carvalho, a navigator.",
        "In 1950 the population of the town was 12,345.",
        heads=("History", "Population"),
        aliases=("Green Harbour",),
        redirects=("Sao Verde (port)",),
        links=("Lorn", "Ines Carvalho", "Nowhere"),
    ),
    page("Lorn", "The Lorn is a river of 412 km. It flows through São Verde.", links=("São Verde",)),
    page("Ines Carvalho", "Ines Carvalho (1170–1231) was a navigator who founded São Verde.", links=("São Verde",)),
    page("C", "C is a programming language of 1972."),
    page("C++", "C++ is a programming language of 1985, made from C."),
    page("The Who", "The Who are a band.", aliases=("Who",)),
    page("東京", "東京都は日本の首都である。", "Tokyo is the capital.", heads=("English",)),
    page("Mercury", "Mercury is a planet.", key="mercury-1"),
    page("Mercury", "Mercury is a metal, liquid and dense.", key="mercury-2"),
    page("Straßburg", "Straßburg lies on the Rhine, with a well-known cathedral.", links=("Lorn", "Lorn")),
)


def many(count: int, seed: int = 0) -> list[Page]:
    """Pages of made-up words, each with a title of its own."""
    source = random.Random(seed)
    syllables = ["ka", "lo", "mi", "ren", "tor", "vas", "bel", "dun", "er", "os", "ith", "qua", "sel", "na", "pho"]

    def word() -> str:
        return "".join(source.choice(syllables) for _ in range(source.randint(2, 4)))

    common = [word() for _ in range(400)]
    made = []
    for number in range(count):
        title = f"{word().capitalize()} {word().capitalize()} {number}"
        parts = [" ".join(source.choices(common, k=30)) + f" marker{number}." for _ in range(3)]
        made.append(page(title, *parts, key=str(number)))
    return made

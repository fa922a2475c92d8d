"""What the things of a world are called: one title each, further names, and the article before it."""

from __future__ import annotations

from random import Random

from mcpgym.tasks import derive_seed
from mcpgym_environments.wiki_search.world import vocabulary
from mcpgym_environments.wiki_search.world.columns import Columns
from mcpgym_environments.wiki_search.world.names import CULTURES, Names

ARTICLES = {"river": "the", "species": "the", "event": "the", "ship": "the"}


class Titles:
    """``names`` and ``aliases`` by kind, one row for each thing; ``words`` are what countries call money and speech."""

    def __init__(self, seed: int, columns: Columns, near_duplicates: float) -> None:
        self.pool = Names(derive_seed(seed, "names"))
        self.random: Random = self.pool.random
        self.names: dict[str, list[str]] = {}
        self.aliases: dict[str, dict[int, tuple[str, ...]]] = {}
        self.similar: dict[str, dict[int, int]] = {}
        """For a thing that was given a name like that of another: that other."""
        self._columns = columns
        self._near = near_duplicates
        of = columns.of
        cultures = of["culture"].tolist()
        region_culture = [cultures[country] for country in of["region_country"].tolist()]
        town_culture = [region_culture[region] for region in of["settlement_region"].tolist()]
        self._lands(cultures, region_culture)
        self._towns(town_culture)
        self._people([town_culture[place] for place in of["person_birthplace"].tolist()])
        self._nature(
            [cultures[each] for each in of["river_country"].tolist()],
            [region_culture[each] for each in of["mountain_region"].tolist()],
            [region_culture[each] for each in of["species_region"].tolist()],
        )
        self._made(town_culture)

    def _fill(self, kind: str, names: list[str], aliases: dict[int, tuple[str, ...]] | None = None) -> None:
        self.names[kind] = names
        self.aliases[kind] = aliases or {}
        self.similar.setdefault(kind, {})

    def _alike(self, kind: str, names: list[str], culture: list[int], number: int) -> str | None:
        """A name that is nearly that of an earlier thing of the same kind and culture, as the dial asks for."""
        if not names or self.random.random() >= self._near:
            return None
        for _ in range(6):
            other = int(self.random.random() * len(names))
            if culture[other] == culture[number]:
                name = self.pool.similar(names[other])
                if name is not None:
                    self.similar.setdefault(kind, {})[number] = other
                return name
        return None

    def _lands(self, cultures: list[int], region_culture: list[int]) -> None:
        pool, pick = self.pool, self.pool.pick
        names = [pool.word(CULTURES[culture], CULTURES[culture].lands) for culture in cultures]
        forms = ("Kingdom of {}", "Republic of {}", "Federation of {}", "Grand Duchy of {}", "Free State of {}")
        self._fill("country", names, {row: (pick(forms).format(name),) for row, name in enumerate(names)})
        self.coins, self.languages, self.ranges = [], [], []
        for culture in cultures:
            self.coins.append(pool.word(CULTURES[culture], ("a", "en", "is", "or"), f"{{}} {pick(vocabulary.COINS)}"))
            self.languages.append(pool.word(CULTURES[culture], ("ic", "ish", "ese", "an")))
            self.ranges.append(pool.word(CULTURES[culture], CULTURES[culture].lands, f"{{}} {pick(vocabulary.RANGES)}"))
        shapes = ("{} Province", "Upper {}", "{} Coast", "{}", "{}", "Lower {}", "{} Valley", "{} Marches")
        regions = list[str]()
        for number, culture in enumerate(region_culture):
            alike = self._alike("region", regions, region_culture, number)
            regions.append(alike or pool.word(CULTURES[culture], CULTURES[culture].lands, pick(shapes)))
        self._fill("region", regions)

    def _towns(self, culture: list[int]) -> None:
        pool, names = self.pool, list[str]()
        aliases: dict[int, tuple[str, ...]] = {}
        prefixes = ("New", "Upper", "Lower", "Little", "Great", "Old", "East", "West")
        for number, each in enumerate(culture):
            name = None
            if names and self.random.random() < self._near / 3:
                other = int(self.random.random() * len(names))
                longer = f"{pool.pick(prefixes)} {names[other].split()[-1]}"
                if culture[other] == each and pool.take(longer):
                    name = longer
                    self.similar.setdefault("settlement", {})[number] = other
            name = name or self._alike("settlement", names, culture, number)
            names.append(name or pool.word(CULTURES[each], CULTURES[each].towns))
            if self.random.random() < 0.15:
                aliases[number] = (pool.word(CULTURES[each], CULTURES[each].towns),)
        self._fill("settlement", names, aliases)

    def _people(self, culture: list[int]) -> None:
        pool, random = self.pool, self.random
        names, aliases = list[str](), dict[int, tuple[str, ...]]()
        women = self._columns.of["woman"].tolist()
        occupations = self._columns.of["person_occupation"].tolist()
        for number, (each, woman) in enumerate(zip(culture, women, strict=True)):
            name = None
            if names and random.random() < self._near:
                other = int(random.random() * len(names))
                given, _, surname = names[other].partition(" ")
                surname = surname.partition(" (")[0]
                if women[other] == woman and occupations[other] != occupations[number] and random.random() < 0.5:
                    name = f"{given} {surname} ({vocabulary.OCCUPATIONS[occupations[number]]})"
                else:
                    name = f"{pool.given(each, bool(woman))} {surname}"
                if pool.take(name):
                    self.similar.setdefault("person", {})[number] = other
                else:
                    name = None
            while name is None:
                made = f"{pool.given(each, bool(woman))} {pool.surname(each)}"
                if not pool.take(made):
                    made = f"{pool.given(each, bool(woman))} {made}"
                    if not pool.take(made):
                        continue
                name = made
            names.append(name)
            if random.random() < 0.12 and "(" not in name:
                given, _, rest = name.partition(" ")
                middle = pool.given(each, bool(woman))
                if middle != given and pool.take(alias := f"{given} {middle} {rest}"):
                    aliases[number] = (alias,)
        self._fill("person", names, aliases)

    def _nature(self, rivers: list[int], mountains: list[int], species: list[int]) -> None:
        pool, pick, random = self.pool, self.pool.pick, self.random
        names = list[str]()
        for number, culture in enumerate(rivers):
            alike = self._alike("river", names, rivers, number)
            names.append(alike or pool.word(CULTURES[culture], ("a", "e", "en", "is", "u"), "{} River"))
        self._fill("river", names, {row: (f"River {name[:-6]}",) for row, name in enumerate(names)})
        names = []
        shapes = ("Mount {}", "Mount {}", "{} Peak", "{} Horn", "{} Tor")
        for number, culture in enumerate(mountains):
            alike = self._alike("mountain", names, mountains, number)
            names.append(alike or pool.word(CULTURES[culture], CULTURES[culture].towns, pick(shapes)))
        self._fill("mountain", names)
        names = []
        aliases: dict[int, tuple[str, ...]] = {}
        self.creatures: list[str] = []
        for number, culture in enumerate(species):
            creature = pick(vocabulary.CREATURES)
            name = None
            if names and random.random() < self._near:
                # A relative: the same place and animal, another mark.
                other = int(random.random() * len(names))
                creature = self.creatures[other]
                made = f"{names[other].split()[0]} {pick(vocabulary.FEATURES)} {creature}"
                if pool.take(made):
                    name = made
                    self.similar.setdefault("species", {})[number] = other
            self.creatures.append(creature)
            shape = f"{{}} {pick(vocabulary.FEATURES)} {creature}"
            names.append(name or pool.word(CULTURES[culture], ("an", "ese", "ine", "ic"), shape))
            genus = pool.root(CULTURES[culture]) + pick(("ornis", "odon", "ella", "urus", "optera", "ichthys"))
            latin = f"{genus.capitalize()} {pool.root(CULTURES[culture])}{pick(('ensis', 'alis', 'oides', 'ata'))}"
            if pool.take(latin):
                aliases[number] = (latin,)
        self._fill("species", names, aliases)

    def _made(self, town_culture: list[int]) -> None:
        pool, pick, of = self.pool, self.pool.pick, self._columns.of
        names = list[str]()
        self.institution_kinds: list[str] = []
        for kind, seat in zip(of["institution_type"].tolist(), of["institution_seat"].tolist(), strict=True):
            culture = CULTURES[town_culture[seat]]
            noun = pick(vocabulary.SCHOOLS) if kind == 0 else vocabulary.HOUSES[max(0, (kind - 2) % 16)]
            noun = "Shipyard" if kind == 1 else noun
            self.institution_kinds.append(noun.lower())
            names.append(pool.word(culture, culture.surnames, f"{{}} {noun}"))
        self._fill("institution", names)

        names = []
        shapes = ("The {b} of {w}", "The {a} {b}", "Songs for {w}", "A {b} in {w}", "{w} and the {b}", "The {b}'s {c}",
                  "Letters from {w}", "The {a} {b} of {w}", "The {b} and the {c}", "The Road to {w}")  # fmt: skip
        for place in of["work_premiere"].tolist():
            culture = CULTURES[town_culture[place]]
            while True:
                word = (pool.root(culture) + pick(("a", "en", "is", "or", "eth", "um"))).capitalize()
                a, b, c = pick(vocabulary.ADJECTIVES), pick(vocabulary.NOUNS), pick(vocabulary.NOUNS)
                title = pick(shapes).format(a=a, b=b, c=c, w=word)
                title = (
                    title.replace("A A", "An A").replace("A O", "An O") if title.startswith(("A A", "A O")) else title
                )
                if b != c and pool.take(title):
                    break
            names.append(title)
        self._fill("work", names)

        names = []
        for kind, place in zip(of["event_type"].tolist(), of["event_place"].tolist(), strict=True):
            culture = CULTURES[town_culture[place]]
            noun = vocabulary.CLASHES[kind]
            shape = pick(("{} " + noun, noun + " of {}"))
            names.append(pool.word(culture, ("a", "en", "is", "or", "eth", "um"), shape))
        self._fill("event", names)

        names = []
        for place in of["ship_port"].tolist():
            culture = CULTURES[town_culture[place]]
            title = f"{pick(vocabulary.ADJECTIVES)} {pick(vocabulary.NOUNS)}"
            if self.random.random() < 0.5 or not pool.take(title):
                title = pool.word(
                    culture, culture.women, pick(("Princess {}", "Lady {}", "Star of {}", "Spirit of {}"))
                )
            names.append(title)
        self._fill("ship", names)

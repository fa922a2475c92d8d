"""The facts of a generated world as columns of numbers: one row for each thing, -1 where nothing is known.

Everything agrees with everything else by construction: who founds, leads, teaches or climbs is alive and 22 to 44 years
old at the time; places are older than what happens in them; parts lie in their wholes and add up to them.
"""

from __future__ import annotations

from datetime import date

import numpy as np
from numpy.typing import NDArray

from mcpgym_environments.wiki_search.world import vocabulary
from mcpgym_environments.wiki_search.world.draws import Column, Draws

PRESENT = 2020
SHARES: dict[str, tuple[int, int]] = {  # of a thousand pages, and the fewest
    "country": (4, 4),
    "region": (25, 8),
    "settlement": (215, 20),
    "person": (300, 24),
    "river": (50, 6),
    "mountain": (45, 6),
    "species": (75, 6),
    "institution": (85, 8),
    "work": (115, 8),
    "event": (56, 6),
    "ship": (30, 4),
}
SMALLEST = sum(fewest for _, fewest in SHARES.values())
ADULT, PRIME = 22, 44  # the ages at which people do what they are known for; nobody dies before the second


def counts_of(pages: int) -> dict[str, int]:
    """How many things of each kind a world of ``pages`` pages has."""
    counts = {kind: max(fewest, pages * share // 1000) for kind, (share, fewest) in SHARES.items()}
    # In a small world, too, nobody should be able to guess a country.
    counts["country"] = max(counts["country"], min(24, pages // 50))
    # What rounding left over, or the fewest took, is made up with people and places.
    spare = pages - sum(counts.values())
    for kind in ("person", "settlement", "work", *SHARES):
        change = max(SHARES[kind][1] - counts[kind], spare)
        counts[kind] += change
        spare -= change
    return counts


class Columns:
    """Columns by relation, and a few that prose needs (``woman``, ``institution_type``); see the module's text."""

    def __init__(self, seed: int, pages: int) -> None:
        self.counts = counts_of(pages)
        self.draws = Draws(seed)
        self.of: dict[str, Column] = {}
        self.neighbours: list[tuple[int, ...]] = []
        self._lives()
        self._lands()
        self._settlements()
        self._institutions()
        self._people()
        self._nature()
        self._works()
        self._events()
        self._ships()
        self._offices()
        self._countries()

    # Who and where

    def _lives(self) -> None:
        """Births and deaths come first: every other fact about people must fall within them."""
        size, draws = self.counts["person"], self.draws
        share = draws.uniform("birth", size)
        self.birth_year = PRESENT - 45 - np.floor(525 * share * share).astype(np.int64)
        day = draws.integers("birthday", 0, 365, size)
        starts = np.array([date(year, 1, 1).toordinal() for year in range(1, PRESENT + 2)], dtype=np.int64)
        self._new_year = starts
        self.of["person_born"] = starts[self.birth_year - 1] + day
        death_year = self.birth_year + draws.integers("lifespan", PRIME + 2, 96, size)
        died = starts[np.minimum(death_year, PRESENT) - 1] + draws.integers("death day", 0, 365, size)
        self.living = death_year >= PRESENT
        self.of["person_died"] = np.where(self.living, -1, died)
        self.of["woman"] = draws.chance("woman", 0.5, size).astype(np.int64)
        self._by_birth = np.argsort(self.birth_year, kind="stable")
        self._births = self.birth_year[self._by_birth]

    def actors(self, label: str, size: int) -> tuple[Column, Column]:
        """A person for each row, and a year in which that person is of an age to act."""
        person = self.draws.integers(label, 0, self.counts["person"], size)
        return person, self.birth_year[person] + self.draws.integers(f"{label} age", ADULT, PRIME + 1, size)

    def people_of(self, label: str, year: Column, low: int = ADULT, high: int = PRIME) -> Column:
        """For each row a person who was ``low`` to ``high`` years old in ``year``; -1 where there was nobody."""
        first = np.searchsorted(self._births, year - high, side="left")
        last = np.searchsorted(self._births, year - low, side="right")
        place = self.draws.integers(label, first, np.maximum(last, first + 1), len(year))
        return np.where(last > first, self._by_birth[np.minimum(place, len(self._by_birth) - 1)], -1)

    def places_by(self, label: str, year: Column) -> Column:
        """For each row a settlement that stood in ``year``."""
        bound = np.searchsorted(self._foundings, year, side="left")
        return self._by_founding[self.draws.integers(label, 0, np.maximum(bound, 1), len(year))]

    def sometimes(self, label: str, share: float, column: Column) -> Column:
        """``column`` with a value in about ``share`` of the rows only."""
        return np.where(self.draws.chance(f"{label} known", share, len(column)), column, -1)

    def pairs(self, label: str, size: int, share: float) -> Column:
        """A partner for about ``share`` of the rows: each other's."""
        order = self.draws.order(label, size)[: int(size * share) // 2 * 2]
        column = np.full(size, -1, dtype=np.int64)
        column[order[::2]], column[order[1::2]] = order[1::2], order[::2]
        return column

    def _spread(self, label: str, size: int, among: int) -> Column:
        """One of ``among`` wholes for each of ``size`` parts; every whole has a part."""
        column = self.draws.integers(label, 0, among, size)
        column[:among] = np.arange(among)
        return column

    # Land

    def _lands(self) -> None:
        draws, counts = self.draws, self.counts
        countries, regions = counts["country"], counts["region"]
        self.of["culture"] = draws.integers("culture", 0, 8, countries)
        self.of["region_country"] = self._spread("region country", regions, countries)
        self.of["region_area"] = draws.sizes("region area", 1500, 5, regions)
        self.of["country_independence"] = draws.integers("independence", *_days(1580, 1990), countries)
        self.of["region_formed"] = draws.integers("formed", 1590, 1995, regions)
        width = max(2, int(countries**0.5))
        for country in range(countries):
            row, at = divmod(country, width)
            beside = [country - 1] * (at > 0) + [country + 1] * (at < width - 1) + [country - width] * (row > 0)
            self.neighbours.append(tuple(sorted(each for each in [*beside, country + width] if each < countries)))
        self._width = width

    def _settlements(self) -> None:
        draws, size, of = self.draws, self.counts["settlement"], self.of
        of["settlement_region"] = self._spread("settlement region", size, self.counts["region"])
        of["settlement_population"] = draws.sizes("population", 180, 12, size)
        of["settlement_elevation"] = draws.sizes("elevation", 3, 9, size)
        of["settlement_area"] = 2 + draws.sizes("town area", 4, 7, size) + of["settlement_population"] // 2500
        of["settlement_trade"] = draws.integers("trade", 0, len(vocabulary.TRADES), size)
        of["settlement_twin"] = self.pairs("twin", size, 0.3)
        founder, year = self.actors("town founder", size)
        young = draws.chance("young town", 0.3, size) & (year < 1900) & (np.arange(size) >= self.counts["region"])
        young[: SHARES["settlement"][1] // 2] = False
        of["settlement_founded"] = np.where(young, year, draws.integers("founded", 540, 1440, size))
        of["settlement_founder"] = np.where(young, founder, -1)
        self._by_founding = np.argsort(of["settlement_founded"], kind="stable")
        self._foundings = of["settlement_founded"][self._by_founding]
        # Map: countries in a grid of cells, each 640 km wide, settlements somewhere in their country's cell.
        country = of["region_country"][of["settlement_region"]]
        self.settlement_country = country
        across = country % self._width * 640 + draws.integers("across", 20, 620, size)
        down = country // self._width * 640 + draws.integers("down", 20, 620, size)
        first_region = np.full(self.counts["country"], -1, dtype=np.int64)
        regions = np.arange(self.counts["region"])[::-1]
        first_region[of["region_country"][regions]] = regions
        of["region_seat"] = np.arange(self.counts["region"])  # the first settlement of each region, by _spread
        of["country_capital"] = of["region_seat"][first_region]
        # The sea begins where the grid ends.
        east, south = self._width * 640, (self.counts["country"] - 1) // self._width * 640 + 640
        of["settlement_distance"] = np.minimum.reduce([across, east - across, down, south - down])
        of["region_population"] = _sums(of["settlement_region"], of["settlement_population"], self.counts["region"])
        of["region_population"] += of["region_population"] * draws.integers("rural", 8, 60, len(regions)) // 100

    def _institutions(self) -> None:
        draws, size, of = self.draws, self.counts["institution"], self.of
        # The first of them are a university and a shipyard, so that every world has both.
        kind = np.where(draws.chance("school", 0.4, size), 0, draws.integers("house", 2, 18, size))
        kind = np.where(draws.chance("yard", 0.14, size), 1, kind)
        kind[:2] = (0, 1)
        of["institution_type"] = kind  # 0: a university, 1: a shipyard, 2…: a house of vocabulary.HOUSES
        founder, year = self.actors("institution founder", size)
        of["institution_founder"], of["institution_founded"] = founder, year
        of["institution_seat"] = self.places_by("seat", year)
        of["institution_members"] = draws.sizes("members", 40, 9, size)
        of["institution_rival"] = self.pairs("rival", size, 0.6)
        of["institution_emblem"] = draws.integers("emblem", 0, len(vocabulary.EMBLEMS), size)

    def _people(self) -> None:
        draws, size, of = self.draws, self.counts["person"], self.of
        birth, woman = self.birth_year, of["woman"] == 1
        of["person_birthplace"] = self.places_by("birthplace", birth)
        of["person_deathplace"] = np.where(self.living, -1, draws.integers("deathplace", 0, len(self._foundings), size))
        died = np.array(self._new_year[1:]).searchsorted(of["person_died"], side="right") + 1
        older = of["settlement_founded"][of["person_deathplace"]] < died
        of["person_deathplace"] = np.where(older, of["person_deathplace"], of["person_birthplace"])
        of["person_deathplace"][self.living] = -1
        home = draws.integers("home", 0, len(self._foundings), size)
        of["person_home"] = np.where(self.living, home, -1)
        of["person_occupation"] = draws.integers("occupation", 0, len(vocabulary.OCCUPATIONS), size)
        of["person_university"] = self._institution_by("university", birth + 18, 0, 0.55)
        of["person_employer"] = self._institution_by("employer", birth + ADULT, None, 0.4)
        of["person_mentor"] = self.sometimes("mentor", 0.4, self.people_of("mentor", birth + 20, 28, PRIME))
        women = np.flatnonzero(woman)
        women = women[np.argsort(birth[women], kind="stable")]
        first = np.searchsorted(birth[women], birth - 40, side="left")
        last = np.searchsorted(birth[women], birth - 20, side="right")
        place = draws.integers("mother", first, np.maximum(last, first + 1), size)
        mother = np.where(last > first, women[np.minimum(place, len(women) - 1)], -1)
        of["person_mother"] = self.sometimes("mother", 0.35, mother)
        # Couples: the men and the women in order of birth, side by side where they are close in age.
        men = np.flatnonzero(~woman)
        men = men[np.argsort(birth[men], kind="stable")]
        both = min(len(men), len(women))
        close = (np.abs(birth[men[:both]] - birth[women[:both]]) < 16) & draws.chance("married", 0.6, both)
        of["person_spouse"] = np.full(size, -1, dtype=np.int64)
        of["person_spouse"][men[:both][close]] = women[:both][close]
        of["person_spouse"][women[:both][close]] = men[:both][close]

    def _institution_by(self, label: str, year: Column, kind: int | None, share: float) -> Column:
        """For each row an institution founded before ``year``, of one ``kind`` or of any; -1 while there are few."""
        founded = self.of["institution_founded"]
        chosen = np.arange(len(founded)) if kind is None else np.flatnonzero(self.of["institution_type"] == kind)
        chosen = chosen[np.argsort(founded[chosen], kind="stable")]
        bound = np.searchsorted(founded[chosen], year, side="left")
        place = self.draws.integers(label, 0, np.maximum(bound, 1), len(year))
        return self.sometimes(label, share, np.where(bound > len(chosen) // 20, chosen[place], -1))

    def _nature(self) -> None:
        draws, of, counts = self.draws, self.of, self.counts
        size = counts["mountain"]
        of["mountain_region"] = draws.integers("mountain region", 0, counts["region"], size)
        of["mountain_height"] = draws.integers("height", 700, 8400, size)
        of["mountain_prominence"] = draws.integers("prominence", 60, of["mountain_height"] * 4 // 5, size)
        climber, year = self.actors("climber", size)
        recent = (year > 1700) & draws.chance("climbed", 0.8, size)
        of["mountain_climber"] = np.where(recent, climber, -1)
        day = self._new_year[year - 1] + draws.integers("ascent", 120, 270, size)
        of["mountain_climbed"] = np.where(recent, day, -1)
        of["mountain_range"] = of["region_country"][of["mountain_region"]]  # each country has one range

        size = counts["river"]
        of["river_country"] = self._spread("river country", size, min(counts["country"], size))
        of["river_length"] = draws.sizes("river length", 22, 6, size)
        of["river_discharge"] = 1 + of["river_length"] * draws.integers("flow", 10, 90, size) // 60
        of["river_basin"] = of["river_length"] * draws.integers("basin", 9, 60, size)
        of["river_into"] = self.sometimes("into", 0.65, self._longer_rivers())
        mountain_country = of["region_country"][of["mountain_region"]]
        of["river_source"] = self._within("source", of["river_country"], mountain_country)
        of["settlement_river"] = self._within("town river", self.settlement_country, of["river_country"])
        of["settlement_river"] = self.sometimes("town river", 0.6, of["settlement_river"])

        size = counts["species"]
        of["species_describer"], of["species_described"] = self.actors("describer", size)
        of["species_region"] = draws.integers("species region", 0, counts["region"], size)
        of["species_length"] = draws.sizes("body", 12, 7, size)
        of["species_mass"] = 1 + of["species_length"] * draws.integers("heavy", 30, 140, size) // 20
        by_length = np.argsort(of["species_length"], kind="stable")
        rank = np.empty(size, dtype=np.int64)
        rank[by_length] = np.arange(size)
        smaller = by_length[draws.integers("prey", 0, np.maximum(rank, 1), size)]
        of["species_prey"] = self.sometimes("prey", 0.7, np.where(rank > 0, smaller, -1))
        of["species_gestation"] = draws.integers("gestation", 9, 190, size)
        of["species_habitat"] = draws.integers("habitat", 0, len(vocabulary.HABITATS), size)

    def _within(self, label: str, country: Column, countries: Column) -> Column:
        """For each row one of the things that lie in the same country; -1 where there is none."""
        order = np.argsort(countries, kind="stable")
        first = np.searchsorted(countries[order], country, side="left")
        last = np.searchsorted(countries[order], country, side="right")
        place = self.draws.integers(label, first, np.maximum(last, first + 1), len(country))
        return np.where(last > first, order[np.minimum(place, len(order) - 1)], -1)

    def _longer_rivers(self) -> Column:
        """For each river a longer one of its country; -1 for the longest."""
        country, length = self.of["river_country"], self.of["river_length"]
        order = np.lexsort((np.arange(len(length)), length, country))
        column = np.full(len(length), -1, dtype=np.int64)
        last = np.searchsorted(country[order], country[order], side="right")
        place = np.arange(len(order))
        chosen = self.draws.integers("longer river", np.minimum(place + 1, len(order) - 1), last, len(order))
        column[order] = np.where(place + 1 < last, order[np.minimum(chosen, len(order) - 1)], -1)
        return column

    # What people make and do

    def _works(self) -> None:
        draws, of, size = self.draws, self.of, self.counts["work"]
        creator, year = self.actors("creator", size)
        of["work_creator"], of["work_year"] = creator, year
        of["work_setting"] = self.sometimes("setting", 0.8, self.places_by("setting", year))
        of["work_premiere"] = self.places_by("premiere", year)
        dedicatee = self.people_of("dedicatee", year)
        of["work_dedicatee"] = self.sometimes("dedicatee", 0.6, np.where(dedicatee == creator, -1, dedicatee))
        order = np.argsort(year, kind="stable")
        earlier = np.searchsorted(year[order], year, side="left")
        model = order[draws.integers("model", 0, np.maximum(earlier, 1), size)]
        of["work_model"] = self.sometimes("model", 0.45, np.where(earlier > 0, model, -1))
        of["work_owner"] = self.sometimes("owner", 0.7, draws.integers("owner", 0, self.counts["institution"], size))
        of["work_form"] = draws.integers("form", 0, len(vocabulary.FORMS), size)
        of["work_theme"] = draws.integers("theme", 0, len(vocabulary.THEMES), size)

    def _events(self) -> None:
        draws, of, size = self.draws, self.of, self.counts["event"]
        leader, year = self.actors("leader", size)
        of["event_leader"] = leader
        of["event_date"] = self._new_year[year - 1] + draws.integers("event day", 0, 360, size)
        of["event_place"] = self.places_by("event place", year)
        opponent = self.people_of("opponent", year)
        of["event_opponent"] = self.sometimes("opponent", 0.7, np.where(opponent == leader, -1, opponent))
        of["event_attendance"] = draws.sizes("attendance", 60, 9, size)
        of["event_days"] = draws.integers("days", 2, 160, size)
        order = np.argsort(of["event_date"], kind="stable")
        earlier = np.searchsorted(of["event_date"][order], of["event_date"] - 200, side="left")
        recent = np.maximum(earlier - max(3, size // 20), 0)
        before = order[draws.integers("before", recent, np.maximum(earlier, 1), size)]
        of["event_before"] = self.sometimes("before", 0.5, np.where(earlier > 0, before, -1))
        of["event_cause"] = draws.integers("cause", 0, len(vocabulary.CAUSES), size)
        of["event_type"] = draws.integers("event type", 0, len(vocabulary.CLASHES), size)

    def _ships(self) -> None:
        draws, of, size = self.draws, self.of, self.counts["ship"]
        captain, year = self.actors("captain", size)
        of["ship_captain"] = captain
        of["ship_launched"] = self._new_year[year - 1] + draws.integers("launch", 0, 364, size)
        of["ship_builder"] = self._institution_by("builder", year, 1, 1.0)
        of["ship_port"] = self.places_by("port", year)
        of["ship_length"] = draws.integers("ship length", 18, 240, size)
        of["ship_tonnage"] = of["ship_length"] * draws.integers("tonnage", 6, 110, size)
        of["ship_crew"] = 4 + of["ship_length"] * draws.integers("crew", 2, 30, size) // 10
        retired = year + draws.integers("service", 4, 60, size)
        of["ship_retired"] = np.where(retired < PRESENT, retired, -1)
        of["ship_cargo"] = draws.integers("cargo", 0, len(vocabulary.CARGOES), size)
        of["ship_type"] = draws.integers("vessel", 0, len(vocabulary.VESSELS), size)

    def _offices(self) -> None:
        """Nobody alive holds two offices."""
        holders = np.flatnonzero(self.living)
        holders = holders[self.draws.order("offices", len(holders))]
        start = 0
        offices = {"country_head": 1.0, "region_governor": 0.6, "institution_head": 0.2, "settlement_mayor": 0.2}
        for name, share in offices.items():
            size = self.counts[name.partition("_")[0]]
            seats = self.draws.order(name, size)[: max(1, int(size * share))]
            taken = holders[start : start + len(seats)]
            start += len(seats)
            self.of[name] = np.full(size, -1, dtype=np.int64)
            self.of[name][seats[: len(taken)]] = taken
            if name == "institution_head":  # whoever heads one works for it
                self.of["person_employer"][taken] = seats[: len(taken)]

    def _countries(self) -> None:
        """What is true of a country because of its parts."""
        of, size = self.of, self.counts["country"]
        of["country_area"] = _sums(of["region_country"], of["region_area"], size)
        of["country_population"] = _sums(of["region_country"], of["region_population"], size)
        of["country_currency"] = np.arange(size)
        of["country_language"] = np.arange(size)
        of["country_animal"] = self.draws.integers("animal", 0, self.counts["species"], size)
        mountain_country = of["region_country"][of["mountain_region"]]
        of["country_summit"] = _greatest(mountain_country, of["mountain_height"], size)
        of["country_river"] = _greatest(of["river_country"], of["river_length"], size)
        of["country_metropolis"] = _greatest(self.settlement_country, of["settlement_population"], size)


def _days(first: int, last: int) -> tuple[int, int]:
    return date(first, 1, 1).toordinal(), date(last, 1, 1).toordinal()


def _sums(group: Column, values: Column, size: int) -> Column:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, group, values)
    return total


def _greatest(group: Column, values: Column, size: int) -> NDArray[np.int64]:
    """The row of the one greatest value in each group; -1 where there is none, or two."""
    order = np.lexsort((values, group))
    result = np.full(size, -1, dtype=np.int64)
    result[group[order]] = order
    same = (group[order][1:] == group[order][:-1]) & (values[order][1:] == values[order][:-1])
    tied = np.isin(order[1:][same], result)
    result[group[order[1:][same][tied]]] = -1
    return result

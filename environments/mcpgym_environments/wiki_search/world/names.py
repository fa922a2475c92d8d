"""Names of a made-up world: a syllable grammar for each culture, and a pool in which no name is given twice."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

VOWELS = "aeiou"
GENERIC = frozenset(
    [
        "Province",
        "Upper",
        "Lower",
        "Coast",
        "Valley",
        "Marches",
        "River",
        "Mount",
        "Peak",
        "Horn",
        "Tor",
        "New",
        "Little",
        "Great",
        "Old",
        "East",
        "West",
    ]
)
"""Parts of names that a whole world shares."""


@dataclass(frozen=True, slots=True)
class Culture:
    """How a people's words are built: consonants that begin a word, stand within it, and end it, and its endings."""

    onsets: tuple[str, ...]
    vowels: tuple[str, ...]
    medials: tuple[str, ...]
    towns: tuple[str, ...]
    lands: tuple[str, ...]
    surnames: tuple[str, ...]
    men: tuple[str, ...]
    women: tuple[str, ...]


def _culture(
    onsets: str, vowels: str, medials: str, towns: str, lands: str, surnames: str, men: str, women: str
) -> Culture:
    parts = (onsets, vowels, medials, towns, lands, surnames, men, women)
    return Culture(*(tuple("" if each == "-" else each for each in part.split()) for part in parts))


CULTURES: tuple[Culture, ...] = (
    _culture(
        "b br d dr f g gr h hal k l m n r s st t v w", "a e i o u", "d g k l ld lm m n nd r rd rn s st t v",
        "heim stad berg vik dal mark nes holm", "mark land rike gard", "sen berg gren lund quist strom",
        "rik ar e ulf ven mund", "hild a run e borg dis",
    ),
    _culture(
        "b c d f g l m n p r s t v cr pr tr", "a e i o ia eo", "c ll l m n nt r rr s st t v z lv br",
        "ona ara ento iago ella ura osa", "ania oria elia andra", "ez ano eri ado ini ucci",
        "o io eo ano", "a ia ela ina",
    ),
    _culture(
        "b br ch d dr g k kr m n p r s sl st t v vl z zh", "a e i o u", "b d k l lk m n r rn s sk t v z zn",
        "grad ovo ice insk ov pol", "avia slava inia ozia", "ov sky ich enko in yev",
        "mir slav an or il", "ana ka ova isa ena",
    ),
    _culture(
        "aq b d f gh h j kh m n q r s sh t y z", "a i u aa", "b d f h l m n q r s sh t w y z",
        "abad iyah un ar it im", "istan iya ara et", "i awi oun ari adi an",
        "im id ar uf il", "a iya ira een",
    ),
    _culture(
        "h k m n r s sh t y ch f", "a e i o u", "k m n r s sh t y g ts b d",
        "mura saki yama kawa oda ura", "oku ari ano una", "moto da kawa saka no be",
        "ro ki shi o ta", "ko mi na e ka",
    ),
    _culture(
        "b c d f g gl ll m n p r rh s t tr", "a e i o y w", "dd g l ll m n nn r rth s th v wn ch",
        "ford wyn caer lan mor derry", "wen annon ydd eth", "ach gan well wyn or ey",
        "an is yn or ain", "wen eth ys an iel",
    ),
    _culture(
        "b d f k l m mb n nd ng s t w z", "a e i o u", "b d k l m mb n nd ng r s t z w",
        "ani ele uru oma aso", "wana anda ola emba", "we mba nde ko ele osi",
        "u e o ani", "a i ele isa",
    ),
    _culture(
        "h k l m n p t w v", "a e i o u ai au", "h k l m n p r t v ng",
        "nui loa iki ata ora", "nesia tua ia ea", "aka ani oa lei tu ue",
        "no ka o ne", "lani a hina ea",
    ),
)  # fmt: skip


class Names:
    """Gives out words and names; each is new."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.used: set[str] = set()
        self._given: dict[tuple[int, bool], list[str]] = {}

    def pick(self, choices: tuple[str, ...] | list[str]) -> str:
        """One of ``choices``."""
        return choices[int(self.random.random() * len(choices))]

    def root(self, culture: Culture, syllables: int = 2) -> str:
        """The beginning of a word; it ends with a consonant."""
        pick = self.pick
        parts = [pick(culture.onsets)]
        for _ in range(syllables - 1):
            parts += (pick(culture.vowels), pick(culture.medials))
        return "".join(parts)

    def _joined(self, culture: Culture, endings: tuple[str, ...], syllables: int = 2) -> str:
        root, ending = self.root(culture, syllables), self.pick(endings)
        return f"{root}{ending}" if ending[0] in "aeiouyw" else f"{root}{self.pick(culture.vowels)[0]}{ending}"

    def word(self, culture: Culture, endings: tuple[str, ...], shape: str = "{}") -> str:
        """A new name: a root and an ending in ``shape``; longer words once the short ones run out."""
        attempt = 0
        while True:
            joined = self._joined(culture, endings, 2 + (attempt > 3) + (attempt > 9))
            name = shape.format(joined.capitalize())
            if name not in self.used:
                self.used.add(name)
                return name
            attempt += 1

    def given(self, number: int, woman: bool) -> str:
        """A first name; a culture has a few dozen of each."""
        names = self._given.get((number, woman))
        if names is None:
            culture = CULTURES[number]
            endings = culture.women if woman else culture.men
            made = dict.fromkeys(self._joined(culture, endings).capitalize() for _ in range(70))
            other = set(self._given.get((number, not woman), ()))
            names = self._given[number, woman] = [name for name in made if name not in other and len(name) < 10]
        return self.pick(names)

    def surname(self, number: int) -> str:
        """A family name; several people may share one."""
        return self._joined(CULTURES[number], CULTURES[number].surnames).capitalize()

    def take(self, name: str) -> bool:
        """Reserve ``name``; False where it is taken already."""
        if name in self.used:
            return False
        self.used.add(name)
        return True

    def similar(self, name: str) -> str | None:
        """A new name that differs from ``name`` in one vowel, or nothing where there is none left."""
        word = next((word for word in name.split() if word not in GENERIC), name)
        start = name.index(word)
        places = [start + place for place, letter in enumerate(word) if letter in VOWELS and place > 0]
        for _ in range(4):
            if not places:
                break
            place = places[int(self.random.random() * len(places))]
            changed = name[:place] + self.pick([vowel for vowel in VOWELS if vowel != name[place]]) + name[place + 1 :]
            if self.take(changed):
                return changed
        return None

"""What the infoboxes of an encyclopedia say, as facts: any encyclopedia whose pages have lines ``Field | value``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction

from mcpgym import ConfigurationError
from mcpgym_environments.folding import fold
from mcpgym_environments.wiki_search.knowledge import Entity, Evidence, Quantity, Relation, Value, ValueKind
from mcpgym_environments.wiki_search.library import Library, PageEntry
from mcpgym_environments.wiki_search.names import name_key
from mcpgym_environments.wiki_search.questions.wording import in_unit
from mcpgym_environments.wiki_search.scoring.dates import date_readings
from mcpgym_environments.wiki_search.scoring.units import find_unit

SHARED = 10
"""How many pages of a kind have a fact before it is a relation; likewise, how many pages make a kind."""
FEWEST = 30
"""How many facts there are at least."""
MOST_BOXES = 50_000
"""How many infoboxes are read: the first ones. All names of the encyclopedia count, so what is unclear stays out."""
BOXED, PLAIN = "one", "page"
"""The kinds of pages whose infobox names no kind (*the length of that one*), and of those without an infobox."""

_AT_ONCE = 500
_LONGEST_NAME = 80
_KIND_FIELDS = ("kind", "type", "category", "categories")
_NO_FACTS = frozenset(
    ("name", "title", "native name", "official name", "full name", "caption", "field", "value", "property", "year")
)
_FIELD = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+){0,3}")
_DANGLING = re.compile(
    r".* (?:of|in|at|on|by|to|as|from|for|with|and|or|the|an?)|.*(?<!spe|.se)ed|born|built|held|known.*"
)
_NUMBER = re.compile(
    r"([-−]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?( ?[^\W\d_%°][^()\d]*[²³]?\d?| ?%| ?°[CF]?)?( \([^()]*\))?"
)
_THOUSANDS = re.compile(r"\d{1,3}\.\d{3}")
_YEAR = re.compile(r"\d{3}|1\d{3}|20\d{2}")
_TEXT = re.compile(r"[^\W\d_][\w .'’-]{0,58}[^\W_]")
_SEVERAL = re.compile(r"\b(?:and|or|various|several|none|unknown|yes|no|see|etc)\b", re.IGNORECASE)
_HAPPENED = {
    "born": "birth",
    "died": "death",
    "founded": "founding",
    "established": "establishment",
    "formed": "formation",
    "opened": "opening",
    "closed": "closing",
    "built": "construction",
    "completed": "completion",
    "released": "release",
    "published": "publication",
    "launched": "launch",
    "discovered": "discovery",
    "dissolved": "dissolution",
}

_Type = tuple[ValueKind, str]
"""What a value is, and its unit."""


@dataclass(frozen=True, slots=True)
class _Box:
    """An infobox: whose page has it, under which heading, and its fields."""

    page: PageEntry
    heading: str
    fields: Mapping[str, str]


class InfoboxKnowledge:
    """The facts of infoboxes that many pages of a kind have, where the whole value is one name, number, date or text.

    A name is another page's where it is its title or alias, nobody else's, and linked to from the page (if the page
    has links). A field that a page states twice in two ways is no fact of it. Nothing is said to be missing: other
    sections may state it.

    Raises:
        ConfigurationError: there are fewer facts than ``FEWEST``.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._entities: dict[str, Entity] = {}
        self._owners: dict[str, str] = {}
        self._headings: dict[str, str] = {}
        self._values: defaultdict[str, dict[str, Value]] = defaultdict(dict)
        self.relations: Mapping[str, Relation] = {}
        """Every relation by its name."""
        boxes = list(_boxes(library))
        named = Counter(kind for box in boxes if (kind := _kind_in(box)))
        kinds: defaultdict[str, list[_Box]] = defaultdict(list)
        for box in boxes:
            kind = _kind_in(box)
            kinds[kind if named[kind] >= SHARED else BOXED].append(box)
        told = 0
        for kind, members in kinds.items():
            for box in members:
                if self._add(box.page, kind):
                    self._headings[box.page.key] = box.heading
        for kind, members in sorted(kinds.items()):
            told += self._relate(kind, [box for box in members if box.page.key in self._headings])
        if told < FEWEST:
            raise ConfigurationError(
                f"no questions can be made from the infoboxes: of {library.pages:,} pages {len(boxes):,} have lines "
                f"such as 'Population | 1,234', with {told:,} clean facts in fields that at least {SHARED} pages of a "
                f"kind share; it takes {FEWEST}. Give questions=FILE.jsonl, or questions=open"
            )
        self._subjects: defaultdict[tuple[str, Value], list[Entity]] = defaultdict(list)
        for name, values in self._values.items():
            for key, value in values.items():
                self._subjects[name, value].append(self._entities[key])
        self.relations = {
            name: replace(relation, inverse_functional=len(set(self._values[name].values())) == len(self._values[name]))
            for name, relation in self.relations.items()
        }
        self._of_kind: defaultdict[str, list[Entity]] = defaultdict(list)
        said = {value.key for _, value in self._subjects if isinstance(value, Entity)}
        for entity in self._entities.values():
            if entity.kind != PLAIN or entity.key in said:
                self._of_kind[entity.kind].append(entity)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Every kind with its plural."""
        return {kind: _plural(kind) for kind in self._of_kind}

    def entities(self, kind: str) -> Sequence[Entity]:
        """Every page of a kind, in a fixed order."""
        return self._of_kind.get(kind, ())

    def values(self, entity: Entity, relation: str) -> Sequence[Value]:
        """What the infobox says."""
        value = self._values[relation].get(entity.key) if relation in self.relations else None
        return () if value is None else (value,)

    def subjects(self, relation: str, value: Value) -> Sequence[Entity]:
        """Every page whose infobox says this."""
        return tuple(self._subjects.get((relation, value), ()))

    def evidence(self, entity: Entity, relation: str) -> Evidence:
        """The section that the infobox stands in."""
        return Evidence(entity.key, self._headings[entity.key])

    def silent(self, entity: Entity, relation: str) -> bool:
        """Never: the sentences of the page may say what its infobox does not."""
        return False

    def _add(self, page: PageEntry, kind: str) -> bool:
        """Make an entity of ``page``, if its title is nobody else's name too."""
        title = page.title
        if len(title) > _LONGEST_NAME or not title or self._library.pages_named(title) != [page.id]:
            return False
        aliases = [one for one in self._library.names(page.id) if self._library.pages_named(one) == [page.id]]
        self._entities[page.key] = Entity(page.key, kind, title, tuple(one for one in aliases if one != title))
        self._owners[page.id] = page.key
        return True

    def _entity(self, text: str, linked: set[str | None]) -> Entity | bool:
        """Whose name ``text`` is; True where it is a name, but not clearly, and False where it is none."""
        found = self._library.pages_named(text)
        if len(found) != 1 or (linked and found[0] not in linked):
            return bool(found)
        page = self._library.page(found[0])
        if page is None or (found[0] not in self._owners and not self._add(page, PLAIN)):
            return True
        entity = self._entities[self._owners[found[0]]]
        return entity if name_key(text) in map(name_key, (entity.name, *entity.aliases)) else True

    def _relate(self, kind: str, boxes: Sequence[_Box]) -> int:
        """Make the relations of a kind; gives the number of facts."""
        counts = Counter(field for box in boxes for field in box.fields if field not in _KIND_FIELDS)
        shared = [field for field, count in counts.most_common() if count >= SHARED]
        read: dict[str, dict[str, tuple[_Type, Value]]] = {field: {} for field in shared}
        for box in boxes:
            linked = {link.page_id for link in self._library.links(box.page.id)}
            for field in shared:
                if field in box.fields and (found := self._read(field, box.fields[field], linked)) is not None:
                    read[field][box.page.key] = found
        relations, nouns, facts = dict(self.relations), set(), 0
        for field in shared:
            types = Counter(type_ for type_, _ in read[field].values())
            if not types:
                continue
            type_ = types.most_common(1)[0][0]
            noun = _noun(field, type_)
            values = {key: value for key, (each, value) in read[field].items() if each == type_}
            objects = {value.kind for value in values.values() if isinstance(value, Entity)}
            few = len(values) < max(SHARED, counts[field] // 2) or len(set(values.values())) == 1
            if few or not noun or noun in nouns:
                continue
            nouns.add(noun)
            name = f"{kind}: {field}"
            relations[name] = _relation(name, kind, noun, type_, objects.pop() if len(objects) == 1 else "")
            self._values[name] = values
            facts += len(values)
        self.relations = relations
        return facts

    def _read(self, field: str, text: str, linked: set[str | None]) -> tuple[_Type, Value] | None:
        """The one thing that ``text`` says, or nothing."""
        found = _date_in(text) or _number_in(text, field)
        if found is not None:
            return found
        entity = self._entity(text, linked)
        if isinstance(entity, Entity):
            return ("entity", ""), entity
        clear = _TEXT.fullmatch(text) and not (_SEVERAL.search(text) or entity or date_readings(fold(text)))
        return (("text", ""), text) if clear else None


def _boxes(library: Library) -> Iterator[_Box]:
    """The infoboxes, one a page, as long as there are not too many."""
    count = 0
    for after in range(0, library.pages, _AT_ONCE):
        sections: defaultdict[int, list[tuple[int, str, str]]] = defaultdict(list)
        for number, place, heading, text in library.tables(after, _AT_ONCE):
            sections[number].append((place, heading, text))
        for number, some in sections.items():
            box = _box(library, number, some)
            if box is not None:
                yield box
                count += 1
                if count >= MOST_BOXES:
                    return


def _box(library: Library, number: int, sections: Sequence[tuple[int, str, str]]) -> _Box | None:
    """The first table of a page whose rows have two cells each, if a section's heading leads to it."""
    page = library.page(f"p{number}")
    if page is None:
        return None
    for place, heading, text in sections:
        for paragraph in text.split("\n\n"):
            rows = [line.split(" | ") for line in paragraph.split("\n") if " | " in line]
            if len(rows) < 2 or any(len(row) != 2 for row in rows):
                continue
            known = next((one for one in library.sections(page.id) if one.heading == heading), None)
            first = not heading or heading == page.key
            if known is None or known.id != f"{page.id}.{place}" or (first and place != 1):
                return None
            return _Box(page, heading, _fields(rows, sections))
    return None


def _fields(rows: Sequence[Sequence[str]], sections: Sequence[tuple[int, str, str]]) -> dict[str, str]:
    """The fields of an infobox; not those that some row of the page states otherwise."""
    elsewhere: defaultdict[str, set[str]] = defaultdict(set)
    for _, _, text in sections:
        for line in text.split("\n"):
            field, bar, value = line.partition(" | ")
            if bar:
                elsewhere[_field_key(field)].add(value.strip())
    fields = {_field_key(field): value.strip() for field, value in rows}
    return {
        field: value
        for field, value in fields.items()
        if len(elsewhere[field]) == 1
        and value
        and len(value) <= _LONGEST_NAME
        and len(field) <= 30
        and field not in _NO_FACTS
        and _FIELD.fullmatch(field)
    }


def _field_key(field: str) -> str:
    return " ".join(field.replace("_", " ").strip(" :*").lower().split())


def _kind_in(box: _Box) -> str:
    """What an infobox says that its page is about; empty where it does not say."""
    for field in _KIND_FIELDS:
        kind = box.fields.get(field, "").partition(",")[0].strip().lower()
        if field.startswith("categor") and kind.endswith("s") and not kind.endswith("ss"):
            kind = f"{kind[:-3]}y" if kind.endswith("ies") else kind[:-1]
        if len(kind) <= 30 and _FIELD.fullmatch(kind) and kind not in (BOXED, PLAIN):
            return kind
    return ""


def _plural(kind: str) -> str:
    if kind.endswith("y") and kind[-2:-1] not in tuple("aeiou"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith(("s", "x", "ch", "sh")) else f"{kind}s"


def _date_in(text: str) -> tuple[_Type, Value] | None:
    """A day of our calendar."""
    found = date_readings(fold(text))
    if len(found) != 1 or found[0].month is None or found[0].day is None or not 1583 <= found[0].year <= 9999:
        return None
    return ("date", ""), date(found[0].year, found[0].month, found[0].day)


def _number_in(text: str, field: str) -> tuple[_Type, Value] | None:
    """A number with a unit that is known or without one; behind it there may be the same in another unit."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    if _YEAR.fullmatch(text) and (field in _HAPPENED or " year" in f" {field} "):
        return ("number", "year"), Quantity(Fraction(int(text)), "year")
    sign, digits, decimals, unit, again = found.groups()
    unit = (unit or "").strip()
    known = find_unit(fold(unit)) if unit else None
    if (unit and known is None) or _THOUSANDS.fullmatch(digits + (decimals or "")):
        return None
    if again:
        other = _NUMBER.fullmatch(again[2:-1])
        converted = find_unit(fold(other[4] or "")) if other else None
        if known is None or converted is None or converted.dimension != known.dimension:
            return None
    number = Fraction(digits.replace(",", "") + (decimals or ""))
    return ("number", unit), Quantity(-number if sign else number, unit)


def _noun(field: str, type_: _Type) -> str:
    """What the value of a field is called in a sentence; empty where that is not clear."""
    timed = type_[0] == "date" or type_[1] == "year"
    if field in _HAPPENED:
        return f"{_HAPPENED[field]} {'date' if type_[0] == 'date' else 'year'}" if timed else ""
    if field.endswith("s") and not field.endswith(("ss", "us", "is")):
        return f"number of {field}" if type_ == ("number", "") else ""
    in_name = type_[0] == "number" and find_unit(field.rpartition(" ")[2])
    if _DANGLING.fullmatch(field) or field == "date" or in_name:
        return ""
    return field


def _relation(name: str, kind: str, noun: str, type_: _Type, kind_of_value: str) -> Relation:
    value, unit = type_
    phrases = (f"the {noun} of {{}}", f"the {noun} stated for {{}}", f"the {noun} given for {{}}")
    asked = "Who or what" if value == "entity" else "What"
    end = in_unit("" if unit == "year" else unit)
    questions = (
        f"{asked} is the {noun} of {{}}{end}?",
        f"{asked} is stated as the {noun} of {{}}{end}?",
        f"{asked} is given as the {noun} of {{}}{end}?",
    )
    return Relation(name, kind, value, kind_of_value, unit, phrases=phrases, questions=questions)

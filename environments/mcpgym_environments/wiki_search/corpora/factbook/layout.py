"""How the fields of the Factbook are laid out in sections that can be read one at a time."""

from __future__ import annotations

from mcpgym_environments.wiki_search.corpora.factbook.reading import Country
from mcpgym_environments.wiki_search.corpora.writing import Writer
from mcpgym_environments.wiki_search.pages import Section

_HEADINGS: dict[tuple[str, str], str] = {
    ("Geography", "Geography"): "Location|Geographic coordinates|Map references|Area|Area - comparative|"
    "Land boundaries|Coastline|Maritime claims|Elevation",
    ("Geography", "Nature and resources"): "",
    ("People and Society", "Population"): "Population|Nationality|Age structure|Dependency ratios|Median age|"
    "Population growth rate|Birth rate|Death rate|Net migration rate|Population distribution|Urbanization|"
    "Major urban areas - population|Sex ratio|Total fertility rate|Gross reproduction rate|"
    "Mother's mean age at first birth",
    ("People and Society", "Languages, religions and ethnic groups"): "Ethnic groups|Languages|Religions",
    ("People and Society", "Health"): "Maternal mortality ratio|Infant mortality rate|Life expectancy at birth|"
    "Drinking water source|Health expenditure|Physician density|Hospital bed density|Sanitation facility access|"
    "Obesity - adult prevalence rate|Alcohol consumption per capita|Tobacco use|"
    "Children under the age of 5 years underweight",
    ("People and Society", "Education and society"): "",
    ("Government", "Name, capital and independence"): "Country name|Union name|Capital|Administrative divisions|"
    "Dependency status|Dependent areas|Independence|National holiday|Government type",
    ("Government", "Institutions and parties"): "Executive branch|Legislative branch|"
    "Legislative branch - lower chamber|Legislative branch - upper chamber|Judicial branch|Political parties",
    ("Government", "Foreign relations"): "Diplomatic representation in the US|Diplomatic representation from the US|"
    "International organization participation|International law organization participation|Member states",
    ("Government", "National symbols"): "Flag|National coat of arms|National color(s)|National symbol(s)|"
    "National anthem(s)|National heritage",
    ("Government", "Law and citizenship"): "",
    ("Economy", "Public finance"): "Budget|Public debt|Taxes and other revenues",
    ("Economy", "Trade and exchange rates"): "Current account balance|Exports|Exports - partners|"
    "Exports - commodities|Imports|Imports - partners|Imports - commodities|"
    "Reserves of foreign exchange and gold|Debt - external|Exchange rates",
    ("Economy", "Economy"): "",
}
"""Category and heading → the fields that stand there; without fields: all others of the category."""
_BY_FIELD = {
    (category, field): heading for (category, heading), fields in _HEADINGS.items() for field in fields.split("|")
}
_OTHERS = {category: heading for (category, heading), fields in _HEADINGS.items() if not fields}


def heading_of(country: Country, category: str, field: str) -> str:
    """The heading of the section that a field stands in."""
    if category == "Introduction":
        return country.title
    return _BY_FIELD.get((category, field)) or _OTHERS.get(category, category)


def sections_of(country: Country) -> tuple[Section, ...]:
    """The sections of a country's page: its history is the lead, and every field is a paragraph or a list."""
    order: dict[str, list[tuple[str, str]]] = {}
    for category, fields in country.fields.items():
        for field in fields:
            order.setdefault(heading_of(country, category, field), []).append((category, field))
    writer = Writer(country.title)
    for category, field in order.pop(country.title, ()):
        for _, text in country.fields[category][field]:
            for paragraph in text.split("\n"):
                writer.paragraph(paragraph)
    for heading, places in order.items():
        writer.heading(heading, 2)
        for category, field in places:
            _write(writer, field, country.fields[category][field])
    return writer.sections()


def _write(writer: Writer, field: str, entries: list[tuple[str, str]]) -> None:
    own = [text for name, text in entries if not name]
    parts = [(name, text) for name, text in entries if name]
    if not parts and len(own) == 1 and "\n" not in own[0]:
        writer.paragraph(f"{field}: {own[0]}")
        return
    writer.gap()
    writer.line(f"{field}:" if len(own) != 1 or "\n" in own[0] else f"{field}: {own[0]}")
    if own and "\n" in own[0]:
        for line in own[0].split("\n"):
            writer.line(f"- {line}")
    for name, text in parts:
        writer.line(f"- {name}: {'; '.join(text.split(chr(10)))}")

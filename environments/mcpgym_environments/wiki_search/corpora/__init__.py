"""Where encyclopedias come from: each loader makes a :class:`~mcpgym_environments.wiki_search.pages.Corpus`.

``corpus_of("folder:notes")`` names one by a short text. What a loader needs beyond the standard library is imported
when that loader is used, never before.
"""

from mcpgym_environments.wiki_search.corpora.opening import corpus_of

__all__ = ["corpus_of"]

"""What a query asks for: its words and quoted phrases. Any text is a query; none is an error."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcpgym_environments.wiki_search.names import words_apart

LONGEST = 500
"""Characters of a query that are read."""
MOST_WORDS = 24
"""Words and phrases of a query that are used, the first ones."""
_STOP_WORDS = """
a about after all also am an and any are as at be because been before being between both but by can could did do
does doing during each for from further had has have having he her here hers him his how i if in into is it its
itself just like many me more most much my name near no nor not of off on once only or other our out over own please
s same she should so some such t tell than that the their them then there these they this those through to too under
until up us very was we were what when where which while who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words of questions, not of what they ask for."""

_PHRASE = re.compile(r"[\"“”„«»]([^\"“”„«»]{1,200})[\"“”„«»]")
_WORD = re.compile(r"[0-9]+(?:[.,][0-9]+)+|[^\W_]+")
_SPACES = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Query:
    """``words`` and ``phrases`` (each of two words or more) to find, in small letters, in the order given.

    ``text`` is the whole of it, stop words too, for engines that look for its meaning.
    """

    words: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.phrases)

    @property
    def all_words(self) -> tuple[str, ...]:
        """Every word, those of phrases too."""
        return (*self.words, *(word for phrase in self.phrases for word in phrase))


def parse_query(text: str) -> Query:
    """The query that ``text`` is: phrases in quotes, numbers with separators as phrases, and words without stop words.

    A query of stop words alone keeps them: some titles are nothing else.
    """
    given = text[:LONGEST].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    text = words_apart(given).lower()
    phrases = [tuple(_SPACES.findall(found)) for found in _PHRASE.findall(text)]
    found = [tuple(_SPACES.findall(word)) for word in _WORD.findall(_PHRASE.sub(" ", text))]
    phrases += [parts for parts in found if len(parts) > 1]
    words = [parts[0] for parts in found if len(parts) == 1] + [parts[0] for parts in phrases if len(parts) == 1]
    kept = [word for word in words if word not in STOP_WORDS]
    phrases = [parts for parts in phrases if len(parts) > 1]
    if not kept and not phrases:
        kept = words
    unique = list(dict.fromkeys(kept))[:MOST_WORDS]
    return Query(tuple(unique), tuple(dict.fromkeys(phrases))[: MOST_WORDS - len(unique)], given)

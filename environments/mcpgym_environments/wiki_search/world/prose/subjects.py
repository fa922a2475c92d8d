"""What a page calls its subject: by name, by a pronoun, or as what it is."""

from __future__ import annotations

from dataclasses import dataclass

from mcpgym_environments.wiki_search.world.prose.values import with_article


@dataclass(frozen=True, slots=True)
class Subject:
    """The words for a page's subject. Each mapping fills the places of a template but for those of the value."""

    name: str
    named: dict[str, str]
    """By its name."""
    short: dict[str, str]
    """By its surname, or as ``the town``."""
    pronoun: dict[str, str]
    """As he, she, or it."""
    relative: str
    """``who`` or ``which``."""

    def fill(self, template: str, words: dict[str, str], text: str = "") -> str:
        """``template`` with ``words`` for the subject and ``text`` for the value."""
        words["v"] = text
        if "{V}" in template or "{an}" in template:
            words["V"], words["an"] = capital(text), with_article(text)
        return template.format_map(words)


def subject(mention: str, noun: str, person: str, living: bool) -> Subject:
    """``person`` is ``he`` or ``she`` for people, empty for things; ``noun`` is what a thing is."""
    he, him, his = {"he": ("he", "him", "his"), "she": ("she", "her", "her")}.get(person, ("it", "it", "its"))
    common = {"t": he, "r": him, "q": his, "be": "is" if living else "was", "noun": noun}
    short = mention.split()[-1] if person else f"the {noun}"
    return Subject(
        mention,
        common | _forms(mention, mention, f"{mention}'s"),
        common | _forms(short, short, f"{short}'s"),
        common | _forms(he, him, his),
        "who" if person else "which",
    )


def _forms(subjective: str, objective: str, possessive: str) -> dict[str, str]:
    return {
        "s": subjective,
        "S": capital(subjective),
        "o": objective,
        "p": possessive,
        "P": capital(possessive),
    }


def capital(text: str) -> str:
    """With a capital at its beginning."""
    return text[:1].upper() + text[1:]

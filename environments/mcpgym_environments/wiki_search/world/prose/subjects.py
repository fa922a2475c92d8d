"""What a page calls its subject: by name, by a pronoun, or as what it is."""

from __future__ import annotations

from dataclasses import dataclass


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


def subject(mention: str, noun: str, person: str, living: bool) -> Subject:
    """``person`` is ``he`` or ``she`` for people and empty for things; ``noun`` what a thing is, without its article."""
    he, him, his = {"he": ("he", "him", "his"), "she": ("she", "her", "her")}.get(person, ("it", "it", "its"))
    common = {"t": he, "r": him, "q": his, "be": "is" if living else "was", "noun": noun}
    short = mention.split()[-1] if person else f"the {noun}"
    return Subject(
        mention,
        common | _forms(mention, mention, possessive(mention)),
        common | _forms(short, short, possessive(short)),
        common | _forms(he, him, his),
        "who" if person else "which",
    )


def _forms(subjective: str, objective: str, of: str) -> dict[str, str]:
    return {"s": subjective, "S": capital(subjective), "o": objective, "p": of, "P": capital(of)}


def possessive(name: str) -> str:
    """``Anna's``, ``the Heron's``."""
    return f"{name}'s"


def capital(text: str) -> str:
    """With a capital at its beginning."""
    return text[:1].upper() + text[1:]

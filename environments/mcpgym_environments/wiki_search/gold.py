"""What a question's right answer and evidence come to in a library: its text, its sections, the calls they take."""

from __future__ import annotations

from collections.abc import Iterable

from mcpgym_environments.wiki_search.knowledge import Evidence
from mcpgym_environments.wiki_search.library import Library, SectionEntry
from mcpgym_environments.wiki_search.questions.question import Question
from mcpgym_environments.wiki_search.state import Visit


def find_section(library: Library, evidence: Evidence) -> SectionEntry | None:
    """The section where ``evidence`` stands; None where the library has no such page or heading.

    People name a page by its title, and may leave the heading out: that is the first section.
    """
    page = library.page_by_key(evidence.page) or library.page_by_title(evidence.page)
    sections = [] if page is None else library.sections(page.id)
    if not evidence.heading or evidence.heading == evidence.page:
        return next(iter(sections), None)
    return next((section for section in sections if section.heading == evidence.heading), None)


def evidence_sections(visit: Visit) -> set[str]:
    """The ids of the sections that the answer of the visit's question follows from."""
    wanted = () if visit.question is None else visit.question.evidence
    found = [find_section(visit.library, evidence) for evidence in wanted]
    return {section.id for section in found if section is not None}


def lost_evidence(library: Library, questions: Iterable[Question]) -> list[str]:
    """What is named as evidence of ``questions`` and is not in ``library``, each once, in words."""
    said = (
        f"no section {evidence.heading!a} of a page {evidence.page!a} is there to be evidence of {question.text[:80]!a}"
        for question in questions
        for evidence in question.evidence
        if find_section(library, evidence) is None
    )
    return list(dict.fromkeys(said))


def fewest_calls(visit: Visit) -> int:
    """How many calls it takes to search and view each page of the evidence, read its sections, and answer."""
    sections = evidence_sections(visit)
    pages = {section.partition(".")[0] for section in sections}
    return 2 * len(pages) + len(sections) + 1

"""The pages of the site that are made from the code while it is built, in docs/reference/, where no file is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tests.website import commands, configuration, python_pages

MADE: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands.page,
    "reference/configuration.md": configuration.page,
    **{f"reference/{place}": partial(python_pages.page, place) for place in python_pages.PAGES},
}
"""Each page's place in docs/, and what makes it."""


def pages() -> dict[str, str]:
    """Each page's place in docs/, and its text."""
    return {place: make() for place, make in MADE.items()}

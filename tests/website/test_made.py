"""The drawings are what the code makes; what the documents say may be installed can be."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.website import drawing, house
from tests.website.drawing import Box, Drawing

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", house.DRAWINGS)
def test_a_drawing_is_current(name: str) -> None:
    made = house.DRAWINGS[name]().svg()
    assert (house.IMAGES / name).read_text("utf-8") == made, "run: python -m tests.website.house"


def test_every_import_between_packages_is_drawn_and_no_other() -> None:
    assert house.imports() == set(house.WAYS)


def test_a_line_that_does_not_fit_its_box_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit into a box 100 pixels wide"):
        Drawing(100, 100, "nothing", [Box(0, 0, 100, 100, ["a title that is far too long"])]).svg()


def test_the_site_has_the_colours_of_the_drawings() -> None:
    css = (ROOT / "docs" / "assets" / "site.css").read_text("utf-8")
    for scheme, colours in (("default", drawing.LIGHT), ("slate", drawing.DARK)):
        assert f'[data-md-color-scheme="{scheme}"] .drawing {{\n  {drawing.colours(colours)};\n}}' in css


def test_extras_that_documents_name_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {
        extra
        for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for group in re.findall(r"mcpgym\[([\w,-]+)\]", path.read_text("utf-8"))
        for extra in group.split(",")
    }
    assert named
    assert named - set(extras) == set()

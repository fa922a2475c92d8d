"""The shipped environments pass the shipped checker, in every form they have."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgym import check_environment, load_environment

FORMS: list[tuple[str, dict[str, Any]]] = [
    ("tic-tac-toe", {"min_random_move_prob": 1, "policy_moves": "first", "illegal_move_loses": True}),
    ("tic-tac-toe", {"max_random_move_prob": 0, "policy_moves": "second", "num_groups": 1, "max_turns": 3}),
    (
        "wiki-search",
        {"kinds": "chain,list", "min_hops": 2, "thoughts": True, "max_lookups": 6, "section_characters": 200},
    ),
    ("python-sandbox", {"tasks": "open", "max_calls": 3, "output_characters": 200}),
    ("long-context", {"max_level": 1, "families": "tally", "train_tasks": 40, "test_tasks": 40}),
]
"""Configurations other than the default: under that ``test_check_healthy.py`` checks all that is installed."""
NAMES = ["tic-tac-toe", "reverse-text", "double-check", "wiki-search", "python-sandbox", "long-context"]


@pytest.mark.parametrize(("name", "config"), FORMS)
def test_the_checker_finds_nothing(name: str, config: dict[str, Any]) -> None:
    check_environment(name, config=config, second_process=False).raise_for_findings()


@pytest.mark.parametrize("name", NAMES)
def test_people_find_a_line_of_description_an_icon_and_the_two_policies(name: str) -> None:
    environment = load_environment(name)
    assert environment.name == name
    assert 20 < len(environment.description) < 120
    assert "\n" not in environment.description
    assert 20 < len(environment.instructions) < 2048
    assert environment.icon.startswith("data:image/svg+xml,%3Csvg")
    assert not set(environment.icon) & set(' <>#"')
    assert {"random", "expert"} <= set(environment.reference_policies())
    assert all(reward.description for reward in environment.rewards.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_icon_is_a_drawing_that_parses(name: str) -> None:
    from urllib.parse import unquote
    from xml.etree import ElementTree

    root = ElementTree.fromstring(unquote(load_environment(name).icon.partition(",")[2]))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root) >= 2

"""The checker's own parts: generated arguments, names in prompts, hidden values, odd transcripts."""

from __future__ import annotations

from random import Random

import pytest
from check_toys import HEALTHY, Doors, DoorsConfig
from test_schema_fixed_point import PARSERS

from mcpgym import check_environment
from mcpgym.check.arguments import extreme_arguments, hostile_arguments, valid_arguments
from mcpgym.check.plays import Act, Place, play
from mcpgym.check.rules_plays import over
from mcpgym.check.rules_rewards import odd_transcripts
from mcpgym.check.rules_texts import hidden_values, mentioned_tools
from mcpgym.messages import message_fault, user


@pytest.mark.parametrize("name", PARSERS)
def test_generated_arguments_fit_and_hostile_ones_do_not(name):
    parser = PARSERS[name]
    random = Random(1)
    seen = set()
    for _ in range(100):
        arguments = valid_arguments(parser.schema, random)
        parser.parse(arguments)
        seen.add(repr(arguments))
    assert len(seen) > 1 or name in ("only", "yes")
    assert [parser.parse(arguments) for arguments in extreme_arguments(parser.schema, random)]
    hostile = list(hostile_arguments(parser.schema, random))
    assert len(hostile) > 10
    for arguments in hostile:
        with pytest.raises(ValueError, match="play"):
            parser.parse(arguments)


TOOLS = {"play", "search_pages", "view_section"}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Call `play` with a cell.", []),
        ("Call `move` with a cell.", ["move"]),
        ("Call the `move` tool.", ["move"]),
        ("Use the `move` tool.", ["move"]),
        ("First use `find_page`, then answer.", ["find_page"]),
        ("Use search_page(query) to search.", ["search_page"]),
        ("Use `search_pages(query)` to search.", []),
        ("Use `view_sections(page)`.", ["view_sections"]),
        ("Call get_page(title) first.", ["get_page"]),
        ("The argument `position` is a cell.", []),
        ("Answer in `<answer>` tags, as `42`; `x` is a variable.", []),
        ("Write a function `solve(n)` that calls print(x) and len(y).", []),
        ("Write a function called `plays(n)`.", []),
        ("Define the class `Player` with `numpy`.", []),
        ("Let f(x) = sin(x) + log(x); what is g(2)?", []),
        ("```python\nsearch_page('x')\nmove(3)\n```", []),
        ("e.g. foo.bar(1) or math.floor(2)", []),
        ("A person (he) plays(well).", ["plays"]),
        ("Nothing at all.", []),
    ],
)
def test_only_names_that_look_like_tools_count(text, wrong):
    assert list(mentioned_tools(text, TOOLS, {"position"})) == wrong


def test_only_values_that_are_long_enough_are_looked_for():
    info = {"answer": 1234567, "few": 12, "yes": True, "none": None, "text": "abc", "deep": {"seed": ["longer text"]}}
    assert list(hidden_values(info)) == [("answer", "1234567"), ("deep.seed", "longer text")]


def test_odd_transcripts_are_made_of_messages():
    odd = odd_transcripts([user("hi")])
    assert len(odd) > 20
    assert all(message_fault(message) is None for messages in odd.values() for message in messages)


async def _twice(cls, plans):
    place = Place(cls.splits[0], 0, 3)
    return [await play(over(cls()), place, plan) for plan in plans]


def test_plays_differ_where_they_differ():
    import asyncio

    same = (Act("open_door", {"number": 1}), Act("look", {}))
    other = (Act("open_door", {"number": 1}), Act("look", {"where": "right"}))
    one, again, another = asyncio.run(_twice(Doors, (same, same, other)))
    assert one.difference(again) is None
    assert "call 2: look" in one.difference(another)
    assert one.difference(asyncio.run(_twice(Doors, (same[:1],)))[0])
    assert [line.label.split(":")[0] for line in one.lines] == ["prompt", "call 1", "call 2", "end", "score"]


def test_an_instance_whose_class_wants_more_than_a_configuration_is_checked_as_it_is():
    class Furnished(Doors):
        def __init__(self, config, furniture):
            super().__init__(config)
            self.furniture = furniture

    report = check_environment(Furnished(DoorsConfig(), ["chair"]), episodes=2, second_process=False)
    assert report.ok, str(report)


@pytest.mark.parametrize("cls", HEALTHY)
def test_the_same_seed_checks_the_same_things(cls):
    first, again = (check_environment(cls, seed=3, episodes=2, second_process=False) for _ in range(2))
    assert (first.findings, first.notes, first.episodes) == (again.findings, again.notes, again.episodes)

"""``@tool``: what is listed, and what is refused when the class is defined, with the remedy in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import Field

from mcpgym import Environment, Task, tool
from mcpgym.errors import ConfigurationError, SchemaError
from mcpgym.messages import user
from mcpgym.schema import schema_faults

if TYPE_CHECKING:
    from decimal import Decimal


class Base(Environment[Task, list]):
    name = "base"

    def tasks(self, split):
        return [Task(f"{split}-0", split, (user("hi"),))]

    def reset(self, task, seed):
        return []


class Two(Base):
    name = "two"

    @tool
    def first(self, state, number: Annotated[int, "A number."]) -> str:
        """Do the first
        thing.

        More for people who read code.
        """
        return "first"

    @tool(name="renamed", description="Another.", title="For people", timeout=3, read_only=True)
    async def second(self, state) -> str:
        return "second"


def test_a_tool_is_listed_as_it_is_written():
    assert list(Two.tools) == ["first", "renamed"]
    first, renamed = Two.tools.values()
    assert first.listing["description"] == "Do the first thing."
    assert list(first.listing) == ["name", "description", "inputSchema"]
    assert renamed.listing["inputSchema"] == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert (renamed.title, renamed.timeout, renamed.is_async, renamed.inline) == ("For people", 3.0, True, False)
    assert [schema_faults("two", made.listing) for made in Two.tools.values()] == [[], []]


def test_case_3_no_schema_shows_the_state():
    assert list(Two.tools["first"].listing["inputSchema"]["properties"]) == ["number"]
    assert "state" not in str(Two.tools["renamed"].listing)


def test_a_subclass_inherits_replaces_and_drops_tools():
    class Other(Two):
        name = "other"

        @tool
        def first(self, state, text: Annotated[str, "A text."]) -> str:
            """Do another thing."""
            return text

        def second(self, state) -> str:  # no tool any more
            return ""

    assert list(Other.tools) == ["first"]
    assert list(Other.tools["first"].listing["inputSchema"]["properties"]) == ["text"]
    assert list(Two.tools) == ["first", "renamed"]
    assert Other.schema_hash != Two.schema_hash


def refused(match: str, **methods: Any) -> None:
    with pytest.raises(ConfigurationError, match=match):
        type("Refused", (Base,), {"name": "refused", **methods})


def test_a_tool_without_a_docstring_is_refused():
    @tool
    def act(self, state) -> str: ...

    refused("Refused.act: say in its docstring what it does", act=act)


def test_long_descriptions_and_names_are_refused():
    @tool(description="x" * 1024)
    def act(self, state) -> str: ...

    refused("1024 characters of description; fewer than 1024", act=act)

    @tool(name="a" * 51)
    def named(self, state) -> str:
        """Act."""

    refused("64 at most", named=named)
    with pytest.raises(ConfigurationError, match="64 at most"):
        type("Refused", (Two,), {"name": "e" * 55})


@pytest.mark.parametrize("name", ["a.b", "a b", "größe", "a/b", "a\n"])
def test_names_that_clients_refuse_are_refused(name):
    @tool(name=name)
    def act(self, state) -> str:
        """Act."""

    refused("use letters, digits, _ and -", act=act)


def test_parameters_without_names_are_refused():
    @tool
    def stars(self, state, *numbers: int) -> str:
        """Act."""

    @tool
    def double(self, state, **options: int) -> str:
        """Act."""

    @tool
    def slash(self, state, number: Annotated[int, "x"], /) -> str:
        """Act."""

    for method in (stars, double, slash):
        refused("must have names", act=method)


def test_a_tool_takes_the_state_first():
    @tool
    def alone(self) -> str:
        """Act."""

    @tool
    def keyword(self, *, state) -> str:
        """Act."""

    @tool
    def anything(self, *rest) -> str:
        """Act."""

    for method in (alone, keyword, anything):
        refused("the episode's state first", act=method)


def test_wrong_options_are_refused():
    for options, match in [
        ({"inlined": True}, "no option 'inlined'; there is: name, title"),
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": float("inf")}, "timeout is inf"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": "5"}, "timeout is '5'"),
    ]:

        def act(self, state) -> str:
            """Act."""

        refused(match, act=tool(**options)(act))


def test_what_cannot_run_as_it_says_is_refused():
    @tool(inline=True)
    async def inline(self, state) -> str:
        """Act."""

    refused("async tool cannot be inline", act=inline)

    @tool
    def pieces(self, state) -> str:
        """Act."""
        yield "a"

    refused("cannot yield", act=pieces)

    @tool
    @staticmethod
    def static(state, number: Annotated[int, "x"]) -> str:
        """Act."""

    refused("leave out staticmethod", act=static)


def test_types_that_exist_only_for_type_checkers_are_refused_with_the_fix():
    @tool
    def act(self, state, number: Annotated[Decimal, "x"]) -> str:
        """Act."""

    refused("not under TYPE_CHECKING", act=act)


def test_a_parameter_without_a_type_is_refused():
    @tool
    def act(self, state, number) -> str:
        """Act."""

    refused(r"parameter 'number' has no type; write number: Annotated\[int", act=act)


def test_case_19_two_tools_of_one_name_are_refused():
    @tool(name="same")
    def one(self, state) -> str:
        """Act."""

    @tool(name="same")
    def other(self, state) -> str:
        """Act."""

    refused("two tools are called 'same'", one=one, other=other)


def test_decorating_twice_is_once():
    class Twice(Base):
        name = "twice"

        @tool
        @tool(timeout=7)
        def act(self, state, number: Annotated[int, Field(description="A number.")]) -> str:
            """Act."""
            return ""

    assert Twice.tools["act"].timeout == 7


@pytest.mark.parametrize("name", ["a b", "", "ä", "a/b"])
def test_environment_names_that_no_client_takes_are_refused(name):
    with pytest.raises(ConfigurationError, match="use letters, digits"):
        type("Refused", (Base,), {"name": name})


def test_instructions_that_clients_cut_are_refused():
    with pytest.raises(ConfigurationError, match="over 2048 bytes"):
        type("Refused", (Base,), {"instructions": "é" * 1025})


def test_schema_errors_are_configuration_errors():
    assert issubclass(SchemaError, ConfigurationError)

"""Tool schemas: what is accepted is what the schema says, what cannot be said is refused with its remedy."""

from __future__ import annotations

import enum
import inspect
import json
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Optional

import jsonschema
import pydantic
import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, StringConstraints
from typing_extensions import TypedDict

from mcpgym.errors import SchemaError
from mcpgym.schema import ArgumentParser, canonical_json, content_hash, schema_faults, schema_hash


def parser_for(**hints: Any) -> ArgumentParser:
    """A parser for parameters of these types; a tuple is a type and its default."""
    parameters, types = {}, {}
    for name, hint in hints.items():
        hint, default = hint if isinstance(hint, tuple) else (hint, inspect.Parameter.empty)
        parameters[name] = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        types[name] = hint
    return ArgumentParser("play", parameters, types)


class Inner(TypedDict):
    """A place."""

    row: Annotated[int, Field(ge=0, le=3, description="Row.")]
    name: NotRequired[Annotated[str, "Name."]]


class Outer(TypedDict, total=False):
    places: typing_extensions.Required[Annotated[list[Inner], Field(max_length=2, description="Places.")]]
    note: Annotated[str, Field(max_length=3, description="Note.")]


PARAMETERS: dict[str, Any] = {
    "whole": Annotated[int, "A whole number."],
    "small": Annotated[int, Field(ge=-2, le=2, description="A small one.")],
    "number": Annotated[float, Field(ge=-1.5, description="A number.")],
    "text": Annotated[str, "A text."],
    "short": Annotated[str, Field(min_length=1, max_length=2, description="A short text.")],
    "flag": Annotated[bool, "Yes or no."],
    "side": Annotated[Literal["left", "right"], "A side."],
    "digit": Annotated[Literal[1, 2, 3], "A digit."],
    "yes": Annotated[Literal[True], "Only yes."],
    "digits": Annotated[list[Literal[0, 1]], "Digits."],
    "only": Annotated[Literal["x"], "One choice."],
    "many": Annotated[list[int], Field(min_length=1, max_length=3, description="Some.")],
    "words": Annotated[list[Annotated[str, Field(max_length=2)]], "Words."],
    "nested": Annotated[Outer, "Nested."],
    "grid": Annotated[list[list[int]], "Rows."],
}
PARSERS = {name: parser_for(**{name: hint}) for name, hint in PARAMETERS.items()}

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-4, 4),
    st.sampled_from([10**17, -(10**30), 2**53, 4.0, -0.0, 1.0, 2.0, 1e16, 1e300, 0.5, -1.5, -1.6, 3.5]),
    st.sampled_from(["", "x", "xx", "xxx", "left", "right", "1", "4", "true", "é", "🎲🎲", "\x00", "null"]),
)
KEYS = st.sampled_from(["row", "name", "places", "note", "other", "", "p0", "whole", "title", "$ref"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
PLACES = st.lists(st.fixed_dictionaries({"row": SCALARS}, optional={"name": SCALARS, "other": SCALARS}), max_size=3)
NESTED = st.fixed_dictionaries({"places": PLACES}, optional={"note": SCALARS, "other": SCALARS})
CASES = st.one_of(
    st.tuples(st.sampled_from(sorted(PARSERS)), VALUES),
    st.tuples(st.just("nested"), NESTED),
    st.tuples(st.sampled_from(["digit", "yes", "flag", "whole"]), SCALARS),
    st.tuples(
        st.sampled_from(["many", "words", "grid", "digits"]),
        st.lists(st.one_of(SCALARS, st.lists(SCALARS)), max_size=4),
    ),
)


def accepts(parser: ArgumentParser, arguments: Any) -> bool:
    try:
        parser.parse(arguments)
    except ValueError:
        return False
    return True


@settings(max_examples=600, deadline=None)
@given(CASES)
def test_arguments_are_accepted_exactly_when_they_fit_the_schema(case):
    name, value = case
    parser = PARSERS[name]
    validator = jsonschema.Draft202012Validator(parser.schema)
    arguments = {name: value}
    assert accepts(parser, arguments) == validator.is_valid(arguments)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from([*PARAMETERS, "other", "p0"]), SCALARS, max_size=4))
def test_names_are_accepted_exactly_when_they_fit_the_schema(arguments):
    parser = PARSERS["whole"]
    assert accepts(parser, arguments) == jsonschema.Draft202012Validator(parser.schema).is_valid(arguments)


@pytest.mark.parametrize("value", [[], [1], "text", 4, None, True, 1.5, [{"whole": 1}]])
def test_arguments_that_are_no_object_are_refused_with_a_text(value):
    with pytest.raises(ValueError, match="the arguments must be an object"):
        PARSERS["whole"].parse(value)


def test_four_point_zero_is_the_integer_four_at_every_depth():
    assert PARSERS["whole"].parse({"whole": 4.0}) == {"whole": 4}
    assert isinstance(PARSERS["whole"].parse({"whole": 4.0})["whole"], int)
    assert PARSERS["grid"].parse({"grid": [[1.0], [2]]}) == {"grid": [[1], [2]]}
    assert PARSERS["nested"].parse({"nested": {"places": [{"row": 3.0}]}})["nested"]["places"] == [{"row": 3}]
    assert PARSERS["digit"].parse({"digit": 2.0}) == {"digit": 2}


def test_true_is_no_choice_among_numbers_nor_one_among_truths():
    for name, value in {"digit": True, "yes": 1, "digits": [True]}.items():
        with pytest.raises(ValueError, match="should be"):
            PARSERS[name].parse({name: value})
    assert PARSERS["yes"].parse({"yes": True}) == {"yes": True}


@pytest.mark.parametrize("value", [True, "4", 4.5, None, [4], math.nan, math.inf])
def test_nothing_but_a_whole_number_is_an_integer(value):
    with pytest.raises(ValueError, match=r"whole.*Expected \{whole: integer\}"):
        PARSERS["whole"].parse({"whole": value})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_case_25_no_argument_is_nan_or_infinite(value):
    with pytest.raises(ValueError, match="finite"):
        PARSERS["number"].parse({"number": value})


@pytest.mark.parametrize("arguments", [{"text": "\ud800"}, {"text": "a", "\ud800": 1}, {"\udfff" * 500: "a" * 10**6}])
def test_what_a_policy_reads_of_wrong_arguments_is_short_and_can_be_sent(arguments):
    with pytest.raises(ValueError, match="text") as caught:
        PARSERS["text"].parse(arguments)
    assert len(str(caught.value).encode()) < 2000


def test_half_a_surrogate_pair_is_refused_at_every_depth():
    for name, value in {"text": "\ud800", "words": ["\ud800"], "nested": {"places": [], "note": "\ud800"}}.items():
        with pytest.raises(ValueError, match="surrogate"):
            PARSERS[name].parse({name: value})


def test_a_list_that_is_a_default_is_not_shared_between_calls():
    parser = parser_for(pages=(Annotated[list[int], "Pages."], [1]))
    parser.parse({})["pages"].append(2)
    assert parser.parse({}) == {"pages": [1]}


@pytest.mark.parametrize(
    "name", ["copy", "schema", "json", "model_config", "dict", "validate", "_hidden", "self_", "title"]
)
def test_parameters_may_have_any_name(name, recwarn):
    parser = parser_for(**{name: Annotated[int, "A number."]})
    assert parser.parse({name: 1}) == {name: 1}
    assert list(parser.schema["properties"]) == [name]
    assert not recwarn.list


def test_a_schema_has_what_models_need_and_nothing_else():
    parser = parser_for(
        place=Annotated[Inner, "Where."], times=(Annotated[int, Field(ge=1, description="How often.")], 1)
    )
    assert parser.schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "place": {
                "type": "object",
                "description": "Where.",
                "additionalProperties": False,
                "properties": {
                    "row": {"type": "integer", "minimum": 0, "maximum": 3, "description": "Row."},
                    "name": {"type": "string", "description": "Name."},
                },
                "required": ["row"],
            },
            "times": {"type": "integer", "minimum": 1, "default": 1, "description": "How often."},
        },
        "required": ["place"],
    }


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    """A model."""

    a: int = Field(description="A.")


@dataclass
class Record:
    a: Annotated[int, Field(description="A.")]


class Tree(TypedDict):
    children: Annotated[list[Tree], "More."]


class Bare(TypedDict):
    row: int


REFUSED = {
    "optional": (Annotated[Optional[int], "x"], "make it required, or give it a default of its own type"),  # noqa: UP045
    "null default": ((Annotated[int | None, "x"], None), "make it required, or give it a default of its own type"),
    "union": (Annotated[int | str, "x"], "make it required"),
    "literal none": (Annotated[Literal["a", None], "x"], "Literal may have only"),
    "mixed literal": (Annotated[Literal["a", 1], "x"], "name one"),
    "dict": (Annotated[dict, "x"], "use a TypedDict"),
    "dict of": (Annotated[dict[str, int], "x"], "use a TypedDict"),
    "any": (Annotated[Any, "x"], "name one"),
    "object": (Annotated[object, "x"], "."),
    "bare list": (Annotated[list, "x"], "name one"),
    "set": (Annotated[set[int], "x"], "uniqueItems.*check it in the tool"),
    "tuple": (Annotated[tuple[int, int], "x"], "check it in the tool"),
    "bytes": (Annotated[bytes, "x"], "check it in the tool"),
    "enum": (Annotated[Colour, "x"], "write Literal"),
    "model": (Annotated[Model, "x"], "use a TypedDict"),
    "list of models": (Annotated[list[Model], "x"], "use a TypedDict"),
    "dataclass": (Annotated[Record, "x"], "use a TypedDict"),
    "recursive": (Annotated[Tree, "x"], "take a string and parse it"),
    "exclusive bound": (Annotated[int, Field(gt=0, description="x")], "exclusiveMinimum.*check it in the tool"),
    "pattern": (Annotated[str, Field(pattern="a", description="x")], "check it in the tool"),
    "multiple": (Annotated[int, Field(multiple_of=2, description="x")], "check it in the tool"),
    "changed text": (Annotated[str, StringConstraints(to_lower=True), "x"], "check it in the tool"),
    "code": (Annotated[int, AfterValidator(lambda value: value + 1), "x"], "check it in the tool"),
    "lax": (Annotated[int, Field(strict=False, description="x")], "without strict=False"),
    "date": (Annotated["pydantic.AwareDatetime", "x"], "."),
    "not described": (int, "write value: Annotated"),
    "nested not described": (Annotated[Bare, "x"], "write row: Annotated"),
    "wrong default": ((Annotated[int, "x"], "4"), "its default should be a valid integer"),
    "default out of bounds": ((Annotated[int, Field(ge=3, description="x")], 1), "its default"),
    "nan default": ((Annotated[float, "x"], math.nan), "default"),
    "callable": (Annotated[type, "x"], "."),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_json_or_clients_cannot_carry_is_refused_with_its_remedy(kind):
    hint, remedy = REFUSED[kind]
    if kind == "date":
        hint = Annotated[pydantic.AwareDatetime, "x"]
    with pytest.raises(SchemaError, match=remedy) as caught:
        parser_for(value=hint)
    assert "play.value" in str(caught.value) or "play:" in str(caught.value)


@pytest.mark.parametrize("name", ["größe", "a" * 65])
def test_names_that_some_models_refuse_are_refused(name):
    with pytest.raises(SchemaError, match="letters, digits, _ and -"):
        parser_for(**{name: Annotated[int, "x"]})


@pytest.mark.parametrize("hint", list(PARAMETERS.values()))
def test_our_own_schemas_have_no_faults_and_are_a_fixed_point(hint):
    schema = parser_for(value=hint).schema
    assert schema_faults("server", {"name": "play", "description": "Play.", "inputSchema": schema}) == []
    assert (
        schema_faults("server", json.loads(json.dumps({"name": "play", "description": "Play.", "inputSchema": schema})))
        == []
    )


def listing(**changes: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "integer", "description": "A."}},
        "required": ["a"],
        "additionalProperties": False,
    }
    return {"name": "play", "description": "Play.", "inputSchema": schema} | changes


def with_schema(**changes: Any) -> dict[str, Any]:
    return listing(inputSchema=listing()["inputSchema"] | changes)


FAULTY = {
    "no schema": listing(inputSchema=None),
    "schema is a list": listing(inputSchema=[]),
    "schema is true": listing(inputSchema=True),
    "not an object": with_schema(type="string"),
    "title": with_schema(title="Play"),
    "definitions": with_schema(**{"$defs": {"X": {"type": "string"}}}),
    "dangling reference": with_schema(properties={"a": {"$ref": "#/nowhere"}}),
    "circular": with_schema(properties={"a": {"$ref": "#/$defs/X"}}, **{"$defs": {"X": {"$ref": "#/$defs/X"}}}),
    "two types": with_schema(properties={"a": {"type": ["integer", "null"], "description": "A."}}),
    "null in enum": with_schema(properties={"a": {"type": "string", "enum": ["x", None], "description": "A."}}),
    "null default": with_schema(properties={"a": {"type": "integer", "default": None, "description": "A."}}),
    "any of": with_schema(properties={"a": {"anyOf": [{"type": "integer"}], "description": "A."}}),
    "constant": with_schema(properties={"a": {"const": "x", "type": "string", "description": "A."}}),
    "property is true": with_schema(properties={"a": True}),
    "properties is a list": with_schema(properties=["a"]),
    "required is a text": with_schema(required="a"),
    "required names nothing": with_schema(required=["a", "b"]),
    "open": with_schema(additionalProperties=True),
    "tuple items": with_schema(
        properties={"a": {"type": "array", "items": [{"type": "integer"}], "description": "A."}}
    ),
    "no items": with_schema(properties={"a": {"type": "array", "description": "A."}}),
    "format": with_schema(properties={"a": {"type": "string", "format": "date", "description": "A."}}),
    "undescribed": with_schema(properties={"a": {"type": "integer"}}),
    "no description": listing(description=""),
    "long description": listing(description="x" * 1024),
    "no name": listing(name=""),
    "dotted name": listing(name="a.b"),
    "long name": listing(name="x" * 60),
    "description is a number": listing(description=5, name="a b"),
}


@pytest.mark.parametrize("kind", FAULTY)
def test_case_20_foreign_listings_away_from_the_fixed_point_are_told(kind):
    before = repr(FAULTY[kind])
    faults = schema_faults("server", FAULTY[kind])
    assert faults
    assert all(isinstance(fault, str) and fault for fault in faults)
    assert repr(FAULTY[kind]) == before, "looking must not change it"


def test_a_good_foreign_listing_has_no_faults():
    assert schema_faults("server", listing()) == []
    assert schema_faults("s" * 60, listing())[0].startswith("mcp__")


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=12,
)


@given(JSON)
def test_canonical_json_says_the_same_thing_and_survives_a_round_trip(value):
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@given(st.dictionaries(st.text(), st.integers(), min_size=2), st.randoms())
def test_canonical_json_does_not_depend_on_the_order_of_keys(value, random):
    keys = list(value)
    random.shuffle(keys)
    assert canonical_json({key: value[key] for key in keys}) == canonical_json(value)


def test_canonical_json_is_what_it_was():
    assert canonical_json({"b": [1.0, 2.5, True, None], "a": "é\n"}) == '{"a":"é\\n","b":[1,2.5,true,null]}'
    assert canonical_json(-0.0) == "0"
    assert canonical_json(1) != canonical_json(True)


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [-math.inf]}])
def test_canonical_json_refuses_what_json_has_not(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(value)


def test_hashes_are_of_every_text_even_half_a_surrogate_pair():
    assert content_hash("\ud800") != content_hash("\ud801")


def test_the_schema_hash_is_what_it_was():
    tools = [listing(), listing(name="other")]
    assert schema_hash([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    assert schema_hash(tools)[:12] == "b29247db631a"
    assert schema_hash(tools[::-1]) == schema_hash(tools)
    assert schema_hash([listing(title="For people", icon="x")]) == schema_hash([listing()])


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return value


@pytest.mark.parametrize(
    "change",
    [
        {"name": "plays"},
        {"description": "Play!"},
        {"inputSchema": with_schema(required=[])["inputSchema"]},
        {"inputSchema": with_schema(properties={"a": {"type": "integer", "description": "B."}})["inputSchema"]},
    ],
)
def test_case_21_the_schema_hash_changes_with_whatever_a_model_sees(change):
    assert schema_hash([listing(**change)]) != schema_hash([listing()])
    assert schema_hash([reordered(listing(**change))]) == schema_hash([listing(**change)])

"""Schemas of brought tools at the fixed point: unchanged where they can be, and never beyond it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym.errors import SchemaError
from mcpgym.own_server.listing import ProxyParser, made_tools
from mcpgym.own_server.shapes import fixed
from mcpgym.schema import MAX_NAME, schema_faults


def one(schema: Any, **more: Any) -> tuple[dict[str, Any], Any, list[str]]:
    """The schema, the parser and the changes of a tool with the argument ``a``."""
    shape, changes = fixed("t", {"type": "object", "properties": {"a": schema}, "required": ["a"], **more})
    return shape.schema["properties"].get("a", {}), ProxyParser("t", shape), changes


def sent(schema: Any, value: Any, **more: Any) -> Any:
    """What the server gets where the policy gives ``value``."""
    return one(schema, **more)[1].parse({"a": value} if value is not ... else {})["arguments"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "description": "D.", "enum": ["x", "y"], "default": "x"},
        {"type": "integer", "description": "D.", "minimum": 1, "maximum": 9},
        {"type": "number", "description": "D."},
        {"type": "boolean", "description": "D.", "default": False},
        {"type": "array", "description": "D.", "items": {"type": "string"}, "maxItems": 3},
        {"type": "object", "description": "D.", "properties": {"b": {"type": "string", "description": "B."}},
         "additionalProperties": False, "required": ["b"]},
    ],
    ids=lambda schema: schema["type"],
)  # fmt: skip
def test_what_every_client_sends_on_is_left_as_it_is(schema: dict[str, Any]) -> None:
    assert one(schema)[0] == schema
    assert one(schema)[2] == []


def test_null_is_leaving_it_out() -> None:
    for schema in (
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "D."},
        {"type": ["integer", "null"], "description": "D."},
    ):
        found, _, changes = one(schema)
        assert found == {"type": "integer", "description": "D."}
        assert changes == ["t.a: null reaches models differently in each client; leaving it out means null"]
        assert sent(schema, ...) == {"a": None}
        assert sent(schema, 4) == {"a": 4}
    assert sent({"type": "string", "enum": ["x", None], "description": "D."}, "x") == {"a": "x"}


def test_what_clients_drop_is_said_in_the_description() -> None:
    schema = {"type": "string", "pattern": "^a+$", "format": "email", "title": "A", "x-order": 1}
    found, _, changes = one(schema)
    assert found == {"type": "string", "description": "(pattern ^a+$; format email)"}
    assert len(changes) == 3
    found = one({"type": "number", "exclusiveMinimum": 0, "description": "How many."})[0]
    assert found["description"] == "How many. (above 0)"


@pytest.mark.parametrize(
    ("schema", "given", "wanted"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "4", 4),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "four", "four"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, '{"x": 1}', {"x": 1}),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({}, "null", None),
        (True, "[]", []),
        ({"type": "array", "items": {"type": "array", "items": {}}}, [["1", "x"]], [[1, "x"]]),
    ],
    ids=["union", "text of a union", "any keys", "any list", "anything", "true", "nested"],
)
def test_what_has_no_flat_schema_is_a_text_of_json(schema: Any, given: Any, wanted: Any) -> None:
    assert sent(schema, given) == {"a": wanted}


def test_a_text_that_is_no_json_is_told_so() -> None:
    with pytest.raises(ValueError, match=r"t: a: must be a text of JSON, not \{x. Expected \{a: string\}"):
        sent({"type": "object"}, "{x")


def test_references_are_followed_and_end() -> None:
    definitions = {
        "Point": {"type": "object", "properties": {"x": {"type": "integer", "description": "X."}}, "required": ["x"]},
        "Tree": {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
    }
    found = one({"$ref": "#/$defs/Point", "description": "D."}, **{"$defs": definitions})[0]
    assert found["properties"] == {"x": {"type": "integer", "description": "X."}}
    found, _, changes = one({"$ref": "#/$defs/Tree"}, **{"$defs": definitions})
    assert found["properties"]["below"]["items"]["type"] == "string"
    assert any("contains itself" in change for change in changes)
    bomb = {
        f"d{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "abcdef"}}
        for n in range(9)
    }
    with pytest.raises(SchemaError, match="over 2000 parts"):
        one({"$ref": "#/$defs/d0"}, **{"$defs": {**bomb, "d9": {"type": "string"}}})


def test_odd_names_are_changed_and_changed_back() -> None:
    text = {"type": "string", "description": "F."}
    shape, changes = fixed("t", {"type": "object", "properties": {"$filter": text, "_filter": text}})
    assert list(shape.schema["properties"]) == ["_filter_2", "_filter"]
    assert ProxyParser("t", shape).parse({"_filter_2": "x", "_filter": "y"})["arguments"] == {
        "$filter": "x",
        "_filter": "y",
    }
    assert "it is called _filter_2" in changes[0]


@pytest.mark.parametrize(
    "schema",
    [None, [], {"type": "string"}, {"type": "object", "x": "y" * 70_000}],
    ids=["none", "list", "text", "large"],
)
def test_what_is_no_schema_of_an_object_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError):
        fixed("t", schema)


def test_tools_are_named_and_described_within_bounds() -> None:
    listed = [
        {"name": "files/read", "description": "D." * 900, "inputSchema": {"type": "object"}},
        {"name": "files.read", "inputSchema": {"type": "object"}},
        {"name": "x" * 90, "description": "D.", "inputSchema": {"type": "object"}},
        {"name": "x" * 90, "description": "D.", "inputSchema": {"type": "object"}},
        {"name": "bad", "description": "D.", "inputSchema": 4},
    ]
    made = made_tools("env", "it", listed, 5.0, lambda name: lambda: None, ["own"])  # type: ignore[arg-type, return-value]
    assert len(made.tools) == 3
    assert all(not schema_faults("env", tool.listing) for tool in made.tools.values())
    assert all(len(f"mcp__env__{name}") <= MAX_NAME for name in made.tools)
    assert sorted(made.names.values()) == ["files.read", "files/read", "x" * 90]
    assert any(text.startswith("bad: left out") for text in made.differences)
    assert any("listed twice" in text for text in made.differences)


names = st.sampled_from(["a", "b-c", "$d", "e.f", "g" * 70, ""])
keywords = st.sampled_from(["title", "default", "enum", "minimum", "pattern", "format", "const", "nullable"])
atoms = st.none() | st.integers() | st.text(max_size=3)
values = atoms | st.lists(atoms, max_size=3)
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "any"])
leaves = st.one_of(
    st.builds(lambda kind, more: {**more, "type": kind}, kinds, st.dictionaries(keywords, values, max_size=3)),
    st.sampled_from([True, {}, {"$ref": "#/$defs/x"}, {"$ref": "#"}, {"enum": ["a", 1, None]}, "text"]),
)


def an_object(properties: Any, required: Any, more: Any) -> Any:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            an_object, st.dictionaries(names, inner, max_size=3), st.lists(names, max_size=2), st.booleans() | inner
        ),
        st.builds(
            lambda key, all_of: {key: all_of}, st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, max_size=3)
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(names, schemas, max_size=4), st.lists(names, max_size=3), schemas)
def test_whatever_a_server_says_the_policy_sees_the_fixed_point(
    properties: dict[str, Any], required: list[str], definition: Any
) -> None:
    raw = {"type": "object", "properties": properties, "required": required, "$defs": {"x": definition}}
    shape, _ = fixed("t", raw)
    assert schema_faults("s", {"name": "t", "description": "D.", "inputSchema": shape.schema}) == []
    again, changes = fixed("t", shape.schema)
    assert again.schema == shape.schema
    assert changes == []

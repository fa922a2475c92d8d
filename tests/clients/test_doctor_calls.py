"""What the doctor calls, and with what: arguments that fit whatever schema, and never more than is allowed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcpgym_clients.doctor.calls import Permission, example, example_arguments, parse_calls
from mcpgym_clients.doctor.checks.runs_compared import ROUNDS, counts_on, proof
from mcpgym_clients.doctor.running import _way_on
from mcpgym_clients.doctor.wire import Answer
from mcpgym_clients.failures import UsageProblem

bounds = st.integers(-50, 50)
leaves: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({"type": "boolean"}),
    st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more}, bounds, st.integers(0, 9)),
    st.builds(lambda low: {"type": "integer", "exclusiveMinimum": low}, bounds),
    st.builds(lambda high: {"type": "number", "maximum": high}, bounds),
    st.builds(
        lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more},
        st.integers(0, 40), st.integers(0, 5),
    ),
    st.builds(lambda words: {"enum": words}, st.lists(st.text(max_size=3), min_size=1, max_size=3)),
    st.builds(lambda word: {"const": word}, st.text(max_size=3)),
    st.just({"anyOf": [{"type": "null"}, {"type": "integer"}]}),
    st.just({"type": ["string", "null"]}),
    st.just({"$ref": "#/$defs/word"}),
)  # fmt: skip
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda item, low: {"type": "array", "items": item, "minItems": low}, inner, st.integers(0, 3)),
        st.builds(
            lambda fields: {"type": "object", "properties": fields, "required": sorted(fields)},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        ),
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(schemas, st.integers(0, 5))
def test_examples_fit_their_schema(schema: dict[str, Any], seed: int) -> None:
    root = {**schema, "$defs": {"word": {"type": "string", "minLength": 3}}}
    Draft202012Validator(root).validate(example(root, Random(seed), root))


WORDS = ["type", "properties", "required", "items", "anyOf", "enum", "minLength", "maximum", "$ref", "allOf"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(anything)
def test_no_schema_however_wrong_is_too_much(schema: Any) -> None:
    assert isinstance(example_arguments({"name": "x", "inputSchema": schema}, Random(0)), dict)
    assert isinstance(Permission().plan([{"name": "x", "inputSchema": schema, "annotations": schema}]), list)


def tool(name: str, **hints: bool) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, "annotations": hints}


TOOLS = [tool("plain"), tool("wipe", destructiveHint=True), tool("look", readOnlyHint=True)]


@pytest.mark.parametrize(
    ("permission", "called"),
    [
        (Permission(), ["look", "plain"]),
        (Permission(read_only=True), ["look"]),
        (Permission(named=parse_calls(['wipe={"all": true}'])), ["wipe"]),
        (Permission(named=parse_calls(["wipe"]), read_only=True), ["wipe"]),
    ],
)
def test_only_what_is_allowed_is_called(permission: Permission, called: list[str]) -> None:
    assert [call.tool for call in permission.plan(TOOLS)] == called


@pytest.mark.parametrize(
    "name", ["delete_everything", "rm", "dropTable", "send_email", "sendMail", "execute-sql", "git.push", "Overwrite"]
)
def test_a_tool_that_declares_nothing_and_sounds_harmful_is_called_only_when_it_is_named(name: str) -> None:
    assert Permission().plan([tool(name)]) == []
    assert not Permission().allows({"name": name})
    assert [call.tool for call in Permission(named=parse_calls([name])).plan([tool(name)])] == [name]
    for hints in ({"readOnlyHint": True}, {"destructiveHint": False}):
        assert [call.tool for call in Permission().plan([tool(name, **hints)])] == [name]


@pytest.mark.parametrize("name", ["move", "play", "add", "forecast", "information", "brush", "guess_word", "", "é"])
def test_a_tool_that_sounds_harmless_is_called(name: str) -> None:
    assert [call.tool for call in Permission().plan([tool(name)])] == [name]


def test_of_many_tools_some_that_read_and_some_that_change_are_called() -> None:
    many = [tool(f"look{i}", readOnlyHint=True) for i in range(9)] + [tool(f"do{i}") for i in range(9)]
    assert [call.tool for call in Permission().plan(many)] == ["look0", "look1", "look2", "do0", "do1", "do2"]


@pytest.mark.parametrize(
    ("error", "says"),
    [("HTTP 401, no JSON", "MCPGYM_DOCTOR_HEADER"), ("HTTP 307, no JSON: nothing", "redirects"), ("HTTP 500", "")],
)
def test_a_server_that_wants_a_key_or_sends_clients_elsewhere_is_told_with_what_to_do(error: str, says: str) -> None:
    assert says in _way_on(error)
    assert bool(_way_on(error)) is bool(says)


@pytest.mark.parametrize("text", ["add={", "add=4", "=3", "add=[1]"])
def test_a_call_that_cannot_be_read_says_how_to_write_it(text: str) -> None:
    with pytest.raises(UsageProblem, match=r"--call"):
        parse_calls([text])


@given(st.integers(-99, 99), st.integers(-9, 9).filter(bool), st.integers(3, 6))
def test_texts_that_count_on_are_told_from_others(start: int, step: int, count: int) -> None:
    texts = [f"call {start + step * place} of a day" for place in range(count)]
    assert counts_on(texts)
    assert not counts_on([texts[0]] * count)
    assert not counts_on([*texts, "nothing"])
    assert not counts_on([*texts, texts[-1]])


def answers(*texts: str) -> list[Answer]:
    assert len(texts) % ROUNDS == 0
    return [Answer(result={"content": [{"type": "text", "text": text}]}) for text in texts]


def test_what_only_the_first_client_ever_reads_is_proof_and_chance_is_none() -> None:
    first, later = answers("free", "taken", "taken"), answers("taken", "taken", "taken")
    assert "only the first client" in proof([first, later, later], None)
    assert proof([later, later, later], None) == ""
    assert proof([answers("a", "b", "c"), answers("d", "e", "f"), answers("g", "h", "i")], None) == ""
    assert "alone" in proof([first, first], later)

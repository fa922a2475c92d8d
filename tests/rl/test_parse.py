"""The parser of tool calls: one verdict for each malformed output, whoever asks."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym.messages import assistant, tool_call
from mcpgym_rl.parse import (
    MAX_ARGUMENTS,
    MAX_DEPTH,
    MAX_TEXT_CALLS,
    MalformedCall,
    ParsedCall,
    load_object,
    parse,
    read_text,
    write_text,
)

CORPUS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "malformed_calls.json").read_text("utf-8"))


@pytest.mark.parametrize("entry", CORPUS, ids=[entry["why"] for entry in CORPUS])
def test_case_16_and_17_every_output_of_the_corpus_has_its_verdict(entry: dict[str, Any]) -> None:
    message: Any = read_text(entry["text"]) if "text" in entry else {"role": "assistant", "tool_calls": entry["calls"]}
    tidy, calls = parse(message)
    assert len(calls) == len(entry["expect"])
    for call, expected in zip(calls, entry["expect"], strict=True):
        if "problem" in expected:
            assert isinstance(call, MalformedCall)
            assert expected["problem"] in call.problem
        else:
            assert isinstance(call, ParsedCall)
            assert call.call["function"]["name"] == expected["name"]
            assert call.arguments == expected["arguments"]
    if "content" in entry:
        assert tidy["content"] == entry["content"]
    assert [call.call for call in calls] == tidy.get("tool_calls", [])
    assert len(json.dumps(tidy).encode()) > 0
    again, calls_again = parse(tidy)  # what a transcript holds parses as what was first read
    assert again == tidy
    assert calls_again == calls


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("<tool_call>"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
entries = anything | st.fixed_dictionaries(
    {},
    optional={
        "id": anything,
        "type": anything,
        "function": anything | st.fixed_dictionaries({}, optional={"name": anything, "arguments": anything}),
    },
)


@given(
    st.fixed_dictionaries({}, optional={"content": anything, "tool_calls": st.lists(entries, max_size=4) | anything})
)
def test_no_message_whatever_makes_the_parser_raise_and_all_of_it_can_be_written(message: dict[str, Any]) -> None:
    tidy, calls = parse(message)
    json.dumps(tidy, allow_nan=False, ensure_ascii=False).encode()
    for call in calls:
        if isinstance(call, ParsedCall):
            json.dumps(call.arguments, allow_nan=False, ensure_ascii=False).encode()
    assert parse(tidy)[0] == tidy


pieces = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        "</think>",
        "<think>",
        '{"name": "a"',
        '"arguments": ',
        "{",
        "}",
        ",",
        '"',
        "\\",
        "x",
        " ",
        "\ud800",
        "[",
        "1e999",
    ]
)


@given(st.lists(pieces, max_size=30).map("".join))
def test_no_text_whatever_makes_the_reader_raise(text: str) -> None:
    message = read_text(text)
    tidy, _ = parse(message)
    json.dumps(tidy, ensure_ascii=False).encode()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(["</tool_call>", "<tool_call>", "</think>{"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.tuples(st.text("abc_-", min_size=1), st.dictionaries(st.text("xyz", min_size=1), json_values, max_size=3)),
        max_size=4,
    ),
    st.text("ab .", max_size=10).map(str.strip),
)
def test_a_turn_written_as_text_is_read_back_as_the_same_calls(calls: list[tuple[str, Any]], content: str) -> None:
    made = [tool_call(f"call_{i}", name, json.dumps(arguments)) for i, (name, arguments) in enumerate(calls)]
    text = write_text(assistant(content, made))
    if "</think>" in text:
        return  # an argument that ends a thought hides what came before it, and that is meant
    message, parsed = parse(read_text(text))
    assert message["content"] == content
    assert [(call.call["function"]["name"], call.arguments) for call in parsed if isinstance(call, ParsedCall)] == calls


@pytest.mark.parametrize("entry", [e for e in CORPUS if "text" in e], ids=lambda entry: entry["why"])
def test_a_malformed_turn_written_as_text_keeps_its_verdict(entry: dict[str, Any]) -> None:
    first = read_text(entry["text"])
    again = read_text(write_text(first))
    kinds = [[type(call).__name__ for call in parse(message)[1]] for message in (first, again)]
    if "<tool_call>" not in first["content"]:
        assert kinds[0] == kinds[1]


HOSTILE = {
    "open tags": "<tool_call>" * 95_000,
    "open objects": '<tool_call>{"a":' * 60_000,
    "open strings": '<tool_call>{"' * 80_000,
    "open brackets": "<tool_call>" + "[" * 1_000_000,
    "nested objects": "<tool_call>" + '{"a":' * 200_000,
    "long lists": "<tool_call>" + ("[" + "1," * 500_000),
    "many keys": "<tool_call>{" + ",".join(f'"{i}":0' for i in range(90_000)) + ',"89999":1}</tool_call>',
    "closing thoughts": "</think><tool_call>" * 50_000,
    "digits": '<tool_call>{"name":"a","arguments":{"n":' + "9" * 1_000_000 + "}}</tool_call>",
    "alternating": '<tool_call>{",":"' * 60_000,
    "spaces": "<tool_call>" + " " * 1_000_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_a_megabyte_of_hostile_text_is_read_in_bounded_time(kind: str) -> None:
    started = time.process_time()
    _, calls = parse(read_text(HOSTILE[kind]))
    assert time.process_time() - started < 5
    assert len(calls) <= MAX_TEXT_CALLS + 1
    assert all(isinstance(call, MalformedCall) for call in calls)
    started = time.process_time()
    parse(assistant("", [tool_call("a", "x", HOSTILE[kind])]))
    assert time.process_time() - started < 5


def test_calls_beyond_the_limit_of_one_text_are_one_malformed_call_that_says_so() -> None:
    _, calls = parse(read_text('<tool_call>{"name": "a"}</tool_call>' * (MAX_TEXT_CALLS + 10)))
    assert all(isinstance(call, ParsedCall) for call in calls[:-1])
    assert len(calls) == MAX_TEXT_CALLS + 1
    assert isinstance(calls[-1], MalformedCall)
    assert calls[-1].problem == "more than 64 tool calls in one turn; those after the 64th were not run"


def test_arguments_too_long_or_too_deep_are_malformed() -> None:
    long = json.dumps({"text": "x" * MAX_ARGUMENTS})
    deep = '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1)
    fine = '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH
    verdicts = [parse(assistant("", [tool_call("a", "x", text)]))[1][0] for text in (long, deep, fine)]
    assert isinstance(verdicts[0], MalformedCall)
    assert "over 200000 characters" in verdicts[0].problem
    assert isinstance(verdicts[1], MalformedCall)
    assert "more than 64 levels" in verdicts[1].problem
    assert isinstance(verdicts[2], ParsedCall)


def test_lone_surrogates_become_replacement_characters_and_whole_pairs_are_joined() -> None:
    tidy, _ = parse({"role": "assistant", "content": "a\ud800b \ud83d\ude00"})
    assert tidy["content"] == "a\ufffdb \U0001f600"


def test_true_stays_true_and_four_point_zero_stays_a_float() -> None:
    made = load_object('{"a": true, "b": 4.0, "c": 4, "d": 12345678901234567890}')
    assert [type(value) for value in made.values()] == [bool, float, int, int]
    assert made["d"] == 12345678901234567890


def test_reasoning_is_kept_beside_the_content() -> None:
    tidy, _ = parse({"role": "assistant", "content": None, "reasoning_content": "hm", "refusal": None, "odd": 1})
    assert tidy == {"role": "assistant", "content": "", "reasoning_content": "hm"}


@pytest.mark.parametrize(
    ("given", "kept"), [({"weight": 0}, 0), ({"weight": 1}, None), ({"weight": "0"}, None), ({}, None)]
)
def test_only_the_weight_of_a_turn_not_to_be_learnt_from_is_kept(given: dict[str, Any], kept: int | None) -> None:
    message, _ = parse({"role": "assistant", "content": "x", **given})
    assert message.get("weight") == kept

"""``openai-responses:``: reasoning, items and ends of the Responses API, without its storage."""

from __future__ import annotations

import json
from typing import Any

import pytest
from provider_toys import play
from tests.fake_apis.responses import ResponsesAPI, function_call, reasoning, response, words

from mcpgym.messages import Message, assistant, system, tool_answer, tool_call, user
from mcpgym_rl.policies.kept_turns import KeptTurns
from mcpgym_rl.policies.openai_responses import response_items
from mcpgym_rl.stop_reason import StopReason

KIND = "openai-responses"
ADD = function_call("add", '{"amount": 3}', "end")


def test_items_go_back_as_they_came_with_an_output_for_each_call() -> None:
    first = response(
        reasoning("secret-1", "One first.", "Then more."),
        words("Both."),
        function_call("add", '{ "amount": 1 }', "a"),
        function_call("add", '{"amount": -1}', "b"),
    )
    trace, fake = play(KIND, first, response(reasoning("secret-2"), function_call("peek", "{}", "c")), response(ADD))
    assert (trace.stop_reason, fake.refused) == (StopReason.DONE, [])
    assert trace.messages[1]["content"] == "Both."
    assert trace.messages[1].get("reasoning_content") == "One first.\n\nThen more."
    assert trace.messages[1]["tool_calls"][0]["function"]["arguments"] == '{ "amount": 1 }'
    assert fake.requests[1]["input"][1:] == [
        *first["output"],
        {"type": "function_call_output", "call_id": "a", "output": "count 1"},
        {"type": "function_call_output", "call_id": "b", "output": "amount must not be negative"},
    ]
    assert {json.dumps(request["include"]) for request in fake.requests} == {'["reasoning.encrypted_content"]'}
    assert all(request["store"] is False for request in fake.requests)


def test_reasoning_that_came_without_its_content_or_to_nothing_is_left_out() -> None:
    trace, fake = play(KIND, response(reasoning(None), function_call("peek", "{}", "a")), response(ADD))
    assert (trace.stop_reason, fake.refused) == (StopReason.DONE, [])
    trace, fake = play(KIND, response(reasoning("secret")), response(words("yes")), environment="chat")
    assert (trace.stop_reason, fake.refused) == (StopReason.ANSWERED, [])


def test_a_model_that_does_not_reason_is_asked_for_no_reasoning_from_then_on() -> None:
    answers = [response(function_call("peek", "{}", "a")), response(function_call("peek", "{}", "b")), response(ADD)]
    trace, fake = play(KIND, *answers, fake_options={"reasons": False})
    assert trace.stop_reason == StopReason.DONE
    assert fake.refused == ["Encrypted content is not supported with this model."]


def test_thoughts_are_summarised_when_asked_for() -> None:
    assert play(KIND, response(ADD), think=True)[1].requests[0]["reasoning"] == {"summary": "auto"}
    assert "reasoning" not in play(KIND, response(ADD))[1].requests[0]


def test_a_response_that_is_incomplete_is_truncated_and_not_acted_on() -> None:
    details = {"reason": "max_output_tokens"}
    trace, _ = play(KIND, response(ADD, status="incomplete", incomplete_details=details))
    assert (trace.stop_reason, trace.calls) == (StopReason.TRUNCATED, [])


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "PolicyError", "content filter"),
        (
            {"status": "failed", "error": {"code": "server_error", "message": "we broke"}},
            "PolicyUnavailable",
            "we broke",
        ),
        ({"status": "failed", "error": {"code": "invalid_prompt", "message": "no"}}, "PolicyError", "failed: no"),
        ({"status": "queued"}, "PolicyError", "is queued, not completed"),
        ({"status": None}, "PolicyError", "not completed"),
    ],
    ids=["filtered", "server error", "invalid prompt", "queued", "null"],
)
def test_a_response_that_is_none_says_whose_failure_it_is(changes: dict[str, Any], kind: str, said: str) -> None:
    trace, _ = play(KIND, response(**changes), retries=0)
    assert trace.error is not None
    assert trace.error.kind == kind
    assert said in trace.error.message
    assert trace.usage.prompt_tokens == 11


def test_a_refusal_in_words_is_the_models_answer() -> None:
    trace, _ = play(KIND, response(words("I would rather not.", "refusal")))
    assert trace.stop_reason == StopReason.ANSWERED
    assert trace.messages[-1]["content"] == "I would rather not."


@pytest.mark.parametrize(
    "item",
    [
        None,
        {},
        {"type": "message", "content": 3},
        {"type": "message", "content": [None, {"text": 3}]},
        {"type": "function_call"},
        {"type": "reasoning", "summary": "no"},
    ],
)
def test_odd_items_never_crash(item: Any) -> None:
    trace, _ = play(KIND, {**response(), "output": [item]}, response(words("end")), retries=0)
    assert trace.stop_reason in (StopReason.ANSWERED, StopReason.POLICY_FAILED)


def test_a_transcript_of_others_is_shown_in_items_that_the_api_takes() -> None:
    made = [tool_call("a" * 80, "x", "{}"), tool_call("c", "", '{"n": ')]
    messages: list[Message] = [
        system("Be kind."),
        user("Go."),
        assistant("", made),
        tool_answer(made[0], "one"),
        tool_answer(made[1], "", is_error=True),
        system("Hurry."),
        assistant("Done."),
        user("And?"),
    ]
    instructions, items = response_items(messages, KeptTurns())
    body = {"model": "m", "store": False, "input": items, "instructions": instructions}
    assert ResponsesAPI().fault(body, {"authorization": "Bearer k"}) is None
    assert [item.get("role") or item["type"] for item in items] == [
        "user", "function_call", "function_call", "function_call_output", "function_call_output",
        "system", "assistant", "user",
    ]  # fmt: skip
    assert response_items([system("Only this.")], KeptTurns()) == ("", [{"role": "system", "content": "Only this."}])

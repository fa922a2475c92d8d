"""What holds for ``anthropic:`` and ``openai-responses:`` alike, against fakes as strict as the real APIs."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
import rl_toys
from provider_toys import KINDS, VARIABLES, api, calls, play, says
from tests.fake_apis.serving import Fault, serving

from mcpgym.errors import ConfigurationError
from mcpgym.schema import schema_hash
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import asks_endpoint, make_policy
from mcpgym_rl.policies.asking import usage_of
from mcpgym_rl.policy import Usage
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import TraceUsage

pytestmark = pytest.mark.parametrize("kind", KINDS)
LISTING = [item.listing for item in rl_toys.Counter.tools.values()]


def counting(kind: str, *amounts: int) -> list[dict[str, Any]]:
    """Answers that add these."""
    return [calls(kind, "add", {"amount": amount}, f"c{place}") for place, amount in enumerate(amounts)]


def test_an_episode_is_played_and_the_tools_reach_the_model_as_they_are(kind: str) -> None:
    trace, fake = play(kind, *counting(kind, -1, 1, 2))
    assert fake.refused == []
    assert trace.stop_reason == StopReason.DONE
    assert trace.messages[2].get("is_error") is True
    assert [dict(call.arguments) for call in trace.calls] == [{"amount": -1}, {"amount": 1}, {"amount": 2}]
    schema = "input_schema" if kind == "anthropic" else "parameters"
    for request in fake.requests:
        shown = [
            {"name": tool["name"], "description": tool["description"], "inputSchema": tool[schema]}
            for tool in request["tools"]
        ]
        assert json.dumps(shown) == json.dumps(LISTING), "to the byte"
        assert schema_hash(shown) == trace.schema_hash
    assert trace.usage == TraceUsage(33, 15, 6)


def test_the_trace_is_that_of_a_chat_completion(kind: str) -> None:
    from fake_endpoint import call, completion, endpoint

    async def chat() -> Any:
        from mcpgym_rl.rollout import rollout

        given = [completion("", [call("add", '{"amount": 1}', f"c{n}")]) for n in range(3)]
        async with endpoint(*given) as fake:
            policy = make_policy(f"openai:m@{fake.url}")
            trace = await rollout(policy, ControlLane(rl_toys.control()), environment="counter", split="train", seed=5)
            await policy.aclose()
            return trace

    there, (here, _) = asyncio.run(chat()).to_dict(), play(kind, *counting(kind, 1, 1, 1))
    for name, value in here.to_dict().items():
        if name not in ("policy", "usage", "seconds", "calls"):
            assert value == there[name], name
    assert set(here.to_dict()["usage"]) - {"cached_tokens"} == set(there["usage"])


def test_ids_that_come_twice_or_fit_no_api_are_replaced(kind: str) -> None:
    for odd in ("c1", "", "no such id!" * 9):
        given = calls(kind, "add", {"amount": 1}, odd)
        trace, fake = play(kind, given)
        assert fake.refused == []
        assert trace.stop_reason == StopReason.DONE


@pytest.mark.parametrize("arguments", ['{"amount": ', "[1]", "3", '{"amount": 1}{'])
def test_arguments_that_are_cut_off_or_no_object_are_the_models_error(kind: str, arguments: str) -> None:
    trace, fake = play(kind, calls(kind, "add", arguments), *counting(kind, 0, 3))
    assert fake.refused == []
    assert trace.stop_reason == StopReason.DONE
    first = next(message for message in trace.messages if message["role"] == "tool")
    assert first.get("is_error") is True
    assert first["content"].startswith("the JSON of add's arguments ")
    assert trace.messages[1]["tool_calls"][0]["function"]["arguments"] == arguments, "as the model wrote it"


@pytest.mark.parametrize("odd", [None, 7, "", "no such tool", "päng!"])
def test_calls_of_no_tool_are_answered_and_sent_back_in_a_form_that_the_api_takes(kind: str, odd: Any) -> None:
    trace, fake = play(kind, calls(kind, odd, {}), *counting(kind, 0, 3))
    assert fake.refused == []
    assert trace.stop_reason == StopReason.DONE
    assert next(message for message in trace.messages if message["role"] == "tool").get("is_error") is True


FAULTS = [
    Fault(429, '{"error": {"message": "slow down"}}'),
    Fault(500, "oops"),
    Fault(529, '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'),
    Fault(200, '{"id": "msg', cut=True),
]


@pytest.mark.parametrize("fault", FAULTS, ids=["429", "500", "529", "cut"])
def test_faults_are_retried(kind: str, fault: Fault) -> None:
    trace, fake = play(kind, fault, *counting(kind, 1, 1, 1)[:1], *counting(kind, 0, 1, 1)[1:])
    assert fake.refused == []
    assert trace.stop_reason == StopReason.DONE
    assert len(fake.requests) == 4


def test_retry_after_is_honoured(kind: str) -> None:
    started = time.monotonic()
    trace, _ = play(kind, Fault(529, headers={"Retry-After": "0.6"}), says(kind, "x"))
    assert trace.stop_reason == StopReason.ANSWERED
    assert time.monotonic() - started >= 0.6


@pytest.mark.parametrize("fault", [FAULTS[0], FAULTS[2], FAULTS[3]], ids=["429", "529", "cut"])
def test_what_keeps_failing_is_unscored_and_nobodys_conversation(kind: str, fault: Fault) -> None:
    trace, fake = play(kind, fault, retries=1)
    assert (trace.stop_reason, trace.score) == (StopReason.POLICY_FAILED, None)
    assert trace.error is not None
    assert trace.error.kind == "PolicyUnavailable"
    assert len(fake.requests) == 2


@pytest.mark.parametrize(
    ("status", "failure"),
    [(400, "PolicyError"), (401, "PolicyUnavailable"), (404, "PolicyUnavailable"), (422, "PolicyError")],
)
def test_a_refusal_is_not_retried_and_keeps_the_words(kind: str, status: int, failure: str) -> None:
    trace, fake = play(kind, Fault(status, json.dumps({"error": {"message": "not like this"}})))
    assert len(fake.requests) == 1
    assert trace.error is not None
    assert trace.error.kind == failure
    assert f"answered {status}: not like this" in trace.error.message
    assert (VARIABLES[kind] in trace.error.message) == (status == 401)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}),
        (400, {"message": "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"}),
        (400, {"message": "Your input exceeds the context window of this model.", "code": "context_length_exceeded"}),
        (413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}),
    ],
)
def test_a_conversation_that_outgrows_the_context_is_truncated(kind: str, status: int, error: dict[str, str]) -> None:
    trace, _ = play(kind, *counting(kind, 1), Fault(status, json.dumps({"error": error})))
    assert trace.stop_reason == StopReason.TRUNCATED
    assert trace.score is not None


def test_an_account_without_money_ends_the_run(kind: str) -> None:
    body = {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}}
    trace, _ = play(kind, Fault(400, json.dumps(body)))
    assert trace.error is not None
    assert trace.error.kind == "PolicyUnavailable"


BODIES = ["{", "[]", "{}", "null", '"hi"', "<html>", '{"content": 3, "output": {}}', "[" * 9_000]


@pytest.mark.parametrize("body", BODIES, ids=[*BODIES[:-1], "deep"])
def test_what_is_no_answer_is_the_policys_failure_not_a_crash(kind: str, body: str) -> None:
    trace, _ = play(kind, Fault(200, body), retries=0)
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.error is not None
    assert "answered what is no " in trace.error.message, trace.error.message


def test_a_failure_in_a_body_that_came_as_an_answer_is_told_in_its_words(kind: str) -> None:
    trace, _ = play(kind, Fault(200, json.dumps({"error": {"message": "no capacity left"}})), retries=0)
    assert trace.error is not None
    assert "no capacity left" in trace.error.message


def test_an_answer_that_never_comes_meets_its_deadline(kind: str) -> None:
    trace, _ = play(kind, Fault(200, "", delay=1), retries=0, timeout=0.2)
    assert trace.error is not None
    assert "did not answer within 0.2 s" in trace.error.message


def test_the_key_is_sent_and_is_in_no_trace(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLES[kind], "sk-very-secret")
    for fault in (
        Fault(401, json.dumps({"error": {"message": "wrong key: sk-very-secret"}})),
        Fault(200, "sk-very-secret"),
    ):
        trace, fake = play(kind, fault)
        assert fake.headers[0]["authorization"] == "Bearer sk-very-secret"
        assert trace.error is not None
        assert "sk-very-secret" not in trace.to_json()


def test_text_and_guided_modes_speak_through_the_same_api(kind: str) -> None:
    turn = says(kind, 'Hm.\n<tool_call>\n{"name": "add", "arguments": {"amount": 3}}\n</tool_call>')
    trace, fake = play(kind, turn, mode="text")
    assert (trace.stop_reason, fake.refused) == (StopReason.DONE, [])
    assert "tools" not in fake.requests[0]
    acts = [{"act": {"name": "add", "arguments": {"amount": amount}}} for amount in (1, 2)]
    trace, fake = play(kind, *(says(kind, json.dumps(act)) for act in acts), mode="guided", think=True)
    assert (trace.stop_reason, fake.refused) == (StopReason.DONE, [])
    shape = fake.requests[0]["output_config" if kind == "anthropic" else "text"]["format"]
    assert shape["type"] == "json_schema"
    assert list(shape["schema"]["properties"]) == ["thought", "act"]
    assert shape["schema"]["additionalProperties"] is False


def test_a_call_that_a_server_left_in_the_text_is_read_by_the_same_parser(kind: str) -> None:
    left = says(kind, '<tool_call>{"name": "add", "arguments": {"amount": 2}}</tool_call>')
    trace, fake = play(kind, left)
    assert (trace.stop_reason, fake.refused) == (StopReason.DONE, [])


@pytest.mark.parametrize("mode", ["native", "guided", "text"])
def test_an_environment_without_tools_is_a_plain_conversation(kind: str, mode: str) -> None:
    trace, fake = play(kind, says(kind, "no"), says(kind, "yes"), environment="chat", mode=mode)
    assert trace.score is not None
    assert (trace.score.total, fake.refused) == (1.0, [])
    assert "tools" not in fake.requests[0]


def test_what_is_no_unicode_is_replaced_and_the_conversation_goes_on(kind: str) -> None:
    trace, fake = play(kind, says(kind, "no \ud800"), says(kind, "yes"), environment="chat")
    assert (trace.error, trace.messages[-1]["content"]) == (None, "yes")
    assert "no \ufffd" in json.dumps(fake.requests[1], ensure_ascii=False)


def test_an_empty_turn_is_no_message(kind: str) -> None:
    trace, fake = play(kind, says(kind, ""), says(kind, "yes"), environment="chat")
    assert (trace.stop_reason, fake.refused) == (StopReason.ANSWERED, [])


def test_sampling_is_sent_when_given_and_only_then(kind: str) -> None:
    limit = "max_tokens" if kind == "anthropic" else "max_output_tokens"
    _, fake = play(kind, says(kind, "x"), temperature=0.5, top_p=0.9, max_tokens=7)
    assert {name: fake.requests[0][name] for name in ("temperature", "top_p", limit)} == {
        "temperature": 0.5, "top_p": 0.9, limit: 7,
    }  # fmt: skip
    _, fake = play(kind, says(kind, "x"))
    assert {"temperature", "top_p", "seed"} & set(fake.requests[0]) == set()
    with pytest.raises(ConfigurationError, match="send_seed"):
        make_policy(f"{kind}:m@http://127.0.0.1:1", send_seed=True)


def test_many_rollouts_share_the_connections_and_keep_apart(kind: str) -> None:
    with serving(api(kind), *counting(kind, 1)) as fake:

        async def main() -> None:
            policy = make_policy(f"{kind}:m@{fake.url}", rate_limit=100_000)
            specs = [EpisodeSpec("counter", split="train", index=i) for i in range(12)]
            result = await run(policy, ControlLane(rl_toys.control()), specs, concurrency=4)
            await policy.aclose()
            assert {trace.stop_reason for trace in result.traces} == {StopReason.DONE}

        asyncio.run(main())
    assert fake.refused == []
    assert len(fake.requests) == 36


def test_the_address_may_be_left_out_and_a_wrong_one_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLES[kind], raising=False)
    with pytest.raises(ConfigurationError, match=f"needs a key: set {VARIABLES[kind]}"):
        make_policy(f"{kind}:m")
    monkeypatch.setenv(VARIABLES[kind], "k")
    policy: Any = make_policy(f"{kind}:m")
    assert policy.name == f"{kind}:m"
    assert policy.base_url.startswith("https://api.")
    assert asks_endpoint(policy.name)
    for wrong in ("", "m@ftp://x", "m@http://", "m@http://h:x/v1", "m@me:word@h", "m@http://h/v1?key=1"):
        with pytest.raises(ConfigurationError, match=r"write .*MODEL\[@BASE_URL\]") as caught:
            make_policy(f"{kind}:{wrong}")
        assert "word" not in str(caught.value)
    assert make_policy(f"{kind}:m@http://me:word@127.0.0.1:9/v1").name == f"{kind}:m@http://***@127.0.0.1:9/v1"


def test_usage_is_counted_whatever_stands_there(kind: str) -> None:
    assert usage_of({"input_tokens": 4, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}) == Usage(
        9, 0, 3
    )
    assert usage_of({"input_tokens": 4, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 3}}) == Usage(
        4, 1, 3
    )
    assert usage_of({"input_tokens": "4", "output_tokens": -1, "cache_read_input_tokens": []}) == Usage(0, 0, None)

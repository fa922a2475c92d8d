"""Policies on an OpenAI-compatible endpoint, against a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
import rl_toys
from fake_endpoint import FakeEndpoint, Fault, call, completion, endpoint, error_body

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message, assistant, system, tool_answer, tool_call, user
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.parse import MalformedCall, parse
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.chat_format import guided_schema, native_messages, plain_messages, read_guided, write_guided
from mcpgym_rl.rollout import rollout
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace

API_FIELDS = {"role", "content", "tool_calls", "tool_call_id"}
ADD = completion(calls=[call("add", '{"amount": 1}')])


def play(answers: Sequence[Any], environment: str = "counter", **options: Any) -> tuple[Trace, FakeEndpoint]:
    async def main() -> tuple[Trace, FakeEndpoint]:
        async with endpoint(*answers) as fake:
            policy = make_policy(f"openai:m@{fake.url}", **options)
            lane = ControlLane(rl_toys.control())
            trace = await rollout(policy, lane, environment=environment, split="train", seed=5)
            await policy.aclose()
            return trace, fake

    return asyncio.run(main())


def test_native_calls_are_played_and_sent_back_in_the_apis_own_fields() -> None:
    trace, fake = play([completion("", [call("add", '{"amount": -1}', "a")]), ADD, ADD, ADD])
    assert trace.stop_reason == StopReason.DONE
    assert trace.messages[2].get("is_error") is True, "the trace keeps the error flag"
    for request in fake.requests:
        assert all(set(message) <= API_FIELDS for message in request["messages"])
        assert set(request) == {"model", "messages", "tools", "seed"}
    assert fake.requests[0]["tools"][0]["function"]["parameters"] == rl_toys.Counter.tools["add"].parser.schema
    assert fake.requests[1]["messages"][1:] == [
        {"role": "assistant", "content": "", "tool_calls": [call("add", '{"amount": -1}', "a")]},
        {"role": "tool", "content": "amount must not be negative", "tool_call_id": "a"},
    ]
    assert (trace.usage.prompt_tokens, trace.usage.completion_tokens) == (44, 20)


def test_ids_that_come_twice_are_made_unique_before_they_are_sent() -> None:
    _, fake = play([ADD, ADD, ADD])
    sent = fake.requests[-1]["messages"]
    ids = [c["id"] for message in sent for c in message.get("tool_calls", [])]
    assert len(set(ids)) == len(ids) == 2
    assert ids == [message["tool_call_id"] for message in sent if message["role"] == "tool"]


def test_case_16_malformed_native_calls_are_read_as_errors_and_no_server_is_sent_broken_json() -> None:
    broken = [call("add", '{"amount": ', "a"), {"id": "b", "type": "function", "function": {"arguments": "{}"}}, {}]
    trace, fake = play([completion(None, broken), ADD, ADD, ADD])
    assert trace.stop_reason == StopReason.DONE
    flags = [m.get("is_error", False) for m in trace.messages if m["role"] == "tool"]
    assert flags == [True, True, True, False, False, False]
    for made in fake.requests[1]["messages"][1]["tool_calls"]:
        assert isinstance(json.loads(made["function"]["arguments"]), dict)
        assert made["function"]["name"]


def test_sampling_options_are_sent_when_given_and_only_then() -> None:
    options = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 7}
    _, fake = play([completion("x")], **options)
    assert {name: fake.requests[0][name] for name in options} == options
    _, fake = play([completion("x")], send_seed=False)
    assert set(fake.requests[0]) == {"model", "messages", "tools"}


def test_case_27_seeds_of_turns_are_the_same_again_and_differ_between_turns() -> None:
    seeds = [[request["seed"] for request in play([ADD, ADD, ADD])[1].requests] for _ in range(2)]
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3
    assert all(0 <= seed < 2**31 for seed in seeds[0])


def test_a_turn_cut_off_by_the_token_limit_is_truncated_and_its_calls_are_not_run() -> None:
    trace, _ = play([completion("I", [call("add", '{"amount": 3}')], finish="length")])
    assert trace.stop_reason == StopReason.TRUNCATED
    assert trace.calls == []
    assert trace.score is not None


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, error_body("slow down")),
        Fault(500, "oops"),
        Fault(503, error_body("loading")),
        Fault(529, ""),
        Fault(0),
    ],
    ids=["429", "500", "503", "529", "dropped"],
)
def test_faults_of_the_endpoint_are_retried(fault: Fault) -> None:
    trace, fake = play([fault, ADD, ADD, ADD])
    assert trace.stop_reason == StopReason.DONE
    assert len(fake.requests) == 4


def test_retry_after_is_honoured() -> None:
    started = time.monotonic()
    trace, _ = play([Fault(429, headers={"Retry-After": "1.2"}), completion("x")])
    assert trace.stop_reason == StopReason.ANSWERED
    assert time.monotonic() - started >= 1.2


def test_case_29_an_endpoint_that_keeps_failing_is_unscored_with_its_words() -> None:
    trace, fake = play([Fault(500, error_body("the GPU is on fire"))], retries=2)
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.score is None
    assert trace.error is not None
    assert trace.error.kind == "PolicyUnavailable"
    assert trace.error.message.endswith("answered 500: the GPU is on fire")
    assert len(fake.requests) == 3


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "bad request: no tools here"), (401, "wrong key"), (404, "no model m"), (422, "unknown field")],
)
def test_a_refusal_is_not_retried_and_keeps_the_servers_words(status: int, words: str) -> None:
    trace, fake = play([Fault(status, error_body(words))])
    assert len(fake.requests) == 1
    assert trace.error is not None
    assert f"answered {status}: {words}" in trace.error.message
    assert ("OPENAI_API_KEY" in trace.error.message) == (status == 401)


@pytest.mark.parametrize(
    "body",
    [
        error_body("This model's maximum context length is 8192 tokens."),
        error_body("too long", "context_length_exceeded"),
        error_body("the request exceeds the available context size"),
    ],
)
def test_a_conversation_that_outgrows_the_context_is_truncated_not_failed(body: str) -> None:
    trace, _ = play([ADD, Fault(400, body)])
    assert trace.stop_reason == StopReason.TRUNCATED
    assert trace.score is not None
    assert trace.turns == 1


@pytest.mark.parametrize(
    "body",
    ["{", "[]", "{}", "null", '"hi"', '{"choices": []}', '{"choices": null}', '{"choices": [{}]}', "<html>"],
)
def test_what_is_no_chat_completion_is_the_policys_failure_not_a_crash(body: str) -> None:
    trace, _ = play([Fault(200, body)], retries=0)
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.error is not None
    assert "chat completion" in trace.error.message, trace.error.message


@pytest.mark.parametrize(
    "message",
    [
        {"content": None},
        {"content": [{"type": "text"}]},
        {"content": "x", "tool_calls": "no"},
        {"content": "x", "tool_calls": [None, 7, {"function": "f"}]},
        {"content": 7, "tool_calls": [{"id": 1, "function": {"name": 2, "arguments": 3}}]},
        {},
    ],
)
def test_odd_messages_inside_a_completion_never_crash(message: dict[str, Any]) -> None:
    body = completion("")
    body["choices"][0]["message"] = message
    trace, _ = play([body, completion("end")], retries=0)
    assert trace.stop_reason in (StopReason.ANSWERED, StopReason.POLICY_FAILED)
    json.loads(trace.to_json())


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(200, error_body("no credits left")), "is no chat completion: no credits left"),
        (Fault(200, '{"object": "error", "message": "overloaded", "code": 503}'), "is no chat completion: overloaded"),
        (Fault(502, "<html>\n<body>Bad Gateway</body></html>"), "answered 502: <html> <body>Bad Gateway</body></html>"),
        (Fault(422, '{"detail": [{"msg": "no seed"}]}'), 'answered 422: {"detail": [{"msg": "no seed"}]}'),
        (Fault(404, ""), "answered 404: nothing"),
    ],
)
def test_whatever_the_endpoint_says_instead_of_a_completion_is_told_in_its_words(fault: Fault, words: str) -> None:
    trace, _ = play([fault], retries=0)
    assert trace.error is not None
    assert trace.error.message.endswith(words), trace.error.message


@pytest.mark.flaky(reruns=1)  # it measures time
def test_an_answer_that_drips_meets_the_deadline_of_the_whole_turn() -> None:
    started = time.monotonic()
    trace, fake = play([Fault(503, delay=0.15)], retries=50, timeout=0.5)
    assert time.monotonic() - started < 6
    assert len(fake.requests) > 1
    assert trace.error is not None
    assert trace.error.message.endswith("did not answer within 0.5 s, tries and all")


def test_an_endpoint_that_is_not_there_is_named() -> None:
    async def main() -> Trace:
        policy = make_policy("openai:m@http://127.0.0.1:9/v1", retries=0)
        trace = await rollout(policy, ControlLane(rl_toys.control()), environment="counter", split="train")
        await policy.aclose()
        return trace

    trace = asyncio.run(main())
    assert trace.stop_reason == StopReason.POLICY_FAILED
    assert trace.error is not None
    assert "openai:m@http://127.0.0.1:9/v1 cannot be reached: " in trace.error.message


def test_an_endpoint_that_never_answers_meets_its_deadline() -> None:
    trace, _ = play([Fault(200, "", delay=5)], retries=0, timeout=0.2)
    assert trace.error is not None
    assert "did not answer within 0.2 s" in trace.error.message


def test_content_in_parts_is_one_text() -> None:
    body = completion("")
    body["choices"][0]["message"]["content"] = [{"type": "text", "text": "a"}, {"type": "thinking"}, {"text": "b"}]
    assert play([body])[0].messages[-1]["content"] == "ab"


def test_a_content_filter_is_no_answer() -> None:
    trace, _ = play([completion("I", finish="content_filter")])
    assert trace.stop_reason == StopReason.POLICY_FAILED


def test_a_proxy_of_the_environment_is_not_asked_about_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    trace, _ = play([completion("x")], retries=0)
    assert trace.stop_reason == StopReason.ANSWERED


def test_reasoning_is_kept_in_the_trace_and_not_sent_back() -> None:
    trace, fake = play([completion("", [call("peek", "{}")], reasoning_content="hm"), completion("x")])
    assert trace.messages[1].get("reasoning_content") == "hm"
    assert "hm" not in json.dumps(fake.requests[1])


def test_a_call_that_a_native_server_left_in_the_text_is_read_by_the_same_parser() -> None:
    left = completion('<tool_call>{"name": "add", "arguments": {"amount": 3}}</tool_call>')
    assert play([left])[0].stop_reason == StopReason.DONE
    broken = completion('<tool_call>{"name": "add", "arguments": {"amount": </tool_call>')
    trace, _ = play([broken, left])
    assert [m.get("is_error", False) for m in trace.messages if m["role"] == "tool"] == [True, False]


def test_text_mode_describes_the_tools_and_reads_calls_out_of_the_text() -> None:
    turn = completion('Hm.\n<tool_call>\n{"name": "add", "arguments": {"amount": 1}}\n</tool_call>')
    both = completion(
        '<tool_call>{"name": "add", "arguments": {"amount": -1}}</tool_call>'
        '<tool_call>{"name": "add", "arguments": {"amount": 2}}</tool_call>'
    )
    trace, fake = play([turn, both], mode="text")
    assert trace.stop_reason == StopReason.DONE
    assert len(trace.calls) == 3
    first, second = (request["messages"] for request in fake.requests)
    assert "tools" not in fake.requests[0]
    assert first[0]["role"] == "system"
    add = rl_toys.Counter.tools["add"].listing
    shown = {"name": "add", "description": add["description"], "parameters": add["inputSchema"]}
    assert json.dumps(shown) in first[0]["content"]
    assert second[-2]["content"] == 'Hm.\n<tool_call>\n{"name": "add", "arguments": {"amount": 1}}\n</tool_call>'
    assert second[-1] == {"role": "user", "content": "<tool_response>\ncount 1\n</tool_response>"}
    assert all(set(message) == {"role", "content"} for message in second)


def test_guided_mode_sends_a_schema_of_the_tools_and_reads_the_json() -> None:
    def turn(amount: int) -> dict[str, Any]:
        return completion(json.dumps({"thought": "go on", "act": {"name": "add", "arguments": {"amount": amount}}}))

    trace, fake = play([turn(1), turn(-1), turn(2)], mode="guided", think=True)
    assert trace.stop_reason == StopReason.DONE
    assert trace.messages[1]["content"] == "<think>go on</think>"
    shape = fake.requests[0]["response_format"]["json_schema"]
    assert shape["strict"] is True
    assert shape["schema"]["required"] == ["thought", "act"]
    acts = shape["schema"]["properties"]["act"]["anyOf"]
    assert [act["properties"]["name"]["enum"] for act in acts[:-1]] == [["add"], ["wait"], ["peek"], ["explode"]]
    assert acts[1]["properties"]["arguments"]["required"] == ["seconds"], "strict modes know no optional field"
    assert json.loads(fake.requests[1]["messages"][-2]["content"])["act"]["arguments"] == {"amount": 1}


def test_guided_text_that_ignores_the_schema_is_a_malformed_call() -> None:
    good = completion(json.dumps({"act": {"answer": "enough"}}))
    trace, _ = play([completion("Sure! I add 1."), completion('{"act": {}}'), good], mode="guided")
    assert [m.get("is_error", False) for m in trace.messages if m["role"] == "tool"] == [True, True]
    assert trace.stop_reason == StopReason.ANSWERED
    assert trace.messages[-1]["content"] == "enough"


@pytest.mark.parametrize("mode", ["native", "guided", "text"])
def test_an_environment_without_tools_is_a_plain_conversation_in_every_mode(mode: str) -> None:
    trace, fake = play([completion("no"), completion("yes")], "chat", mode=mode)
    assert trace.score is not None
    assert trace.score.total == 1.0
    assert set(fake.requests[0]) == {"model", "messages", "seed"}
    assert [m["role"] for m in fake.requests[1]["messages"]] == ["user", "assistant", "user"]


def test_guided_turns_are_written_as_they_were_read() -> None:
    for text in (
        '{"thought": "a", "act": {"name": "x", "arguments": {"y": 1}}}',
        '{"act": {"name": "x", "arguments": {}}}',
        '{"act": {"answer": "z"}}',
    ):
        assert json.loads(write_guided(read_guided(text), think=True)) == json.loads(text)
    bad = read_guided('{"act": [1]}')
    assert isinstance(parse(bad)[1][0], MalformedCall)
    assert write_guided(bad, think=False) == '{"act": [1]}'


def test_rules_join_the_system_message_that_is_there_and_answers_of_one_turn_are_one_message() -> None:
    calls = [tool_call("a", "x", "{}"), tool_call("b", "y", "{}")]
    messages: list[Message] = [
        system("Be kind."),
        user("Go."),
        assistant("", calls),
        tool_answer(calls[0], "one"),
        tool_answer(calls[1], "two", is_error=True),
    ]
    tools = [rl_toys.Counter.tools["peek"].listing]
    made = plain_messages(messages, tools, "text", think=False)
    assert [message["role"] for message in made] == ["system", "user", "assistant", "user"]
    assert made[0]["content"].startswith("Be kind.\n\n")
    assert made[3]["content"] == "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
    assert [set(message) <= API_FIELDS for message in native_messages(messages)] == [True] * 5
    assert guided_schema(tools, think=False)["additionalProperties"] is False


def test_many_rollouts_share_the_endpoint_within_the_concurrency() -> None:
    async def main() -> FakeEndpoint:
        async with endpoint(ADD) as fake:
            policy = make_policy(f"openai:m@{fake.url}")
            specs = [EpisodeSpec("counter", split="train", index=i) for i in range(20)]
            result = await run(policy, ControlLane(rl_toys.control()), specs, concurrency=5)
            await policy.aclose()
            assert {trace.stop_reason for trace in result.traces} == {StopReason.DONE}
            return fake

    fake = asyncio.run(main())
    assert len(fake.requests) == 60
    assert 2 <= fake.most_busy <= 5


@pytest.mark.flaky(reruns=1)  # it measures time
def test_case_11_a_rollout_cancelled_while_the_endpoint_thinks_ends_at_once() -> None:
    async def main() -> None:
        async with endpoint(Fault(200, "", delay=30)) as fake:
            policy = make_policy(f"openai:m@{fake.url}")
            control = rl_toys.control()
            task = asyncio.create_task(rollout(policy, ControlLane(control), environment="counter", split="train"))
            while not fake.busy:
                await asyncio.sleep(0.01)
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - started < 15
            assert len(control.episodes) == 0
            await policy.aclose()

    asyncio.run(main())


def test_the_key_is_sent_and_is_in_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    trace, fake = play([completion("x")])
    assert fake.headers[0]["Authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in trace.to_json()


def test_a_key_that_the_endpoint_repeats_and_a_password_in_its_url_are_in_no_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    for fault in (Fault(401, error_body("wrong key: sk-very-secret")), Fault(200, error_body("key sk-very-secret?"))):
        trace, _ = play([fault])
        assert trace.error is not None
        assert "key" in trace.error.message
        assert "sk-very-secret" not in trace.to_json()
    policy = make_policy("openai:m@http://me:pass%2Fw@rd@127.0.0.1:9/v1")
    assert policy.name == "openai:m@http://***@127.0.0.1:9/v1"


@pytest.mark.parametrize("url", ["http://h:x/v1", "http://[::1/v1", "http://h/v1?key=1", "http:///", "http:///v1"])
def test_an_address_that_is_none_is_refused_and_a_password_in_it_is_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="write openai:MODEL@BASE_URL") as caught:
        make_policy(f"openai:m@{url.replace('//', '//me:word@')}")
    assert "word@" not in str(caught.value)

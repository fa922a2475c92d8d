"""``anthropic:``: thoughts, several calls at once, pauses and refusals of the Messages API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import rl_toys
from provider_toys import play
from tests.fake_apis.messages import MessagesAPI, reply, text, thought, use
from tests.fake_apis.serving import Fault

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message, assistant, system, tool_answer, tool_call, user
from mcpgym_rl.policies import anthropic_messages as module
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.anthropic_format import anthropic_messages
from mcpgym_rl.policies.kept_turns import KeptTurns
from mcpgym_rl.policy import EpisodeContext, Turn
from mcpgym_rl.stop_reason import StopReason

HIDDEN = {"type": "redacted_thinking", "data": "opaque"}
ADD = use("add", {"amount": 3}, "end")


def test_calls_made_at_once_are_answered_in_one_message_in_their_order() -> None:
    both = reply(text("Both."), use("add", {"amount": 1}, "a"), use("add", {"amount": -1}, "b"))
    trace, fake = play("anthropic", both, reply(ADD))
    assert (trace.stop_reason, fake.refused) == (StopReason.DONE, [])
    sent = fake.requests[1]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"] == both["content"], "as the model wrote it"
    assert sent[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "count 1"},
        {"type": "tool_result", "tool_use_id": "b", "content": "amount must not be negative", "is_error": True},
    ]


def test_thoughts_are_kept_and_sent_back_signed_and_unchanged() -> None:
    first = reply(thought("One first.", "s1"), HIDDEN, text("Go."), use("add", {"amount": 1}, "a"))
    second = reply(thought("", "s2"), use("add", {"amount": 0}, "b"))
    trace, fake = play("anthropic", first, second, reply(ADD), think=True)
    assert (trace.stop_reason, fake.refused) == (StopReason.DONE, [])
    assert fake.requests[0]["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert trace.messages[1].get("reasoning_content") == "One first."
    sent = fake.requests[2]["messages"]
    assert [turn["content"] for turn in sent if turn["role"] == "assistant"] == [first["content"], second["content"]]
    assert "thinking" not in play("anthropic", reply(ADD))[1].requests[0]


def test_a_thought_that_nothing_came_of_is_left_out() -> None:
    trace, fake = play("anthropic", reply(thought("Hm.")), reply(text("yes")), environment="chat")
    assert (trace.stop_reason, fake.refused) == (StopReason.ANSWERED, [])


def test_a_paused_turn_goes_on_and_is_one_turn() -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    parts = [reply(text("Let me "), search, stop="pause_turn"), reply(text("see."), stop="pause_turn"), reply(ADD)]
    trace, fake = play("anthropic", *parts)
    assert (trace.stop_reason, fake.refused) == (StopReason.DONE, [])
    assert trace.turns == 1
    assert trace.messages[1]["content"] == "Let me see."
    assert [request["messages"][-1]["role"] for request in fake.requests] == ["user", "assistant", "assistant"]
    assert trace.usage.completion_tokens == 15


def test_a_turn_that_is_paused_for_ever_fails() -> None:
    trace, fake = play("anthropic", reply(text("wait"), stop="pause_turn"))
    assert trace.error is not None
    assert "paused one turn more than 8 times" in trace.error.message
    assert len(fake.requests) == 9
    assert trace.usage.completion_tokens == 45, "what came to nothing is counted"
    assert play("anthropic", reply(stop="pause_turn"), reply(ADD))[1].refused == [], "also where it held nothing"


def test_a_refusal_is_no_answer_and_says_why() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "Not about this."}
    trace, _ = play("anthropic", reply(stop="refusal", stop_details=details))
    assert (trace.stop_reason, trace.score) == (StopReason.POLICY_FAILED, None)
    assert trace.error is not None
    assert trace.error.kind == "PolicyError"
    assert trace.error.message.endswith("refused to answer: bio: Not about this.")
    assert play("anthropic", reply(stop="refusal"))[0].error is not None


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
def test_a_turn_that_was_cut_off_is_truncated_and_not_acted_on(stop: str) -> None:
    trace, _ = play("anthropic", reply(use("add", {"amount": 3}), stop=stop))
    assert (trace.stop_reason, trace.calls) == (StopReason.TRUNCATED, [])


@pytest.mark.parametrize(
    "content",
    [
        [None, 3, {}],
        [{"type": "text"}],
        [{"type": "text", "text": 3}],
        [{"type": "tool_use"}],
        [{"type": "new", "x": 1}],
    ],
)
def test_odd_blocks_never_crash(content: Any) -> None:
    trace, _ = play("anthropic", {**reply(), "content": content}, reply(text("end")), retries=0)
    assert trace.stop_reason in (StopReason.ANSWERED, StopReason.POLICY_FAILED)


def test_a_transcript_of_others_is_shown_in_a_form_that_the_api_takes() -> None:
    made = [tool_call("a b", "x y", "{}"), tool_call("c", "", '{"n": ')]
    messages: list[Message] = [
        system("Be kind."),
        user("Go."),
        assistant(" ", made),
        tool_answer(made[0], "one"),
        tool_answer(made[1], "", is_error=True),
        user("On."),
        user(" "),
        assistant(""),
        user("And?"),
    ]
    prompt, shown = anthropic_messages(messages, KeptTurns())
    assert prompt == "Be kind."
    tools = [{"name": "x", "description": "x", "input_schema": {"type": "object"}}]
    body = {"model": "m", "max_tokens": 1, "messages": shown, "system": prompt, "tools": tools}
    headers = {"anthropic-version": "2026-10-21", "authorization": "Bearer k"}
    assert MessagesAPI().fault(body, headers) is None
    assert [block["type"] for block in shown[2]["content"]] == ["tool_result", "tool_result", "text", "text"]
    assert anthropic_messages([system("Only this.")], KeptTurns())[1] == [
        {"role": "user", "content": [{"type": "text", "text": "Only this."}]}
    ]


def test_a_turn_that_was_changed_since_is_not_sent_as_it_was() -> None:
    kept, own = KeptTurns(), assistant("mine")
    kept.keep(1, own, [thought("hm"), text("mine")])
    fork = kept.copy()
    fork.keep(3, own, [text("mine")])
    assert kept.of(1, own) == [thought("hm"), text("mine")]
    assert (kept.of(3, own), kept.of(1, assistant("theirs"))) == (None, None)


def test_a_fork_goes_its_own_way_with_the_thoughts_so_far() -> None:
    from tests.fake_apis.serving import serving

    tools = [item.listing for item in rl_toys.Counter.tools.values()]
    answers = [reply(thought("a"), use("peek", {}, f"t{number}")) for number in range(3)]

    async def main(url: str) -> None:
        policy = make_policy(f"anthropic:m@{url}")
        session: Any = policy.begin(EpisodeContext("counter", tools, 0))
        messages: list[Message] = [user("Go.")]

        async def step(at: Any, so_far: list[Message]) -> list[Message]:
            turn: Turn = await at.act(so_far)
            return [*so_far, turn.message, tool_answer(turn.message["tool_calls"][0], "seen")]

        messages = await step(session, messages)
        other = session.fork()
        await step(session, messages)
        await step(other, messages)
        await policy.aclose()

    with serving(MessagesAPI(), *answers) as fake:
        asyncio.run(main(fake.url))
    assert fake.refused == []
    assert fake.requests[1]["messages"] == fake.requests[2]["messages"]


def test_without_its_package_the_policy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'mcpgym\[anthropic\]'"):
        make_policy("anthropic:m@http://127.0.0.1:9")


def test_the_environment_names_no_other_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another")
    trace, fake = play("anthropic", reply(ADD), Fault(500))
    assert trace.stop_reason == StopReason.DONE
    assert fake.headers[0]["authorization"] == "Bearer none"

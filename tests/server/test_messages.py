"""Chat messages, and what is wrong with those that are none."""

from __future__ import annotations

import pytest

from mcpgym.messages import assistant, message_fault, system, tool_answer, tool_call, user


def test_messages_are_made_as_every_api_takes_them():
    call = tool_call("c1", "play", '{"position": 4')
    assert call == {"id": "c1", "type": "function", "function": {"name": "play", "arguments": '{"position": 4'}}
    assert assistant("hm") == {"role": "assistant", "content": "hm"}
    assert assistant("", [call])["tool_calls"] == [call]
    assert (system("s")["role"], user("u")["role"]) == ("system", "user")


def test_case_24_an_error_stays_an_error_in_the_message():
    call = tool_call("c1", "play", "{}")
    assert tool_answer(call, "taken", is_error=True) == {
        "role": "tool",
        "content": "taken",
        "tool_call_id": "c1",
        "name": "play",
        "is_error": True,
    }
    assert "is_error" not in tool_answer(call, "fine")


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("text", "is str, not a mapping"),
        (None, "is NoneType"),
        ({}, "has the role None; there is: system, user, assistant, tool"),
        ({"role": "robot", "content": "x"}, "has the role 'robot'"),
        ({"role": "user"}, "has NoneType for content"),
        ({"role": "user", "content": [{"type": "text"}]}, "has list for content"),
    ],
)
def test_what_is_no_message_is_told(message, fault):
    assert fault in message_fault(message)


def test_our_own_messages_have_no_fault():
    call = tool_call("c1", "play", "{}")
    for message in (system(""), user("x"), assistant("", [call]), tool_answer(call, "")):
        assert message_fault(message) is None

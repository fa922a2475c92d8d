"""Messages in the chat format every OpenAI-compatible API speaks, and the transcript made of them.

Messages are plain dictionaries on purpose: they go to APIs, templates and files as they are. The helpers here are the
only place that knows their shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NotRequired, get_args

from typing_extensions import TypedDict

Role = Literal["system", "user", "assistant", "tool"]
ROLES = get_args(Role)


class FunctionCall(TypedDict):
    """The tool a policy names and the arguments it gives, as the JSON text it wrote."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """One call inside an assistant message; ``id`` ties the answer to it."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class Message(TypedDict):
    """One chat message. ``tool_calls`` belongs to assistants; ``tool_call_id`` and ``name`` to tool answers.

    ``weight`` 0 on an assistant's message says that it is not to be learnt from, as in OpenAI's fine-tuning format: a
    teacher's slip, which is there so that what follows it can be learnt.
    """

    role: Role
    content: str
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]
    is_error: NotRequired[bool]
    reasoning_content: NotRequired[str]
    weight: NotRequired[Literal[0, 1]]


def system(content: str) -> Message:
    """A system message."""
    return {"role": "system", "content": content}


def user(content: str) -> Message:
    """A user message."""
    return {"role": "user", "content": content}


def assistant(content: str, tool_calls: Sequence[ToolCall] = ()) -> Message:
    """An assistant message, with its tool calls if it makes any."""
    message: Message = {"role": "assistant", "content": content}
    if tool_calls:
        message["tool_calls"] = list(tool_calls)
    return message


def tool_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """One tool call; ``arguments`` is JSON text, exactly as the policy wrote it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_answer(call: ToolCall, text: str, *, is_error: bool = False) -> Message:
    """The answer to ``call``. The error flag stays in the message: a trace must not lose it."""
    message: Message = {
        "role": "tool",
        "content": text,
        "tool_call_id": call["id"],
        "name": call["function"]["name"],
    }
    if is_error:
        message["is_error"] = True
    return message


def message_fault(message: object) -> str | None:
    """What is wrong with a chat message, whoever made it; None if nothing is."""
    if not isinstance(message, Mapping):
        return f"is {type(message).__name__}, not a mapping with role and content"
    if message.get("role") not in ROLES:
        return f"has the role {message.get('role')!r}; there is: {', '.join(ROLES)}"
    if not isinstance(message.get("content"), str):
        return f'has {type(message.get("content")).__name__} for content, not text (none is "")'
    return None


class Transcript(Sequence[Message]):
    """The messages of one rollout in order: the prompt first, then turns and answers. Read-only."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = tuple(messages)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __repr__(self) -> str:
        return f"Transcript({len(self._messages)} messages)"

    @property
    def assistant_turns(self) -> list[Message]:
        """What the policy wrote, turn by turn."""
        return [message for message in self._messages if message["role"] == "assistant"]

    @property
    def answer(self) -> str:
        """The text of the policy's last turn; empty if it never spoke."""
        turns = self.assistant_turns
        return turns[-1]["content"] if turns else ""

"""Between messages and token ids: a model's chat template, taken apart so that nothing is ever tokenised twice.

A conversation's ids are ``opening`` + what the model sampled + ``continuation`` + what it sampled + …: the ids of a
turn stay those that were sampled, and only what the environment said is rendered and encoded, once.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message, ToolCall, assistant, tool_answer, tool_call, user
from mcpgym_rl.local.reading import Reader, declared_reader
from mcpgym_rl.local.template import Template
from mcpgym_rl.parse import load_object, read_text, write_text
from mcpgym_rl.policies.chat_format import native_tools, plain_messages

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from mcpgym_rl.local.directory import ModelDirectory

T = TypeVar("T")

REMEMBERED = 20_000
"""How many rendered pieces and turns are remembered; environments say the same things again and again."""
_LONG = 20_000
"""Characters beyond which a piece is not remembered."""
_MARK = "mcpgym turn"
_PROBE = "mcpgym_probe"
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Chat:
    """The conversation format of one model.

    ``native`` says whether its template shows tools and tool answers; where it does not, both are rendered into plain
    messages with ``<tool_call>`` blocks (see :func:`~mcpgym_rl.policies.chat_format.plain_messages`).

    Args:
        tokenizer: its tokenizer.
        template: its chat template; ``tool_template`` where conversations with tools have another.
        end_ids: tokens that end a generation; the one that ends a turn in the template is added.
        where: whose it is, for errors.
        reader: how a turn's text becomes a message.

    Raises:
        ConfigurationError: the template renders no conversation, or ends no turn with a special token.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: Template,
        *,
        tool_template: Template | None = None,
        end_ids: frozenset[int] = frozenset(),
        where: str = "the model",
        reader: Reader = read_text,
    ) -> None:
        self.tokenizer = tokenizer
        self.where = where
        self.reader = reader
        self._template, self._tool_template = template, tool_template or template
        self.native = self._shows_tools()
        self.end_text = self._find_end()
        self.end_id: int = self._encode(self.end_text)[0]
        self.end_ids = end_ids | {self.end_id}
        self._pieces: OrderedDict[Hashable, tuple[int, ...]] = OrderedDict()
        self._texts: OrderedDict[Hashable, str] = OrderedDict()

    @classmethod
    def of(cls, directory: ModelDirectory, reader: Reader | None = None) -> Chat:
        """The chat of a model directory; read as its tokenizer declares, unless a ``reader`` is given.

        Raises:
            ConfigurationError: a file is missing or wrong, or the template cannot be used; the message says which.
        """
        where = str(directory.path)
        names = directory.special_tokens
        templates = {name: Template(text, names, where) for name, text in directory.templates.items()}
        default = templates.get("default") or next(iter(templates.values()))
        chat = cls(
            directory.tokenizer,
            default,
            tool_template=templates.get("tool_use"),
            end_ids=directory.end_ids,
            where=where,
            reader=reader or read_text,
        )
        declared = directory.tokenizer_config.get("response_template")
        if reader is None and isinstance(declared, Mapping):
            chat.reader = declared_reader(declared, chat.begun(), where)
        return chat

    # To ids.

    def opening(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """The ids of a prompt, up to where the assistant's first turn begins."""
        key = ("opening", _key(messages), _tools_key(tools))
        return list(self._remembered(key, lambda: self._encode(self.text(messages, tools, prompt=True))))

    def continuation(self, history: Sequence[Message], new: Sequence[Message]) -> list[int]:
        """The ids that follow the end token of ``history``'s last turn: ``new``, and where the next turn begins.

        Args:
            history: the messages before, an assistant's the last.
            new: what the environment said since: tool answers, or user messages.
        """
        calls = history[-1].get("tool_calls", [])
        key = ("continuation", tuple(call["function"]["name"] for call in calls), _key(new))
        return list(self._remembered(key, lambda: self._encode(self._continuation_text(calls, new))))

    def turn_ids(self, message: Message) -> list[int]:
        """The canonical ids of an assistant's turn, its end token included: what an imitated turn is trained on."""
        key = ("turn", _key([message]))
        return list(self._remembered(key, lambda: self._encode(self.turn_text(message) + self.end_text)))

    def whole(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """The ids of a whole conversation, rendered and encoded in one piece, as other programs do it."""
        return self._encode(self.text(messages, tools))

    def text(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), *, prompt: bool = False
    ) -> str:
        """The text of ``messages``; with ``prompt``, up to where the assistant's next turn begins."""
        if not self.native:
            return self._template.render(plain_messages(messages, tools, "text", think=False), None, prompt=prompt)
        template = self._tool_template if tools else self._template
        return template.render(shown(messages), native_tools(tools) if tools else None, prompt=prompt)

    def turn_text(self, message: Message) -> str:
        """The text of an assistant's turn as the template shows it, without its end token."""
        asked = user("?")
        before = self.text([asked], prompt=True)
        whole = self.text([asked, message])
        end = whole.rfind(self.end_text)
        return whole[len(before) : end] if whole.startswith(before) and end >= len(before) else write_text(message)

    def begun(self) -> str:
        """What stands before a turn that the model writes: the end of a prompt's text."""
        return self.text([user("?")], prompt=True)

    # From ids.

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, control tokens and all."""
        return self.tokenizer.decode(ids, skip_special_tokens=False)

    def read(self, ids: Sequence[int]) -> Message:
        """The message that a turn's ids mean; an end token at its end is no part of it."""
        key = tuple(ids[:-1] if ids and ids[-1] in self.end_ids else ids)
        text = self._texts.get(key)
        if text is None:
            text = _put(self._texts, key, self.decode(key), len(key))
        return self.reader(text)

    # How.

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def _remembered(self, key: Hashable, make: Callable[[], list[int]]) -> tuple[int, ...]:
        ids = self._pieces.get(key)
        return ids if ids is not None else _put(self._pieces, key, tuple(made := make()), len(made))

    def _continuation_text(self, calls: Sequence[ToolCall], new: Sequence[Message]) -> str:
        """Rendered after a turn of ours that is known, for a template may show an old turn otherwise than it was."""
        stand_in = assistant(_MARK, [_stand_in(place, call) for place, call in enumerate(calls)])
        ids = [call["id"] for call in stand_in.get("tool_calls", [])]
        following: list[Message] = []
        for message in new:
            if message["role"] == "tool":
                message = cast(Message, {**message, "tool_call_id": ids.pop(0) if ids else "call_0"})
            following.append(message)
        whole = self.text([user("?"), stand_in, *following], prompt=True)
        return self._after_turn(whole)

    def _after_turn(self, whole: str) -> str:
        """What ``whole`` has after the end of the marked turn."""
        turn = whole.find(_MARK)
        end = whole.find(self.end_text, turn) if turn >= 0 else -1
        if end < 0:
            raise ConfigurationError(
                f"the chat template of {self.where} drops what an assistant said before a tool call"
            )
        return whole[end + len(self.end_text) :]

    def _shows_tools(self) -> bool:
        """Whether the template shows tools, calls and their answers."""
        call = tool_call("call00000", _PROBE, "{}")
        told = tool_answer(call, _MARK)
        tools = [{"name": _PROBE, "description": "?", "inputSchema": {"type": "object", "properties": {}}}]
        try:
            messages = shown([user("?"), assistant("", [call]), told])
            whole = self._tool_template.render(messages, native_tools(tools), prompt=True)
        except ConfigurationError:
            return False
        return whole.count(_PROBE) >= 2 and _MARK in whole

    def _find_end(self) -> str:
        """The special token that ends an assistant's turn in the template."""
        whole = self.text([user("?"), assistant(_MARK), user("?")])
        after = whole[whole.find(_MARK) + len(_MARK) :] if _MARK in whole else ""
        special = [token.content for token in self.tokenizer.get_added_tokens_decoder().values() if token.special]
        found = sorted((place, -len(token), token) for token in special if (place := after.find(token)) >= 0)
        if not found:
            raise ConfigurationError(
                f"the chat template of {self.where} ends an assistant's turn with none of the tokenizer's special "
                f"tokens ({', '.join(special[:8])}); nothing would tell a finished turn from one that was cut off"
            )
        return found[0][2]


def shown(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """``messages`` as chat templates want them: the arguments of calls as objects, where they are such."""
    made: list[dict[str, Any]] = []
    for message in messages:
        one: dict[str, Any] = {key: value for key, value in message.items() if key != "is_error"}
        if calls := message.get("tool_calls"):
            one["tool_calls"] = [_shown_call(call) for call in calls]
        made.append(one)
    return made


def _shown_call(call: ToolCall) -> dict[str, Any]:
    function = call["function"]
    arguments: Any = function["arguments"]
    with contextlib.suppress(ValueError):
        arguments = load_object(arguments) if arguments.strip() else {}
    return {"id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": arguments}}


def _stand_in(place: int, call: ToolCall) -> ToolCall:
    """A call in place of one that a policy wrote; templates tie answers to calls by id, and some by name."""
    name = call["function"]["name"]
    return tool_call(f"call{place:05d}", name if _PLAIN_ID.fullmatch(name) else "unnamed", "{}")


def _key(messages: Sequence[Message]) -> Hashable:
    if len(messages) == 1 and "tool_calls" not in (one := messages[0]):
        return one["role"], one["content"], one.get("name"), one.get("reasoning_content")
    return json.dumps(messages, sort_keys=True)


def _tools_key(tools: Sequence[Mapping[str, Any]]) -> Hashable:
    return json.dumps([tools, None], sort_keys=False)


def _put(kept: OrderedDict[Hashable, T], key: Hashable, value: T, size: int) -> T:
    if size <= _LONG:
        kept[key] = value
        if len(kept) > REMEMBERED:
            kept.popitem(last=False)
    return value

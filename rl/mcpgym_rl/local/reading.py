"""From the text a model wrote to the message it means: one reader for evaluation and training, chosen per model.

``hermes`` (``<tool_call>{json}</tool_call>``: Hermes, Qwen and our own models) needs nothing but this package. A
tokenizer that declares another ``response_template`` is read by transformers' own parser, which knows that form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.messages import Message, ToolCall, assistant, tool_call
from mcpgym_rl.parse import read_text

Reader = Callable[[str], Message]
"""The assistant message that a turn's text means; it never raises for what a model wrote."""

READERS: dict[str, Reader] = {"hermes": read_text}
"""Readers by name; a new family's is added here, or given to :class:`~mcpgym_rl.local.chat.Chat`."""

HERMES: Mapping[str, Any] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>",
            "close_pattern": r"</tool_call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}
"""What :func:`~mcpgym_rl.parse.read_text` reads, as a ``response_template``: new models declare it, so that TRL and
transformers understand their calls too. Thoughts stay in the content, as the chat template of new models shows them."""


def reader_named(name: str) -> Reader:
    """The reader called ``name``.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in READERS:
        raise UnknownNameError("reader of tool calls", name, READERS)
    return READERS[name]


def declared_reader(declared: Mapping[str, Any], begun: str, where: str) -> Reader:
    """The reader that a tokenizer's ``response_template`` describes: our own for :data:`HERMES`, else transformers'.

    Args:
        declared: the response template.
        begun: what the chat template has written before the model's turn begins (it may hold the turn's first words).
        where: whose it is, for errors.

    Raises:
        ConfigurationError: transformers is not installed, or the response template is none.
    """
    if declared == HERMES:
        return read_text
    try:
        from transformers.utils.chat_parsing import parse_response
        from transformers.utils.chat_parsing.response_templates import load_response_template
    except ImportError:
        raise ConfigurationError(
            f"{where} declares a response_template, which transformers reads: pip install 'mcpgym[rl]'"
        ) from None
    try:
        template = load_response_template(dict(declared))
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(f"{where}: its response_template cannot be read: {error}") from None

    def read(text: str) -> Message:
        try:
            parsed = parse_response(text, template, prefix=begun)
        except Exception:  # what a model wrote must never end a rollout; it then said no more than this text
            return read_text(text)
        return _message(parsed)

    return read


def _message(parsed: Mapping[str, Any]) -> Message:
    """What transformers made of a turn, as a message of ours."""
    given = parsed.get("tool_calls") or []
    calls = [_call(place, call) for place, call in enumerate(given if isinstance(given, Sequence) else [given])]
    made = assistant(str(parsed.get("content") or "").strip(), calls)
    thought = next((parsed[name] for name in ("reasoning_content", "thinking", "reasoning") if parsed.get(name)), "")
    if isinstance(thought, str) and thought.strip():
        made["reasoning_content"] = thought.strip()
    return made


def _call(place: int, call: Any) -> ToolCall:
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return tool_call(f"call_{place}", "", str(call))
    name, arguments = function.get("name"), function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False, default=str)
    return tool_call(f"call_{place}", name if isinstance(name, str) else "", text)

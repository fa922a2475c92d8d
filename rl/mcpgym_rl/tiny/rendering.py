"""Rendering the template of a new model before there is a directory to open."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from mcpgym.messages import Message
from mcpgym_rl.tiny.template import TEMPLATE


@cache
def _compiled() -> Any:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    text = TEMPLATE.replace("{%- generation -%}", "").replace("{%- endgeneration -%}", "")  # marks, which show nothing
    return environment.from_string(text)


def render(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> str:
    """The text of a conversation; ``tools`` in the chat-completions format."""
    text: str = _compiled().render(messages=messages, tools=list(tools) or None, add_generation_prompt=False)
    return text

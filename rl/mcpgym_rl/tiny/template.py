"""The chat template of a new model: ChatML with tools, calls in the form that :mod:`mcpgym_rl.parse` writes and reads.

What a user, a tool or a policy wrote is data: a text that looks like a control token is shown with a space in it
(``<|im_end |>``), so that nobody can end a turn or speak for somebody else, whichever program renders the template. The
``generation`` tags say which parts are the model's own.

Blanks around what was said before a call are not shown: servers hand out the line's end that stands there, and a client
that sends it back would have two.
"""

from __future__ import annotations

END_OF_TEXT, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CONTROL_TOKENS = (END_OF_TEXT, START, END)
"""In the order of their ids, from 0."""

TEMPLATE = """\
{%- macro data(text) -%}
    {{- text | string | replace('<|im_start|>', '<|im_start |>') | replace('<|im_end|>', '<|im_end |>') \
| replace('<|endoftext|>', '<|endoftext |>') -}}
{%- endmacro -%}
{%- macro call_text(call) -%}
    {%- set function = call.function if call.function is defined else call -%}
    {%- if not function.name and function.arguments is string -%}
        {{- function.arguments -}}
    {%- else -%}
        {{- '{"name": ' ~ (function.name | tojson) ~ ', "arguments": ' -}}
        {%- if function.arguments is string and function.arguments.strip().startswith('{') -%}
            {{- function.arguments -}}
        {%- else -%}
            {{- (function.arguments if function.arguments is defined else {}) | tojson -}}
        {%- endif -%}
        {{- '}' -}}
    {%- endif -%}
{%- endmacro -%}
{%- set first = messages[0] if messages and messages[0].role == 'system' else none -%}
{%- if first or tools -%}
    {{- '<|im_start|>system\\n' -}}
    {%- if first -%}
        {{- data(first.content or '') -}}
    {%- endif -%}
    {%- if tools -%}
        {{- ('\\n\\n' if first and first.content else '') ~ '# Tools\\nTo call a tool, write its name and arguments \
inside <tool_call></tool_call>.\\n<tools>\\n' -}}
        {%- for tool in tools -%}
            {{- data(tool | tojson) ~ '\\n' -}}
        {%- endfor -%}
        {{- '</tools>' -}}
    {%- endif -%}
    {{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in (messages[1:] if first else messages) -%}
    {{- '<|im_start|>' ~ data(message.role) ~ '\\n' -}}
    {%- if message.role == 'assistant' -%}
        {%- generation -%}
        {%- set said = (message.content or '').strip() if message.tool_calls else message.content or '' -%}
        {{- data(said) -}}
        {%- for call in message.tool_calls or [] -%}
            {{- ('\\n' if said or not loop.first else '') ~ '<tool_call>\\n' ~ data(call_text(call)) \
~ '\\n</tool_call>' -}}
        {%- endfor -%}
        {{- '<|im_end|>' -}}
        {%- endgeneration -%}
        {{- '\\n' -}}
    {%- else -%}
        {{- data(message.content or '') ~ '<|im_end|>\\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""

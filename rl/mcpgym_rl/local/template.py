"""A chat template, rendered as transformers renders it: sandboxed Jinja with the same settings, filters and names.

Its twin is ``transformers.utils.chat_template_utils.render_jinja_template``; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mcpgym.errors import ConfigurationError


class _Generation(jinja2.ext.Extension):
    """``{% generation %}…{% endgeneration %}`` marks what an assistant wrote; rendered, it is its inside."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_inside"), [], [], body).set_lineno(line)

    def _inside(self, caller: Any) -> Any:
        return caller()


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


_JINJA = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
)
_JINJA.filters["tojson"] = _tojson
_JINJA.globals["raise_exception"] = _raise_exception
_JINJA.globals["strftime_now"] = _strftime_now


class Template:
    """A compiled chat template with the special tokens it may name.

    Args:
        source: the template's text.
        names: what it may name besides messages and tools (``bos_token``…).
        where: where it came from, for errors.

    Raises:
        ConfigurationError: it is no Jinja template.
    """

    def __init__(self, source: str, names: Mapping[str, Any], where: str) -> None:
        self.source = source
        self._names = dict(names)
        self._where = where
        try:
            self._template = _JINJA.from_string(source)
        except jinja2.TemplateError as error:
            raise ConfigurationError(f"the chat template of {where} is no template: {error}") from None

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None, *, prompt: bool
    ) -> str:
        """The text of ``messages``; with ``prompt``, up to where the assistant's next turn begins.

        Raises:
            ConfigurationError: the template refuses these messages, or fails.
        """
        try:
            return self._template.render(
                messages=messages, tools=tools, documents=None, add_generation_prompt=prompt, **self._names
            )
        except Exception as error:
            roles = ", ".join(str(message.get("role")) for message in messages)
            raise ConfigurationError(
                f"the chat template of {self._where} cannot render messages of {roles}: {error or type(error).__name__}"
            ) from None

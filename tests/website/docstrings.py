"""Docstrings as the site shows them: our roles (``:func:`name```) become links, and ``::`` before a block a colon."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`(?P<short>~?)(?P<name>[\w.]+)`")


class Docstrings(griffe.Extension):
    """What mkdocstrings has griffe do with each object that it reads."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value, obj)


def markdown(text: str, where: griffe.Object) -> str:
    """A docstring as Markdown. A name that the reference has is a link to it, any other is code."""
    text = re.sub(r"::$", ":", text, flags=re.MULTILINE)
    return ROLE.sub(lambda found: _link(found["name"], bool(found["short"]), where), text)


def _link(name: str, short: bool, where: griffe.Object) -> str:
    try:
        path = where.resolve(name)
    except griffe.NameResolutionError:
        path = name
    return f'<autoref optional identifier="{path}"><code>{name.rpartition(".")[2] if short else name}</code></autoref>'

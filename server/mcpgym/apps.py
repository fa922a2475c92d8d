"""An environment's app: one page that people's clients show beside the text (the MCP Apps extension).

A host renders it in a sandboxed frame and carries its messages; it calls the same tools as the model, in the same
episode. What it knows it reads from the tools' texts, so it shows nothing that the policy could not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcpgym.errors import ConfigurationError

if TYPE_CHECKING:
    from mcpgym.environment import Environment

MAX_HTML = 256 * 1024
"""Bytes of an app: hosts fetch it whole, and people wait for it."""

_REACHES = (
    (r"<(?:link|iframe|frame|object|embed|base|form|applet|portal)\b", "this element loads, or leads, elsewhere"),
    (r"<meta\b[^>]*http-equiv", "a page may not change its own headers; its host sets them"),
    (r"\b(?:src|srcset|poster|action|background|ping|xlink:href)\s*=\s*(?![\"']?(?:data:|#))", "this loads a file"),
    (r"\bhref\s*=\s*(?![\"']?(?:data:|#))", "this leads elsewhere"),
    (r"\burl\(\s*(?![\"']?(?:data:|#))", "this loads a file"),
    (r"@import\b|\bimport\s*\(|\bimport\b[^;\n]*\bfrom\b|\bimport\s*[\"']", "this loads a file"),
    (r"\b(?:fetch|importScripts)\s*\(", "this asks for data"),
    (r"\b(?:XMLHttpRequest|WebSocket|EventSource|sendBeacon|Worker)\b", "this asks for data"),
    (r"\beval\s*\(|\bnew\s+Function\b", "hosts forbid code made from text"),
    (r"\b(?:localStorage|sessionStorage|indexedDB|document\.cookie)\b", "a sandboxed page has no storage"),
)  # fmt: skip
_FORBIDDEN = [(re.compile(pattern, re.IGNORECASE), why) for pattern, why in _REACHES]


@dataclass(frozen=True, slots=True)
class App:
    """One page, whole in one text: its style and script are in it, and it loads nothing.

    ``tools`` are those whose results it shows; None is all of them. ``levels`` are named configurations that people
    may choose from where they start a game (name → fields), an opponent's strength for example.

    Raises:
        ConfigurationError: it is no such page; the message says what is wrong and where.
    """

    html: str = field(repr=False)
    tools: Sequence[str] | None = None
    levels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.html, str) or not self.html.lstrip()[:15].lower().startswith("<!doctype html"):
            raise ConfigurationError("an app is an HTML page as text; it begins with <!doctype html>")
        try:
            size = len(self.html.encode())
        except UnicodeEncodeError as error:
            raise ConfigurationError(f"this app is no text that can be sent: {error}") from None
        if size > MAX_HTML:
            raise ConfigurationError(f"this app has {size} bytes; {MAX_HTML} at most")
        for pattern, why in _FORBIDDEN:
            if (found := pattern.search(self.html)) is not None:
                line = self.html.count("\n", 0, found.start()) + 1
                shown = " ".join(found[0].split())[:60]
                raise ConfigurationError(f"line {line} of this app has {shown!r}: {why}; put all of it into the page")

    def shows(self, tool: str) -> bool:
        """Whether it shows the results of this tool."""
        return self.tools is None or tool in self.tools


def made_by(environment: Environment[Any, Any, Any]) -> App | None:
    """What the environment's ``app()`` gives.

    Raises:
        ConfigurationError: that is no app.
        Exception: whatever ``app()`` raises.
    """
    app = environment.app()
    if app is not None and not isinstance(app, App):
        raise ConfigurationError(f"app() gives a {type(app).__name__}, which is no mcpgym.App")
    return app

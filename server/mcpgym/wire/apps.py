"""MCP Apps (``io.modelcontextprotocol/ui``): an environment's app as a ``ui://`` resource, and tools that name it.

A server without an app says nothing of all this. What links a tool to its app stands in the tool's ``_meta``: what a
model sees of a tool (name, description, input schema), and the hash of it, stay as they are.
"""

from __future__ import annotations

import logging
from typing import Any
from weakref import WeakKeyDictionary

from mcpgym.apps import App, made_by
from mcpgym.environment import Environment

logger = logging.getLogger(__name__)

EXTENSION = "io.modelcontextprotocol/ui"
MIME = "text/html;profile=mcp-app"
META = {"ui": {"prefersBorder": True}}
"""What an app asks of its host: a frame around it. It names no origin, so a host lets it reach none."""
_APPS: WeakKeyDictionary[Environment[Any, Any, Any], App | None] = WeakKeyDictionary()


def app_of(environment: Environment[Any, Any, Any]) -> App | None:
    """The environment's app; None where it has none, or cannot make it: nobody needs it to play."""
    if environment not in _APPS:
        try:
            _APPS[environment] = made_by(environment)
        except Exception as error:
            logger.error("%s: its app is not shown: %s: %s", environment.name, type(error).__name__, error)
            _APPS[environment] = None
    return _APPS[environment]


def app_uri(name: str) -> str:
    """Where the app of the environment ``name`` is read."""
    return f"ui://{name}/app.html"


def linked(environment: Environment[Any, Any, Any], tool: str, entry: dict[str, Any]) -> dict[str, Any]:
    """A tool as MCP lists it, with the app that shows its results, if one does."""
    app = app_of(environment)
    if app is None or not app.shows(tool):
        return entry
    return {**entry, "_meta": {"ui": {"resourceUri": app_uri(environment.name)}}}

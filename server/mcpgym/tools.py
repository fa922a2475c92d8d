"""``@tool``: a method of an environment that its policy may call."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, overload

from mcpgym.errors import SchemaError
from mcpgym.marks import marked_methods
from mcpgym.parameter_types import type_hints
from mcpgym.schema import MAX_DESCRIPTION, NAME, ArgumentParser

HandlerT = TypeVar("HandlerT", bound=Callable[..., Any])

DEFAULT_TIMEOUT = 30.0
"""Seconds a call may take before the policy reads a tool error."""

_MARK = "__mcpgym_tool__"
_OPTIONS = ("name", "title", "description", "timeout", "inline", "read_only")


@dataclass(frozen=True)
class Tool:
    """What ``@tool`` recorded about a method: how it is listed, checked and run.

    ``timeout`` is in seconds. ``inline`` says that the handler computes and returns at once (well under a
    millisecond), so it runs on the server's event loop without a thread; other plain functions run in a thread, and
    ``async`` ones on the loop.
    """

    name: str
    description: str
    handler: Callable[..., Any]
    title: str = ""
    timeout: float = DEFAULT_TIMEOUT
    inline: bool = False
    read_only: bool = False
    parser: ArgumentParser = field(repr=False, compare=False, kw_only=True)

    @cached_property
    def is_async(self) -> bool:
        """Whether the handler is a coroutine function."""
        return inspect.iscoroutinefunction(self.handler)

    @cached_property
    def listing(self) -> dict[str, Any]:
        """The tool as a model sees it: ``name``, ``description`` and ``inputSchema`` (do not change it)."""
        return {"name": self.name, "description": self.description, "inputSchema": self.parser.schema}


@overload
def tool(handler: HandlerT, /) -> HandlerT: ...
@overload
def tool(
    *,
    name: str = "",
    title: str = "",
    description: str = "",
    timeout: float = DEFAULT_TIMEOUT,
    inline: bool = False,
    read_only: bool = False,
) -> Callable[[HandlerT], HandlerT]: ...
def tool(handler: Any = None, /, **options: Any) -> Any:
    """Make a method of an :class:`~mcpgym.Environment` a tool of its policy.

    The first parameter after ``self`` is the episode's state; the schema never shows it. Every other parameter needs
    a type and a description: ``position: Annotated[int, "Free cell, 0-8, row by row."]``. The tool returns text; it
    fails with :class:`~mcpgym.ToolError` when the policy should read why.

    Args:
        handler: the method, when the decorator is used bare.
        **options: ``name`` (default: the method's), ``title`` (for people), ``description`` (default: the docstring's
            first paragraph), ``timeout`` in seconds, ``inline`` and ``read_only`` (see :class:`Tool`).
    """

    def mark(method: Any) -> Any:
        setattr(method, _MARK, options)
        return method

    if handler is None:
        return mark
    return handler if hasattr(handler, _MARK) else mark(handler)  # decorated twice, its options stay


def find_tools(cls: type) -> dict[str, Tool]:
    """The tools of an environment class by name, in the order they are written, base classes first.

    Raises:
        SchemaError: a tool cannot be listed at the fixed point, or two have one name.
    """
    tools: dict[str, Tool] = {}
    for method, function, options in marked_methods(cls, _MARK, "tool", SchemaError):
        made = _make(cls, method, function, options)
        if made.name in tools:
            raise SchemaError(f"{cls.__name__}: two tools are called {made.name!r}; give one another name")
        tools[made.name] = made
    return tools


def _make(cls: type, method: str, function: Callable[..., Any], options: dict[str, Any]) -> Tool:
    where = f"{cls.__name__}.{method}"
    name = options.get("name") or method
    if not NAME.fullmatch(name):
        raise SchemaError(f"{where}: {name!r} is no tool name; use letters, digits, _ and -")
    if odd := sorted(set(options) - set(_OPTIONS)):
        raise SchemaError(f"{where}: @tool has no option {odd[0]!r}; there is: {', '.join(_OPTIONS)}")
    timeout = options.get("timeout", DEFAULT_TIMEOUT)
    if not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
        raise SchemaError(f"{where}: timeout is {timeout!r}; it is in seconds, above 0 and finite")
    inline = bool(options.get("inline", False))
    if inline and (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
        raise SchemaError(f"{where}: an async tool cannot be inline; leave out one of both")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SchemaError(f"{where}: a tool returns its text whole; it cannot yield")
    parameters = list(inspect.signature(function).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) < 2 or any(parameter.kind not in positional for parameter in parameters[:2]):
        raise SchemaError(f"{where}: a tool takes self and the episode's state first, then what the policy gives")
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY) for p in parameters[2:]):
        raise SchemaError(f"{where}: a tool's parameters must have names; *args, **kwargs and / have none")
    doc = inspect.cleandoc(function.__doc__ or "")
    description = options.get("description") or " ".join(doc.split("\n\n")[0].split())
    if not description:
        raise SchemaError(f"{where}: say in its docstring what it does; that is all a model knows of it")
    if len(description) >= MAX_DESCRIPTION:
        raise SchemaError(f"{where}: {len(description)} characters of description; fewer than {MAX_DESCRIPTION}")
    hints = type_hints(function, where)
    given = {parameter.name: parameter for parameter in parameters[2:]}
    return Tool(
        name=name,
        description=description,
        handler=function,
        title=options.get("title", ""),
        timeout=float(timeout),
        inline=inline,
        read_only=bool(options.get("read_only", False)),
        parser=ArgumentParser(name, given, hints),
    )

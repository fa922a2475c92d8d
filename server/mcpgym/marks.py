"""Finding the methods of an environment class that a decorator has marked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any


def marked_methods(
    cls: type, mark: str, kind: str, error: type[Exception]
) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """The name, function and options of each method that ``mark`` is on, as written, base classes first.

    One that a subclass overrides by something unmarked is none. ``kind`` says in errors what the method is.

    Raises:
        Exception: of the type ``error``, where a static or class method is marked.
    """
    names: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        names |= {name: None for name, value in vars(base).items() if hasattr(value, mark)}
    for name in names:
        written, function = inspect.getattr_static(cls, name), getattr(cls, name)
        if not hasattr(written, mark):
            continue
        if isinstance(written, (staticmethod, classmethod)):
            raise error(f"{cls.__name__}.{name}: a {kind} is a plain method; leave out {type(written).__name__}")
        yield name, function, getattr(function, mark)

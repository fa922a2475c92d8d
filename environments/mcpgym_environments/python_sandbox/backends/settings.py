"""What a person can choose about a back-end: an argument of its class, else an environment variable, else a default.

``MCPGYM_SANDBOX_IMAGE=python:3.13-slim`` is the same as ``image="python:3.13-slim"``. Credentials are none of these:
each provider's own library reads its own variables and files.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.sessions.backend import Unavailable

PREFIX = "MCPGYM_SANDBOX_"
IMAGE = "python:3.12-slim"
"""An image with Python and nothing else. For pandas, name one that has it."""
LIFETIME = 3600
"""Seconds after which a provider ends a session by itself, should nobody be left to end it."""


def setting(name: str, given: str | None, default: str) -> str:
    """The value of ``name``: as given, as the environment variable says, or the default."""
    return given if given is not None else os.environ.get(PREFIX + name.upper(), default)


def whole(name: str, given: int | None, default: int) -> int:
    """The same for a positive whole number.

    Raises:
        ConfigurationError: it is none.
    """
    text = setting(name, None if given is None else str(given), str(default))
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10**9:
        raise ConfigurationError(f"{PREFIX}{name.upper()}={text!r}: give a positive whole number")
    return int(text)


def needed(module: str, extra: str) -> ModuleType:
    """Import what an extra brings.

    Raises:
        Unavailable: it is not installed, or not whole.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Unavailable(
            f"this back-end needs the package {module.split('.')[0]}, which does not load here ({error})",
            f"Install it: pip install 'mcpgym[{extra}]'",
        ) from error

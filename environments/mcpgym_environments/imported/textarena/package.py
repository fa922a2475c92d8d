"""The package, imported when an episode needs it: that takes some seconds."""

from __future__ import annotations

import sys
import threading
import warnings
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from mcpgym.errors import MissingPackage
from mcpgym_environments.imported.extras import Extra

_importing = threading.Lock()
"""What is silenced is silenced for the whole process: by one thread at a time, or it would stay so."""
EXTRA = Extra("textarena", "textarena", "textarena", "pip install 'mcpgym[textarena]'")


@cache
def textarena() -> Any:
    """The package.

    Raises:
        MissingPackage: it, or something that it needs, is not installed.
    """
    EXTRA.check()
    try:
        return _in_silence("textarena")
    except ImportError as error:
        raise MissingPackage(f"textarena cannot be imported here ({error}): {EXTRA.install}") from error


def import_game(id: str) -> None:
    """Import the module of a game, before anything is drawn there.

    Raises:
        KeyError, ImportError, SyntaxError: there is no such game, or it cannot be imported by this Python.
    """
    textarena()
    entry = import_module("textarena.envs.registration").ENV_REGISTRY[id].entry_point
    if isinstance(entry, str) and (module := entry.partition(":")[0]) not in sys.modules:
        _in_silence(module)


def _in_silence(module: str) -> ModuleType:
    with _importing, warnings.catch_warnings(action="ignore"):
        return import_module(module)

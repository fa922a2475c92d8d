"""The package, imported when an episode needs it: that takes some seconds."""

from __future__ import annotations

import contextlib
import io
import warnings
from importlib import import_module
from typing import Any

from mcpgym.errors import MissingPackage
from mcpgym_environments.imported.extras import Extra

EXTRA = Extra("textarena", "textarena", "textarena", "pip install 'mcpgym[textarena]'")


def textarena() -> Any:
    """The package.

    Raises:
        MissingPackage: it, or something that it needs, is not installed.
    """
    EXTRA.check()
    try:
        with warnings.catch_warnings(action="ignore"), contextlib.redirect_stderr(io.StringIO()):
            return import_module("textarena")
    except ImportError as error:
        raise MissingPackage(f"textarena cannot be imported here ({error}): {EXTRA.install}") from error


def import_game(id: str) -> None:
    """Import the module of a game, before anything is drawn there.

    Raises:
        KeyError, ImportError, SyntaxError: there is no such game, or it cannot be imported by this Python.
    """
    textarena()
    entry = import_module("textarena.envs.registration").ENV_REGISTRY[id].entry_point
    if isinstance(entry, str):
        import_module(entry.partition(":")[0])

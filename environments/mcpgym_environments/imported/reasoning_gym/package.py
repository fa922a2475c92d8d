"""The package, imported when a task is made: that takes some seconds."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from typing import Any

from mcpgym.errors import MissingPackage
from mcpgym_environments.imported.extras import Extra
from mcpgym_environments.imported.reasoning_gym.safe import make_safe

EXTRA = Extra("reasoning-gym", "reasoning_gym", "reasoning-gym", "pip install 'mcpgym[reasoning-gym]'")


@cache
def reasoning_gym() -> Any:
    """The package, with scorers that run nothing of a policy's.

    Raises:
        MissingPackage: it, or something that it needs, is not installed.
    """
    EXTRA.check()
    try:
        with warnings.catch_warnings(action="ignore"):
            package = import_module("reasoning_gym")
    except ImportError as error:
        raise MissingPackage(f"reasoning-gym cannot be imported here ({error}): {EXTRA.install}") from error
    make_safe()
    return package

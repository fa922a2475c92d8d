"""The package, imported when an episode needs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mcpgym_environments.imported.extras import Extra

EXTRA = Extra("gymnasium", "gymnasium", "gymnasium", "pip install 'mcpgym[gymnasium]'")


def gymnasium() -> Any:
    """The package.

    Raises:
        MissingPackage: it is not installed.
    """
    EXTRA.check()
    return import_module("gymnasium")

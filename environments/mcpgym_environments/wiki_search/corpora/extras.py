"""Libraries that only some corpora need."""

from __future__ import annotations

import importlib
from types import ModuleType

from mcpgym.errors import ConfigurationError


def needed(module: str, purpose: str, *, install: str = "pip install 'mcpgym[wiki]'") -> ModuleType:
    """Import ``module``, or say what it is for and how to get it.

    Raises ConfigurationError when it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigurationError(f"{purpose} needs {module.split('.')[0]}, which is not here: {install}") from error

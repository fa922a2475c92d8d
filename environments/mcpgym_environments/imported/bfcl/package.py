"""The package that BFCL comes in. Its own list of dependencies (numpy 1.26, faiss, …) is for other parts of it."""

from __future__ import annotations

from pathlib import Path

from mcpgym.errors import MissingPackage
from mcpgym_environments.imported.extras import Extra

EXTRA = Extra("bfcl", "bfcl_eval", "bfcl-eval", "pip install 'mcpgym[bfcl]' && pip install --no-deps bfcl-eval")


def folder() -> Path:
    """Where the installed package lies; it is not imported.

    Raises:
        MissingPackage: it is not installed.
    """
    from importlib.util import find_spec

    EXTRA.check()
    spec = find_spec(EXTRA.module)
    for place in (spec and spec.submodule_search_locations) or ():
        if (found := Path(place)).is_dir():
            return found
    raise MissingPackage(f"{EXTRA.package} has no files here: {EXTRA.install}")

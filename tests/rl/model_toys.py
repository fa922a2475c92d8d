"""New models that several tests share: made once a process."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mcpgym import load_environment
from mcpgym_rl.local.chat import Chat
from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.new_model import new_model


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mcpgym-models-")


@cache
def model_of(environment: str) -> Path:
    """An untrained model of an installed environment."""
    return new_model(load_environment(environment), Path(folder().name) / environment, seed=1)


@cache
def chat_of(environment: str) -> Chat:
    return open_directory(model_of(environment)).chat


def tools_of(environment: str) -> list[Mapping[str, Any]]:
    return [tool.listing for tool in load_environment(environment).tools.values()]

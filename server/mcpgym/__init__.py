"""mcpgym: reinforcement-learning environments that are MCP servers.

Write one by subclassing :class:`Environment`; serve, play, evaluate and train on it with the ``mcpgym`` command.
Nothing here imports a server framework or a trainer.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from mcpgym.apps import App
from mcpgym.calls import CallRecord, CallResult
from mcpgym.environment import Config, Environment, GameOutcome, ReferencePolicy
from mcpgym.errors import ConfigurationError, InfrastructureError, McpgymError, ToolError
from mcpgym.messages import Message, ToolCall, Transcript
from mcpgym.registry import environment_names, load_environment
from mcpgym.requirements import Requirement
from mcpgym.rewards import Score, reward
from mcpgym.tasks import LazyTasks, Task, derive_seed, task_id
from mcpgym.tools import tool

if TYPE_CHECKING:
    from mcpgym.check import check_environment

try:
    __version__ = version("mcpgym")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0"

__all__ = [
    "App",
    "CallRecord",
    "CallResult",
    "Config",
    "ConfigurationError",
    "Environment",
    "GameOutcome",
    "InfrastructureError",
    "LazyTasks",
    "McpgymError",
    "Message",
    "ReferencePolicy",
    "Requirement",
    "Score",
    "Task",
    "ToolCall",
    "ToolError",
    "Transcript",
    "__version__",
    "check_environment",
    "derive_seed",
    "environment_names",
    "load_environment",
    "reward",
    "task_id",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name == "check_environment":  # needs the episode machinery at work; few programs want it
        from mcpgym.check import check_environment

        return check_environment
    raise AttributeError(f"module 'mcpgym' has no attribute {name!r}")

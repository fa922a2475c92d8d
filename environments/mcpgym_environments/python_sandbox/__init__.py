"""A Python sandbox: a notebook that hostile code cannot leave, and problems to solve in it."""

from mcpgym_environments.python_sandbox.config import PythonSandboxConfig
from mcpgym_environments.python_sandbox.environment import PythonSandbox
from mcpgym_environments.python_sandbox.state import Work

__all__ = ["PythonSandbox", "PythonSandboxConfig", "Work"]

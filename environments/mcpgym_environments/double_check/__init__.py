"""An arithmetic question, then "Are you sure?": several turns without tools."""

from mcpgym_environments.double_check.environment import DoubleCheck, DoubleCheckConfig

__all__ = ["DoubleCheck", "DoubleCheckConfig"]

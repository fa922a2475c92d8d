"""A text too long to read, in a Python sandbox, and a model that code there may ask about pieces of it."""

from mcpgym_environments.long_context.config import LongContextConfig
from mcpgym_environments.long_context.environment import LongContext

__all__ = ["LongContext", "LongContextConfig"]

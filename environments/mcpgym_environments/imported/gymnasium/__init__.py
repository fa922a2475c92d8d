"""Any Gymnasium environment whose actions can be named and whose observations can be told.

How to read it: ``making`` makes environments and finds the names of their actions, ``telling`` makes text of what they
show, ``state`` has the episode, ``environment`` puts them together, ``reference`` has the policies.
"""

from mcpgym_environments.imported.gymnasium.config import GymnasiumConfig
from mcpgym_environments.imported.gymnasium.environment import Gymnasium

__all__ = ["Gymnasium", "GymnasiumConfig"]

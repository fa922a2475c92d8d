"""BFCL's multi-turn tasks: a user who speaks several times, and APIs with a state.

How to read it: ``data`` has the tasks, ``apis`` BFCL's own classes, one instance an episode, ``functions`` makes tools
of what it says about them, ``guards`` bounds what a call may cost, ``judging`` decides turn by turn as BFCL's checker
does; ``environment`` puts them together, ``reference`` has the policies.
"""

from mcpgym_environments.imported.bfcl.config import BfclConfig
from mcpgym_environments.imported.bfcl.environment import Bfcl

__all__ = ["Bfcl", "BfclConfig"]

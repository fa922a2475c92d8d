"""TextArena's games: alone, or against a seeded opponent.

How to read it: ``games`` says which games can be played here, ``chance`` keeps each episode's randomness its own,
``table`` is one game with its opponent, ``moves`` what an opponent may try; ``environment`` puts them together.
"""

from mcpgym_environments.imported.textarena.config import TextArenaConfig
from mcpgym_environments.imported.textarena.environment import TextArena

__all__ = ["TextArena", "TextArenaConfig"]

"""reasoning-gym's generated problems: a question, one answer, and the dataset's own scorer.

How to read it: ``source`` makes questions and keeps the splits apart, ``safe`` keeps scorers from running what a policy
wrote, ``environment`` puts them together.
"""

from mcpgym_environments.imported.reasoning_gym.config import ReasoningGymConfig
from mcpgym_environments.imported.reasoning_gym.environment import ReasoningGym

__all__ = ["ReasoningGym", "ReasoningGymConfig"]

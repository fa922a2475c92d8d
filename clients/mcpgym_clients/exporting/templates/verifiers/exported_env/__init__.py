"""ENVIRONMENT as a verifiers environment: tasks, episodes and scores come from a server of mcpgym.

The policy gets one episode's URL. What opens and scores episodes has a secret of its own, from the environment.
"""

from exported_env.env import EpisodeEnv
from exported_env.harness import EpisodeHarness
from exported_env.taskset import EpisodeTaskset

__all__ = ["EpisodeEnv", "EpisodeHarness", "EpisodeTaskset"]

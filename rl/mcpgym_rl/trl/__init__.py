"""Our environments and rollouts in TRL's ``GRPOTrainer`` (see docs/trl.md). Importing this does not load TRL."""

from mcpgym_rl.trl.environments import EnvironmentFactory, environment_factory

__all__ = ["EnvironmentFactory", "environment_factory"]

"""DESCRIPTION"""

from my_env.environment import MyEnv, MyEnvConfig

__all__ = ["MyEnv", "MyEnvConfig"]

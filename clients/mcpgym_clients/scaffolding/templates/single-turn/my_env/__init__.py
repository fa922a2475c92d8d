"""DESCRIPTION"""

from my_env.environment import MyEnv

__all__ = ["MyEnv"]

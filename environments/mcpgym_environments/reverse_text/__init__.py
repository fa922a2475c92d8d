"""Reverse a sentence character by character: a single turn, no tools."""

from mcpgym_environments.reverse_text.environment import ReverseText, ReverseTextConfig

__all__ = ["ReverseText", "ReverseTextConfig"]

"""Replay: whether the world still does what a trace says it did.

Every recorded turn is played again on a fresh episode of the same task, seed and configuration; prompt, tools, each
observation, the end and the score must come back as they were.

How to read this package: ``playing`` replays a trace, ``comparing`` says where two rollouts part, ``difference`` is
what they say.
"""

from mcpgym_rl.replay.comparing import Same, byte_for_byte, compare, rule_of
from mcpgym_rl.replay.difference import Difference, DifferenceKind, Replayed
from mcpgym_rl.replay.playing import CONFIGURATION, replay, replay_trace

__all__ = [
    "CONFIGURATION",
    "Difference",
    "DifferenceKind",
    "Replayed",
    "Same",
    "byte_for_byte",
    "compare",
    "replay",
    "replay_trace",
    "rule_of",
]

"""Environments that others wrote, under the same contract: BFCL, Gymnasium, reasoning-gym and TextArena.

Each subpackage is one environment. Nothing of theirs is imported before an episode needs it, and an environment whose
package is not installed says how to get it (see ``extras``).
"""

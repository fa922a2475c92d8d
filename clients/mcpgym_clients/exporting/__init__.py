"""``mcpgym export``: an environment as other people's trainers and evaluators take it.

``templates`` holds what is written: a package for verifiers and prime-rl, a task file for Inspect AI. Both play on a
server of ours, and need neither mcpgym nor the environment where they run.
"""

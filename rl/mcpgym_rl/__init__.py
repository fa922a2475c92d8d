"""Rollouts and training: policies over episodes, and the traces they leave.

Nothing here imports a model, an HTTP client or an environment until it is needed.
"""

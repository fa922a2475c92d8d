"""Reinforcement learning on tool calls: groups of rollouts, advantages, GRPO and CISPO, certificates as a guide."""

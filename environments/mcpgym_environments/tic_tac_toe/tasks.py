"""The tasks of tic-tac-toe: who moves first, and how strong the opponent is."""

from __future__ import annotations

from mcpgym import LazyTasks, Task, derive_seed, task_id
from mcpgym.errors import UnknownNameError
from mcpgym_environments.enumeration import stride
from mcpgym_environments.tic_tac_toe.config import TicTacToeConfig
from mcpgym_environments.tic_tac_toe.observation import prompt

SPLITS = ("train", "test")


def make_tasks(config: TicTacToeConfig, split: str) -> LazyTasks:
    """The tasks of ``split`` under ``config``.

    Raises:
        UnknownNameError: there is no such split.
    """
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS)
    return LazyTasks(
        config.train_tasks if split == "train" else config.test_tasks,
        lambda index: _task(config, split, index),
    )


def task_seed(split: str, index: int) -> int:
    """The seed of a task, 64 bits. The lowest bit is 0 in ``train`` and 1 in ``test``: no seed is in both."""
    return derive_seed("tic-tac-toe", split, index) & ~1 | SPLITS.index(split)


def random_move_prob(config: TicTacToeConfig, index: int, seed: int) -> float:
    """How often the opponent of the task at ``index`` moves at random.

    Consecutive tasks walk through the ``num_groups`` parts of the range in steps near √2 - 1 of it: any
    ``num_groups`` of them visit every part once, and fewer are spread well. Inside a part the seed chooses, uniformly.
    """
    groups = config.num_groups
    part = index * stride(groups) % groups
    inside = derive_seed(seed, "random_move_prob") / 2**64
    low, high = config.min_random_move_prob, config.max_random_move_prob
    return min(high, low + (high - low) * (part + inside) / groups)


def _task(config: TicTacToeConfig, split: str, index: int) -> Task:
    seed = task_seed(split, index)
    match config.policy_moves:
        case "either":
            first = derive_seed(seed, "seat") % 2 == 0
        case seat:
            first = seat == "first"
    info = {"seed": seed, "policy_first": first, "random_move_prob": random_move_prob(config, index, seed)}
    return Task(task_id(split, index), split, prompt(first, illegal_loses=config.illegal_move_loses), info)

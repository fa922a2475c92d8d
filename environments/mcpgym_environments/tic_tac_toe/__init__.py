"""Tic-tac-toe: the policy plays X through one tool, first or second to move, against opponents of graded strength."""

from mcpgym_environments.tic_tac_toe.config import TicTacToeConfig
from mcpgym_environments.tic_tac_toe.environment import Game, TicTacToe

__all__ = ["Game", "TicTacToe", "TicTacToeConfig"]

"""Tic-tac-toe as an environment: the policy plays X through one tool, against an opponent of the task's strength."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from mcpgym import (
    Environment,
    GameOutcome,
    Message,
    ReferencePolicy,
    Task,
    ToolError,
    Transcript,
    derive_seed,
    reward,
    tool,
)
from mcpgym_environments.thinking import thinks_first
from mcpgym_environments.tic_tac_toe import engine
from mcpgym_environments.tic_tac_toe.config import TicTacToeConfig
from mcpgym_environments.tic_tac_toe.lines import is_line, line_task
from mcpgym_environments.tic_tac_toe.observation import (
    INSTRUCTIONS,
    opening_prompt,
    show_illegal,
    show_moves,
    show_refusal,
)
from mcpgym_environments.tic_tac_toe.opponent import Opponent, make_opponent, reply
from mcpgym_environments.tic_tac_toe.tasks import SPLITS, make_tasks

if TYPE_CHECKING:
    from mcpgym import App
    from mcpgym.game_tree import GameTree

INVALID_MOVE_PENALTY = -0.1

_OUTCOMES: Mapping[engine.Result, GameOutcome] = {"X": "win", "O": "loss", "draw": "draw"}
_REWARDS: Mapping[GameOutcome | None, float] = {"win": 1.0, "draw": 0.5, "loss": 0.0, None: 0.0}


@dataclass(slots=True)
class Game:
    """One episode: the board, who plays O, and what has happened. ``outcome`` is None while the game goes on."""

    board: engine.Board
    opponent: Opponent
    opening: int | None = None
    illegal_moves: int = 0
    outcome: GameOutcome | None = None


class TicTacToe(Environment[Task, Game, TicTacToeConfig]):
    """Tic-tac-toe against opponents from perfect to purely random."""

    name = "tic-tac-toe"
    version = "1"
    description = "Tic-tac-toe as X, first or second to move, against opponents from perfect to purely random."
    instructions = INSTRUCTIONS
    icon = (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48' fill='none' stroke-width='3' "
        "stroke-linecap='round'%3E%3Cpath stroke='%23888' d='M17 3v42M31 3v42M3 17h42M3 31h42'/%3E"
        "%3Cpath stroke='%23c33' d='M20 20l8 8m0-8l-8 8M6 6l8 8m0-8l-8 8'/%3E"
        "%3Ccircle cx='38' cy='10' r='4.5' stroke='%2336c'/%3E%3C/svg%3E"
    ).replace(" ", "%20")
    splits = SPLITS
    config_class = TicTacToeConfig

    def tasks(self, split: str) -> Sequence[Task]:
        """Games by seat and opponent; any ``num_groups`` in a row span the range of opponents."""
        return make_tasks(self.config, split)

    def task(self, wanted: str) -> Task:
        """The task with this id: one of a split's, or a line of play (see :mod:`.lines`), which is in no split."""
        return line_task(self.config, wanted) if is_line(wanted) else super().task(wanted)

    def reset(self, task: Task, seed: int) -> Game:
        """An empty board, or one that O has opened."""
        info = task.info
        key, strength, line = derive_seed(info["seed"], seed), info["random_move_prob"], info.get("line", {})
        opponent = make_opponent(key, strength, line, varied=self.config.best_move == "any")
        if info["policy_first"]:
            return Game(engine.new_board("X"), opponent)
        board = engine.new_board("O")
        opening = reply(opponent, board)
        return Game(engine.play(board, opening), opponent, opening)

    def messages(self, task: Task, state: Game) -> Sequence[Message]:
        """The rules, and the board as the policy finds it."""
        return opening_prompt(state.board, state.opening, illegal_loses=self.config.illegal_move_loses)

    @tool(title="Play a cell", inline=True)
    def play(self, game: Game, position: Annotated[int, "A free cell, 0 to 8, row by row from the top left."]) -> str:
        """Put your X on a free cell. The answer shows what O played and the new board."""
        if position not in engine.legal_moves(game.board):
            self._illegal(game)
            raise ToolError(show_illegal(game.board, position, lost=self.config.illegal_move_loses))
        board = engine.play(game.board, position)
        answer = None
        if engine.result(board) is None:
            answer = reply(game.opponent, board)
            board = engine.play(board, answer)
        game.board = board
        if (result := engine.result(board)) is not None:
            game.outcome = _OUTCOMES[result]
        return show_moves(board, position, answer)

    def invalid_arguments(self, state: Game, tool: str, problem: str) -> str:
        """A missing or mistyped position is an illegal move like any other."""
        self._illegal(state)
        return show_refusal(state.board, problem, lost=self.config.illegal_move_loses)

    def _illegal(self, game: Game) -> None:
        game.illegal_moves += 1
        if self.config.illegal_move_loses:
            game.outcome = "loss"

    def is_done(self, state: Game) -> bool:
        """Whether the game is over."""
        return state.outcome is not None

    def game_outcome(self, state: Game) -> GameOutcome | None:
        """How it ended for X."""
        return state.outcome

    @property
    def max_turns(self) -> int:
        """How many calls a game may take."""
        return self.config.max_turns

    @reward(weight=1.0)
    def outcome(self, game: Game) -> float:
        """1 for a win, 0.5 for a draw, 0 for a loss or an unfinished game."""
        return _REWARDS[game.outcome]

    @reward(weight=0.2)
    def format(self, transcript: Transcript) -> float:
        """The share of turns that think inside <think>…</think> before they act."""
        turns = transcript.assistant_turns
        return sum(map(thinks_first, turns)) / len(turns) if turns else 0.0

    @reward(weight=1.0, low=INVALID_MOVE_PENALTY, high=0.0)
    def invalid_move(self, game: Game) -> float:
        """-0.1 if any move was illegal, however many were; else 0."""
        return INVALID_MOVE_PENALTY if game.illegal_moves else 0.0

    def game_tree(self) -> GameTree:
        """Every line of play, in the seats that the configuration allows."""
        from mcpgym_environments.tic_tac_toe.tree import TicTacToeTree

        return TicTacToeTree(self)

    def app(self) -> App:
        """The board to click on."""
        from mcpgym_environments.tic_tac_toe.board import board_app

        return board_app()

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """``random``, ``minimax`` and ``expert``; see :mod:`mcpgym_environments.tic_tac_toe.reference`."""
        from mcpgym_environments.tic_tac_toe.reference import POLICIES

        return POLICIES

    def teacher(self, skill: float) -> ReferencePolicy:
        """It looks one move ahead; see :mod:`mcpgym_environments.tic_tac_toe.teacher`."""
        from mcpgym_environments.tic_tac_toe.teacher import make_teacher

        return make_teacher(skill)

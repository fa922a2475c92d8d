"""Tic-tac-toe as OpenSpiel plays it: rules, values and exact results that owe nothing to our engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pyspiel

from mcpgym_environments.tic_tac_toe.engine import Board

GAME = pyspiel.load_game("tic_tac_toe")
SWAP = str.maketrans("XO", "OX")


@cache
def states() -> dict[str, pyspiel.State]:
    """Every reachable state by its nine cells; in OpenSpiel X moves first."""
    found: dict[str, pyspiel.State] = {}
    waiting = [GAME.new_initial_state()]
    while waiting:
        state = waiting.pop()
        if cells(state) not in found:
            found[cells(state)] = state
            waiting += [] if state.is_terminal() else [state.child(action) for action in state.legal_actions()]
    return found


def cells(state: pyspiel.State) -> str:
    return str(state).replace("\n", "").upper()


def both_ways() -> Iterator[tuple[Board, pyspiel.State, int]]:
    """Each state as our board with X first, and with the marks swapped as our board with O first.

    The last item is the sign that turns the first player's result into X's.
    """
    for shown, state in states().items():
        moved = len(shown) - shown.count(".")
        yield Board(shown, "XO"[moved % 2]), state, 1
        yield Board(shown.translate(SWAP), "OX"[moved % 2]), state, -1


@cache
def first_players_score(shown: str) -> int:
    """Depth-aware minimax over OpenSpiel's tree: sign of the result times one more than the cells left free."""
    state = states()[shown]
    if state.is_terminal():
        return round(state.returns()[0]) * (1 + shown.count("."))
    scores = [first_players_score(cells(state.child(action))) for action in state.legal_actions()]
    return max(scores) if state.current_player() == 0 else min(scores)


@cache
def optimal(shown: str) -> tuple[int, ...]:
    state = states()[shown]
    return tuple(
        action
        for action in state.legal_actions()
        if first_players_score(cells(state.child(action))) == first_players_score(shown)
    )


def legal(shown: str) -> tuple[int, ...]:
    return tuple(states()[shown].legal_actions())


Moves = Callable[[str], tuple[int, ...]]


def exact_results(policy: Callable[[Board], tuple[int, ...]], opponent: Moves, *, first: bool) -> tuple[float, ...]:
    """Win, draw and loss of a policy that chooses uniformly among ``policy(board)`` as X, by walking every line."""
    seat = 0 if first else 1

    @cache
    def results(shown: str) -> tuple[float, float, float]:
        state = states()[shown]
        if state.is_terminal():
            mine = state.returns()[seat]
            return float(mine > 0), float(mine == 0), float(mine < 0)
        if state.current_player() == seat:
            moves = policy(Board(shown if first else shown.translate(SWAP), "X"))
            assert set(moves) <= set(state.legal_actions())
        else:
            moves = opponent(shown)
        branches = [results(cells(state.child(move))) for move in moves]
        return tuple(sum(column) / len(branches) for column in zip(*branches, strict=True))  # type: ignore[return-value]

    return results("." * 9)

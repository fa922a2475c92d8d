"""The engine against OpenSpiel, over everything that can happen."""

from __future__ import annotations

import pytest
import tic_tac_toe_oracle as oracle

from mcpgym_environments.tic_tac_toe import engine
from mcpgym_environments.tic_tac_toe.engine import Board


def test_the_engine_reaches_the_same_5478_boards_as_openspiel_whoever_moves_first() -> None:
    def reachable(first: engine.Mark) -> set[Board]:
        seen = {engine.new_board(first)}
        waiting = list(seen)
        while waiting:
            board = waiting.pop()
            after = {engine.play(board, cell) for cell in engine.legal_moves(board)} - seen
            seen |= after
            waiting += after
        return seen

    assert len(oracle.states()) == 5478
    boards = [board for board, _, _ in oracle.both_ways()]
    assert len(boards) == len(set(boards)) == 2 * 5478
    assert reachable("X") | reachable("O") == set(boards)


def test_legal_moves_end_and_winner_agree_with_openspiel_on_every_board() -> None:
    for board, state, sign in oracle.both_ways():
        assert list(engine.legal_moves(board)) == ([] if state.is_terminal() else state.legal_actions()), board
        expected = None
        if state.is_terminal():
            expected = {1: "X", 0: "draw", -1: "O"}[sign * round(state.returns()[0])]
        assert engine.result(board) == expected, board


def test_value_and_best_moves_agree_with_minimax_over_openspiels_tree_on_every_board() -> None:
    for board, state, sign in oracle.both_ways():
        shown = oracle.cells(state)
        assert engine.value(board) == sign * oracle.first_players_score(shown), board
        if not state.is_terminal():
            assert engine.best_moves(board) == oracle.optimal(shown), board
    assert engine.value(engine.new_board("X")) == engine.value(engine.new_board("O")) == 0


def test_perfect_play_prefers_the_sooner_win_and_the_later_loss() -> None:
    assert engine.best_moves(Board("XX.OO....", "X")) == (2,)
    assert engine.best_moves(Board("OO.XX....", "O")) == (2,)
    lost = Board("XX.O.....", "O")  # O is lost, but a block makes X find a second threat first
    assert all(engine.value(engine.play(lost, cell)) > 0 for cell in engine.legal_moves(lost))
    assert engine.best_moves(lost) == (2,)


def test_a_board_never_changes_and_an_illegal_move_makes_none() -> None:
    board = Board("X.......O", "X")
    after = engine.play(board, 4)
    assert board == Board("X.......O", "X")
    assert after == Board("X...X...O", "O")
    for cell in (0, 8, -1, 9, 100):
        with pytest.raises(ValueError, match="cannot be played"):
            engine.play(board, cell)
    with pytest.raises(ValueError, match="cannot be played"):
        engine.play(Board("XXXOO....", "O"), 8)


def test_the_engine_imports_nothing_but_the_standard_library() -> None:
    import ast
    import sys
    from pathlib import Path

    tree = ast.parse(Path(str(engine.__file__)).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names

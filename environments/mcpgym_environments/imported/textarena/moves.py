"""What may be tried in a game: all moves by their form, legal or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from random import Random
from typing import Any

Moves = Callable[[Any], list[str]]


def _numbers(count: int) -> Moves:
    return lambda state: [f"[{number}]" for number in range(count)]


def _pairs(rows: int, columns: int) -> Moves:
    return lambda state: [f"[{row} {column}]" for row, column in product(range(rows), range(columns))]


def _words(*words: str) -> Moves:
    return lambda state: [f"[{word}]" for word in words]


def _cells(state: Any) -> list[str]:
    size = 8 if state is None else len(state.game_state["board"])
    return _pairs(size, size)(state)


def _breakthrough(state: Any) -> list[str]:
    size = len(state.game_state["board"]) if isinstance(state.game_state.get("board"), list) else 8
    columns = "abcdefghijklmnop"[:size]
    return [
        f"[{a}{row}{b}{to}]"
        for a, row in product(columns, range(1, size + 1))
        for b in columns[max(0, columns.index(a) - 1) : columns.index(a) + 2]
        for to in (row - 1, row + 1)
        if 1 <= to <= size
    ]


def _dice(state: Any) -> list[str]:
    return ["[call]", *(f"[bid: {quantity}, {face}]" for quantity in range(1, 21) for face in range(1, 7))]


def _chopsticks(state: Any) -> list[str]:
    attacks = [f"[attack {mine} {theirs}]" for mine, theirs in product(range(2), range(2))]
    return attacks + [f"[split {left} {right}]" for left, right in product(range(5), range(5))]


MOVES: Mapping[str, Moves] = {
    "Breakthrough": _breakthrough,
    "Chopsticks": _chopsticks,
    "ConnectFour": lambda state: [f"[col {column}]" for column in range(12)],
    "IteratedMatchingPennies": _words("heads", "tails"),
    "IteratedRockPaperScissors": _words("rock", "paper", "scissors"),
    "KuhnPoker": _words("check", "bet", "call", "fold"),
    "LiarsDice": _dice,
    "Nim": lambda state: [f"[{pile} {count}]" for pile, count in product(range(8), range(1, 10))],
    "Othello": _cells,
    "PigDice": _words("roll", "hold"),
    "TicTacToe": _numbers(9),
    "WildTicTacToe": lambda state: [f"[{mark} {cell}]" for mark, cell in product("XO", range(9))],
    "2048": _words("up", "down", "left", "right"),
    "FrozenLake": _words("up", "down", "left", "right"),
    "Sokoban": _words("up", "down", "left", "right"),
    "FifteenPuzzle": _words("up", "down", "left", "right"),
    "Blackjack": _words("hit", "stand"),
    "Bandit": _words("red", "blue", "green", "yellow", "purple"),
    "GuessTheNumber": _numbers(21),
    "LightsOut": _pairs(5, 5),
    "Minesweeper": _pairs(8, 8),
    "Secretary": _words("accept", "continue"),
    "ThreeCardMonte": _numbers(3),
    "TowerOfHanoi": lambda state: [f"[{a} {b}]" for a, b in product("ABC", "ABC") if a != b],
    "Mastermind": lambda state: [f"[{' '.join(map(str, code))}]" for code in product(range(1, 7), repeat=4)],
}


def candidates(game: str, state: Any, random: Random) -> list[str]:
    """All moves that may be tried, in a random order; ``state`` is the game's, None where only the form is known."""
    try:
        made = MOVES[game](state) if game in MOVES else _numbers(10)(state)
    except (AttributeError, KeyError, TypeError):  # the form needs a state, and there is none
        made = ["[a2a3]", "[b2b3]"]
    random.shuffle(made)
    return made

"""Lines of play as tasks: the opponent steers into a line that is written in the task's id.

``line-first-4028`` is a game in which the policy moves first, and X 4, O 0, X 2, O 8 were played: the cells of both
sides, in order. O plays its moves of the line on the boards of the line, and elsewhere as its strength says: perfectly,
or with ``-r30`` at the end of the id, at random in 30 % of its moves. ``line-second`` alone is a line without moves.
``line-first-4028+6240`` has further lines, which O steers into where the game has left the first one.

Like every opponent it decides by the board alone, so a game that comes to a board of the line in another order is
steered too. These tasks are in no split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mcpgym import ConfigurationError, Task, derive_seed
from mcpgym_environments.tic_tac_toe import engine
from mcpgym_environments.tic_tac_toe.config import TicTacToeConfig
from mcpgym_environments.tic_tac_toe.observation import prompt

SPLIT = "line"
"""What a line's task has for a split; no enumeration lists it."""

_ID = re.compile(r"line-(first|second)(?:-([0-9]+(?:\+[0-9]+)*))?(?:-r([0-9]{1,3}))?")
_FORM = (
    "write line-first-CELLS or line-second-CELLS, CELLS the cells (0 to 8) of both sides in order of play, "
    "as in line-first-4028; +CELLS adds a line, -r30 at the end makes 30 % of O's other moves random"
)
_CELLS = frozenset("012345678")
_SEATS: Mapping[str, engine.Mark] = {"first": "X", "second": "O"}


def is_line(wanted: str) -> bool:
    """Whether a task's id is meant to be a line's."""
    return wanted.startswith(f"{SPLIT}-")


def line_id(seat: str, acts: Sequence[str], random_move_prob: float = 0.0, others: Sequence[Sequence[str]] = ()) -> str:
    """The id of the line with these moves, and of further lines; the probability is rounded to whole percent."""
    percent = round(random_move_prob * 100)
    cells = "+".join("".join(line) for line in (acts, *others) if line)
    return "-".join([SPLIT, seat, *([cells] if cells else []), *([f"r{percent}"] if percent else [])])


def line_task(config: TicTacToeConfig, wanted: str) -> Task:
    """The task that the id ``wanted`` describes.

    Raises:
        ConfigurationError: it is no line, its moves cannot be played, or the configuration has no such seat.
    """
    match = _ID.fullmatch(wanted)
    if match is None:
        raise ConfigurationError(f"no line {_shown(wanted)}: {_FORM}")
    seat, cells, percent = match.group(1), match.group(2) or "", int(match.group(3) or 0)
    if config.policy_moves not in ("either", seat):
        moves = config.policy_moves
        raise ConfigurationError(f"no line {_shown(wanted)} here: policy_moves={moves}, so write line-{moves}-…")
    if percent > 100:
        raise ConfigurationError(f"no line {_shown(wanted)}: r{percent} is more than 100 %; {_FORM}")
    first, *others = cells.split("+")
    try:
        replies = _replies(seat, first)
        further: dict[str, set[int]] = {}
        for line in others:
            for board, cell in _replies(seat, line).items():
                further.setdefault(board, set()).add(*cell)
    except ConfigurationError as error:
        raise ConfigurationError(f"no line {_shown(wanted)}: {error}; {_FORM}") from None
    info = {
        "seed": derive_seed("tic-tac-toe", SPLIT, wanted),
        "policy_first": seat == "first",
        "random_move_prob": percent / 100,
        "line": {board: tuple(sorted(cells)) for board, cells in further.items()} | replies,
    }
    return Task(wanted, SPLIT, prompt(seat == "first", illegal_loses=config.illegal_move_loses), info)


def _replies(seat: str, cells: str) -> dict[str, tuple[int]]:
    """The cell that O plays on each of the line's boards where it is to move."""
    boards = played(seat, cells)
    return {board.cells: (int(cell),) for board, cell in zip(boards, cells, strict=False) if board.turn == "O"}


def played(seat: str, cells: Sequence[str]) -> list[engine.Board]:
    """The boards of a game, the empty one first, in which ``cells`` are played in turn; X is the policy in ``seat``.

    Raises:
        ConfigurationError: a move that cannot be played; the text says which and why.
    """
    boards = [engine.new_board(_SEATS[seat])]
    for number, cell in enumerate(cells, 1):
        board = boards[-1]
        if engine.result(board) is not None:
            raise ConfigurationError(f"the game is over before move {number} ({_shown(cell)})")
        if cell not in _CELLS:
            raise ConfigurationError(f"move {number} is {_shown(cell)}, and cells are 0 to 8")
        if int(cell) not in engine.legal_moves(board):
            raise ConfigurationError(f"move {number} plays cell {cell}, which is taken")
        boards.append(engine.play(board, int(cell)))
    return boards


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")

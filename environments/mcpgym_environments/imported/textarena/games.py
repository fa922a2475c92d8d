"""Which of TextArena's games can be played here, and why the others cannot."""

from __future__ import annotations

from mcpgym.errors import ConfigurationError, UnknownNameError

ALONE = (
    "2048", "Bandit", "Blackjack", "Countdown", "Cryptarithm", "FifteenPuzzle", "FrozenLake", "GuessTheNumber",
    "LightsOut", "LogicPuzzle", "Mastermind", "Minesweeper", "PegJump", "RushHour", "Secretary", "Set", "Slitherlink",
    "Sokoban", "Sudoku", "ThreeCardMonte", "TowerOfHanoi",
)  # fmt: skip
"""Games for one player that need nothing beside the package."""
AGAINST = (
    "Breakthrough", "Chopsticks", "ConnectFour", "IteratedMatchingPennies", "IteratedRockPaperScissors", "KuhnPoker",
    "LiarsDice", "Nim", "Othello", "PigDice", "TicTacToe", "WildTicTacToe",
)  # fmt: skip
"""Games for two players whose moves an opponent can try."""
WORDS = (
    "Codenames", "DontSayIt", "Hangman", "LetterAuction", "SpellingBee", "WordChains", "WordLadder", "WordSearch",
    "Wordle",
)  # fmt: skip
"""Games that fetch a list of words from the network when they are imported."""
ASKING = ("Debate", "GuessWho", "ScenarioPlanning", "TwentyQuestions")
"""Games that ask a paid model in the middle of the game."""


def base(game: str) -> str:
    """``TicTacToe`` of ``TicTacToe-v0``, whatever stands behind the version."""
    return game.partition("-v")[0]


def is_alone(game: str) -> bool:
    """Whether it is played alone."""
    return base(game) in ALONE


def check_game(game: str) -> None:
    """Refuse what cannot be played here.

    Raises:
        ConfigurationError: the text says why.
    """
    name = base(game)
    if name in WORDS:
        raise ConfigurationError(
            f"textarena: {name} fetches a list of words when it is imported, so it is not the same game everywhere"
        )
    if name in ASKING:
        raise ConfigurationError(f"textarena: {name} asks a paid model in the middle of the game; no seed repeats that")
    if name not in (*ALONE, *AGAINST):
        names = [f"{known}-v0" for known in (*ALONE, *AGAINST)]
        raise UnknownNameError("game of textarena that can be played here", game, names, there=", ".join(names))
    if game.endswith(("-raw", "-train")):
        raise ConfigurationError(
            f"textarena: {game}: leave out what stands behind the last -; a game is played raw here"
        )

"""A program that sets text in lines of a width."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from mcpgym_environments.python_sandbox.problems.debug.making import Bug, Program, broken
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_SOURCE = '''
"""Sets text in lines."""


def pieces_of(word, width):
    """A word, cut where it is longer than a line."""
    pieces = []
    while len(word) > width:
        pieces.append(word[:width])
        word = word[width:]
    pieces.append(word)
    return pieces


def spread(words, width):
    """A line with the room that is left over given to its gaps, one by one, from the left."""
    if len(words) == 1:
        return words[0]
    room = width - sum(len(word) for word in words)
    gaps = len(words) - 1
    share, extra = divmod(room, gaps)
    line = words[0]
    for index, word in enumerate(words[1:]):
        line += "FILL" * (share + (1 if index < extra else 0)) + word
    return line


def FUNCTION(text, width):
    result = []
    for paragraph in text.split("\\n"):
        words = [piece for word in paragraph.split() for piece in pieces_of(word, width)]
        lines, line, used = [], [], 0
        for word in words:
            if line and used + 1 + len(word) > width:
                lines.append(line)
                line, used = [], 0
            used += len(word) + (1 if line else 0)
            line.append(word)
        if line:
            lines.append(line)
        for index, words_of_line in enumerate(lines):
            if index == len(lines) - 1:
                result.append("FILL".join(words_of_line))
            else:
                result.append(spread(words_of_line, width))
        if not lines:
            result.append("")
    return result
'''

_BUGS = (
    Bug("used + 1 + len(word) > width", "used + len(word) > width", 1),
    Bug("used + 1 + len(word) > width", "used + 1 + len(word) >= width", 1),
    Bug("line, used = [], 0\n            used", "line = []\n            used", 1),
    Bug("        if line:\n            lines.append(line)\n", "", 1),
    Bug("index < extra", "index <= extra", 2),
    Bug("index < extra", "index >= gaps - extra", 2),
    Bug("while len(word) > width:", "if len(word) > width:", 3),
    Bug("    if len(words) == 1:\n        return words[0]\n", "", 2),
    Bug("index == len(lines) - 1", "index == len(lines)", 2),
    Bug('        if not lines:\n            result.append("")\n', "", 3),
    Bug("        word = word[width:]", "        word = word[width + 1:]", 3),
    Bug("used += len(word) + (1 if line else 0)", "used += len(word)", 2),
)

_WORDS = ("a", "is", "the", "word", "line", "paper", "letter", "margins", "typesetting", "unbreakablecompound")


def _words(random: Random, count: int) -> str:
    return " ".join(random.choices(_WORDS, k=count))


def _inputs(random: Random) -> Iterator[Arguments]:
    yield ("", 5)
    yield ("a", 1)
    yield ("typesetting", 4)
    yield ("the unbreakablecompound is", 6)
    yield ("one\n\ntwo  three\n", 10)
    while True:
        yield (
            "\n".join(_words(random, random.choice((0, 1, 3, 8, 15))) for _ in range(random.randint(1, 4))),
            random.randint(5, 24),
        )


def _small(random: Random) -> Arguments:
    return ("\n".join(_words(random, random.randint(1, 6)) for _ in range(random.randint(1, 2))), random.randint(5, 14))


def _make(random: Random, level: int) -> Problem:
    function, fill = random.choice(("set_lines", "justify", "wrap_text", "typeset")), random.choice(" ._-")
    mark = "a space" if fill == " " else f"the sign {fill}"
    program = Program(
        function,
        {"text": "a string", "width": "how many characters a line has at most (at least 1)"},
        f"""
        Each line of the text (split at newlines) is a paragraph, set by itself. A paragraph is split at white space
        into words; a word longer than width is cut into pieces of width characters and a last, shorter one, which are
        words of
        their own. Lines are filled one after the other: as many words as fit with one sign between each two. All
        lines of
        a paragraph but the last are made exactly width characters long, by repeating {mark} in the gaps: as evenly as
        possible, gaps further left get the additional ones; a line of a single word stays as it is. In the last line
        there is just {mark} in each gap. A paragraph without words gives one empty line. The result is the list of
        lines.
        """,
        _SOURCE.replace("FUNCTION", function).replace("FILL", fill),
        tuple(bug._replace(right=bug.right.replace("FILL", fill)) for bug in _BUGS),
        _inputs,
        _small,
    )
    return broken("broken-typesetter", level, random, program)


GENERATOR = Made("broken-typesetter", "debug", "a program that sets text in lines", _make)

"""How many strings of a length contain none of some words."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, listed, mistaken, pick, program, whole

_LENGTHS = ((9, 12), (12, 20), (30, 50), (60, 100), (120, 200))
_CODE = """
keep = max(map(len, words)) - 1
states = {("", 0): 1}
for _ in range(length):
    new = {}
    for (tail, marked), ways in states.items():
        for letter in letters:
            text = tail + letter
            if any(text.endswith(word) for word in words):
                continue
            state = text[-keep:], (marked + (letter == letters[0])) % m
            new[state] = new.get(state, 0) + ways
    states = new
print(sum(ways for (tail, marked), ways in states.items() if marked == r))
"""


def strings(letters: str, words: Sequence[str], length: int, m: int, r: int) -> int:
    """Strings without the words and with r modulo m first letters, by an Aho-Corasick automaton."""
    prefixes = sorted({word[:end] for word in words for end in range(len(word) + 1)}, key=len)
    number = {prefix: place for place, prefix in enumerate(prefixes)}
    moves: list[list[int]] = []
    for prefix in prefixes:
        row = []
        for letter in letters:
            text = prefix + letter
            while text not in number:
                text = text[1:]
            row.append(-1 if any((prefix + letter).endswith(word) for word in words) else number[text])
        moves.append(row)
    counts = [[0] * m for _ in prefixes]
    counts[0][0] = 1
    for _ in range(length):
        new = [[0] * m for _ in prefixes]
        for row, before in zip(moves, counts, strict=True):
            for place, target in enumerate(row):
                if target >= 0:
                    for marked, ways in enumerate(before):
                        new[target][(marked + (place == 0)) % m] += ways
        counts = new
    return sum(row[r] for row in counts)


def _make(random: Random, level: int) -> Problem:
    length = random.randint(*_LENGTHS[level - 1])
    letters = "".join(random.sample("abcdexyz", 2 if level == 1 else 3))
    m = random.randint(2, 4) if level >= 3 else 1
    r = random.randrange(m)
    while True:
        words = sorted(
            {
                "".join(random.choice(letters) for _ in range(random.randint(2, 4)))
                for _ in range(random.randint(2, 2 + level))
            },
            key=lambda word: (len(word), word),
        )
        if len(words) < 2 or any(one in other for one in words for other in words if one != other):
            continue
        right = strings(letters, words, length, m, r)
        if right > max(20, 10 ** (level - 1)) and right != strings(letters, words[:-1], length, m, r):
            break
    condition = ""
    if m > 1:
        condition = pick(
            random,
            f" and in which the number of letters {letters[0]!r} leaves the remainder {r} when divided by {m}",
            f" and whose count of {letters[0]!r} is congruent to {r} modulo {m}",
        )
    quoted = [repr(word) for word in words]
    text = pick(
        random,
        f"How many strings of exactly {length} letters over the alphabet {listed([repr(c) for c in letters])} are "
        f"there that contain none of {listed(quoted, 'or')} as a contiguous substring{condition}?",
        f"Count the words of length {length} made of the letters {listed([repr(c) for c in letters])} in which none "
        f"of the blocks {listed(quoted)} occurs anywhere in consecutive places{condition}.",
    )
    values = {"letters": letters, "words": words, "length": length, "m": m, "r": r}
    return Problem(
        "forbidden-words",
        "compute",
        level,
        f"{text} {ask_whole(random)}",
        whole(right),
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, "for word in words)", "for word in words[:-1])"), **values),
        key=repr(values),
    )


WORDS = Made("forbidden-words", "compute", "strings of a length that contain none of some words", _make)

"""What a string of letters becomes when all of them are rewritten again and again."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, mistaken, pick, program, whole

_ROUNDS = ((6, 8), (8, 11), (12, 15), (60, 90), (250, 400))
_LITERAL = """
text = start
for _ in range(rounds):
    text = "".join(rules.get(letter, letter) for letter in text)
print(text.count(pair))
"""
_COUNTED = """
from collections import Counter

singles, pairs = Counter(start), Counter(zip(start, start[1:]))
for _ in range(rounds):
    new_pairs = Counter()
    for letter, count in singles.items():
        image = rules.get(letter, letter)
        for one, other in zip(image, image[1:]):
            new_pairs[one, other] += count
    for (one, other), count in pairs.items():
        new_pairs[rules.get(one, one)[-1], rules.get(other, other)[0]] += count
    new_singles = Counter()
    for letter, count in singles.items():
        for image in rules.get(letter, letter):
            new_singles[image] += count
    singles, pairs = new_singles, new_pairs
print(pairs[tuple(pair)])
"""


def pair_count(start: str, rules: Mapping[str, str], rounds: int, pair: str) -> int:
    """How often two different letters stand side by side after ``rounds``.

    What is inside the image of a letter after n rounds, and its first and last letter, follow from n - 1 rounds.
    """
    # For each letter, of its image after the rounds so far: first letter, last letter, pairs inside.
    images = {letter: (letter, letter, 0) for letter in {*rules, *start, *"".join(rules.values())}}
    for _ in range(rounds):
        images = {letter: _join(rules.get(letter, letter), images, pair) for letter in images}
    return _join(start, images, pair)[2]


def _join(text: str, images: Mapping[str, tuple[str, str, int]], pair: str) -> tuple[str, str, int]:
    count, last = 0, ""
    for letter in text:
        first, end, inner = images[letter]
        count, last = count + inner + (last + first == pair), end
    return images[text[0]][0], last, count


def _make(random: Random, level: int) -> Problem:
    letters = random.sample("ABCDEFGH", 3 if level < 3 else 4)
    rounds = random.randint(*_ROUNDS[level - 1])
    while True:
        rules = {letter: "".join(random.choices(letters, k=random.choice((1, 2, 2, 2)))) for letter in letters[:-1]}
        rules[letters[-1]] = "".join(random.choices(letters, k=random.choice((1, 2))))
        rules = {letter: image for letter, image in rules.items() if image != letter}
        start = "".join(random.choices(letters, k=random.randint(2, 4)))
        pair = "".join(random.sample(letters, 2))
        right = pair_count(start, rules, rounds, pair)
        if 3 ** (level + 2) < right < 10**150 and right != pair_count(start, rules, rounds - 1, pair):
            break
    written = ", ".join(f"{letter} -> {image}" for letter, image in rules.items())
    rest = "" if len(rules) == len(letters) else " Letters without a rule stay as they are."
    text = pick(
        random,
        f"Begin with the string {start}. In each round every letter is replaced at once by these rules: {written}."
        f"{rest} How many times does {pair} occur as two neighbouring letters in the string after {rounds} rounds?",
        f"An L-system has the axiom {start} and the rules {written}.{rest} All letters are rewritten in parallel. "
        f"After {rounds} steps, in how many places of the string is {pair[0]} directly followed by {pair[1]}?",
    )
    values = {"start": start, "rules": rules, "rounds": rounds, "pair": pair}
    code = _LITERAL if level <= 3 else _COUNTED
    return Problem(
        "rewriting",
        "compute",
        level,
        f"{text} {ask_whole(random)}",
        whole(right),
        solution=program(code, **values),
        wrong=program(mistaken(code, "range(rounds)", "range(rounds - 1)"), **values),
        key=repr(values),
    )


REWRITING = Made("rewriting", "compute", "letters side by side after many rounds of rewriting a string", _make)

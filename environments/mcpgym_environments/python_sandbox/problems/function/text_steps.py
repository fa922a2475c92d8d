"""A line of text goes through steps, drawn and put in an order by the seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

VOWELS = "aeiou"
Words = list[str]


class Step(NamedTuple):
    """One step: what the text says of it, the step itself, its line in the solution, and that line with a mistake."""

    text: str
    apply: Callable[[Words], Words]
    line: str
    mistaken: str
    telling: bool = False
    """Whether that mistake shows in nearly every text, whatever the other steps are."""


def _drop_short(random: Random) -> Step:
    least = random.randint(2, 4)
    return Step(
        f"Words of fewer than {least} characters are left out.",
        lambda words: [word for word in words if len(word) >= least],
        f"words = list(filter(lambda w: not len(w) < {least}, words))",
        f"words = list(filter(lambda w: len(w) > {least}, words))",
    )


def _rotate(random: Random) -> Step:
    places = random.randint(1, 3)
    return Step(
        f"In each word the first {'character moves' if places == 1 else f'{places} characters move'} to the end"
        f"{', in their order; shorter words stay as they are' if places > 1 else ''}.",
        lambda words: [word if len(word) < places else word[places:] + word[:places] for word in words],
        f"words = [w[{places}:] + w[:{places}] if len(w) >= {places} else w for w in words]",
        f"words = [w[-{places}:] + w[:-{places}] if len(w) >= {places} else w for w in words]",
        True,
    )


def _shift(random: Random) -> Step:
    by = random.randint(2, 12)

    def shifted(word: str) -> str:
        return "".join(chr((ord(c) - 97 + by) % 26 + 97) if "a" <= c <= "z" else c for c in word)

    return Step(
        f"Each small letter a to z becomes the one {by} places later in the alphabet, where a follows z; "
        "other characters stay.",
        lambda words: [shifted(word) for word in words],
        "az = 'abcdefghijklmnopqrstuvwxyz'; "
        f"words = [w.translate(str.maketrans(az, az[{by}:] + az[:{by}])) for w in words]",
        "az = 'abcdefghijklmnopqrstuvwxyz'; "
        f"words = [w.translate(str.maketrans(az, az[-{by}:] + az[:-{by}])) for w in words]",
        True,
    )


def _turn_every(random: Random) -> Step:
    every = random.randint(2, 4)
    return Step(
        f"Every word whose position is a multiple of {every}, counted from 1, is written backwards.",
        lambda words: [word[::-1] if place % every == 0 else word for place, word in enumerate(words, 1)],
        f"words = [''.join(reversed(w)) if (i + 1) % {every} == 0 else w for i, w in enumerate(words)]",
        f"words = [''.join(reversed(w)) if i % {every} == 0 else w for i, w in enumerate(words)]",
    )


def _big_vowels(random: Random) -> Step:
    letter = random.choice("nrst")
    return Step(
        f"The small vowels (a, e, i, o, u) become capitals in each word that holds the small letter {letter}.",
        lambda words: ["".join(c.upper() if c in VOWELS and letter in word else c for c in word) for word in words],
        f"words = [w.translate(str.maketrans('aeiou', 'AEIOU')) if {letter!r} in w else w for w in words]",
        f"words = [w.translate(str.maketrans('aeiou', 'AEIOU')) if w.startswith({letter!r}) else w for w in words]",
    )


def _no_doubles(random: Random) -> Step:
    if random.random() < 0.5:
        return Step(
            "A word that stood earlier in the list, exactly so, is left out: the first of its kind remains.",
            lambda words: list(dict.fromkeys(words)),
            "words = [w for i, w in enumerate(words) if w not in words[:i]]",
            "words = [w for i, w in enumerate(words) if w not in words[max(i - 1, 0):i]]",
        )
    return Step(
        "A word that stands again later in the list, exactly so, is left out: the last of its kind remains.",
        lambda words: list(dict.fromkeys(reversed(words)))[::-1],
        "words = [w for i, w in enumerate(words) if w not in words[i + 1:]]",
        "words = [w for i, w in enumerate(words) if w not in words[:i]]",
    )


def _sort(random: Random) -> Step:
    down = random.random() < 0.5
    order = "longest first" if down else "shortest first"
    sign = -1 if down else 1
    return Step(
        f"The words are sorted by length, {order}; words of one length keep the order they had.",
        lambda words: sorted(words, key=lambda word: sign * len(word)),
        f"words = [w for n in sorted({{len(w) for w in words}}, reverse={down}) for w in words if len(w) == n]",
        f"words = sorted(words, key=lambda w: ({sign} * len(w), w))",
    )


def _number(random: Random) -> Step:
    mark, start = random.choice(":=/"), random.randint(0, 3)
    return Step(
        f"Each word gets its position in front of it, counted from {start}, with {mark} between the two.",
        lambda words: [f"{place}{mark}{word}" for place, word in enumerate(words, start)],
        f"words = [str(i + {start}) + {mark!r} + words[i] for i in range(len(words))]",
        f"words = [str(i + {start + 1}) + {mark!r} + words[i] for i in range(len(words))]",
        True,
    )


def _squeeze(random: Random) -> Step:
    def squeezed(word: str) -> str:
        return "".join(c for place, c in enumerate(word) if place == 0 or word[place - 1] != c)

    return Step(
        "In each word a run of one and the same character becomes a single one.",
        lambda words: [squeezed(word) for word in words],
        r"words = [__import__('re').sub(r'(.)\1+', r'\1', w) for w in words]",
        r"words = [__import__('re').sub(r'(.)\1', r'\1', w) for w in words]",
    )


_STEPS = (_drop_short, _rotate, _shift, _turn_every, _big_vowels, _no_doubles, _sort, _number, _squeeze)
_SYLLABLES = ("ta", "no", "ri", "ss", "el", "ua", "x", "ont", "bee", "Ka", "i", "oo", "str", "n", "7", "mu")


def _word(random: Random) -> str:
    return "".join(random.choices(_SYLLABLES, k=random.randint(1, 4)))


def _line(random: Random, words: int) -> str:
    known = [_word(random) for _ in range(max(words, 1))]
    return " ".join(random.choice(known) for _ in range(words))


def _inputs(random: Random) -> Iterator[Arguments]:
    yield ("",)
    yield ("   ",)
    yield ("a",)
    yield (f"  {_line(random, 3)}   {_line(random, 2)} ",)
    yield ("aaaa aaaaa aaa aaaaaa aa a aaaaaaa",)
    yield (" ".join([_word(random)] * 4),)
    while True:
        yield (_line(random, random.randint(4, 24)),)


def _make(random: Random, level: int) -> Problem:
    steps = [step(random) for step in random.sample(_STEPS, level + 2)]
    joint = random.choice((" ", "-", "|", ", "))
    function = random.choice(("transform", "rewrite_line", "process", "rework"))

    def reference(line: str) -> str:
        words = line.split()
        for step in steps:
            words = step.apply(words)
        return joint.join(words)

    body = "\n".join(f"    {step.line}" for step in steps)
    telling = [step for step in steps if step.telling]
    joining = f"{joint!r}.join(words)"
    mistake = (telling[-1].line, telling[-1].mistaken) if telling else (joining, f"{joint!r}.join(words[::-1])")
    wanted = Wanted(
        function,
        {"line": "a string of ASCII characters"},
        "The line is split at its spaces into words (several spaces are like one; there may be no word at all). "
        "Then these steps are done in this order, each with the words that the one before it left:\n"
        + "\n".join(f"{place}. {step.text}" for place, step in enumerate(steps, 1)),
        f"the words that are left, joined by {joint!r}, as one string.",
        reference,
        _inputs,
        [(_line(random, random.randint(5, 9)),) for _ in range(2)],
        f"def {function}(line):\n    words = [w for w in line.split(' ') if w]\n{body}\n    return "
        f"{joint!r}.join(words)",
        mistake,
    )
    return written("text-steps", level, wanted)


GENERATOR = Made("text-steps", "function", "a line of text is rewritten in steps", _make)

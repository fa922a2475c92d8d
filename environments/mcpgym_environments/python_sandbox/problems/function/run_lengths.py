"""Run-length codes: when a run is written as a count, how it is split, what is escaped; and reading nested ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from random import Random

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_ENCODE = """
def {function}(text):
    pieces, place = [], 0
    while place < len(text):
        end = place
        while end < len(text) and text[end] == text[place] and end - place < {longest}:
            end += 1
        length, char = end - place, text[place]
        if char in {escaped!r}:
            char = {escape!r} + char
        if length >= {least}:
            pieces.append({code})
        else:
            pieces.extend([char] * length)
        place = end
    return {joint!r}.join(pieces)
"""

_DECODE = """
def {function}(text):
    stack = [[]]
    place = 0
    while place < len(text):
        char = text[place]
        place += 1
        if char == {opening!r}:
            stack.append([])
        elif char == {closing!r}:
            end = place
            while end < len(text) and text[end].isdigit():
                end += 1
            count = int(text[place:end] or {default})
            place = end
            inner = "".join(stack.pop())
            if len(inner) * count > {longest}:
                return {long!r}
            stack[-1].append({repeated})
        else:
            stack[-1].append(char)
    whole = "".join(stack[0])
    return whole if len(whole) <= {longest} else {long!r}
"""


def _runs(random: Random, letters: str, count: int, longest: int) -> str:
    return "".join(
        random.choice(letters) * random.choice((1, 1, 2, 3, random.randint(1, longest))) for _ in range(count)
    )


def _encoding(random: Random, level: int) -> Problem:
    count_first = random.random() < 0.5
    least = 1 if level == 1 else random.randint(2, 4)
    longest = random.randint(least + 3, 12) if level >= 3 else 10**9
    escape = random.choice("\\!^~") if level == 4 else ""
    escaped = f"0123456789{escape}" if level == 4 else ""
    joint = random.choice(("", ".", "_", " ")) if level <= 3 else ""
    between = random.choice(("", "*", "x:"))
    function = random.choice(("encode", "pack", "shorten", "run_code"))
    letters = "abcde " if level < 4 else f"ab01{escape}"

    def reference(text: str) -> str:
        pieces: list[str] = []
        for char, group in groupby(text):
            left = len(list(group))
            written_char = escape + char if char in escaped else char
            while left:
                length = min(left, longest)
                left -= length
                coded = f"{length}{between}{written_char}" if count_first else f"{written_char}{between}{length}"
                pieces.extend([coded] if length >= least else [written_char] * length)
        return joint.join(pieces)

    def inputs(random: Random) -> Iterator[Arguments]:
        some = letters[0], letters[1]
        yield ("",)
        yield (some[0],)
        lengths = {least - 1, least, longest - 1, longest, longest + 1, 2 * longest, 2 * longest + least - 1}
        lengths = {length for length in lengths if 0 < length < 100}
        for length in random.sample(sorted(lengths), min(2, len(lengths))):
            yield (some[0] * length + some[1],)
        yield (some[1] * 137,)
        while True:
            yield (_runs(random, letters, random.randint(3, 25), 30),)

    order = "the count, then the character" if count_first else "the character, then the count"
    lines = [f"A run is a longest stretch of one and the same character. A run is written as {order}"
             + (f", with {between} between the two." if between else ", with nothing between the two.")]  # fmt: skip
    if level >= 2:
        lines.append(f"But a run of fewer than {least} characters is written out as it is, character by character.")
    if level >= 3:
        lines.append(
            f"A run of more than {longest} characters is cut first, from its start, into pieces of {longest} and a "
            f"last "
            f"piece with what remains, and each piece is written like a run of its own."
        )
    if level == 4:
        lines.append(
            f"The text may hold digits and {escape}: each of these characters is written with a {escape} in front of "
            f"it "
            f"wherever it stands for itself, in a counted run (once) as well as written out."
        )
    if joint:
        lines.append(
            f"What is written is joined by {joint!r}: counted runs and the single characters written out alike."
        )
    coded = "str(length) + {0!r} + char" if count_first else "char + {0!r} + str(length)"
    wanted = Wanted(
        function,
        {"text": "a string of ASCII characters" + (" without digits" if level < 4 else "")},
        "Code a text by the lengths of its runs. " + "\n".join(lines),
        "the coded text, a string.",
        reference,
        inputs,
        [(_runs(random, letters, 6, 14),) for _ in range(2)],
        _ENCODE.format(
            function=function, longest=longest, escaped=escaped, escape=escape, least=least,
            code=coded.format(between), joint=joint,
        ),
        ("length >= ", "length > ") if level > 1 else ("while place < len(text):", "while place < len(text) - 1:"),
    )  # fmt: skip
    return written("run-lengths", level, wanted)


def _decoding(random: Random, level: int) -> Problem:
    opening, closing = random.choice(("[]", "()", "{}", "<>"))
    default, longest = random.choice((1, 2, 3)), random.choice((200, 300, 400, 500))
    there_and_back = random.random() < 0.5
    long = random.choice(("", "too long", "?"))
    function = random.choice(("decode", "unpack", "expand"))

    def grow(text: str, count: int) -> str:
        backwards = text[::-1]
        return "".join(backwards if there_and_back and index % 2 else text for index in range(count))

    def reference(text: str) -> str:
        def read(place: int) -> tuple[str, int, bool]:
            """What stands from ``place`` to the end of its group, where the next begins, and whether it is too long."""
            parts: list[str] = []
            over = False
            while place < len(text) and text[place] != closing:
                if text[place] != opening:
                    parts.append(text[place])
                    place += 1
                    continue
                inner, place, inner_over = read(place + 1)
                digits = ""
                while place < len(text) and text[place].isdigit():
                    digits += text[place]
                    place += 1
                count = int(digits) if digits else default
                over = over or inner_over or len(inner) * count > longest
                parts.append("" if over else grow(inner, count))
            return "".join(parts), place + 1, over

        whole, _, over = read(0)
        return long if over or len(whole) > longest else whole

    def text(random: Random, depth: int) -> str:
        parts = []
        for _ in range(random.randint(1, 4)):
            if depth and random.random() < 0.6:
                count = random.choice(("", "0", "1", "2", "3", "4", "11"))
                parts.append(f"{opening}{text(random, depth - 1)}{closing}{count}")
            parts.append("".join(random.choices("abcxyz", k=random.randint(0, 3))))
        return "".join(parts)

    def inputs(random: Random) -> Iterator[Arguments]:
        yield ("",)
        yield (f"{opening}{closing}9",)
        yield (f"{opening}ab{closing}0c",)
        yield (f"{opening}ab{closing}",)
        yield (f"{opening}a{closing}{longest}",)
        yield (f"{opening}a{closing}{longest}b",)
        yield (f"{opening}{opening}{opening}xy{closing}99{closing}99{closing}99",)
        while True:
            yield (text(random, random.randint(1, 4)),)

    how = (
        "repeated that many times, every second time (the 2nd, 4th, …) written backwards"
        if there_and_back
        else "repeated that many times"
    )
    wanted = Wanted(
        function,
        {"text": f"a string of small letters, digits, {opening} and {closing}; brackets are always matched, and digits "
                 f"stand only right behind a {closing}"},
        f"Expand a packed text. A letter stands for itself. A group in brackets {opening}…{closing} with the decimal "
        f"number behind it stands for what the group holds, expanded, {how}; 0 leaves it out. Without a number it is "
        f"{default}. Groups may hold groups.\n"
        f"If the expanded text has more than {longest} characters, or if any group with its number, as it stands in "
        f"the "
        f"text, expands to more than {longest} (even one that another group leaves out), the result is {long!r} "
        f"instead. Numbers may be large: do not build what is too long.",
        "the expanded text, a string.",
        reference,
        inputs,
        [(f"{opening}ab{closing}3c{opening}x{opening}yz{closing}2{closing}",), (f"q{text(random, 2)}",)],
        _DECODE.format(
            function=function, opening=opening, closing=closing, default=f'"{default}"', longest=longest, long=long,
            repeated='"".join(inner[::-1] if i % 2 else inner for i in range(count))' if there_and_back
            else "inner * count",
        ),
        (f'or "{default}"', f'or "{default + 1}"'),
    )  # fmt: skip
    return written("run-lengths", level, wanted)


def _make(random: Random, level: int) -> Problem:
    return _decoding(random, level) if level == 5 else _encoding(random, level)


GENERATOR = Made("run-lengths", "function", "run-length codes with thresholds, escapes and nesting", _make)

"""A program that reads files of settings."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from mcpgym_environments.python_sandbox.problems.debug.making import Bug, Program, broken
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_SOURCE = '''
"""Reads settings: sections, names and values."""


def without_comment(line):
    """What stands in front of a comment; inside double quotes there is none."""
    quoted = False
    for place, char in enumerate(line):
        if char == '"':
            quoted = not quoted
        elif char == "MARK" and not quoted:
            return line[:place]
    return line


def items_of(text):
    """The items of a list, split where a comma is not quoted."""
    items, item, quoted = [], "", False
    for char in text:
        if char == '"':
            quoted = not quoted
        if char == "," and not quoted:
            items.append(item)
            item = ""
        else:
            item += char
    if item.strip() or items:
        items.append(item)
    return [value_of(item.strip()) for item in items]


def value_of(text):
    """A value: a list in brackets, a quoted string, a truth value, an integer, or a bare string."""
    if text.startswith("[") and text.endswith("]"):
        return items_of(text[1:-1])
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text.lower() in ("YES", "NO"):
        return text.lower() == "YES"
    digits = text[1:] if text[:1] in ("-", "+") else text
    if digits.isdigit():
        return int(text)
    return text


def FUNCTION(lines):
    settings = {}
    section = settings.setdefault("FIRST", {})
    for line in lines:
        line = without_comment(line).strip()
        if not line:
            continue
        if line.startswith("<") and line.endswith(">"):
            section = settings.setdefault(line[1:-1].strip(), {})
            continue
        name, found, value = line.partition("=")
        if not found:
            section[name.strip()] = True
            continue
        name = name.strip()
        if name.endswith("+"):
            name = name[:-1].strip()
            before = section.get(name, [])
            if not isinstance(before, list):
                before = [before]
            section[name] = before + [value_of(value.strip())]
        else:
            section[name] = value_of(value.strip())
    return settings
'''


def _bugs(mark: str, yes: str) -> tuple[Bug, ...]:
    return (
        Bug(f'char == "{mark}" and not quoted', f'char == "{mark}"', 2),
        Bug('if char == "," and not quoted:', 'if char == ",":', 2),
        Bug('            items.append(item)\n            item = ""\n', "            items.append(item)\n", 1),
        Bug("    if item.strip() or items:\n        items.append(item)\n",
            "    if item.strip():\n        items.append(item)\n", 3),
        Bug("    if item.strip() or items:\n        items.append(item)\n", "", 1),
        Bug("[value_of(item.strip()) for item in items]", "[item.strip() for item in items]", 1),
        Bug("items_of(text[1:-1])", "items_of(text[1:])", 1),
        Bug("len(text) >= 2 and text[0]", "text and text[0]", 3),
        Bug(f'return text.lower() == "{yes}"', f'return text == "{yes}"', 2),
        Bug('text[1:] if text[:1] in ("-", "+") else text', "text", 2),
        Bug("section = settings.setdefault(line[1:-1].strip(), {})", "section = settings[line[1:-1].strip()] = {}", 3),
        Bug('line.partition("=")', 'line.rpartition("=")', 3),
        Bug("            section[name.strip()] = True\n            continue\n",
            "            section[name.strip()] = True\n", 1),
        Bug("name = name[:-1].strip()", "name = name[:-1]", 2),
        Bug("before + [value_of(value.strip())]", "before + [value.strip()]", 2),
        Bug("section.get(name, [])", "section[name]", 1),
        Bug("            if not isinstance(before, list):\n                before = [before]\n", "", 2),
    )  # fmt: skip


def _make(random: Random, level: int) -> Problem:
    function, mark = random.choice(("read_settings", "parse", "load_settings", "read_lines")), random.choice("#;%!")
    yes, no = random.choice((("yes", "no"), ("on", "off"), ("true", "false")))
    first = random.choice(("main", "top", "general"))

    def value(random: Random, depth: int) -> str:
        kind = random.randrange(8 if depth else 6)
        if kind == 0:
            return str(random.randint(0, 99))
        if kind == 1:
            return random.choice("-+") + str(random.randint(0, 99))
        if kind == 2:
            return random.choice((yes, no, yes.upper(), no.title()))
        if kind == 3:
            return random.choice(("red", "blue sky", "a=b", "x1", "-"))
        if kind == 4:
            return random.choice(('"7"', f'"a {mark} b"', '"p, q"', '""', f'"{yes}"', '"', '" x "'))
        if kind == 5:
            return random.choice(("", "deep blue", "12a"))
        items = [value(random, 0) for _ in range(random.randint(0, 4))]
        return (
            f"[{random.choice((', ', ','))}".rstrip(", ")
            + random.choice((", ", ",")).join("x" if item == '"' else item for item in items)
            + "]"
        )

    def line(random: Random) -> str:
        name = random.choice("abcde") + random.choice(("", "1", " size"))
        comment = random.choice(("", "", "", f" {mark} note", f"{mark}"))
        match random.randrange(10):
            case 0:
                return comment.strip()
            case 1 | 2:
                return f"<{random.choice(('net', ' disk ', first, 'user'))}>{comment}"
            case 3:
                return f"  {name}{comment}"
            case 4 | 5 | 6:
                return f"{name}{random.choice((' +=', ' + =', '+='))} {value(random, 1)}{comment}"
        return f"{name}{random.choice((' = ', '='))}{value(random, 1)}{comment}"

    def inputs(random: Random) -> Iterator[Arguments]:
        yield ([],)
        yield (["", "   ", mark],)
        yield (["a = []", "b = [,]", "c = [1,]"],)
        yield ([f"<{first}>", "a = 1", "<net>", "a = 2", f"<{first}>", "b = 3"],)
        yield ([f'a = "x {mark} y" {mark} z', "b"],)
        while True:
            yield ([line(random) for _ in range(random.randint(4, 16))],)

    source = _SOURCE
    for word, text in (("FUNCTION", function), ("MARK", mark), ("YES", yes), ("NO", no), ("FIRST", first)):
        source = source.replace(word, text)
    program = Program(
        function,
        {"lines": "a list of strings, the lines of a file"},
        f"""
        The result is a dict from the name of each section to a dict of its settings. The section {first!r} is always
        there;
        lines belong to it until another begins. From {mark} on, unless it stands between double quotes, a line is a
        comment; comments and white space around a line are dropped, and empty lines mean nothing. <name> begins a
        section, or goes on with it if it was there before; white space around its name is dropped. Any other line sets
        something:
        what stands before its first = is the name, what comes after is the value, both without white space around
        them. A
        line without = sets its whole text as a name to True. If the name ends with +, that sign (and white space
        before it)
        is not part of the name, and the value is put at the end of a list: the list that the name has so far, an
        empty one if it has nothing, or one with what it has if that is no list; an added list is one item.

        A value is, in this order: in [ and ], a list of values, split at the commas that are not between double
        quotes, without
        white space around them (nothing between the brackets: an empty list; otherwise one item more than commas);
        between
        two double quotes, the string between them; {yes} or {no}, in any mixture of capitals and small letters, True
        or False;
        digits with or without one + or - before them, an integer; anything else, also nothing, the string as it stands.
        """,
        source,
        _bugs(mark, yes),
        inputs,
        lambda random: ([line(random) for _ in range(random.randint(2, 4))],),
    )
    return broken("broken-settings", level, random, program)


GENERATOR = Made("broken-settings", "debug", "a program that reads files of settings", _make)

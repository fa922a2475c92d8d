"""Scorers of reasoning-gym evaluate, as Python, what a model wrote. Here they read it.

Four of them call ``eval`` on the answer, five more sympy's ``parse_expr``, which evaluates it too. In their modules,
and nowhere else, those names are given to functions that take literals and plain arithmetic alone. Three do as often as
an answer says what it says, or reckon with as many digits: they get bounds. Two datasets draw from generators that all
of the process shares; they get some of their own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from random import Random
from types import ModuleType
from typing import Any

LITERAL = (
    "algorithmic.string_insertion",
    "algorithmic.spiral_matrix",
    "algorithmic.binary_matrix",
    "games.n_queens",
)
"""Modules whose scorers evaluate an answer to read a list."""
PARSED = ("games.countdown", "games.puzzle24")
"""Modules whose scorers parse an answer as an expression of given numbers, by a name of their own."""
SYMPY = {
    "algebra.simple_integration": "sympy",
    "algebra.intermediate_integration": "sympy",
    "algebra.polynomial_multiplication": "sp",
}
"""Modules whose scorers do so through sympy, and what they call it."""
REPEATED = {
    "games.rush_hour": ("Board", "perform_moves"),
    "cognition.rubiks_cube": ("RubiksCubeDataset", "expand_moves"),
}
"""Modules whose scorers repeat a move as often as its number says, and where."""
SILENT = ("code.codeio", "code.contrib.bfit.Compiler.Optimizer", "cognition.rectangle_count")
"""Modules that print while they make a question."""
MOVES = 1_000
"""How often the moves of one answer may be repeated, all together."""
LONGEST = 400
NODES = 120
"""Parts of one expression: numbers, names and signs."""
EXPONENT = 32
_FUNCTIONS = frozenset(
    (
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "log",
        "ln",
        "sqrt",
        "Abs",
    )
)
_CONSTANTS = frozenset({"pi", "E", "C"})
_PLAIN = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Load, ast.Call,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd,
)  # fmt: skip


def make_safe() -> None:
    """Give the modules what they may use; once is enough, and twice does no harm."""
    for name in LITERAL:
        vars(_module(name))["eval"] = literal
    for name in PARSED:
        vars(_module(name))["parse_expr"] = arithmetic
    for name, called in SYMPY.items():
        module = _module(name)
        if not isinstance(getattr(module, called), _Sympy):
            setattr(module, called, _Sympy(getattr(module, called)))
    for name, (owner, method) in REPEATED.items():
        kind = getattr(_module(name), owner)
        if not hasattr(getattr(kind, method), "bounded"):
            setattr(kind, method, _bounded(getattr(kind, method)))
    for name in SILENT:
        vars(_module(name))["print"] = lambda *values, **options: None
    vars(_module("probability.coin_flip"))["Fraction"] = fraction
    generators = _module("induction.list_functions.generators")
    if isinstance(generators.random, ModuleType):
        generators.random = Random(0)  # type: ignore[attr-defined]
    matrices = _module("algorithmic.pool_matrix")
    if isinstance(matrices.np, ModuleType):
        matrices.np = _Numpy(matrices.np)  # type: ignore[attr-defined]


def shared_generator() -> Random:
    """What ``list_functions`` draws from beside the seed of its item: to be seeded before each."""
    made: Random = _module("induction.list_functions.generators").random
    return made


def literal(text: str) -> Any:
    """The list, number or text that ``text`` writes out.

    Raises:
        ValueError, SyntaxError: it is anything else.
    """
    return ast.literal_eval(text)


def arithmetic(text: str, **given: Any) -> Any:
    """What ``text`` comes to, if it joins whole numbers by the four operations.

    Nothing else: those scorers look which numbers were used by the digits that stand alone, and neither ``24e0`` nor
    ``2_4`` nor ``x/x`` would be seen.

    Raises:
        ValueError: it is anything else, or too large.
    """
    if not re.fullmatch(r"[0-9\s+*/()-]+", text) or "**" in text or "//" in text:
        raise ValueError("takes whole numbers, + - * / and brackets")
    return expression(text)


def fraction(text: str) -> Fraction:
    """The number that ``text`` writes out.

    Raises:
        ValueError, ZeroDivisionError: it is none, or has an exponent of over two digits.
    """
    if re.search(r"[eE][+-]?[\d_]{3}", text):
        raise ValueError("has too large an exponent")
    return Fraction(text)


def expression(text: str, local_dict: Mapping[str, Any] | None = None, **given: Any) -> Any:
    """What sympy's ``parse_expr`` makes of ``text``, if it is plain arithmetic over known names.

    Raises:
        ValueError: it is not, or is too large.
    """
    if len(text) > LONGEST:
        raise ValueError(f"an expression has at most {LONGEST} characters")
    if re.search(r"\d[eE][+-]?\d", text):
        raise ValueError("takes numbers without exponents: a small text may mean a million digits")
    known = {*_CONSTANTS, *(local_dict or ())}
    try:
        nodes = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("is no expression") from error
    if len(nodes) > NODES or not all(_plain(node, known) for node in nodes):
        raise ValueError("is no plain arithmetic over known names, or too large")
    return import_module("sympy").parse_expr(text, local_dict=None if local_dict is None else dict(local_dict))


def _plain(node: ast.AST, known: set[str]) -> bool:
    if not isinstance(node, _PLAIN):
        return False
    if isinstance(node, ast.Constant):
        number = node.value
        return isinstance(number, (int, float)) and not isinstance(number, bool) and abs(number) < 1e12
    if isinstance(node, ast.Name):
        return node.id in known or node.id in _FUNCTIONS or (len(node.id) == 1 and node.id.isascii())
    if isinstance(node, ast.Call):
        named = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        return named and not node.keywords and len(node.args) <= 2
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _small(node.right) and not any(isinstance(part, ast.Pow) for part in ast.walk(node.left))
    return True


def _small(node: ast.AST) -> bool:
    """Whether an exponent is a small number, a name, or a short sum of such."""
    parts = list(ast.walk(node))
    if len(parts) > 16 or any(isinstance(part, ast.Pow) for part in parts):
        return False
    numbers = [part.value for part in parts if isinstance(part, ast.Constant)]
    return all(isinstance(number, (int, float)) and abs(number) <= EXPONENT for number in numbers)


def _bounded(method: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """A method that takes moves with numbers, and fails where they are to be repeated too often."""

    def moved(self: Any, moves: str) -> Any:
        if sum(int(number[:9]) for number in re.findall(r"\d+", moves)) > MOVES:
            raise ValueError(f"repeats its moves over {MOVES} times")
        return method(self, moves)

    moved.bounded = True  # type: ignore[attr-defined]
    return moved


class _Sympy:
    """sympy, but for how it parses."""

    parse_expr = staticmethod(expression)

    def __init__(self, sympy: ModuleType) -> None:
        self._sympy = sympy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sympy, name)


class _Numpy:
    """numpy with a generator of its own, which gives the numbers that the shared one would have given."""

    def __init__(self, numpy: ModuleType) -> None:
        self._numpy = numpy
        self.random = numpy.random.RandomState(0)

    def loadtxt(self, lines: Sequence[str], **options: Any) -> Any:
        """Numbers that an answer writes out; numpy warns of one without any, at length."""
        if not any(line.partition("#")[0].strip() for line in lines):
            raise ValueError("has no numbers")
        return self._numpy.loadtxt(lines, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numpy, name)


def _module(name: str) -> ModuleType:
    return import_module(f"reasoning_gym.{name}")

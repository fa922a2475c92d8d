"""Scorers of reasoning-gym evaluate, as Python, what a model wrote. Here they read it.

Four of them call ``eval`` on the answer, five more sympy's ``parse_expr``, which evaluates it too. In their modules,
and nowhere else, those names are given to functions that take literals and plain arithmetic alone. Two datasets draw
from generators that all of the process shares; they get some of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
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
"""Modules whose scorers parse an answer as an expression, by a name of their own."""
SYMPY = {
    "algebra.simple_integration": "sympy",
    "algebra.intermediate_integration": "sympy",
    "algebra.polynomial_multiplication": "sp",
}
"""Modules whose scorers do so through sympy, and what they call it."""
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
        vars(_module(name))["parse_expr"] = expression
    for name, called in SYMPY.items():
        module = _module(name)
        if not isinstance(getattr(module, called), _Sympy):
            setattr(module, called, _Sympy(getattr(module, called)))
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


def expression(text: str, local_dict: Mapping[str, Any] | None = None, **given: Any) -> Any:
    """What sympy's ``parse_expr`` makes of ``text``, if it is plain arithmetic over known names.

    Raises:
        ValueError: it is not, or is too large.
    """
    if len(text) > LONGEST:
        raise ValueError(f"an expression has at most {LONGEST} characters")
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

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numpy, name)


def _module(name: str) -> ModuleType:
    return import_module(f"reasoning_gym.{name}")

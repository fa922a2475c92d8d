"""A cell's source as code: what is executed, and the last expression, whose value is shown."""

from __future__ import annotations

import ast
import builtins
import keyword
import types
from typing import Any

globals()["__builtins__"] = dict(vars(builtins))  # what user code does to builtins does not reach these functions

_parse, _Expr, _Expression = compile, ast.Expr, ast.Expression
_ONLY_AST = ast.PyCF_ONLY_AST
_STATEMENTS = frozenset(keyword.kwlist) - {"not", "lambda", "await", "None", "True", "False"}


def compiled(code: str, name: str, flags: int) -> tuple[types.CodeType | None, types.CodeType | None]:
    """The code of all but a last expression, and that of the last expression; None where there is none.

    Raises:
        SyntaxError: and what else ``compile`` raises.
    """
    ending = _one_expression(code, name, flags)
    if ending is not None:
        return None, ending
    tree: Any = _parse(code, name, "exec", flags | _ONLY_AST, True)
    last = None
    if tree.body and type(tree.body[-1]) is _Expr and not _silenced(code, tree.body[-1]):
        last = _Expression(tree.body.pop().value)
    whole = _parse(tree, name, "exec", flags, True) if tree.body or last is None else None
    return whole, None if last is None else _parse(last, name, "eval", flags, True)


def _one_expression(code: str, name: str, flags: int) -> types.CodeType | None:
    """The code of a cell that is one line and one expression, if that is seen at once: half the time to compile."""
    if "\n" in code or "=" in code or ";" in code or code[:1].isspace() or code.partition(" ")[0] in _STATEMENTS:
        return None
    try:
        return _parse(code, name, "eval", flags, True)  # type: ignore[no-any-return]
    except SyntaxError:
        return None


def _silenced(code: str, last: Any) -> bool:
    """Whether a semicolon follows the last expression, which keeps its value from being shown."""
    line = code.encode("utf-8").split(b"\n")[last.end_lineno - 1]
    return line[last.end_col_offset :].lstrip(b" \t)").startswith(b";")  # type: ignore[no-any-return]

"""Which rollouts to keep: ``--keep 'reward >= 0.5 and stop_reason == "done"'``.

The expression is Python's in form, and a small part of it: comparisons of fields with numbers, texts and lists of
them, joined with ``and``, ``or``, ``not`` and parentheses. It is parsed, checked and walked; nothing of it is executed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_rl.traces import Trace

FIELDS: Mapping[str, Callable[[Trace], Any]] = {
    "reward": lambda trace: None if trace.score is None else trace.score.total,
    "outcome": lambda trace: None if trace.score is None else trace.score.game_outcome,
    "stop_reason": lambda trace: trace.stop_reason,
    "turns": lambda trace: trace.turns,
    "calls": lambda trace: len(trace.calls),
    "refused": lambda trace: sum(
        message["role"] == "tool" and message.get("is_error", False) for message in trace.messages
    ),
    "split": lambda trace: trace.split,
    "task": lambda trace: trace.task,
    "seed": lambda trace: trace.seed,
}
"""What can be asked of a rollout. ``reward`` is its total, ``outcome`` win, draw or loss (None for what is no finished
game), ``refused`` how many of its calls were answered with an error."""

MAX_LENGTH = 2_000

_FORM = (
    "write a condition such as: reward >= 0.5 and stop_reason == 'done'. It may name "
    f"{', '.join(FIELDS)} and components.NAME"
)
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, among: value in among,
    ast.NotIn: lambda value, among: value not in among,
}
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def parse_keep(text: str, components: Iterable[str] | None = None) -> Callable[[Trace], bool]:
    """The condition that ``text`` is; empty text keeps every rollout that has a score.

    A rollout without a score is never kept. A field that is None is neither above nor below anything.

    Args:
        text: the condition.
        components: the rewards that rollouts have; a condition that names another is an error. None if unknown.

    Raises:
        ConfigurationError: it is no such condition; the message shows where, and what one looks like.
    """
    known = None if components is None else frozenset(components)
    if not text.strip():
        return lambda trace: trace.scored
    if len(text) > MAX_LENGTH:
        raise ConfigurationError(f"--keep: {len(text)} characters; {MAX_LENGTH} at most")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        condition = _condition(tree, text.strip(), known)
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(f"--keep {text[:200]!r} cannot be read: {error}; {_FORM}") from None
    except (RecursionError, MemoryError):
        raise ConfigurationError(f"--keep {text[:200]!r} is nested too deeply; {_FORM}") from None
    return lambda trace: trace.scored and condition(trace)


Value = Callable[[Trace], Any]


def _condition(node: ast.expr, text: str, known: frozenset[str] | None) -> Callable[[Trace], bool]:
    match node:
        case ast.BoolOp(op=op, values=values):
            conditions = [_condition(value, text, known) for value in values]
            every = all if isinstance(op, ast.And) else any
            return lambda trace: every(condition(trace) for condition in conditions)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inside = _condition(operand, text, known)
            return lambda trace: not inside(trace)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [_value(item, text, known) for item in (left, *comparators)]
            pairs = list(zip(ops, sides, sides[1:], strict=False))
            checks = [_comparison(op, first, second, text) for op, first, second in pairs]
            return lambda trace: all(check(trace) for check in checks)
        case ast.Constant(value=bool() as constant):
            return lambda trace: constant
    raise _wrong(node, text, "is no condition")


def _comparison(op: ast.cmpop, first: Value, second: Value, text: str) -> Callable[[Trace], bool]:
    if type(op) not in _COMPARISONS:
        raise ConfigurationError(f"--keep {text[:200]!r}: compare with ==, !=, <, <=, >, >=, in or not in; {_FORM}")
    compare, ordered = _COMPARISONS[type(op)], isinstance(op, _ORDERED)

    def check(trace: Trace) -> bool:
        left, right = first(trace), second(trace)
        if ordered and (left is None or right is None):
            return False
        try:
            return bool(compare(left, right))
        except TypeError:
            raise ConfigurationError(
                f"--keep {text[:200]!r} compares {left!r} with {right!r}, which cannot be compared so"
            ) from None

    return check


def _value(node: ast.expr, text: str, known: frozenset[str] | None) -> Value:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as constant):
            return lambda trace: constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return lambda trace: -number
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            among = [_value(item, text, known) for item in items]
            return lambda trace: [value(trace) for value in among]
        case ast.Name(id=name) if name in FIELDS:
            return FIELDS[name]
        case ast.Name(id="components"):
            raise _wrong(node, text, "names no component; write components.NAME")
        case ast.Name(id=name):
            raise UnknownNameError("field for --keep", name, [*FIELDS, "components.NAME"])
        case ast.Attribute(value=ast.Name(id="components"), attr=name):
            return _component(name, known)
        case ast.Subscript(value=ast.Name(id="components"), slice=ast.Constant(value=str() as name)):
            return _component(name, known)
    raise _wrong(node, text, "is no value")


def _component(name: str, known: frozenset[str] | None) -> Value:
    if known is not None and name not in known:
        raise UnknownNameError("component for --keep", name, known)
    return lambda trace: None if trace.score is None else trace.score.components.get(name)


def _wrong(node: ast.expr, text: str, what: str) -> ConfigurationError:
    part = ast.get_source_segment(text, node) or text
    return ConfigurationError(f"--keep {text[:200]!r}: {part[:80]!r} {what}; {_FORM}")

"""Setting one member in a JSON text that a person keeps: every other byte stays, comments and all.

JSON as editors accept it: with ``//`` and ``/* */`` comments and commas before a closing bracket.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_SKIPPED = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')
MAX_DEPTH = 100


class BrokenJson(ValueError):
    """A text that is no JSON; says where."""


@dataclass(slots=True)
class Node:
    """A value in a text: where it begins and ends, what it is, and the nodes of its members if it is an object."""

    start: int
    end: int
    value: Any
    members: dict[str, Node] = field(default_factory=dict)


def parse(text: str) -> Node:
    """The whole text as a node; nothing but spaces and comments is an empty object that lies nowhere.

    Raises:
        BrokenJson: it is none, or a key stands twice in one object.
    """
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if start == len(text):
        return Node(start, start, {})
    node = _value(text, start, 0)
    if (end := _skip(text, node.end)) != len(text):
        raise _broken(text, end, "there is more after the end")
    return node


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """``text`` with the member at ``path`` set to ``value``; objects on the way are made where they lack.

    Raises:
        BrokenJson: the text is no JSON, or something on the way is no object.
    """
    node = parse(text)
    if node.start == node.end:
        return text + _written({path[0]: _nested(path[1:], value)}, "", "\n") + "\n"
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            where = ".".join(path[:depth]) or "the whole file"
            raise _broken(text, node.start, f"{where} is no object, so no server can be put there")
        if key not in node.members:
            return _insert(text, node, key, _nested(path[depth + 1 :], value))
        node = node.members[key]
    inner = _indentation(text, node.start)
    return text[: node.start] + _written(value, inner, _newline(text)) + text[node.end :]


def _insert(text: str, node: Node, key: str, value: Any) -> str:
    """Put a member at the end of an object."""
    newline = _newline(text)
    if node.members:
        last = max(node.members.values(), key=lambda member: member.end)
        inner = _indentation(text, max(_positions_of_keys(text, node)))
        comma = _skip(text, last.end)
        at = comma + 1 if text[comma] == "," else last.end
        written = _written(value, inner, newline)
        return f"{text[: last.end]}{text[last.end : at] or ','}{newline}{inner}{json.dumps(key)}: {written}{text[at:]}"
    outer = _indentation(text, node.start)
    inner = outer + "  "
    written = f"{newline}{inner}{json.dumps(key)}: {_written(value, inner, newline)}"
    kept = text[node.start + 1 : node.end - 1].rstrip()  # comments may stand in it
    return f"{text[: node.start + 1]}{kept}{written}{newline}{outer}{text[node.end - 1 :]}"


def _positions_of_keys(text: str, node: Node) -> list[int]:
    """Where the keys of an object begin."""
    found = []
    at = _skip(text, node.start + 1)
    for member in node.members.values():
        found.append(at)
        at = _skip(text, member.end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _written(value: Any, indentation: str, newline: str) -> str:
    step = "\t" if "\t" in indentation else "  "
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", newline + indentation)


def _indentation(text: str, at: int) -> str:
    """What stands before the first word of the line that ``at`` lies on."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _value(text: str, at: int, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise _broken(text, at, "it is nested too deep")
    if text[at : at + 1] == "{":
        return _object(text, at, depth)
    if text[at : at + 1] == "[":
        return _array(text, at, depth)
    if (found := _SCALAR.match(text, at)) is None:
        raise _broken(text, at, "a value is missing here")
    try:
        return Node(at, found.end(), json.loads(found[0]))
    except ValueError as error:
        raise _broken(text, at, f"{found[0][:40]} is no value") from error


def _object(text: str, start: int, depth: int) -> Node:
    members: dict[str, Node] = {}
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise _broken(text, at, 'a key in double quotes, or "}", belongs here')
        name = _value(text, at, depth)
        colon = _skip(text, name.end)
        if text[colon : colon + 1] != ":":
            raise _broken(text, colon, "a colon is missing here")
        if name.value in members:
            raise _broken(text, at, f"{json.dumps(name.value)} stands twice in one object")
        members[name.value] = _value(text, _skip(text, colon + 1), depth + 1)
        at = _next(text, members[name.value].end, "}")
    return Node(start, at + 1, {key: member.value for key, member in members.items()}, members)


def _array(text: str, start: int, depth: int) -> Node:
    items: list[Any] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        item = _value(text, at, depth + 1)
        items.append(item.value)
        at = _next(text, item.end, "]")
    return Node(start, at + 1, items)


def _next(text: str, at: int, closing: str) -> int:
    """After a member: over its comma, to the next member or the closing bracket."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise _broken(text, at, f'a comma, or "{closing}", is missing here')
    return at


def _skip(text: str, at: int) -> int:
    found = _SKIPPED.match(text, at)
    return at if found is None else found.end()


def _broken(text: str, at: int, problem: str) -> BrokenJson:
    line = text.count("\n", 0, at) + 1
    return BrokenJson(f"line {line}, column {at - (text.rfind(chr(10), 0, at) + 1) + 1}: {problem}")

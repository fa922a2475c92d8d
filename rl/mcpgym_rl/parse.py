"""The one parser of tool calls: evaluation and training both act on what this file says, and on nothing else.

:func:`parse` takes an assistant message and gives it back tidied, with each of its calls either parsed or malformed.
:func:`read_text` makes such a message of plain text with ``<tool_call>{json}</tool_call>`` blocks. Neither ever raises
for what a policy wrote; a malformed call says what was wrong and what would be right, and the policy reads that.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcpgym.messages import Message, ToolCall, assistant, tool_call

MAX_TEXT_CALLS = 64
"""How many ``<tool_call>`` blocks of one text are read; what follows them is one malformed call."""
MAX_ARGUMENTS = 200_000
"""How many characters the arguments of one call may have; a server would refuse a request much longer."""
MAX_DEPTH = 64
"""How deeply arguments may be nested."""

_TOO_MANY = f"more than {MAX_TEXT_CALLS} tool calls in one turn"
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"[ \t\n\r]*")
_EXPECTED = '{"name": "<tool>", "arguments": {…}}'


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call that can be sent: ``call`` as it stands in the message, and its arguments as an object."""

    call: ToolCall
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MalformedCall:
    """A call that cannot be sent; ``problem`` is what the policy reads as its answer."""

    call: ToolCall
    problem: str


def parse(message: Mapping[str, Any]) -> tuple[Message, list[ParsedCall | MalformedCall]]:
    """``message`` in the one shape transcripts have, and its calls in order.

    Arguments given as an object become JSON text, calls without an id get one, and lone surrogates (which no UTF-8
    file can hold) become U+FFFD; everything else stays as the policy wrote it. Of fields that no conversation needs,
    only a ``weight`` of 0 is kept. What is tidied once stays as it is, and its calls are read as before: transcripts
    can be replayed.
    """
    given = message.get("tool_calls")
    entries = given if isinstance(given, list) else [] if given is None else [given]
    calls: list[ParsedCall | MalformedCall] = []
    seen: set[str] = set()
    for position, entry in enumerate(entries):
        calls.append(_parse_entry(position, entry, seen))
        seen.add(calls[-1].call["id"])
    tidy = assistant(_text(message.get("content")), [call.call for call in calls])
    if isinstance(reasoning := message.get("reasoning_content"), str) and reasoning:
        tidy["reasoning_content"] = _text(reasoning)
    if message.get("weight") == 0:
        tidy["weight"] = 0
    return tidy, calls


def _parse_entry(position: int, entry: Any, seen: set[str]) -> ParsedCall | MalformedCall:
    function = entry.get("function", entry if "name" in entry else None) if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(function, Mapping):
        call = tool_call(f"call_{position}", "", _as_text(entry))
        return MalformedCall(call, _twice(call, seen) or _nameless(call["function"]["arguments"]))
    raw_name, raw_arguments = function.get("name"), function.get("arguments")
    name = _text(raw_name) if isinstance(raw_name, str) else ""
    arguments = _text(raw_arguments) if isinstance(raw_arguments, str) else _as_text(raw_arguments)
    given_id = entry.get("id")
    call = tool_call(_text(given_id) if isinstance(given_id, str) and given_id else f"call_{position}", name, arguments)
    if (problem := _twice(call, seen)) is not None:
        return MalformedCall(call, problem)
    if not name.strip():
        return MalformedCall(call, _nameless(arguments))
    if len(arguments) > MAX_ARGUMENTS:
        return MalformedCall(call, f"the arguments of {name[:80]} are over {MAX_ARGUMENTS} characters long")
    try:
        return ParsedCall(call, {} if raw_arguments is None or not arguments.strip() else load_object(arguments))
    except ValueError as error:
        return MalformedCall(call, f"the JSON of {name[:80]}'s arguments {error}")


def _twice(call: ToolCall, seen: set[str]) -> str | None:
    """What is wrong with a call whose id another one has; None where none has it."""
    if call["id"] not in seen:
        return None
    return f"another call of this turn has the id {call['id'][:80]!r} too; only the first was run"


def _nameless(arguments: str) -> str:
    """What is wrong with a call without a name. Malformed text blocks arrive here, their text as the arguments."""
    if not arguments.strip():
        return f"this tool call is empty; expected {_EXPECTED}"
    if arguments == _TOO_MANY:
        return f"{_TOO_MANY}; those after the {MAX_TEXT_CALLS}th were not run"
    try:
        load_object(arguments)
    except ValueError as problem:
        return f"the JSON of this tool call {problem}; expected {_EXPECTED}"
    return f"this tool call names no tool; expected {_EXPECTED}"


# Strict JSON: what is read here means one thing only.


def load_object(text: str) -> dict[str, Any]:
    """The JSON object that ``text`` is.

    Raises:
        ValueError: it is not one, has a key twice, a number that is not finite, or text that is no Unicode. The
            message continues a sentence ("the JSON of play's arguments …").
    """
    start = _space(text, 0)
    value, end = _decode(text, start)
    if end != len(text):
        kind = "has a second value" if text[end] in '{["' else "has text"
        raise ValueError(f"{kind} after the object, at character {end + 1}")
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, not {_kind(value)}")
    return value


def _decode(text: str, start: int) -> tuple[Any, int]:
    """The JSON value at ``start``, and where what follows it begins, white space skipped."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        what = "is cut off" if cut else f"is not valid: {error.msg[:1].lower()}{error.msg[1:]}"
        raise ValueError(f"{what}, at character {min(error.pos, len(text)) + 1}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except _Refused:
        raise
    except ValueError:  # int() refuses numbers of thousands of digits
        raise ValueError("has a number with too many digits") from None
    if text.count("{", start, end) + text.count("[", start, end) > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
    if text.find("\\u", start, end) >= 0 and not _is_unicode(value):
        raise ValueError("has half of a surrogate pair, which is no text")
    return value, _space(text, end)


class _Refused(ValueError):
    """JSON that Python would read, and that we do not."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Refused(f"has the key {twice[:80]!r} twice")
    return made


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Refused(f"has the number {text[:40]}, which is too large")
    return number


def _constant(text: str) -> Any:
    raise _Refused(f"has {text}, which JSON has not")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_float, parse_constant=_constant)


def _space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: Any) -> str:
    names = {bool: "true or false", str: "a string", list: "an array", type(None): "null"}
    return names.get(type(value), "a number")


# Text with calls in it (Hermes, Qwen).


def read_text(text: str) -> Message:
    """The assistant message that ``text`` means: its ``<tool_call>`` blocks become calls, the rest is its content.

    A block holds one JSON object with ``name`` and ``arguments`` (an object, or one as JSON text). A missing closing
    tag is forgiven where the JSON is whole. What stands before ``</think>`` is thought, not acted on. A malformed
    block becomes a call without a name whose arguments are the block's text, so :func:`parse` says what is wrong.
    """
    thought = text.find("</think>")
    rest = 0 if thought < 0 else thought + len("</think>")
    kept = [text[:rest]]
    calls: list[ToolCall] = []
    while (start := text.find(_OPEN, rest)) >= 0:
        kept.append(text[rest:start])
        if len(calls) == MAX_TEXT_CALLS:
            calls.append(tool_call(f"call_{len(calls)}", "", _TOO_MANY))
            rest = len(text)
            break
        name, arguments, rest = _read_block(text, start + len(_OPEN))
        calls.append(tool_call(f"call_{len(calls)}", name, arguments))
    kept.append(text[rest:])
    return assistant("".join(kept).strip(), calls)


def _read_block(text: str, start: int) -> tuple[str, str, int]:
    """The name, the arguments as JSON text, and the end of the block whose inside begins at ``start``."""
    begin = _space(text, start)
    try:
        value, end = _decode(text, begin)
    except ValueError:
        end = begin
    else:
        closed = text.startswith(_CLOSE, end)
        if closed or end == len(text) or text.startswith(_OPEN, end):
            after = end + len(_CLOSE) if closed else end
            name = value.get("name") if isinstance(value, dict) else None
            if not isinstance(name, str) or not name.strip():
                return "", text[begin:end].strip(), after
            return name, _as_text(value.get("arguments")), after
    ends = [place for tag in (_CLOSE, _OPEN) if (place := text.find(tag, end)) >= 0]
    stop = min(ends, default=len(text))
    after = stop + len(_CLOSE) if text.startswith(_CLOSE, stop) else stop
    return "", text[begin:stop].strip(), after


def write_text(message: Message) -> str:
    """The text that :func:`read_text` reads as ``message``: how a turn is shown to a model that speaks in text."""
    blocks = [message["content"]] if message["content"] else []
    for call in message.get("tool_calls", ()):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        try:
            body = json.dumps({"name": name, "arguments": load_object(arguments)}, ensure_ascii=False)
        except ValueError:
            body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) if name else arguments
        blocks.append(f"{_OPEN}\n{body}\n{_CLOSE}")
    return "\n".join(blocks)


def _as_text(value: Any) -> str:
    """A call's arguments as JSON text, whatever a policy put there."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _text(value)
    try:
        return _text(json.dumps(value, ensure_ascii=False, default=repr))
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return "" if value is None else _as_text(value)
    if value.isascii() or not _SURROGATE.search(value):
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

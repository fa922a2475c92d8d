"""Exceptions as text: only the frames of the code that a person wrote, with their source lines.

Written out here, because exceptions are hostile: their text may loop, fail or be huge, their classes may lie about
their names, their chain may be circular and a million frames long.
"""

from __future__ import annotations

import builtins
import linecache
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

globals()["__builtins__"] = dict(vars(builtins))  # what user code does to builtins does not reach these functions

EDGE_FRAMES = 20
"""How many frames are shown from either end of a long stack."""
MOST_LINKS = 8
"""How many exceptions of a chain, and how many of a group, are shown."""
MOST_TEXT = 1 << 20
"""How many characters of one exception's text are shown."""

_cause: Callable[[BaseException], BaseException | None] = vars(BaseException)["__cause__"].__get__
_context: Callable[[BaseException], BaseException | None] = vars(BaseException)["__context__"].__get__
_suppressed: Callable[[BaseException], bool] = vars(BaseException)["__suppress_context__"].__get__
_traceback: Callable[[BaseException], TracebackType | None] = vars(BaseException)["__traceback__"].__get__
_members: Callable[[Any], tuple[BaseException, ...]] = vars(BaseExceptionGroup)["exceptions"].__get__
_qualname: Callable[[type], Any] = vars(type)["__qualname__"].__get__
_module: Callable[[type], Any] = vars(type)["__module__"].__get__
_plain = str.__str__
_getline = linecache.getline

Ours = Callable[[str], bool]
"""Whether a file name is one of the user's own."""


def render(error: BaseException, ours: Ours, depth: int = 0) -> Iterator[str]:
    """The text of ``error`` and of what led to it, oldest first, as Python shows it; in pieces, each whole lines."""
    chain: list[tuple[BaseException, str]] = []
    seen: set[int] = set()
    link: BaseException | None = error
    joint = ""
    while link is not None and id(link) not in seen and len(chain) < MOST_LINKS:
        seen.add(id(link))
        chain.append((link, joint))
        cause = _cause(link)
        if cause is not None:
            link, joint = cause, "The above exception was the direct cause of the following exception:"
        else:
            link = None if _suppressed(link) else _context(link)
            joint = "During handling of the above exception, another exception occurred:"
    for one, following in reversed(chain):
        yield from _one(one, ours, depth)
        if following:
            yield f"\n{following}\n\n"


def _one(error: BaseException, ours: Ours, depth: int) -> Iterator[str]:
    frames = list(_frames(_traceback(error), ours))
    if frames:
        yield "Traceback (most recent call last):\n"
        yield from frames
    if is_a(error, SyntaxError):
        yield from _syntax(error)
    else:
        text = text_of(error)
        yield f"{name_of(type(error))}: {text}\n" if text else f"{name_of(type(error))}\n"
    yield from _notes(error)
    if is_a(error, BaseExceptionGroup) and depth < 3:
        members = _members(error)
        for number, member in enumerate(members[:MOST_LINKS], 1):
            yield f"  +---- {number} of {len(members)} ----\n"
            for piece in render(member, ours, depth + 1):
                yield "".join(f"  | {line}" for line in piece.splitlines(keepends=True))


def _frames(traceback: TracebackType | None, ours: Ours) -> Iterator[str]:
    first: list[tuple[str, int, str]] = []
    last: deque[tuple[str, int, str]] = deque(maxlen=EDGE_FRAMES)
    count = 0
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if ours(code.co_filename):
            count += 1
            entry = (code.co_filename, traceback.tb_lineno, code.co_name)
            if len(first) < EDGE_FRAMES:
                first.append(entry)
            else:
                last.append(entry)
        traceback = traceback.tb_next
    yield from _shown(first)
    if count > 2 * EDGE_FRAMES:
        yield f"  [... {count - 2 * EDGE_FRAMES} more frames ...]\n"
    yield from _shown(list(last))


def _shown(entries: list[tuple[str, int, str]]) -> Iterator[str]:
    repeated = 0
    previous: tuple[str, int, str] | None = None
    for entry in [*entries, None]:
        if entry is not None and entry == previous:
            repeated += 1
            if repeated >= 3:
                continue
        else:
            if repeated >= 3:
                yield f"  [Previous line repeated {repeated - 2} more time{'s' if repeated > 3 else ''}]\n"
            repeated = 0
            previous = entry
        if entry is None:
            return
        name, line, function = entry
        yield (
            f'  File "{name}", line {line}, in {function}\n'
            if function != "<module>"
            else (f'  File "{name}", line {line}\n')
        )
        source = _source(name, line).strip()
        if source:
            yield f"    {source[:200]}\n"


def _source(name: str, line: int) -> str:
    try:
        return _plain(_getline(name, line))
    except Exception:  # the file is gone, or somebody patched linecache
        return ""


def _syntax(error: Any) -> Iterator[str]:
    try:
        name, line, text, offset = error.filename, error.lineno, error.text, error.offset
        message, end = error.msg, error.end_offset if error.end_lineno == error.lineno else None
    except Exception:  # a subclass made them fail
        yield f"{name_of(type(error))}: {text_of(error)}\n"
        return
    if type(line) is int:
        yield f'  File "{name if type(name) is str else "<unknown>"}", line {line}\n'
    if type(text) is str and text.strip():
        shown = text.rstrip("\n")
        stripped = shown.lstrip(" \f\t")
        if len(stripped) <= 400:
            yield f"    {stripped}\n"
            if type(offset) is int and offset > 0:
                start = max(0, min(offset - 1, len(shown)) - (len(shown) - len(stripped)))
                width = end - offset if type(end) is int and end > offset else 1
                yield "    " + " " * start + "^" * max(1, min(width, len(stripped) - start)) + "\n"
    yield f"{name_of(type(error))}: {message if type(message) is str else text_of(error)}\n"


def _notes(error: BaseException) -> Iterator[str]:
    try:
        notes = error.__notes__
    except BaseException:
        return
    if type(notes) is list:
        for note in notes[:MOST_LINKS]:
            if type(note) is str:
                yield note[:MOST_TEXT] + "\n"


def is_a(error: BaseException, kind: type) -> bool:
    """``isinstance`` without asking the exception, which may lie about its class, or fail to say it."""
    return issubclass(type(error), kind)


def text_of(error: BaseException) -> str:
    """What an exception says of itself, or that it fails to."""
    try:
        return _plain(str(error))[:MOST_TEXT]
    except BaseException:
        return "<exception str() failed>"


def name_of(kind: type) -> str:
    """The name of an exception's class, with its module unless that is obvious."""
    name, module = _qualname(kind), _module(kind)
    name = name if type(name) is str else "?"
    return name if type(module) is not str or module in ("builtins", "__main__") else f"{module}.{name}"

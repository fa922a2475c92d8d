"""The files of an episode's session: opened with those of its problem, read as text, and the paths a policy writes."""

from __future__ import annotations

from dataclasses import dataclass

from mcpgym import ToolError
from mcpgym_environments.python_sandbox.observation import inline, size
from mcpgym_environments.python_sandbox.sessions.session import FileFault, Session
from mcpgym_environments.python_sandbox.state import InSandbox, Work

ROOT = "/work"
"""Where the workspace is for the code in the session."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text file: ``text`` are the bytes ``start`` to ``end`` of ``total``."""

    text: str
    start: int
    end: int
    total: int


async def opened(work: Work) -> Session:
    """The session of an episode; at first with the files of its problem, and with nothing else.

    Raises:
        SessionLost: it is gone, or none could be opened.
        ToolError: the episode has ended.
    """
    if work.closed:
        raise ToolError("the episode has ended")
    if work.session is None:
        session = await work.pool.open(work.session_seed)
        try:
            for name, content in ({} if work.problem is None else work.problem.files).items():
                await session.write(name, content)
        except BaseException:
            session.kill()
            raise
        if work.closed:
            session.kill()
            raise ToolError("the episode has ended")
        work.session = session
    return work.session


def released(state: InSandbox) -> None:
    """End the session of an episode, if it has one."""
    if state.session is not None:
        state.session.kill()
        state.session = None


async def read_text(session: Session, path: str, offset: int, characters: int) -> Part:
    """A part of a text file that begins at byte ``offset`` (or at the character after it).

    It has at most ``characters`` characters and ends with a line where one ends in its second half.

    Raises:
        ToolError: there is no such file, nothing at that place, or no text; it says what would be right.
        SessionLost: the session is gone.
    """
    data, rest = await session.read_part(inside(path), offset, 4 * characters + 4)
    if not data:
        if offset == 0 and not rest:
            return Part("", 0, 0, 0)
        raise ToolError(f"{inline(path)} has nothing at offset {offset}: it ends before; begin with offset=0")
    total, whole = offset + len(data) + rest, rest == 0
    if offset:
        skipped = next((count for count in range(min(4, len(data))) if data[count] & 0xC0 != 0x80), 0)
        offset, data = offset + skipped, data[skipped:]
    text = _text(path, data, offset, whole)[:characters]
    end = offset + len(text.encode())
    if end < total and (line := text.rfind("\n") + 1) > len(text) // 2:
        text = text[:line]
        end = offset + len(text.encode())
    return Part(text, offset, end, total)


def _text(path: str, data: bytes, offset: int, whole: bool) -> str:
    """``data`` as UTF-8; the last character may be cut off unless it is the ``whole`` rest of the file."""
    odd = -1
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data[: error.start].decode()
        if whole or error.reason != "unexpected end of data":
            odd = error.start
    odd = min((place for place in (data.find(0), odd) if place >= 0), default=-1)
    if odd >= 0:
        raise ToolError(
            f"{inline(path)} is no UTF-8 text: byte {offset + odd:,} is 0x{data[odd]:02x}. Read it in Python: "
            f"open({inside(path)!r}, 'rb'), or with the encoding it has"
        )
    return text


def inside(path: str) -> str:
    """``path`` as one in the workspace; a policy may also write it as its code sees it, from ``/work``.

    Raises:
        ToolError: it leads elsewhere, or is none.
    """
    named = path.strip()
    if named == ROOT or named.startswith(f"{ROOT}/"):
        named = named[len(ROOT) :].lstrip("/") or "."
    if not named or "\0" in named:
        raise ToolError(f"'{inline(path)}' is no path; write one in the workspace, such as data.csv")
    if named.startswith("/") or ".." in named.split("/"):
        raise ToolError(f"{inline(path)} is not in the workspace; write a path in it, such as data.csv")
    return named


def wrote(path: str, text: str) -> str:
    """What is said of a file that was written."""
    lines = text.count("\n") + bool(text and not text.endswith("\n"))
    return f"wrote {inline(inside(path))} ({lines:,} line{'' if lines == 1 else 's'}, {size(len(text.encode()))})"


async def unread(session: Session, fault: FileFault) -> ToolError:
    """What to say of a file that could not be read: the fault, and which files there are."""
    try:
        entries, _ = await session.list_part(".", 4)
    except FileFault:
        return fault
    files = [inline(entry.path) for entry in entries if entry.kind == "file"][:10]
    return ToolError(f"{fault}; there is: {', '.join(files) or 'no file at all'}")

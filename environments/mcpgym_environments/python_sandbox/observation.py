"""Everything the policy reads: the prompt, and the answers of the tools, short enough for small contexts.

What a run printed is the policy's own and hostile: bytes of any kind, of any length. It is decoded, characters that
would act on a terminal or hide text are written out, and its middle is cut where it is long. What the sandbox itself
says of a run stands in one last line in square brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mcpgym import Message
from mcpgym.messages import system, user

if TYPE_CHECKING:
    from mcpgym_environments.python_sandbox.sessions.answers import Entry
    from mcpgym_environments.python_sandbox.sessions.backend import SandboxLimits
    from mcpgym_environments.python_sandbox.sessions.session import Outcome
    from mcpgym_environments.python_sandbox.workspace import Part

SOLUTION = "solution.py"
"""The file that is graded where a task is to write a function."""
FILES = "\n\nIn the workspace: "
"""What stands in a prompt between the problem and the names of its files."""
WARN_CALLS = 3
"""When so few calls are left it is said."""
SPENT = (
    "[killed: the machine had no memory left, and this session held much of it; variables and files are lost, and the "
    "next call begins anew]"
)
"""What is said when a session was ended because it took a machine's memory."""
MOST_FILES = 200
"""Files and folders that one listing shows."""

_TOOLS = """\
`run_python` runs code as in a notebook: variables stay, and the value of a last expression is shown. `write_file`, \
`read_file` and `list_files` work on the files of the workspace, which is the current folder of the code"""
_ANSWER = "Submit the bare answer; where the task asks for code, write the file that it names before."

SYSTEM = f"""\
Solve the task with Python. {_TOOLS}; there is no network. `submit` hands in your solution, once, and ends the task."""
BY_ANSWER = """
Submit the bare answer in the form the task asks for, nothing else; do not guess, compute it."""
BY_CODE = f"""
Write your code to {SOLUTION}, then call `submit` without an answer. It is graded by hidden tests that import it and \
call the function; the score is the share that it passes."""
THOUGHTS = """
In every turn, think first, briefly, inside <think> and </think>: What do I know, and what must I find out next? Then \
call one tool."""
OPEN_PROMPT = f"""\
Somebody works with you in a Python notebook that is shut off from everything else: run what they ask for, and show \
what came out. {_TOOLS}; there is no network. `submit` ends the visit; there is no need for it."""

INSTRUCTIONS = f"""\
A Python sandbox. {_TOOLS}. There is no network, and nothing else of the machine is visible. Long output is cut in its \
middle; the last line in square brackets, if any, says how the run ended. `submit` hands in the solution of the \
task, once, and ends it. {_ANSWER}"""


def prompt(
    text: str | None, *, by_code: bool, files: Iterable[str], packages: Sequence[str], thoughts: bool, steps: int
) -> tuple[Message, ...]:
    """The task in words; without a ``text`` it is an open visit, which has no limits."""
    libraries = f"Besides the standard library there is: {', '.join(packages)}." if packages else ""
    if text is None:
        return (user(f"{OPEN_PROMPT} {libraries}".rstrip()),)
    if not packages:
        libraries = "There is the standard library alone."
    given = sorted(files)
    rules = f"{SYSTEM} {libraries}{BY_CODE if by_code else BY_ANSWER}{THOUGHTS if thoughts else ''}"
    rules += f"\nYou may run, write, read and list {steps} times in all."
    return (system(rules), user(text + (FILES + ", ".join(given) if given else "")))


def show_run(outcome: Outcome, limits: SandboxLimits, most: int) -> str:
    """What a run printed, at most about ``most`` characters of it, and how it ended where that is worth a line."""
    text = show_output(outcome.output, outcome.omitted, most)
    if outcome.status in ("error", "timeout"):
        text = _HEADING.sub("", text)
    ended = _ended(outcome, limits)
    return "\n".join(line for line in [text.removesuffix("\n"), ended] if line) or "(no output)"


def _ended(outcome: Outcome, limits: SandboxLimits) -> str:
    """How a run ended, in a line; nothing where it simply came to its end."""
    match outcome.status, outcome.why:
        case ("ok" | "error", _):
            return ""
        case ("timeout", _):
            how = f"timed out after {limits.seconds:g} s and was interrupted"
        case ("killed", "timeout"):
            how = f"killed: it ran for {limits.seconds:g} s and did not stop when it was interrupted"
        case ("killed", "cpu"):
            how = f"killed: over {limits.cpu_seconds:g} s of processor time"
        case ("killed", "memory"):
            how = f"killed: over {_bytes(limits.memory)} of memory"
        case ("killed", "asks"):
            how = "killed: it asked the model far too often"
        case ("killed", "disk"):
            how = f"killed: over {_bytes(limits.workspace_bytes)} of files"
        case ("killed", why):
            how = f"killed{f': {inline(why)}' if why else ''}"
        case (_, str() as why) if why.startswith("exit "):
            how = f"Python ended itself with exit code {inline(why.removeprefix('exit '))}"
        case (_, str() as why) if why.startswith("signal "):
            how = f"Python crashed with {inline(why.removeprefix('signal '))}"
        case (status, why):
            how = f"{status}{f': {inline(why)}' if why else ''}"
    return f"[{how}; {'files are kept, variables are lost' if outcome.fresh else 'variables are kept'}]"


def show_left(left: int) -> str:
    """A line that says how many calls are left when they are few; else nothing."""
    if left > WARN_CALLS:
        return ""
    return f"[{left} call{'' if left == 1 else 's'} left]" if left > 0 else "[no calls left: submit]"


def show_output(output: bytes, omitted: int, most: int) -> str:
    """Bytes as text of at most about ``most`` characters: a beginning and an end, and between them how much was cut.

    ``omitted`` is how many bytes the jail itself has left out, in the middle of ``output``.
    """
    if omitted <= 0:
        return cut(escaped(decoded(output)), most)
    half = len(output) // 2
    head, tail = (escaped(decoded(part)) for part in (output[:half], output[half:]))
    return _joined(head, tail, omitted, most)


def cut(text: str, most: int) -> str:
    """``text`` with its middle cut out where it is longer than ``most`` characters."""
    if len(text) <= most:
        return text
    half = len(text) // 2
    return _joined(text[:half], text[half:], 0, most)


def _joined(head: str, tail: str, omitted: int, most: int) -> str:
    """The beginning of ``head`` and the end of ``tail``, and what is missing between them."""
    first, last = head[: (most + 1) // 2], tail[max(len(tail) - most // 2, 0) :] if most > 1 else ""
    missing = len(head) - len(first) + len(tail) - len(last) + omitted
    before, after = "" if first.endswith("\n") else "\n", "" if last.startswith("\n") else "\n"
    return f"{first}{before}… {missing:,} characters cut …{after}{last}"


def decoded(data: bytes) -> str:
    """Bytes as text: UTF-8, what is none of it as ``\\xff``."""
    return data.decode("utf-8", "backslashreplace")


_HEADING = re.compile(r"^((?:  \| )*)Traceback \(most recent call last\):\n", re.MULTILINE)
"""The first line of a traceback, also of one in a group; it says nothing that the lines below do not."""
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but tab and line feed, marks that change the direction of text, invisible ones, surrogates."""


def escaped(text: str) -> str:
    """``text`` with everything that acts on a terminal, hides, or turns what follows written out as ``\\x1b``."""
    if text.isprintable():
        return text
    return _ACTING.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def inline(text: str, limit: int = 100) -> str:
    """What somebody else wrote, in one line and not too long: a name, a path, a reason."""
    line = escaped(text).replace("\n", "\\n").replace("\t", "\\t")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def show_files(entries: Sequence[Entry], omitted: int) -> str:
    """A line for each file and folder of the workspace, by its path; ``omitted`` is how many others there are."""
    lines = [_line(entry) for entry in entries[:MOST_FILES]] or ["(no files)"]
    if omitted := omitted + max(len(entries) - MOST_FILES, 0):
        lines.append(f"… and {omitted:,} more; list them in Python")
    return "\n".join(lines)


def _line(entry: Entry) -> str:
    name = inline(entry.path, 300)
    if entry.kind == "file":
        return f"{name} ({size(entry.size)})"
    return f"{name}/" if entry.kind == "directory" else f"{name} ({inline(entry.kind)})"


def show_part(part: Part) -> str:
    """A part of a file, and where the next one begins; a whole short file is its text alone."""
    shown, last = escaped(part.text), ""
    if part.total == 0:
        last = "(an empty file)"
    elif part.start or part.end < part.total:
        more = f"go on with offset={part.end}" if part.end < part.total else "the end"
        last = f"[bytes {part.start:,} to {part.end:,} of {part.total:,}; {more}]"
    return "\n".join(line for line in [shown.removesuffix("\n"), last] if line)


def size(count: int) -> str:
    """A number of bytes for people."""
    return "1 byte" if count == 1 else f"{count:,} bytes"


def _bytes(count: int) -> str:
    """A limit in bytes, as short as it can be said: ``1.5 GB``, ``64 MB``."""
    for unit, factor in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if count >= factor:
            return f"{round(count / factor, 1):g} {unit}"
    return size(count)

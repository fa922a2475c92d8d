"""Policies to compare with. They see what any policy sees: the messages.

``expert`` recognises the problem by its wording, for it can make every problem of the splits again, with its reference
solution. It goes the way of everybody: it runs the solution with ``run_python`` and submits what that printed, or
writes it to ``solution.py`` and submits that. It shows that every problem can be solved by what the tools can do, and
by how few calls; not that one would find the solution. ``random`` makes a few calls that are allowed and submits what
solves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from mcpgym import Message
from mcpgym.messages import assistant, tool_call
from mcpgym_environments.python_sandbox.finding import Finder
from mcpgym_environments.python_sandbox.observation import BY_CODE, FILES, SOLUTION

_SNIPPETS = (
    "1 + 1",
    "sorted('sandbox')",
    "import math\nmath.factorial(20)",
    "for number in range(3):\n    print(number)",
    "1 / 0",
)
_ACTS = ("run_python", "write_file", "read_file", "list_files")
_NOTHING = "# There is nothing here that solves the task.\n"


class Expert:
    """Runs the reference solution with the real tools."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder

    def __call__(self, messages: Sequence[Message], random: Random) -> Message:
        """The next step: the solution; then what it printed, or the file that it stands in."""
        text = task_text(messages)
        problem = None if text is None else self._finder.find(text)
        if problem is None:
            return call(messages, "I do not know this task.", "submit", answer="unknown")
        answered = _answered(messages)
        if problem.tests is not None:
            if "write_file" in answered:
                return call(messages, "It is written: hand it in.", "submit")
            return call(messages, "I know how to write this.", "write_file", path=SOLUTION, text=problem.solution)
        if "run_python" in answered:
            return call(messages, "That is the answer.", "submit", answer=answered["run_python"].strip())
        return call(messages, "I know how to compute this.", "run_python", code=problem.solution)


def wander(messages: Sequence[Message], random: Random) -> Message:
    """Any tool, to no purpose; after about three calls it submits what solves nothing."""
    match "submit" if random.random() < 1 / 3 else random.choice(_ACTS):
        case "run_python":
            return call(messages, "", "run_python", code=random.choice(_SNIPPETS))
        case "write_file":
            return call(messages, "", "write_file", path=random.choice([SOLUTION, "notes.txt"]), text=_NOTHING)
        case "read_file":
            return call(messages, "", "read_file", path=random.choice([SOLUTION, "notes.txt"]))
        case "list_files":
            return call(messages, "", "list_files")
    if by_code(messages) and not _wrote_solution(messages):
        return call(messages, "", "write_file", path=SOLUTION, text=_NOTHING)
    return call(messages, "", "submit", answer=f"a guess: {random.getrandbits(40)}")


def task_text(messages: Sequence[Message]) -> str | None:
    """The text of the problem, as the user said it; None where nobody set one: no rules stand before what is said."""
    said = [message["content"] for message in messages if message["role"] in ("system", "user")]
    return said[1].partition(FILES)[0] if len(said) > 1 else None


def by_code(messages: Sequence[Message]) -> bool:
    """Whether a file is graded, not an answer."""
    return any(message["role"] == "system" and BY_CODE in message["content"] for message in messages)


def _answered(messages: Sequence[Message]) -> dict[str, str]:
    """The last answer of each tool that did what was asked, by the tool's name."""
    return {
        message["name"]: message["content"]
        for message in messages
        if message["role"] == "tool" and not message.get("is_error")
    }


def _wrote_solution(messages: Sequence[Message]) -> bool:
    return any(
        made["function"]["name"] == "write_file" and json.loads(made["function"]["arguments"])["path"] == SOLUTION
        for message in messages
        for made in message.get("tool_calls", ())
    )


def call(messages: Sequence[Message], thought: str, tool: str, **arguments: str) -> Message:
    """A turn that calls ``tool``, after thinking ``thought`` where there is one."""
    made = tool_call(f"call_{len(messages)}", tool, json.dumps(arguments, ensure_ascii=False))
    return assistant(f"<think>{thought}</think>" if thought else "", [made])

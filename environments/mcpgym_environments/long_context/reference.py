"""Policies to compare with. They see what any policy sees: the messages.

``expert`` cuts the text into pieces that the sub-model can read, asks about each, and puts the answers together.
``flat`` does the same with the first piece alone: it never looks at what does not fit into one window. ``random``
runs this and that, and guesses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random

from mcpgym import Message
from mcpgym.messages import assistant, tool_call
from mcpgym_environments.long_context.asking.reader import MARK
from mcpgym_environments.long_context.made import chain, compare, tally

PIECES = '''\
def asked(text, question):
    """What the model says of each piece of a text: whole lines, as many as it can read at once."""
    question = "\\n" + question
    most, pieces, start = {window} - len(question), [], 0
    while start < len(text):
        end = start + most
        if end < len(text):
            end = text.rfind("\\n", start, end) + 1 or end
        pieces.append(text[start:end] + question)
        start = end
    return [said for said in llm_batch(pieces) if said != "none"]
'''
FLAT = """\
context = context[: {window} - 200]  # what fits

"""
CHAIN = """
holder = {holder!r}
for _ in range({hops}):
    about = "\\n".join(line for line in context.splitlines() if holder in line)
    holder = asked(about, f"{question}")[0]
print(holder)
"""
TALLY = """
said = asked(context, "{question}")
print({function}([int(number) for answer in said for number in answer.split(", ")]))
"""
COMPARE = """
def count(name):
    section = context.split(f"Here begins the {name} count.\\n")[1].split(f"Here ends the {name} count.")[0]
    lines = "\\n".join(asked(section, "QUESTION")).splitlines()
    return {{house: int(number) for house, number in (line.split(" = ") for line in lines)}}

spring, winter = count("spring"), count("winter")
gains = {{house: winter[house] - spring[house] for house in spring}}
print({result})
"""
LEDGER = """\
import re

print(sum(int(paid) for paid in re.findall(r"\\[entry \\d+: {town}, paid (\\d+)\\]", context)))
"""
RESULTS = {"gained": "sum(gain > 0 for gain in gains.values())", "most": "max(gains, key=gains.get)"}
FUNCTIONS = {"total": "sum", "largest": "max", "deliveries": "len"}

_CHAIN = re.compile(r"([A-Z]\w+ [A-Z]\w+) has (the \w+), and it is handed on (\d+) times")
_LEDGER = re.compile(r"What did (\w+) pay in all\?")
_SNIPPETS = ("len(context)", "context[:500]", "context.count('the')", "llm('Who are you?')", "1 / 0")


def solution(question: str, window: int, *, flat: bool = False) -> str | None:
    """Code that finds the answer to a question; None for one that is not of these tasks.

    Args:
        question: as the user put it.
        window: characters that the sub-model reads at once.
        flat: whether only what fits into one window is looked at.
    """
    body = _body(question)
    if body is None or body.startswith("import"):  # code alone will do
        return body
    return (FLAT.format(window=window) if flat else "") + PIECES.format(window=window) + body


def _body(question: str) -> str | None:
    if found := _CHAIN.search(question):
        asked = MARK + chain.ASKED.format(a="{holder}", o=found[2])
        return CHAIN.format(holder=found[1], hops=found[3], question=asked)
    if found := _LEDGER.search(question):
        return LEDGER.format(town=found[1])
    for kind, (text, _) in tally.KINDS.items():
        form = re.escape(text).replace(r"\{g\}", r"(?P<g>\w+)").replace(r"\{p\}", r"(?P<p>\w+)")
        if found := re.search(form, question):
            asked = MARK + tally.ASKED.format(g=found["g"], p=found["p"])
            return TALLY.format(question=asked, function=FUNCTIONS[kind])
    for kind, text in compare.KINDS.items():
        if text in question:
            return COMPARE.format(name="{name}", result=RESULTS[kind]).replace("QUESTION", MARK + compare.ASKED)
    return None


class Solver:
    """Runs the code that solves a task, and submits what it printed.

    Args:
        window: characters that the sub-model reads at once.
        flat: whether it looks only at what fits into one window.
    """

    def __init__(self, window: int, *, flat: bool = False) -> None:
        self._window, self._flat = window, flat

    def __call__(self, messages: Sequence[Message], random: Random) -> Message:
        """The next step."""
        last = messages[-1]
        if last["role"] == "tool" and last["name"] == "run_python" and not last.get("is_error"):
            printed = last["content"].split("\n[")[0].strip()
            failed = "Error" in printed or not printed or "\n" in printed
            return _call(messages, "submit", answer="unknown" if failed else printed)
        questions = [message["content"] for message in messages if message["role"] == "user"]
        code = solution(questions[-1], self._window, flat=self._flat) if questions else None
        if code is None or last["role"] == "tool":
            return _call(messages, "submit", answer="unknown")
        return _call(messages, "run_python", code=code)


def wander(messages: Sequence[Message], random: Random) -> Message:
    """Runs to no purpose; after about two it submits a guess."""
    if random.random() < 0.4:
        return _call(messages, "submit", answer=str(random.randint(1, 1_000)))
    return _call(messages, "run_python", code=random.choice(_SNIPPETS))


def _call(messages: Sequence[Message], tool: str, **arguments: str) -> Message:
    return assistant("", [tool_call(f"call_{len(messages)}", tool, json.dumps(arguments, ensure_ascii=False))])

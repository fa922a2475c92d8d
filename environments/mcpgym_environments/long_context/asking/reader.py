"""The built-in sub-model: a small reader without a network, which understands three kinds of question.

It reads sentence by sentence and by rules: it knows the wordings, the other words for things and the ways to write
numbers that the made texts have (those of ``made/``), and nothing else. It is no language model. It is exact on what
it understands, reads only so much at once, and says so where it does not understand. That makes it a fair stand-in
where tasks are to be solved offline and the same every time: what it cannot do is read more than its window.
"""

from __future__ import annotations

import re

from mcpgym_environments.long_context.made import chain, compare, tally

MARK = "Question: "
"""How the last line of a prompt begins."""
_SENTENCE = re.compile(r"[^.\n]+\.")


def forms() -> list[str]:
    """The questions that it understands; what stands in braces is a name."""
    return [
        chain.ASKED.format(a="{person}", o="{thing}"),
        tally.ASKED.format(g="{goods}", p="{town}"),
        compare.ASKED,
    ]


PUZZLED = "I do not understand the question. The last line must be one of: " + " / ".join(
    MARK + form for form in forms()
)


class Reader:
    """Answers a prompt that ends with a line ``Question: …`` from the text above it.

    Args:
        window: how many characters a prompt may have.
    """

    def __init__(self, window: int) -> None:
        self.window = window

    def read(self, prompt: str) -> str:
        """The answer; nothing of an earlier prompt is remembered."""
        if len(prompt) > self.window:
            return f"I can read {self.window:,} characters at once, and this has {len(prompt):,}."
        text, _, asked = prompt.rstrip().rpartition("\n")
        if not asked.startswith(MARK):
            return PUZZLED
        sentences = [found.lstrip() for found in _SENTENCE.findall(text)]
        for family in (chain, tally, compare):
            said = family.read(asked[len(MARK) :], sentences)
            if said is not None:
                return str(said)
        return PUZZLED

    async def __call__(self, prompt: str) -> str:
        """As :meth:`read`: it takes under a millisecond for each thousand characters."""
        return self.read(prompt)

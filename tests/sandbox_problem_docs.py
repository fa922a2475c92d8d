"""Writes docs/sandbox-problems.md: ``python -m tests.sandbox_problem_docs``. A test keeps it current."""

from __future__ import annotations

from pathlib import Path

from mcpgym_clients.cards.tables import table
from mcpgym_environments.python_sandbox.problems.answers import answer_text
from mcpgym_environments.python_sandbox.problems.catalogue import all_generators, find_generator, make_problem
from mcpgym_environments.python_sandbox.problems.problem import FAMILIES, LEVELS

PAGE = Path(__file__).parents[1] / "docs" / "sandbox-problems.md"

ABOUT = {
    "compute": "A question that takes computing; what is submitted must be its answer, exactly.",
    "data": "Files in the workspace and a question about them; what is submitted must be its answer, exactly.",
    "function": "A function to write into `solution.py`, tested with inputs that are made for the episode.",
    "debug": "A broken `solution.py` and what it does wrong; what is mended is tested in the same way.",
}

HEAD = """\
# The problems of the Python sandbox

This page is generated from the generators (`python -m tests.sandbox_problem_docs`).

Every problem is made from its place in the catalogue: no problem is copied from anywhere, and the same task is the same
problem in every process and configuration. `--config families=compute,data`, `--config generators=prime-search,web-visits`,
`--config min_level=2` and `--config max_level=4` choose which are made; consecutive tasks go through all pairs of a generator and a
level. **Levels** are 1 to 5: numbers grow until the obvious loop takes too long, files until nobody reads them, and rules are
added (missing values, late corrections, other encodings, limits).

**The splits share no problem.** Whether a problem belongs to train or test is a bit of a digest of its parameters (of its text,
where these are in a file): two wordings of one problem are always on the same side.

"""  # noqa: E501

JUDGED = """\
## How an answer is judged

One typed match of the whole text, in the server. Nothing passes through a floating-point number, nothing is evaluated.

| answer | right | wrong |
| --- | --- | --- |
| a number | `1234`, `1,234`, `1 234`, `1_234`, `1234.0`, `1.234e3`, `2468/2` | `1.234`, `about 1234`, `1234 or 1235`, `2*617`, `1234 kg` |
| a fraction | `1/3`, `2/6`, `\\frac{1}{3}`; `0.25` where it is exact | `0.3333` |
| a rounded number | the number rounded as the text says: `17.25`, `17.250` | more digits than asked for, where they differ |
| a date | `2024-02-29` | any other form |
| a list | `3, 1, 2`, `[3, 1, 2]`, one on each line | another order, where order counts; one item more |
| a word | in any case, unless the text shows that it matters | a sentence around it |
| a sum of roots | `3 + 7/2*sqrt(5)`; with the extra `sandbox` also `\\frac{6+7\\sqrt{5}}{2}` | `10.8262` |

Quotes, `**`, backticks, `$`, `\\boxed{}` and a full stop around the whole are taken off; prose is not. At most 2,000 characters
are looked at. A formula that the strict match does not read is read by math-verify, in a process of its own with limits, and
compared exactly.
"""  # noqa: E501


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for family in FAMILIES:
        generators = [generator for generator in all_generators().values() if generator.family == family]
        rows = [
            [f"`{generator.name}`", f"{generator.levels[0]} to {generator.levels[-1]}", generator.summary]
            for generator in generators
        ]
        parts += [f"## {family}\n\n{ABOUT[family]}\n\n", table(["generator", "levels", "what it is about"], rows), "\n"]
        example = make_problem(find_generator(generators[0].name), LEVELS[1], "train", 0)
        parts.append(f"An example, `{example.generator}` at level {example.level}:\n\n```text\n{example.text}\n```\n\n")
        if example.files:
            sizes = ", ".join(f"`{name}` ({len(content):,} bytes)" for name, content in example.files.items())
            parts.append(f"In the workspace: {sizes}." + ("\n\n" if example.answer is None else " "))
        if example.answer is not None:
            parts.append(f"The answer is `{answer_text(example.answer)}`.\n\n")
    return "".join([*parts, JUDGED])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""What the policy reads before it begins."""

from __future__ import annotations

from mcpgym import Message
from mcpgym.messages import system, user
from mcpgym_environments.long_context.asking.reader import MARK, forms
from mcpgym_environments.long_context.config import LongContextConfig
from mcpgym_environments.long_context.made.families import question
from mcpgym_environments.long_context.made.plan import Plan

FILE = "context.txt"
"""The file with the text, in the code's folder."""
LOAD = f"context = __import__('pathlib').Path({FILE!r}).read_text('ascii')"
"""What gives code the variable."""

INSTRUCTIONS = """\
A question about a text that is too long to read. `run_python` runs code in a Python notebook without a network; the \
text is its variable `context`. Variables stay for the next run, the value of a last expression is shown, and long \
output is cut in its middle: never print the text, look at pieces. In the code, `llm(prompt)` asks another model, \
which knows nothing but the prompt and reads a limited number of characters; `llm_batch(prompts)` asks several at \
once. So cut the text up, ask about the pieces, and put the answers together. `submit` hands in the bare answer, \
once, and ends the task."""


def prompt(plan: Plan, config: LongContextConfig) -> tuple[Message, ...]:
    """The rules, and the question."""
    rules = (
        f"Answer a question about a text of about {plan.size:,} characters. You cannot read it whole: it is the "
        f"variable `context` (a str of lines) in a Python notebook, and the file {FILE}. `run_python` runs code there, "
        f"with the standard library and without a network; variables stay, the value of a last expression is shown, "
        f"and of more than {config.output_characters:,} characters of output the middle is cut. You have "
        f"{config.max_runs} runs."
    )
    if config.sub_model != "none":
        rules += (
            f"\nIn the code, `llm(prompt)` gives another model's answer to a text. It knows nothing but the prompt, "
            f"which may have {config.window:,} characters. `llm_batch(prompts)` gives the answers to several, in a "
            f"list. In all you may ask {config.sub_calls:,} prompts with {config.sub_characters:,} characters together."
        )
    if config.sub_model == "reader":
        asked = "\n".join(MARK + form for form in forms())
        rules += (
            f"\nThat model is a simple reader. A prompt is a piece of the text, and then a last line that is one of "
            f"these questions, word for word, with names from the text for what is in braces:\n{asked}"
        )
    rules += "\n`submit` hands in the bare answer, a number or a name, once, and ends the task. Do not guess."
    return (system(rules), user(question(plan)))

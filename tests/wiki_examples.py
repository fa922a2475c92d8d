"""Writes the examples of docs/wiki-search.md anew: ``python -m tests.wiki_examples``. A test keeps them current."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from mcpgym import Environment, load_environment
from mcpgym.episodes import Episodes
from mcpgym.messages import tool_answer

PAGE = Path(__file__).parents[1] / "docs" / "wiki-search.md"


def episode(environment: Environment[Any, Any, Any]) -> str:
    """What is asked, called and answered when the expert plays the first task of two facts in a row."""
    tasks = environment.tasks("test")
    index = next(index for index, task in enumerate(tasks) if (task.info["kind"], task.info["hops"]) == ("chain", 2))
    return "```text\n" + "\n".join(asyncio.run(_played(environment, index))) + "\n```\n"


async def _played(environment: Environment[Any, Any, Any], index: int) -> list[str]:
    episodes = Episodes({environment.name: environment})
    running = await episodes.open(environment.name, split="test", index=index, seed=0)
    act: Any = environment.reference_policies()["expert"]
    messages = list(running.messages)
    lines = [messages[-1]["content"]]
    while not running.done:
        messages.append(act(messages, Random(0)))
        (call,) = messages[-1]["tool_calls"]
        function = call["function"]
        arguments = ", ".join(
            json.dumps(value, ensure_ascii=False) for value in json.loads(function["arguments"]).values()
        )
        result = await running.call(function["name"], json.loads(function["arguments"]))
        messages.append(tool_answer(call, result.text, is_error=result.is_error))
        lines += ["", f"> {function['name']}({arguments})", result.text]
    await episodes.aclose()
    return lines


def questions(environment: Environment[Any, Any, Any], count: int) -> Iterator[str]:
    """The first questions of the test split, with their answers."""
    for index in range(count):
        task = environment.tasks("test")[index]
        yield f"{index + 1}. {task.messages[-1]['content']} *{task.info['wanted']}*\n"


def page(old: str) -> str:
    """``old`` with the examples as they are now."""
    environment = load_environment("wiki-search")
    made = {"episode": episode(environment), "questions": "".join(questions(environment, 50))}
    for name, text in made.items():
        before, begins, rest = old.partition(f"<!-- {name} -->\n")
        _, ends, after = rest.partition(f"<!-- end of {name} -->\n")
        assert begins
        assert ends
        old = before + begins + "\n" + text + "\n" + ends + after
    return old


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")

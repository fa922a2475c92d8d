"""Writes docs/bundled.md from the environments: ``python -m tests.bundled_docs``. A test keeps it current."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mcpgym import Environment, load_environment
from mcpgym.asking import settle
from mcpgym_clients.cards.tables import code, contract, facts

PAGE = Path(__file__).parents[1] / "docs" / "bundled.md"
NAMES = ("tic-tac-toe", "reverse-text", "double-check", "wiki-search", "python-sandbox", "long-context")
HEAD = """\
# The bundled environments

This page is generated from the environments (`python -m tests.bundled_docs`); `mcpgym list NAME` shows the same.
"""


def section(environment: Environment[Any, Any, Any]) -> str:
    """What a reader wants to know of one environment."""
    first = environment.tasks(environment.splits[-1])[0]
    state: Any = asyncio.run(settle(environment.reset(first, 0)))
    prompt = "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in environment.messages(first, state))
    parts = [f"## {environment.name}\n", facts(environment), *contract(environment)]
    return "\n".join([*parts, f"**The prompt of `{first.id}`**\n", code(prompt)])


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(section(load_environment(name)) for name in NAMES)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

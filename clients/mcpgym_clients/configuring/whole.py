"""All commands of the command line, each with its options, as one that is run has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

Words = tuple[str, ...]


def whole_command_line() -> tuple[Any, Any]:
    """The command line and its context."""
    from mcpgym_clients.cli import app

    root: Any = typer.main.get_command(app)
    return root, root.context_class(root, info_name="mcpgym")


def all_commands(root: Any, context: Any) -> Iterator[tuple[Words, Any, Any]]:
    """Each command that can be configured: its words, itself, and a context for it."""
    for name, command in root.commands.items():
        if name == "config" or command.hidden:
            continue
        own = command.context_class(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from (((name, *words), inner, below) for words, inner, below in all_commands(command, own))
        else:
            yield (name,), command, own

"""The page of commands, made from the command line itself: ``python -m tests.website.commands`` prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from mcpgym_clients.cards.tables import table
from mcpgym_clients.cli import app
from mcpgym_clients.failures import FAILURE, INTERRUPTED, USAGE

HEAD = f"""\
# Commands

This page is made from the commands themselves whenever the site is built; `mcpgym COMMAND --help` says the same.

Every command exits with 0 when it did what was asked and all is well; {FAILURE} when something is not, such as a check
that found something, a goal that was not reached, or a server that did not answer; {USAGE} when what was asked for does
not exist; and {INTERRUPTED} when it was interrupted. Results go to standard output, everything else to standard error.

"""
SUBJECTS = {
    "Play": ("demo", "list", "play", "connect", "bundle"),
    "Serve": ("serve", "top"),
    "Write environments": ("new", "check", "config", "env", "wrap"),
    "Evaluate": ("eval", "compare", "show", "view", "leaderboard", "export"),
    "Train": ("train", "certify", "new-model", "import-gguf", "collect", "sft"),
    "Trust": ("replay", "key", "verify", "scan", "doctor", "stress"),
}
OTHERS = "Further commands"
BOUNDS = re.compile(r" {2}\[(?P<bounds>[^\]]*)\]$")
MARKUP = re.compile(r"\[/?(?:cyan|bold|green|red|yellow|dim|italic)\]")


def page() -> str:
    """The whole page."""
    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="mcpgym")
    commands: dict[str, Any] = {name: root.get_command(context, name) for name in root.list_commands(context)}
    subjects = {subject: [name for name in names if name in commands] for subject, names in SUBJECTS.items()}
    placed = {name for names in subjects.values() for name in names}
    subjects[OTHERS] = [name for name in commands if name not in placed and not commands[name].hidden]
    parts = [HEAD]
    for subject, names in subjects.items():
        if names:
            parts.append(f"## {subject}\n\n")
        for name in names:
            parts += command(commands[name], f"mcpgym {name}", context)
    return "".join(parts)


def command(what: Any, name: str, parent: Any) -> Iterator[str]:
    """The part of the page about one command, and of those below it."""
    context = what.context_class(what, info_name=name.rpartition(" ")[2], parent=parent)
    usage = " ".join([name, *what.collect_usage_pieces(context)])
    yield f"### {name}\n\n{_prose(what.help or '')}\n\n```text\n{usage}\n```\n\n"
    records = [record for item in what.params if (record := item.get_help_record(context)) is not None]
    if records:
        yield table(["option", "what it does"], [_row(*record) for record in records]) + "\n"
    if what.epilog:
        yield _prose(what.epilog) + "\n\n"
    for below in getattr(what, "commands", {}).values():
        if not below.hidden:
            yield from command(below, f"{name} {below.name}", context)


def _row(names: str, text: str) -> list[str]:
    """An option's line: its names, its help, and what typer adds to that in brackets."""
    found = BOUNDS.search(text)
    if found is None:
        return [f"`{names}`", _prose(text)]
    bounds = found["bounds"].replace("default: ", "default ").replace("; ", ", ")
    return [f"`{names}`", f"{_prose(text[: found.start()])} ({_prose(bounds)})"]


def _prose(text: str) -> str:
    """Help as Markdown: no markup of rich's, and what would be HTML or emphasis written as it is."""
    text = MARKUP.sub("", text.replace("\b\n", ""))
    return re.sub(r"([<>*_\[\]~$\\])", r"\\\1", text)


if __name__ == "__main__":
    print(page(), end="")

"""``mcpgym config show``: what options are set to, and by what."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from mcpgym_clients.configuring import environments
from mcpgym_clients.configuring.applying import bind, values_for
from mcpgym_clients.configuring.files import ConfigFile, ConfigurationProblem, read_files, shown
from mcpgym_clients.configuring.names import key_of, no_such, options_of
from mcpgym_clients.configuring.secrecy import HIDDEN, masked
from mcpgym_clients.configuring.tables import Value, commands_in
from mcpgym_clients.configuring.whole import all_commands, whole_command_line
from mcpgym_clients.console import escaped, out
from mcpgym_clients.failures import UsageProblem

SECRETS = {
    "MCPGYM_CONTROL_SECRET": "the control plane's secret",
    "MCPGYM_CONTROL_SECRET_FILE": "a file with it",
    "MCPGYM_SIGNING_KEY": "the file of the key that signs scores",
    "OPENAI_API_KEY": "for openai: and openai-responses: policies",
    "ANTHROPIC_API_KEY": "for anthropic: policies",
}
"""Variables that are no option's, and are never shown; a file's path is."""

Row = dict[str, Any]


def run(words: Sequence[str], given: Path | None, *, as_json: bool) -> None:
    """Show the configuration.

    Args:
        words: the command whose options are shown, all of them; without any, what is set for every command.
        given: the file that was named.
        as_json: print JSON.

    Raises:
        UsageProblem: there is no such command.
        ConfigurationProblem: a file or a variable is wrong.
    """
    root, context = whole_command_line()
    files = read_files(given)
    wanted = tuple(word for item in words for word in item.split())
    commands = [item for item in all_commands(root, context) if not wanted or item[0][: len(wanted)] == wanted]
    if not commands:
        names = [" ".join(item[0]) for item in all_commands(root, context)]
        raise UsageProblem(f"config show {' '.join(wanted)}: {no_such('command', ' '.join(wanted), names)}")
    rows = [row for item in commands for row in _rows(*item, files, commands_in(root))]
    shown_rows = rows if wanted else [row for row in rows if row["source"] != "default"]
    fields = list(_fields(files))
    secrets = list(_secrets())
    if as_json:
        found = {"files": [str(file.path) for file in files], "options": shown_rows, "environments": fields}
        print(json.dumps({**found, "secrets": secrets}, indent=2, ensure_ascii=False))
        return
    _print(files, shown_rows, fields, secrets, whole=bool(wanted))


def _rows(
    words: tuple[str, ...], command: Any, context: Any, files: list[ConfigFile], commands: dict[str, list[str]]
) -> Iterator[Row]:
    """The options of a command, each with its value and where that is from."""
    values, faults = values_for(command, words, files, commands)
    if faults:
        raise ConfigurationProblem(faults)
    bind(command, context, words, values)
    for option in options_of(command):
        if option.name == "config":
            continue  # the environments' tables are shown for themselves
        value, source = option.consume_value(context, {})
        required, option.required = option.required, False
        try:
            taken = option.process_value(context, value)
        except typer.BadParameter as error:
            place = values[option.name].place if source.name == "DEFAULT_MAP" else str(option.envvar)
            raise UsageProblem(f"{place}: {error.message}") from None
        finally:
            option.required = required
        key = key_of(option)
        row: Row = {"command": " ".join(words), "option": key, "value": _plain(key, taken)}
        yield {**row, **_origin(option, source.name, values), "variable": option.envvar}


def _origin(option: Any, source: str, values: dict[str, Value]) -> Row:
    if source == "ENVIRONMENT":
        return {"source": "environment", "where": option.envvar}
    if source == "DEFAULT_MAP":
        return {"source": "file", "where": values[option.name].place}
    return {"source": "default", "where": "required" if option.required else "default"}


def _plain(key: str, value: Any) -> Any:
    """A value as JSON has it, without secrets."""
    if isinstance(value, list | tuple):
        return [_plain(key, item) for item in value]
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | int | float):
        return value
    return masked(key, str(value))


def _fields(files: list[ConfigFile]) -> Iterator[Row]:
    for name in environments.named(files):
        fields, faults = environments.fields_of(name, files)
        if faults:
            raise ConfigurationProblem(faults)
        for field, value in fields.items():
            yield {"environment": name, "field": field, "value": masked(field, value.parsed), "where": value.place}


def _secrets() -> Iterator[Row]:
    for name, what in SECRETS.items():
        if value := os.environ.get(name):
            path = name.endswith(("_FILE", "_SIGNING_KEY"))
            yield {"variable": name, "value": value if path else HIDDEN, "what": what}


def _print(files: list[ConfigFile], rows: list[Row], fields: list[Row], secrets: list[Row], *, whole: bool) -> None:
    for file in files:
        why = "" if file.named else " (found here: it sets no more than how much and how)"
        out().print(escaped(f"file: {shown(file.path)}{why}"), soft_wrap=True)
    if not files:
        out().print("file: none")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("", "value", "from"):
        table.add_column(column, overflow="fold")
    heading = None
    for row in rows:
        if row["command"] != heading:
            heading = row["command"]
            table.add_row(f"[bold]{escaped(heading)}[/bold]", "", "")
        dim = row["source"] == "default"
        table.add_row(*(_cell(text, dim=dim) for text in (f"  {row['option']}", _text(row["value"]), row["where"])))
    for row in fields:
        table.add_row(*map(escaped, (f"{row['environment']}: {row['field']}", row["value"], row["where"])))
    for row in secrets:
        table.add_row(*map(escaped, (row["what"], row["value"], row["variable"])))
    if table.rows:
        out().print(table)
    if not whole:
        rest = "All else has its default" if table.rows else "Nothing is set: all has its default"
        out().print(f"[dim]{rest}; one command's options: mcpgym config show COMMAND[/dim]", soft_wrap=True)


def _cell(text: str, *, dim: bool) -> str:
    return f"[dim]{escaped(text)}[/dim]" if dim else escaped(text)


def _text(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

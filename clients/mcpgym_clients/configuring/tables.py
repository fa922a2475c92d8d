"""A command's table in a file: which values it gives, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpgym_clients.configuring.files import ConfigFile, Fault, shown
from mcpgym_clients.configuring.names import key_of, no_such, options_of
from mcpgym_clients.configuring.trust import is_free, refusal
from mcpgym_clients.configuring.values import WrongValue, for_parser

ENVIRONMENTS = "environments"
GIVES_WAY = {
    ("serve", "stdio"): frozenset(
        {"port", "control-port", "control-socket", "secret-file", "signing-key", "allowed-host", "episode-urls-only"}
        | {"workers", "name", "drain-seconds", "control-host", "public-url", "ray", "ray-address", "cpus-per-server"}
    ),
    ("serve", "task"): frozenset({"split", "index"}),
    ("play", "task"): frozenset({"split", "index"}),
    ("connect", "task"): frozenset({"split", "index"}),
}
"""What a file says of how to serve over HTTP is not meant for a process that speaks stdio; and a task is one task."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a file gives an option.

    Attributes:
        file: which.
        path: its keys there.
        parsed: the value, as the option's parser takes it.
    """

    file: ConfigFile
    path: tuple[str, ...]
    parsed: Any

    @property
    def place(self) -> str:
        """Where it was written, as ``file:line``."""
        return self.file.place(*self.path)


def commands_in(root: Any) -> dict[str, list[str]]:
    """The commands that a file may configure, each with those below it."""
    return {
        name: sorted(getattr(command, "commands", {}))
        for name, command in root.commands.items()
        if name != "config" and not command.hidden
    }


def unknown_tables(file: ConfigFile, commands: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """Faults of what stands at the top of a file: it must be tables, each of a command or of environments."""
    for name, value in file.data.items():
        if name == ENVIRONMENTS:
            for inner, table in value.items() if isinstance(value, dict) else [("", value)]:
                if not isinstance(table, dict):
                    keys = [name, inner] if inner else [name]
                    yield file.fault(keys, "write a table for each environment, as [environments.tic-tac-toe]")
        elif name not in commands:
            yield file.fault([name], no_such("command", name, [*commands, ENVIRONMENTS]))
        elif not isinstance(value, dict):
            yield file.fault([name], f"write a table: [{name}]")
        else:
            below = commands[name]
            for inner, table in value.items() if below else ():
                if inner not in below:
                    yield file.fault([name, inner], no_such("command", inner, below))
                elif not isinstance(table, dict):
                    yield file.fault([name, inner], f"write a table: [{name}.{inner}]")


def table_of(file: ConfigFile, words: Sequence[str]) -> Mapping[str, Any]:
    """The command's table; empty where there is none."""
    table: Any = file.data
    for word in words:
        table = table.get(word, {}) if isinstance(table, dict) else {}
    return table if isinstance(table, dict) else {}


def read_table(file: ConfigFile, command: Any, words: Sequence[str]) -> tuple[dict[str, Value], list[Fault]]:
    """What the command's table in a file gives its options, by their keys; and what is wrong with it."""
    options = {key_of(option): option for option in options_of(command)}
    allowed = {key: option for key, option in options.items() if key != "config"}
    values: dict[str, Value] = {}
    faults = []
    for key, value in table_of(file, words).items():
        path = (*words, key)
        if key == "config" and "config" in options:
            faults.append(file.fault(path, "write the fields into the environment's own table, as [environments.NAME]"))
        elif key not in allowed:
            faults.append(file.fault(path, no_such("option", key, list(allowed))))
        elif not file.named and not is_free(allowed[key]):
            faults.append(file.fault(path, refusal(shown(file.path))))
        else:
            try:
                values[key] = Value(file, path, for_parser(allowed[key], value))
            except WrongValue as error:
                faults.append(file.fault(path, str(error)))
    return values, faults


def giving_way(words: Sequence[str], arguments: Sequence[str]) -> frozenset[str]:
    """The keys of which a file is not asked, as a flag that was typed means something else."""
    typed = {word.partition("=")[0] for word in arguments}
    return frozenset().union(
        *(keys for (name, flag), keys in GIVES_WAY.items() if (name,) == words and f"--{flag}" in typed)
    )

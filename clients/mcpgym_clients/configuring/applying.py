"""A command's configuration, at the moment when its command line is read."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import typer

from mcpgym_clients.configuring import environments
from mcpgym_clients.configuring.files import ConfigFile, ConfigurationProblem, Fault, read_files, shown
from mcpgym_clients.configuring.names import key_of, options_of, variable_of, words_of
from mcpgym_clients.configuring.secrecy import holds_secret
from mcpgym_clients.configuring.tables import Value, commands_in, giving_way, read_table, unknown_tables
from mcpgym_clients.configuring.variables import misspelt
from mcpgym_clients.failures import UsageProblem

_NEAR = 0.75


class Applied:
    """What configures one run of a command.

    Attributes:
        files: those that count, the strongest first.
        values: what they give its options, by the names of its parameters.
    """

    def __init__(self, command: Any, context: Any, files: list[ConfigFile], values: dict[str, Value]) -> None:
        self.command, self.context, self.files, self.values = command, context, files, values
        self._fields: dict[str, environments.Fields] = {}

    @classmethod
    def to(cls, command: Any, context: Any, arguments: Any = ()) -> Applied:
        """Make files and variables count for a command whose arguments are about to be read.

        Raises:
            ConfigurationProblem: a file or a variable is wrong.
        """
        words = words_of(context)
        root = context.find_root()
        files = read_files(root.params.get("config_file"))
        values, faults = values_for(command, words, files, commands_in(root.command))
        if faults:
            raise ConfigurationProblem(faults)
        way = giving_way(words, arguments)
        values = {name: value for name, value in values.items() if value.path[-1] not in way}
        bind(command, context, words, values)
        known = {option.envvar for option in options_of(command) if option.envvar}
        others = [
            (name, *below) for name, inner in commands_in(root.command).items() for below in [[], *([b] for b in inner)]
        ]
        if said := misspelt(words, known, others):
            raise ConfigurationProblem(says="; ".join(said))
        return cls(command, context, files, values)

    def complete(self) -> None:
        """Let the tables of the environments that were named join ``--config``; say which file counts unasked.

        Raises:
            ConfigurationProblem: a table is wrong.
        """
        used: dict[ConfigFile, list[str]] = {}
        for name, value in self.values.items():
            if self._source(name) == "DEFAULT_MAP":
                used.setdefault(value.file, []).append(value.path[-1])
        if any(option.name == "config" for option in options_of(self.command)):
            self._join(used)
        for file in self.files:
            if file in used and not file.named:
                _say(f"{shown(file.path)}, found here, sets {', '.join(used[file])}")

    def say_where(self, error: Exception) -> None:
        """Add to an error where the value was written that it is about, if that was not the command line."""
        option = getattr(error, "param", None)
        if isinstance(error, typer.BadParameter) and option is not None:
            if place := self._place(option):
                error.message = f"{error.message.removesuffix('.')} ({place})"
        elif isinstance(error, UsageProblem) and not isinstance(error, ConfigurationProblem):
            said = str(error)
            found = [option for option in options_of(self.command) if _mentions(said, option)]
            places = [f"--{key_of(option)} is from {place}" for option in found if (place := self._place(option))]
            if places:
                error.args = (f"{said} ({'; '.join(places)})",)

    def _place(self, option: Any) -> str | None:
        source = self._source(option.name)
        if source == "ENVIRONMENT":
            return str(option.envvar)
        return self.values[option.name].place if source == "DEFAULT_MAP" and option.name in self.values else None

    def _source(self, name: str) -> str:
        source = self.context.get_parameter_source(name)
        return "" if source is None else str(source.name)

    def _join(self, used: dict[ConfigFile, list[str]]) -> None:
        tables = environments.named(self.files)
        if not tables or self.context.params.get("sandbox"):
            return
        asked = _arguments(self.command, self.context.params)
        mine = [name for name in tables if name in asked]
        if self.context.info_name == "serve" and not asked and not self.context.params.get("fastmcp"):
            from mcpgym.registry import environment_names

            mine = [name for name in tables if name in environment_names()]
        faults: list[Fault] = list(environments.unknown(self.files, asked, _NEAR))
        for name in mine:
            self._fields[name], wrong = environments.fields_of(name, self.files)
            faults += wrong or environments.field_faults(name, self._fields[name])
        if faults:
            raise ConfigurationProblem(faults)
        several = len(asked) != 1
        given = self.context.params.get("config") or []
        self.context.params["config"] = environments.joined(given, self._fields, several=several) or None
        for name, fields in self._fields.items():
            for value in fields.values():
                used.setdefault(value.file, []).append(f"{name}'s {value.path[-1]}")


def values_for(
    command: Any, words: tuple[str, ...], files: list[ConfigFile], commands: Mapping[str, list[str]]
) -> tuple[dict[str, Value], list[Fault]]:
    """What the files give a command's options, by the names of its parameters; and what is wrong with them."""
    values: dict[str, Value] = {}
    faults: list[Fault] = []
    for file in files:
        faults += unknown_tables(file, commands)
        found, wrong = read_table(file, command, words)
        faults += wrong
        values = {**found, **values}
    names = {key_of(option): option.name for option in options_of(command)}
    return {names[key]: value for key, value in values.items()}, faults


def bind(command: Any, context: Any, words: tuple[str, ...], values: Mapping[str, Value]) -> None:
    """Have Typer take each option from its flag, else its variable, else ``values``, else its default."""
    context.default_map = {name: value.parsed for name, value in values.items()}
    for option in options_of(command):
        option.envvar = variable_of(words, option)
        option.show_envvar = False  # all of them have one; --help is long enough
        option.envvar_list_splitter = "\n"
        if option.callback is None:
            option.callback = _without_secret


def _without_secret(context: Any, option: Any, value: Any) -> Any:
    source = context.get_parameter_source(option.name)
    if source is not None and source.name == "COMMANDLINE" and value and holds_secret(key_of(option), value):
        variable = variable_of(words_of(context), option)
        raise typer.BadParameter(
            "that is a secret, and every user of this machine can read a command line. Leave the flag out, and put the "
            f"value into the environment: {variable}",
            ctx=context,
            param=option,
        )
    return value


def _mentions(said: str, option: Any) -> bool:
    return any(
        f"{name} " in f"{said.replace(',', ' ').replace(':', ' ')} " for name in option.opts if name.startswith("--")
    )


def _arguments(command: Any, params: Mapping[str, Any]) -> list[str]:
    """The words that were given as arguments, which name environments."""
    found: list[str] = []
    for item in command.params:
        value = params.get(item.name)
        if item.param_type_name == "argument" and value:
            found += [value] if isinstance(value, str) else [word for word in value if isinstance(word, str)]
    return found


def _say(sentence: str) -> None:
    from mcpgym_clients.console import one_line

    print(f"configuration: {one_line(sentence)}", file=sys.stderr, flush=True)

"""``mcpgym config check``: everything that is wrong with a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from mcpgym_clients.configuring import environments
from mcpgym_clients.configuring.applying import bind
from mcpgym_clients.configuring.files import ConfigFile, Fault, chosen_files, look, shown
from mcpgym_clients.configuring.names import key_of, options_of
from mcpgym_clients.configuring.tables import Value, commands_in, read_table, unknown_tables
from mcpgym_clients.configuring.variables import misspelt
from mcpgym_clients.configuring.whole import all_commands, whole_command_line
from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.failures import FAILURE


def run(given: Path | None) -> int:
    """Check a file, or those that count here, and the environment variables; the exit code: 1 where a fault is.

    Args:
        given: the file that was named.
    """
    root, context = whole_command_line()
    chosen = chosen_files(given)
    faults: list[Fault] = []
    files = []
    for path, named in chosen:
        file, wrong = look(path, named)
        faults += wrong
        if file is not None:
            files.append(file)
            faults += faults_of(file, root, context)
    once = {(fault.path, fault.line, fault.key): fault for fault in reversed(faults)}  # the first of each place
    said = [str(fault) for fault in sorted(once.values(), key=lambda fault: (str(fault.path), fault.line or 0))]
    said += variable_faults(root, context)
    for sentence in dict.fromkeys(said):
        talk().print(f"[red]fault:[/red] {escaped(sentence)}", soft_wrap=True)
    names = ", ".join(shown(path) for path, _ in chosen) or "no file; the environment's variables alone"
    count = len(dict.fromkeys(said))
    verdict = "no fault" if not count else f"{count} fault{'s' if count > 1 else ''}"
    out().print(escaped(f"{verdict}: {names}"), soft_wrap=True)
    return FAILURE if count else 0


def faults_of(file: ConfigFile, root: Any, context: Any) -> list[Fault]:
    """What is wrong in a file that could be read, on this command line."""
    faults = list(unknown_tables(file, commands_in(root)))
    for words, command, own in all_commands(root, context):
        values, wrong = read_table(file, command, words)
        faults += wrong
        faults += _refused(command, own, words, values)
    faults += environments.unknown([file], [], 0)
    unknown = {tuple(fault.key.split(".")[:2]) for fault in faults}
    for name in environments.named([file]):
        fields, wrong = environments.fields_of(name, [file])
        faults += wrong
        if not wrong and ("environments", name) not in unknown:
            faults += environments.field_faults(name, fields)
    return faults


def variable_faults(root: Any, context: Any) -> list[str]:
    """What is wrong with the environment's variables: values that no option takes, and names that none has."""
    commands = list(all_commands(root, context))
    said = []
    for words, command, own in commands:
        bind(command, own, words, {})
        for option in options_of(command):
            if (value := option.value_from_envvar(own)) is not None:
                try:
                    option.process_value(own, value)
                except typer.BadParameter as error:
                    said.append(f"{option.envvar}: {error.message}")
        known = {option.envvar for option in options_of(command) if option.envvar}
        said += misspelt(words, known, [others for others, _, _ in commands])
    return said


def _refused(command: Any, context: Any, words: tuple[str, ...], values: dict[str, Value]) -> list[Fault]:
    """Values that the options' own parsers do not take."""
    faults = []
    bind(command, context, words, {})
    for option in options_of(command):
        if (value := values.get(key_of(option))) is None:
            continue
        try:
            option.process_value(context, value.parsed)
        except typer.BadParameter as error:
            faults.append(value.file.fault(value.path, error.message))
    return faults

"""``[environments.NAME]``: fields of environments, which join those of ``--config``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcpgym_clients.configuring.files import ConfigFile, Fault, shown
from mcpgym_clients.configuring.names import no_such
from mcpgym_clients.configuring.tables import ENVIRONMENTS, Value
from mcpgym_clients.configuring.trust import refusal
from mcpgym_clients.configuring.values import WrongValue, as_option

Fields = dict[str, Value]


def named(files: Sequence[ConfigFile]) -> list[str]:
    """The environments that have a table."""
    found = [name for file in files for name in _tables(file)]
    return list(dict.fromkeys(found))


def fields_of(name: str, files: Sequence[ConfigFile]) -> tuple[Fields, list[Fault]]:
    """What the files say of the environment, by field, as ``--config`` has it; the first file is the strongest."""
    fields: Fields = {}
    faults = []
    for file in files:
        for path, value in _flat(_tables(file).get(name, {})):
            where = (ENVIRONMENTS, name, *path)
            field = ".".join(path).replace("-", "_")
            try:
                text = as_option(value)
            except WrongValue as error:
                faults.append(file.fault(where, str(error)))
                continue
            fields.setdefault(field, Value(file, where, text))
    return fields, faults


def field_faults(name: str, fields: Mapping[str, Value]) -> list[Fault]:
    """What the environment finds wrong with its fields; and those by which a file that nobody named reaches out.

    An environment that is not here may be a running server's, which says itself what is wrong.
    """
    from mcpgym.errors import ConfigurationError, UnknownNameError
    from mcpgym.registry import checked_config, environment_class

    unnamed = [value for value in fields.values() if not value.file.named]
    try:
        cls = environment_class(name)
    except ConfigurationError:
        says = f"{name} is not installed here, so what this reaches is not known; {{}}"
        return [value.file.fault(value.path, says.format(refusal(shown(value.file.path)))) for value in unnamed]
    left, faults = dict(fields), []
    while True:  # an environment complains of some fields at a time
        try:
            made = checked_config(cls, {field: value.parsed for field, value in left.items()})
            break
        except ConfigurationError as error:
            about = error.name if isinstance(error, UnknownNameError) else None
            wrong = [field for field in left if f"{field}:" in str(error) or about in (field, field.rpartition(".")[2])]
            wrong = wrong or list(left)
            faults += [left[field].file.fault(left[field].path, str(error)) for field in wrong]
            left = {field: value for field, value in left.items() if field not in wrong}
    return faults + _outside(cls, left, made.reaches())


def _outside(cls: Any, fields: Mapping[str, Value], reached: Sequence[str]) -> list[Fault]:
    """Fields in files that nobody named, by which the environment reads or asks something outside its package."""
    from mcpgym.errors import ConfigurationError
    from mcpgym.registry import checked_config

    unnamed = {field: value for field, value in fields.items() if not value.file.named}
    if not unnamed or not reached:
        return []
    named_alone = {field: value.parsed for field, value in fields.items() if field not in unnamed}
    try:
        anyway = set(checked_config(cls, named_alone).reaches())
    except ConfigurationError:
        anyway = set()
    new = {text.partition("=")[0] for text in reached if text not in anyway}
    to_blame = [field for field in unnamed if field in new] or (list(unnamed) if new else [])
    values = [unnamed[field] for field in to_blame]
    return [value.file.fault(value.path, refusal(shown(value.file.path))) for value in values]


def unknown(files: Sequence[ConfigFile], meant: Sequence[str], cutoff: float) -> Iterator[Fault]:
    """Tables of environments that are not here.

    Args:
        files: whose tables.
        meant: environments that were named to the command: a running server may have them.
        cutoff: how near one that is here must be; with 0 all tables of others are faults.
    """
    from mcpgym.combined.naming import is_combined
    from mcpgym.own_server.naming import is_brought
    from mcpgym.registry import environment_names, is_installed
    from mcpgym_clients.configuring.names import nearest

    for file in files:
        for name in _tables(file):
            spelt = is_brought(name) or ":" in name or is_combined(name)
            if name in meant or spelt or is_installed(name):
                continue
            here = environment_names()
            if not cutoff or nearest(name, here, cutoff):
                yield file.fault([ENVIRONMENTS, name], no_such("environment", name, here))


def joined(given: Sequence[str], fields: Mapping[str, Fields], *, several: bool) -> list[str]:
    """``--config`` with what the files say of the environments; what was given there is stronger, field by field.

    Args:
        given: the items of ``--config``.
        fields: of each environment that was named.
        several: whether it must be said whose a field is.
    """
    own = {item.partition("=")[0].strip().replace("-", "_") for item in given}
    items = []
    for name, values in fields.items():
        prefix = f"{name}."
        for field, value in values.items():
            if {field, f"{prefix}{field}".replace("-", "_")} & own:
                continue
            items.append(f"{prefix if several else ''}{field}={value.parsed}")
    return [*items, *given]


def _tables(file: ConfigFile) -> Mapping[str, Any]:
    tables = file.data.get(ENVIRONMENTS, {})
    return (
        {name: table for name, table in tables.items() if isinstance(table, dict)} if isinstance(tables, dict) else {}
    )


def _flat(table: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A combination's members have tables of their own: ``member.field``."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, (*before, key))
        else:
            yield (*before, key), value

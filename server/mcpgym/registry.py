"""Finding environments: the entry-point group ``mcpgym.environments``, ours and everybody's alike.

What ``mcpgym env add`` put into a virtual environment of its own is found by name too (see :mod:`mcpgym.isolated`).
While one is being written it needs no package: ``module:Class`` names a class in a file of the current folder.
A server of one's own is named as ``fastmcp:module:factory`` or ``stdio:COMMAND`` (see :mod:`mcpgym.own_server`).
Several in one episode are named together, ``a+b`` or a file that describes them (see :mod:`mcpgym.combined`).
One that is many (``gymnasium``) may be named with which of them: ``gymnasium:Taxi-v4`` sets its ``spec_field``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pydantic

from mcpgym.combined.naming import is_combined, is_file, split_spec
from mcpgym.environment import Config, Environment
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.isolated.records import Record, added
from mcpgym.own_server.naming import is_brought

GROUP = "mcpgym.environments"


@cache
def _entries() -> dict[str, tuple[EntryPoint, ...]]:
    """By name; more than one where packages clash, which is that name's fault alone."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=GROUP):
        known = found.get(entry.name, ())
        if entry.value not in [other.value for other in known]:
            found[entry.name] = (*known, entry)
    return found


def environment_names() -> list[str]:
    """The names of all environments that are installed or were added, sorted; nothing of them is imported."""
    return sorted({*_entries(), *added()})


def installed_names() -> list[str]:
    """The names of those that can be imported here, sorted."""
    return sorted(_entries())


def environment_class(name: str) -> type[Environment[Any, Any, Any]]:
    """The class that is registered as ``name``, or that ``name`` spells out as ``module:Class``, ``a+b`` or ``a.toml``.

    Raises:
        UnknownNameError: no installed package registers it.
        ConfigurationError: it is there, but cannot be imported or is no environment.
    """
    if is_brought(name):
        from mcpgym.own_server.specs import spec_class

        return spec_class(name)
    if is_combined(name):
        from mcpgym.combined.making import combined_class, read_file

        return combined_class(read_file(name)[0] if is_file(name) else name)
    entries = _entries()
    if ":" in name:
        return short[0] if (short := one_of_many(name)) else _load(name, _unregistered(name))
    elsewhere = added().get(name)
    if elsewhere is not None and not _is_here(elsewhere, entries.get(name, ())):
        from mcpgym.isolated.environment import isolated_class

        return isolated_class(elsewhere, name)
    if name not in entries:
        if Path(f"{name.removesuffix('.py')}.py").is_file():
            module = Path(name).stem
            raise ConfigurationError(f"{name!r} is a file: name a class in it, as in {module}:MyEnvironment")
        raise UnknownNameError("environment", name, environment_names())
    entry, *others = entries[name]
    if others:
        raise ConfigurationError(
            f"two packages register the environment {name!r}: {entry.value} and {others[0].value}; uninstall one"
        )
    loaded = _load(name, entry)
    if loaded.name != name:
        raise ConfigurationError(f"environment {name!r}: {entry.value} calls itself {loaded.name!r}")
    return loaded


def one_of_many(name: str) -> tuple[type[Environment[Any, Any, Any]], dict[str, str]] | None:
    """The class and the configuration that ``NAME:VALUE`` means (``gymnasium:Taxi-v4``); None where it is no such name.

    Raises:
        ConfigurationError: it is one, and the class cannot be imported.
    """
    first, colon, value = name.partition(":")
    if not colon or not value or first not in _entries():
        return None
    cls = environment_class(first)
    return (cls, {cls.spec_field: value}) if cls.spec_field else None


def _is_here(elsewhere: Record, entries: tuple[EntryPoint, ...]) -> bool:
    """Whether the package that was added is also installed here; then the one that is here plays, in this process.

    Raises:
        ConfigurationError: what is installed here under its name is of another package.
    """
    for entry in entries:
        if entry.dist is not None and entry.dist.name != elsewhere.package:
            raise ConfigurationError(
                f"two packages have the environment {entry.name!r}: {entry.dist.name}, which is installed here, and "
                f"{elsewhere.package}, which was added: pip uninstall {entry.dist.name}, or "
                f"mcpgym env remove {elsewhere.package}"
            )
    return bool(entries)


def _unregistered(name: str) -> EntryPoint:
    """``module:Class`` as if a package had registered it; modules of the current folder count."""
    module, _, attribute = name.partition(":")
    if module.endswith(".py") or not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
        raise ConfigurationError(f"environment {name!r}: write a class as module:Class, for example my_game:MyGame")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    return EntryPoint(name, name, GROUP)


def _load(name: str, entry: EntryPoint) -> type[Environment[Any, Any, Any]]:
    try:
        loaded = entry.load()
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:  # a module that exits must not take the command with it
        raise ConfigurationError(
            f"environment {name!r} ({entry.value}) cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, Environment)):
        raise ConfigurationError(f"environment {name!r}: {entry.value} is not a subclass of mcpgym.Environment")
    if not hasattr(loaded, "name"):
        raise ConfigurationError(f"environment {name!r}: {entry.value} has no name; give the class one")
    return loaded


def load_environment(name: str, config: Mapping[str, Any] | None = None) -> Environment[Any, Any, Any]:
    """An instance of the environment ``name`` under ``config`` (field name to value; text is converted).

    Fields of a combination's members are ``mount.field``, or a mapping for each member. What a file says of them holds
    where ``config`` says nothing.

    Raises:
        UnknownNameError: no such environment, or no such field.
        ConfigurationError: a value does not fit its field.
    """
    cls, config = environment_class(name), config or {}
    if is_file(name):
        from mcpgym.combined.making import read_file

        config = merged_config(cls, read_file(name)[1], config)
    elif not is_brought(name) and (short := one_of_many(name)):
        if {*short[1]} & {*config}:
            raise ConfigurationError(f"{cls.spec_field} is given twice: in {name!r} and in the configuration")
        config = {**config, **short[1]}
    return configure(cls, config)


def is_installed(name: str) -> bool:
    """Whether ``name`` is an installed or added environment's, or names a combination of such; nothing is imported."""
    if not is_combined(name) or is_file(name):
        return name in environment_names()
    try:
        return all(member.environment in environment_names() for member in split_spec(name))
    except ConfigurationError:
        return False


def configure(cls: type[Environment[Any, Any, Any]], config: Mapping[str, Any]) -> Environment[Any, Any, Any]:
    """An instance of ``cls`` under ``config``; errors as in :func:`load_environment`."""
    return cls(checked_config(cls, config))


def checked_config(cls: type[Environment[Any, Any, Any]], config: Mapping[str, Any]) -> Config:
    """``config`` as ``cls`` understands it, without an instance; errors as in :func:`load_environment`."""
    try:
        made: Config = cls.config_class.model_validate(_nested(cls.config_class, config, cls.name))
    except pydantic.ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'configuration'}: {item['msg']}, not {item['input']!r}"
            if item["loc"]
            else item["msg"]
            for item in error.errors(include_url=False)
        )
        raise ConfigurationError(f"{cls.name}: {problems}") from None
    return made


def merged_config(
    cls: type[Environment[Any, Any, Any]], config: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    """``config`` of ``cls`` with the fields in ``changes`` changed; of a section, only those that are named.

    Raises:
        UnknownNameError: there is no such field.
    """
    fields = cls.config_class
    return _merged(_nested(fields, config, cls.name), _nested(fields, changes, cls.name), fields)


def _merged(config: Mapping[str, Any], changes: Mapping[str, Any], fields: type[Config]) -> dict[str, Any]:
    found = {**config, **changes}
    for key, section in _sections(fields).items():
        if isinstance(old := config.get(key), Mapping) and isinstance(new := changes.get(key), Mapping):
            found[key] = _merged(old, new, section)
    return found


def _nested(fields: type[Config], config: Mapping[str, Any], whose: str) -> dict[str, Any]:
    """``config`` with ``section.field`` put into its section.

    Raises:
        UnknownNameError: there is no such field.
    """
    sections = _sections(fields)
    found: dict[str, Any] = {}
    for key, value in config.items():
        name, dot, rest = key.partition(".")
        if name not in fields.model_fields or (dot and name not in sections):
            raise UnknownNameError(f"configuration field of {whose}", key, fields.model_fields)
        given = {rest: value} if dot else value
        if name in sections and isinstance(given, Mapping):
            given = _nested(sections[name], given, f"{whose}: {name}")
            if isinstance(before := found.get(name), Mapping):
                given = _merged(before, given, sections[name])
        found[name] = given
    return found


def _sections(fields: type[Config]) -> dict[str, type[Config]]:
    """The fields that are configurations themselves: those of a combination's members."""
    return {
        name: field.annotation
        for name, field in fields.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Config)
    }


def parse_options(options: Iterable[str]) -> dict[str, str]:
    """``["a=1", "b=x"]`` as a mapping.

    Raises:
        ConfigurationError: an item has no ``=``, or a key comes twice.
    """
    parsed: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise ConfigurationError(f"--config {option!r}: write it as name=value")
        if key in parsed:
            raise ConfigurationError(f"--config {key} is given twice")
        parsed[key] = value
    return parsed

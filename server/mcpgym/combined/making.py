"""Making the class of a combination: from a spec, from a file, from classes and instances."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from mcpgym.combined import prompts
from mcpgym.combined.configuration import config_class_of
from mcpgym.combined.environment import CombinedEnvironment, same_observation
from mcpgym.combined.naming import HOW, MOST, Member, check_mount, is_combined, mounts_of, spec_of, split_spec
from mcpgym.combined.scoring import combined_rewards
from mcpgym.combined.tools import combined_tools
from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.registry import environment_class, environment_names, one_of_many
from mcpgym.schema import schema_hash

FORM = "1"
"""How members are put together: prompts, names, notes. It is part of every combination's version."""

AnyEnvironment = Environment[Any, Any, Any]


@cache
def combined_class(spec: str) -> type[CombinedEnvironment]:
    """The combination that ``spec`` names: ``tic-tac-toe+search=wiki-search``.

    Raises:
        ConfigurationError: it is no spec, or its members cannot be put together.
        UnknownNameError: a member is not installed.
    """
    asked = split_spec(spec)
    classes = [environment_class(member.environment) for member in asked]
    for member, cls in zip(asked, classes, strict=True):
        if cls.spec_field and ":" in member.environment and one_of_many(member.environment):
            raise ConfigurationError(
                f"{member.environment}: a member of a combination is named {cls.name}, and the rest is configuration: "
                f"MOUNT={cls.name}, --config MOUNT.{cls.spec_field}={member.environment.partition(':')[2]}"
            )
    mounts = mounts_of(asked, [cls.name for cls in classes])
    name = spec_of(asked, mounts, [cls.name for cls in classes])
    if name != spec:
        return combined_class(name)
    return _make(name, dict(zip(mounts, classes, strict=True)))


def combine(
    *members: AnyEnvironment | type[AnyEnvironment] | str,
    weights: Mapping[str, float] | None = None,
    ends: Literal["all", "any"] = "all",
    lengths: Literal["shortest", "longest"] = "shortest",
    **mounted: AnyEnvironment | type[AnyEnvironment] | str,
) -> CombinedEnvironment:
    """Several environments as one: ``combine("tic-tac-toe", search=WikiSearch(config))``.

    Args:
        *members: instances, classes, or names that they are installed under.
        weights: what each counts in the score, by mount; 1 unless said.
        ends: whether the episode is over with all of its parts, or with any.
        lengths: whether a split has as many tasks as its shortest member, or as its longest.
        **mounted: further members, under mounts of your own.

    Raises:
        ConfigurationError: they cannot be put together; the text says why.
        UnknownNameError: a member is not installed, or a weight is none's.
    """
    given = [("", member) for member in members] + [*mounted.items()]
    for mount in mounted:
        check_mount(mount)
    if not 2 <= len(given) <= MOST:
        raise ConfigurationError(f"a combination has 2 to {MOST} members, not {len(given)}")
    classes = [_class_of(member) for _, member in given]
    asked = [Member(mount, _spelt(cls)) for (mount, _), cls in zip(given, classes, strict=True)]
    names = [cls.name for cls in classes]
    mounts = mounts_of(asked, names)
    spec = spec_of(asked, mounts, names)
    by_mount = dict(zip(mounts, classes, strict=True))
    installed = all(_is_installed(cls) for cls in classes)
    made = combined_class(spec) if installed else _make(spec, by_mount)
    instances = {
        mount: member for mount, (_, member) in zip(mounts, given, strict=True) if isinstance(member, Environment)
    }
    for mount in weights or {}:
        if mount not in by_mount:
            raise UnknownNameError("member", mount, mounts)
    values: dict[str, Any] = {mount: member.config for mount, member in instances.items()}
    values |= {"weights": dict(weights or {}), "ends": ends, "lengths": lengths}
    try:
        config = made.config_class.model_validate(values)
    except ValueError as error:
        raise ConfigurationError(f"{made.name}: {error}") from None
    return made(config, instances)  # type: ignore[arg-type]


def read_file(path: str) -> tuple[str, dict[str, Any]]:
    """The spec and the configuration that a file describes.

    Raises:
        ConfigurationError: it cannot be read, or does not describe a combination; the text says where.
        UnknownNameError: it has a key that nothing here knows.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from None
    _known(content, ("members", "ends", "lengths"), f"key of {path}")
    members = content.get("members")
    if not isinstance(members, dict) or not all(isinstance(member, dict) for member in members.values()):
        raise ConfigurationError(f'{path}: each member has a table: [members.NAME] with environment = "tic-tac-toe"')
    config: dict[str, Any] = {key: content[key] for key in ("ends", "lengths") if key in content}
    spec = []
    for mount, member in members.items():
        _known(member, ("environment", "weight", "config"), f"key of members.{mount} in {path}")
        check_mount(mount)
        environment = member.get("environment")
        if not isinstance(environment, str) or not environment or is_combined(environment):
            raise ConfigurationError(
                f'{path}: members.{mount} has no environment = "NAME"; a member is one environment'
            )
        if not isinstance(section := member.get("config", {}), dict):
            raise ConfigurationError(f"{path}: members.{mount}.config is a table of the environment's fields")
        spec.append(f"{mount}={environment}")
        config[mount] = section
        if "weight" in member:
            config.setdefault("weights", {})[mount] = member["weight"]
    if len(spec) < 2:
        raise ConfigurationError(f"{path} has {len(spec)} members; a combination has two or more")
    return "+".join(spec), config


def _make(name: str, members: Mapping[str, type[AnyEnvironment]]) -> type[CombinedEnvironment]:
    for mount, member in members.items():
        if issubclass(member, CombinedEnvironment):
            raise ConfigurationError(f"{mount} is a combination itself; name its members one by one: {HOW}")
    first, *others = members.values()
    splits = tuple(split for split in first.splits if all(split in other.splits for other in others))
    if not splits:
        said = "; ".join(f"{mount}: {', '.join(member.splits)}" for mount, member in members.items())
        raise ConfigurationError(f"{name}: no split is in all of its members ({said})")
    tools = combined_tools(members)
    own = {mount: tuple(member.tools) for mount, member in members.items()}
    reproducible = all(member.reproducible for member in members.values())
    namespace: dict[str, Any] = {
        "__module__": "mcpgym.combined",
        "__qualname__": name.replace(".", "%2E"),
        "__doc__": f"{', '.join(members)} in one episode.",
        "name": name,
        "version": f"{FORM}:{'+'.join(member.version for member in members.values())}",
        "description": f"{len(members)} tasks in one episode: {', '.join(members)}.",
        "instructions": prompts.instructions({mount: cls.instructions for mount, cls in members.items()}, own),
        "splits": splits,
        "config_class": config_class_of(members),
        "reproducible": reproducible,
        "tools": tools,
        "schema_hash": schema_hash([tool.listing for tool in tools.values()]),
        "member_classes": dict(members),
        "tool_names": own,
        **combined_rewards(members),
        **({} if reproducible else {"same_observation": same_observation}),
    }
    return type("CombinedEnvironment", (CombinedEnvironment,), namespace)


def _class_of(member: AnyEnvironment | type[AnyEnvironment] | str) -> type[AnyEnvironment]:
    if isinstance(member, str):
        return environment_class(member)
    cls = member if isinstance(member, type) else type(member)
    if not issubclass(cls, Environment) or not hasattr(cls, "name"):
        raise ConfigurationError(f"{member!r} is no environment: give an instance, a class or an installed name")
    return cls


def _is_installed(cls: type[AnyEnvironment]) -> bool:
    return cls.name in environment_names() and environment_class(cls.name) is cls


def _spelt(cls: type[AnyEnvironment]) -> str:
    return cls.name if _is_installed(cls) else f"{cls.__module__}:{cls.__qualname__}"


def _known(table: Mapping[str, Any], known: tuple[str, ...], kind: str) -> None:
    for key in table:
        if key not in known:
            raise UnknownNameError(kind, key, known)

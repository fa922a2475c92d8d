"""How the members of a combination are named, in its spec and in what a policy reads.

A member has a *mount*: a short name that its tools begin with (``tic_tac_toe__play``), that heads its part of the
prompt, and that its section of the configuration and its rewards have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mcpgym.errors import ConfigurationError, SchemaError
from mcpgym.own_server.naming import is_brought
from mcpgym.schema import MAX_NAME
from mcpgym.server_names import SERVER

SEPARATOR = "__"
"""Between a mount and the tool's own name. No mount has it, or an underscore at its end: a name splits in one way."""
MOST = 8
"""Members that one episode may have."""
MOUNT = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*")
HOW = "write MEMBER+MEMBER, each the name of an environment or MOUNT=NAME: tic-tac-toe+search=wiki-search"


class Member(NamedTuple):
    """One member of a spec: the mount that was asked for (empty for none) and what names its environment."""

    mount: str
    environment: str


def is_combined(name: str) -> bool:
    """Whether ``name`` names a combination: ``a+b``, ``x=a+y=b``, or a file that describes one."""
    return not is_brought(name) and (is_file(name) or "+" in name or "=" in name)


def is_file(name: str) -> bool:
    """Whether ``name`` names a file that describes a combination."""
    return name.endswith(".toml") and not is_brought(name)


def split_spec(spec: str) -> list[Member]:
    """The members that ``spec`` names; nothing is imported.

    Raises:
        ConfigurationError: it is no spec of two or more members.
    """
    members = []
    for text in spec.split("+"):
        member = _member(text)
        if not member.environment or text.lstrip().startswith("="):
            raise ConfigurationError(f"{spec!r} names no combination of environments: {HOW}")
        if member.mount:
            check_mount(member.mount)
        members.append(member)
    if not 2 <= len(members) <= MOST:
        count = "one member" if len(members) == 1 else f"{len(members)} members"
        raise ConfigurationError(f"{spec!r} has {count}; a combination has 2 to {MOST}: {HOW}")
    return members


def _member(text: str) -> Member:
    mount, equals, environment = text.partition("=")
    if not equals or ":" in mount:  # what a command of a brought server has
        mount, environment = "", text
    return Member(mount.strip(), environment.strip())


def check_mount(mount: str) -> None:
    """Refuse what cannot be a mount.

    Raises:
        ConfigurationError: it cannot.
    """
    if not MOUNT.fullmatch(mount):
        raise ConfigurationError(
            f"{mount!r} cannot be a member's name: use letters and digits, with single underscores between them"
        )
    if mount in reserved():
        raise ConfigurationError(f"{mount!r} is taken by the configuration itself; give the member another name")


def reserved() -> frozenset[str]:
    """Names that no member may have: fields and methods that every configuration has."""
    from mcpgym.combined.configuration import CombinedConfig

    return frozenset(name for name in (*dir(CombinedConfig), *CombinedConfig.model_fields, "weights"))


def mounts_of(asked: Sequence[Member], names: Sequence[str]) -> list[str]:
    """A mount for each member: the one that was asked for, or one made of the environment's name.

    Args:
        asked: the members as they were named.
        names: what their environments call themselves.

    Raises:
        ConfigurationError: one is asked for twice.
    """
    given = [member.mount for member in asked if member.mount]
    if twice := [mount for mount in given if given.count(mount) > 1]:
        raise ConfigurationError(f"two members are called {twice[0]!r}; give each a name of its own")
    taken, mounts = {*given}, []
    for member, name in zip(asked, names, strict=True):
        mount = member.mount
        if not mount:
            base = plain = default_mount(name)
            number = 2
            while plain in taken:
                plain, number = f"{base}_{number}", number + 1
            taken.add(plain)
            mount = plain
        mounts.append(mount)
    return mounts


def default_mount(name: str) -> str:
    """The mount of an environment where nobody asks for another: ``tic_tac_toe`` of ``tic-tac-toe``."""
    mount = re.sub(r"_+", "_", name.replace("-", "_")).strip("_") or "member"
    return f"{mount}_env" if mount in reserved() else mount


def spec_of(members: Sequence[Member], mounts: Sequence[str], names: Sequence[str]) -> str:
    """The one spec of these members: their environments, each with its mount where that is not the usual one."""
    usual = mounts_of([Member("", member.environment) for member in members], names)
    short = [
        member.environment if mount in (plain, default_mount(name)) else f"{mount}={member.environment}"
        for member, mount, plain, name in zip(members, mounts, usual, names, strict=True)
    ]
    if mounts_of([_member(text) for text in short], names) == list(mounts):
        return "+".join(short)
    return "+".join(f"{mount}={member.environment}" for mount, member in zip(mounts, members, strict=True))


def mounted(mount: str, tool: str) -> str:
    """The tool's name in a combination.

    Raises:
        SchemaError: it is too long for hosts.
    """
    name = f"{mount}{SEPARATOR}{tool}"
    if len(full := f"mcp__{SERVER}__{name}") > MAX_NAME:
        room = len(mount) - (len(full) - MAX_NAME)
        advice = f"mount it under {room} or fewer, MOUNT=NAME" if room > 0 else "it cannot be mounted beside others"
        raise SchemaError(f"{full}: {len(full)} characters with a host's prefix; {MAX_NAME} at most: {advice}")
    return name


def owner(name: object, mounts: Iterable[str]) -> tuple[str, str] | None:
    """The mount and the own name of the tool that is called ``name`` in a combination; None where it is nobody's."""
    if not isinstance(name, str):
        return None
    mount, separator, tool = name.partition(SEPARATOR)
    return (mount, tool) if separator and mount in mounts else None


def mentions(text: str, mount: str, tools: Iterable[str]) -> str:
    """``text`` of a member with its tools called as they are called in the combination.

    A name counts as a tool's in backticks, and after call, use, tool. Anywhere else it may be a word like any other.
    """
    if not (names := sorted(tools, key=len, reverse=True)):
        return text
    any_of = "|".join(map(re.escape, names))
    ticked = rf"(?<=`)(?:{any_of})(?=[`(])"
    told = (
        rf"(?i:\b(?:call|calls|calling|use|using|invoke|invoking|tool|tools)\s+(?:the\s+)?(?:tool\s+)?)(?:{any_of})\b"
    )
    return re.sub(
        f"{ticked}|{told}", lambda found: re.sub(rf"(?:{any_of})\Z", rf"{mount}{SEPARATOR}\g<0>", found[0]), text
    )


def unmentioned(text: str, mount: str, tools: Iterable[str]) -> str:
    """The text that :func:`mentions` made this of."""
    for tool in sorted(tools, key=len, reverse=True):
        text = text.replace(f"{mount}{SEPARATOR}{tool}", tool)
    return text


Tools = Mapping[str, Sequence[str]]
"""The own names of each member's tools, by mount."""

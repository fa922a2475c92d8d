"""Which packages a bundle needs, and which of them it must carry.

A package that was installed from an index is asked for by its name and version. One that came from a folder, a file or
a repository (PEP 610: its ``direct_url.json`` says so) may be on no index, or be another's there: it is carried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distributions, entry_points

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.registry import GROUP
from mcpgym_clients.bundling.wheels import wheel

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_OWN = "mcpgym"


@dataclass(frozen=True, slots=True)
class Needed:
    """A package of a bundle. ``wheel`` is its file name and bytes where it is carried, None where an index has it."""

    distribution: Distribution
    extras: Sequence[str] = ()
    wheel: tuple[str, bytes] | None = None

    @property
    def requirement(self) -> str:
        """How the bundle asks for it."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.distribution.name}{extras}=={self.distribution.version}"


def home_of(environment: str) -> tuple[Distribution, str]:
    """The package that registers an environment, and the top-level module the environment is in.

    Raises:
        ConfigurationError: no package does.
    """
    entry = next((entry for entry in entry_points(group=GROUP) if entry.name == environment), None)
    if entry is None or entry.dist is None:
        raise ConfigurationError(
            f"a bundle needs the package of {environment!r}, and it has none: register the class in a package under "
            f"the entry-point group {GROUP} (mcpgym new makes such a package), install it, and name the environment"
        )
    return installed(entry.dist.name), entry.module.partition(".")[0]


def installed(name: str) -> Distribution:
    """A package as an installer left it; what a build left in a source folder, under the same name, is none.

    Raises:
        PackageNotFoundError: it is not installed.
    """
    found = [item for item in distributions(name=name) if item.read_text("METADATA") is not None]
    if not found:
        raise PackageNotFoundError(name)
    return found[0]


def needed(home: Distribution, module: str, extras: Sequence[str]) -> list[Needed]:
    """The packages to name in a bundle: the environment's, mcpgym, and what these need that no index has.

    Args:
        home: the environment's package.
        module: the top-level module that the environment is in.
        extras: of that package.

    Raises:
        UnknownNameError: it has no such extra.
        ConfigurationError: one that must be carried cannot be.
    """
    offered = home.metadata.get_all("Provides-Extra") or []
    for extra in extras:
        if extra not in offered:
            raise UnknownNameError(f"extra of {home.name}", extra, offered)
    found: dict[str, Needed] = {}
    waiting = [home, installed(_OWN)]
    while waiting:
        item = waiting.pop(0)
        if (key := _key(item.name)) in found:
            continue
        own = tuple(extras) if item is home else ()
        made = _direct(item)
        if made is None:
            found[key] = Needed(item, own)
            continue
        modules = [module] if item is home else []
        found[key] = Needed(item, own, wheel(item, editable=made, modules=modules))
        waiting += [other for other in _requirements(item, own) if _direct(other) is not None]
    return list(found.values())


def said_of(item: Distribution, field: str) -> str:
    """One field of a package's metadata; empty where it is missing."""
    return str(next(iter(item.metadata.get_all(field) or [""])))


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _direct(item: Distribution) -> bool | None:
    """None for a package from an index; else whether its files lie in a source folder."""
    text = item.read_text("direct_url.json")
    if text is None:
        return None
    try:
        return bool(json.loads(text).get("dir_info", {}).get("editable", False))
    except (ValueError, AttributeError):
        return False


def _requirements(item: Distribution, extras: Sequence[str]) -> Iterator[Distribution]:
    """What a package needs and has here."""
    for text in item.requires or ():
        wanted, name = _EXTRA.search(text), _NAME.match(text)
        if name is None or (wanted is not None and wanted[1] not in extras):
            continue
        try:
            yield installed(name[0])
        except PackageNotFoundError:
            continue

"""What a package's folder offers to be uploaded: its wheel, its source archive, and its page."""

from __future__ import annotations

import re
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from mcpgym.registry import GROUP
from mcpgym_clients.cards.command import MARKED
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.sharing.specs import plain_name

BUILD = "python -m build (pip install build), or uv build"


@dataclass(frozen=True, slots=True)
class Package:
    """A folder with a pyproject.toml, and what was built of it."""

    folder: Path
    project: Mapping[str, Any]
    name: str
    version: str

    @property
    def environments(self) -> Mapping[str, str]:
        """The environments that it registers: name and class."""
        found: Mapping[str, str] = self.project.get("entry-points", {}).get(GROUP, {})
        return found


def read_package(folder: Path) -> Package:
    """What a folder's pyproject.toml says.

    Raises:
        UsageProblem: it has none, or no name and version in it.
    """
    path = folder / "pyproject.toml"
    try:
        project = tomllib.loads(path.read_text("utf-8")).get("project", {})
    except FileNotFoundError:
        raise UsageProblem(f"{folder} has no pyproject.toml: name the folder of a package") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{path} cannot be read: {error}") from None
    name, version = project.get("name"), project.get("version")
    if not isinstance(name, str) or not isinstance(version, str):
        raise UsageProblem(f"{path}: [project] has no name, or no version written out")
    return Package(folder, project, name, version)


def built(package: Package) -> list[Path]:
    """Its wheel and its source archive, of its version of now.

    Raises:
        UsageProblem: one is not in ``dist``, or is not the one of this folder.
    """
    stem = re.escape(re.sub(r"[-_.]+", "_", package.name)).replace("_", "[-_.]+")
    version = re.escape(package.version)
    found = []
    for kind, ends in (("wheel", r"-[\w.]+-[\w.]+-[\w.]+\.whl"), ("source archive", r"\.tar\.gz")):
        wanted = re.compile(f"{stem}-{version}{ends}", re.IGNORECASE)
        paths = [path for path in sorted((package.folder / "dist").glob("*")) if wanted.fullmatch(path.name)]
        if not paths:
            where = package.folder / "dist"
            raise UsageProblem(
                f"{where} has no {kind} of {package.name} {package.version}: {BUILD}, in {package.folder}"
            )
        found += paths
    _check_wheel(package, found[0])
    return found


def _check_wheel(package: Package, path: Path) -> None:
    """The wheel registers what the folder does, and has the modules of now."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            about = next(name for name in names if name.endswith(".dist-info/METADATA"))
            said = HeaderParser().parsestr(archive.read(about).decode("utf-8", "replace"))
            entries = about.replace("METADATA", "entry_points.txt")
            registered = archive.read(entries).decode("utf-8", "replace") if entries in names else ""
            changed = [name for name in names if _is_older(archive, name, package.folder)]
    except (OSError, zipfile.BadZipFile, StopIteration) as error:
        raise UsageProblem(f"{path} is no wheel ({error or 'it has no METADATA'}): {BUILD}") from None
    if plain_name(str(said["Name"])) != plain_name(package.name):
        raise UsageProblem(f"{path} is a wheel of {said['Name']}, not of {package.name}")
    if GROUP not in registered:
        raise UsageProblem(f'{path} registers no environment: pyproject.toml needs [project.entry-points."{GROUP}"]')
    if changed:
        raise UsageProblem(f"{path} was built before {changed[0]} was changed: {BUILD}, in {package.folder}")


def _is_older(archive: zipfile.ZipFile, name: str, folder: Path) -> bool:
    """Whether a module in a wheel is another than in the folder, where that has it at the same place, or under src."""
    for path in (folder / name, folder / "src" / name):
        if name.endswith(".py") and path.is_file():
            return path.read_bytes() != archive.read(name)
    return False


def page_of(package: Package) -> str:
    """Its README, with the card of each environment in it.

    Raises:
        UsageProblem: there is none, or its card was never written.
    """
    path = package.folder / "README.md"
    name = next(iter(package.environments), package.name)
    write = f"mcpgym env card {name} --write {path}"
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageProblem(f"there is no {path}, which is the page that a hub shows: write one, then {write}") from None
    marked = MARKED.search(text)
    if marked is None:
        raise UsageProblem(
            f"{path} has no card: put <!-- card --> and <!-- /card --> on lines of their own, then {write}"
        )
    if "Schema hash" not in marked[0]:
        raise UsageProblem(f"the card in {path} is empty: {write}")
    return text

"""Virtual environments for tests, made in a moment and without an index: what is installed here is seen in them too."""

from __future__ import annotations

import sysconfig
import venv
from collections.abc import Mapping
from pathlib import Path

from mcpgym.isolated.home import greet
from mcpgym.isolated.process import Child
from mcpgym.isolated.records import LOCK, SCHEMA, data_folder, venvs
from mcpgym_rl.files import write_atomically


def make_venv(folder: Path, package: str, version: str, entries: Mapping[str, str], modules: Mapping[str, str]) -> None:
    """A virtual environment with one package in it: ``modules`` by file name, ``entries`` by environment."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "ours.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    for name, source in modules.items():
        (site / name).write_text(source, "utf-8")
    about = site / f"{package.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [f"{name} = {value}" for name, value in entries.items()]
    (about / "entry_points.txt").write_text("\n".join(["[mcpgym.environments]", *lines, ""]))
    rows = [f"{name},sha256=x,1" for name in modules] + [f"{about.name}/METADATA,,"]
    (about / "RECORD").write_text("\n".join(rows))
    (folder / LOCK).touch(0o600)


def record(name: str, package: str, version: str, entries: Mapping[str, str], modules: Mapping[str, str]) -> Path:
    """The same, recorded as ``mcpgym env add`` would, but for the check; the virtual environment."""
    data = data_folder()
    venvs(data).mkdir(parents=True, exist_ok=True)
    folder = venvs(data) / name
    make_venv(folder, package, version, entries, modules)
    child = Child(folder / "bin" / "python", "a test's process")
    try:
        greet(child, "")
        found = {
            each: {
                **child.ask_now("describe", {"environment": each, "config": {}}),
                "entry": value,
                "package": package,
                "findings": [],
            }
            for each, value in entries.items()
        }
    finally:
        child.end()
    content = {"schema": SCHEMA, "package": package, "version": version, "spec": package, "folder": name}
    content |= {"python": "3", "mcpgym": "0", "installer": "a test", "environments": found}
    write_atomically(data / f"{package}.json", content)
    return folder

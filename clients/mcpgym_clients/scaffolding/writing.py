"""The files of a new package: those that all have, and those of a template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from mcpgym_clients.scaffolding.names import Names

TEMPLATES = Path(__file__).parent / "templates"
COMMON = "common"
_DESCRIPTION = "DESCRIPTION"
_EXTRAS = {"sandbox": "[sandbox]", "fastmcp": "[fastmcp]"}
"""What else of mcpgym a template's environment is installed with."""
_TRAINING = "\nA small model learns it on a laptop (`pip install 'mcpgym[rl]'`): `mcpgym train my-env`.\n\n"


def template_names() -> list[str]:
    """The templates that there are."""
    return sorted(folder.name for folder in TEMPLATES.iterdir() if folder.name != COMMON and folder.is_dir())


def write_package(folder: Path, template: str, names: Names) -> None:
    """Write all files of a package into ``folder``, which is there and empty."""
    for path, text in _files(template):
        place = folder / Path(*(part.replace("dot-", ".", 1).replace("my_env", names.module) for part in path.parts))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_filled(text, _words(template, names)), "utf-8", newline="\n")


def _files(template: str) -> Iterator[tuple[Path, str]]:
    for top in (TEMPLATES / COMMON, TEMPLATES / template):
        for path in sorted(top.rglob("*")):
            if path.is_file() and path.name != _DESCRIPTION and "__pycache__" not in path.parts:
                yield path.relative_to(top), path.read_text("utf-8")


def _words(template: str, names: Names) -> Mapping[str, str]:
    """What stands in a template, and what takes its place; in this order."""
    folder = TEMPLATES / template
    known = ".".join(version("mcpgym").split(".")[:2])
    return {
        _DESCRIPTION: (folder / _DESCRIPTION).read_text("utf-8").strip(),
        "DEPENDENCY": f"mcpgym{_EXTRAS.get(template, '')}>={known}",
        "TRAINING\n": _TRAINING if (folder / "my_env" / "recipe.toml").exists() else "\n",
        "my-env": names.name,
        "my_env": names.module,
        "MyEnv": names.class_name,
    }


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, replacement in words.items():
        text = text.replace(word, replacement)
    return text

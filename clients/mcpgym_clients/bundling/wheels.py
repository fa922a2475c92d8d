"""The wheel of a package that is installed from a folder, an editable one too: what an index would have of it.

Python files and data are taken as they lie here, without hidden files of a source folder; what is compiled would run
on machines like this one alone, and is refused.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from mcpgym.errors import ConfigurationError
from mcpgym_clients.bundling.archive import archive

_COMPILED = frozenset({".so", ".pyd", ".dll", ".dylib"})
_ABOUT = ("METADATA", "entry_points.txt", "top_level.txt")
_WHEEL = "Wheel-Version: 1.0\nGenerator: mcpgym bundle\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(distribution: Distribution, *, editable: bool, modules: Sequence[str]) -> tuple[str, bytes]:
    """The file name and the bytes of a wheel.

    Args:
        distribution: the installed package.
        editable: whether its files lie in a source folder, not where packages are installed.
        modules: names of top-level modules that it is known to have.

    Raises:
        ConfigurationError: it has compiled code, or its code cannot be found.
    """
    name = re.sub(r"[-_.]+", "_", distribution.name).lower()
    stem = f"{name}-{distribution.version}"
    about = f"{stem}.dist-info"
    found = _beside(distribution, modules) if editable else _installed(distribution)
    files: dict[str, bytes] = {}
    for place, path in found:
        if path.suffix in _COMPILED:
            raise ConfigurationError(
                f"{distribution.name} has compiled code ({place}), which would run on machines like this one alone; "
                "publish it on an index and install it from there, then a bundle asks for it by name"
            )
        if path.suffix != ".pyc" and "__pycache__" not in path.parts:
            files[place] = path.read_bytes()
    if not files:
        raise ConfigurationError(f"the code of {distribution.name} is not found; install it again, without -e")
    for item in distribution.files or ():
        where = PurePosixPath(item)
        if (where.parent.name.endswith(".dist-info") and where.name in _ABOUT) or "licenses" in where.parts[1:2]:
            files["/".join((about, *where.parts[1:]))] = Path(str(item.locate())).read_bytes()
    files[f"{about}/WHEEL"] = _WHEEL.encode()
    files[f"{about}/RECORD"] = _record(files, f"{about}/RECORD").encode()
    return f"{stem}-py3-none-any.whl", archive(files, last=about)


def _installed(distribution: Distribution) -> Iterator[tuple[str, Path]]:
    for item in distribution.files or ():
        where = PurePosixPath(item)
        if ".." not in where.parts and not where.is_absolute() and not where.parts[0].endswith(".dist-info"):
            yield str(where), Path(str(item.locate()))


def _beside(distribution: Distribution, modules: Sequence[str]) -> Iterator[tuple[str, Path]]:
    named = (distribution.read_text("top_level.txt") or "").split()
    for module in sorted({*named, *modules}):
        spec = find_spec(module)
        if spec is None:
            continue
        if spec.submodule_search_locations is None:
            if spec.origin is not None:
                yield Path(spec.origin).name, Path(spec.origin)
            continue
        for folder in map(Path, spec.submodule_search_locations):
            for path in sorted(folder.rglob("*")):
                place = path.relative_to(folder)
                if path.is_file() and not any(part.startswith(".") for part in place.parts):  # .env, .git, .DS_Store
                    yield f"{module}/{place.as_posix()}", path


def _record(files: dict[str, bytes], own: str) -> str:
    lines = []
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        quoted = f'"{name}"' if "," in name else name
        lines.append(f"{quoted},sha256={digest},{len(content)}\n")
    return "".join(lines) + f"{own},,\n"

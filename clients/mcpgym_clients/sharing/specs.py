"""What may be added: a name on an index, a repository, a folder, a wheel, a source archive."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from mcpgym_clients.failures import UsageProblem

REQUIREMENT = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[\w\s,.-]*\])?\s*([<>=!~].*)?")
ARCHIVES = (".whl", ".tar.gz", ".zip")
HOW = (
    "name a package (my-env, my-env==1.2), a repository (git+https://…), a folder with a pyproject.toml, a wheel or a "
    "source archive"
)


def whole_spec(spec: str) -> str:
    """What an installer is asked for.

    Raises:
        UsageProblem: it is nothing that can be installed; an option of an installer above all.
    """
    spec = spec.strip()
    if not spec or spec.startswith("-"):
        raise UsageProblem(
            f"{spec!r} names nothing to add: {HOW}; indexes are set as pip and uv have it (PIP_INDEX_URL)"
        )
    if "://" in spec:
        url = spec.partition("@")[2].strip() if " @ " in spec else spec
        scheme = urlsplit(url).scheme
        if scheme.startswith("git+"):
            return spec
        if scheme in ("http", "https", "file") and urlsplit(url).path.endswith(ARCHIVES):
            return spec
        if scheme in ("http", "https", "ssh", "file") and urlsplit(url).path.partition("@")[0].endswith(".git"):
            return f"git+{spec}"
        raise UsageProblem(f"{without_password(spec)!r}: is that a repository? Then write git+{without_password(spec)}")
    path = Path(spec).expanduser()
    if path.exists():
        return _path(path)
    if "/" in spec or spec.startswith((".", "~")) or spec.endswith(ARCHIVES):
        raise UsageProblem(f"there is no {spec}: {HOW}")
    if not REQUIREMENT.fullmatch(spec):
        raise UsageProblem(f"{spec!r} is no package's name: {HOW}")
    return spec


def _path(path: Path) -> str:
    if path.is_dir():
        if not any((path / name).exists() for name in ("pyproject.toml", "setup.py")):
            raise UsageProblem(
                f"{path} has no pyproject.toml, so nothing in it can be installed (mcpgym new writes one)"
            )
    elif not path.name.endswith(ARCHIVES):
        raise UsageProblem(f"{path} is neither a wheel (.whl) nor a source archive (.tar.gz, .zip)")
    return str(path.resolve())


def package_of(spec: str) -> str | None:
    """The package that a spec names, in its plain form; None where only installing it tells."""
    if "://" in spec:
        return plain_name(spec.partition(" @ ")[0].partition("[")[0].strip()) if " @ " in spec else None
    if spec.endswith(".whl"):
        return plain_name(Path(spec).name.partition("-")[0])
    found = None if "/" in spec else REQUIREMENT.fullmatch(spec)
    return plain_name(found[1]) if found else None


def plain_name(name: str) -> str:
    """A package's name as every spelling of it means it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def without_password(text: str) -> str:
    """``text`` without the user and password of a URL in it: what is kept and shown."""
    before, at, url = text.rpartition(" @ ")
    parts = urlsplit(url)
    if "@" not in parts.netloc or parts.netloc.startswith("git@"):
        return text
    return before + at + urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

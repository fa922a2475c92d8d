"""The read-only file tree that sessions see: an interpreter, its libraries and standard library, and little else.

Made of copies at neutral paths (``/usr/bin/python3``, ``/usr/lib/python3.N``), whatever layout the machine's Python has
(Debian's, pyenv's, a virtual environment's, a standalone build's): so a session neither sees where its server lives nor
anything that is written into those folders later, and tracebacks read alike everywhere. Libraries are found by reading
what each binary needs and asking the machine's own dynamic loader where that is.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO

from mcpgym_environments.python_sandbox.jail.allow import Allowed

LEFT_OUT = frozenset(
    ("test", "tests", "idlelib", "tkinter", "turtledemo", "turtle", "ensurepip", "lib2to3", "pydoc_data", "_tkinter",
     "_testbuffer", "_testcapi", "_testclinic", "_testimportmultiple", "_testinternalcapi", "_testmultiphase",
     "_ctypes_test", "xxlimited", "xxlimited_35", "xxsubtype", "antigravity", "this", "_testsinglephase",
     "_testlimitedcapi", "_testexternalinspection", "_testclinic_limited")
)  # fmt: skip
"""Modules of the standard library that a session does without: tests, windows and installers."""

STANDARD = f"usr/lib/python{sys.version_info[0]}.{sys.version_info[1]}"
SITE = f"{STANDARD}/site-packages"
PROGRAM = "usr/lib/mcpgym"
PYTHON = "usr/bin/python3"

PASSWORDS = "sandbox:x:1000:1000:sandbox:/work:/nologin\nnobody:x:65534:65534::/:/nologin\n"
GROUPS = "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"
DEVICES = ("null", "zero", "full", "random", "urandom")
_FAR = 4_000_000_000 * 10**9
"""When everything in the tree was last read, it says. As long as that is to come the kernel notes no reading, which all
sessions could see."""
FOLDERS = ("work", "tmp", "run", "proc", "dev/shm", "etc", "usr/bin", "usr/lib", SITE, PROGRAM)
LINKS = {"lib": "usr/lib", "lib64": "usr/lib", "bin": "usr/bin", "usr/lib64": "lib", "usr/local": "."}


@dataclass(slots=True)
class Plan:
    """What the tree is made of: where each file lies in it, from which real path, and the files with a given text."""

    copies: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=lambda: dict(LINKS))
    texts: dict[str, str] = field(default_factory=lambda: {"etc/passwd": PASSWORDS, "etc/group": GROUPS})

    @property
    def size(self) -> int:
        """Bytes that the files take, whole pages counted."""
        return sum(-(-os.stat(source).st_size // 4096) * 4096 for source in self.copies.values())


def plan(distributions: Allowed) -> Plan:
    """All that a session of this interpreter needs. Reads a few thousand names; copies nothing yet."""
    made = Plan()
    made.copies[PYTHON] = os.path.realpath(sys.executable)
    made.links[f"{PYTHON}.{sys.version_info[1]}"] = "python3"
    made.links["usr/bin/python"] = "python3"
    for source, place in _standard_library():
        _add(made, f"{STANDARD}/{place}", source)
    for source, place in distributions.files:
        _add(made, f"{SITE}/{place}", source)
    _add_program(made)
    _add_libraries(made)
    return made


def build(made: Plan, tree: str, old: str = "") -> None:
    """Write the tree into the folder ``tree``; the real paths of the plan lie under ``old``."""
    folders = {os.path.dirname(place) for place in (*made.copies, *made.links, *made.texts)} | set(FOLDERS)
    for place in sorted(folders):
        os.makedirs(f"{tree}/{place}", 0o755, exist_ok=True)
    for place, source in made.copies.items():
        shutil.copyfile(f"{old}{source}", f"{tree}/{place}")
        if _is_binary(place):
            _shed_symbols(f"{tree}/{place}")
        facts = os.stat(f"{old}{source}")
        os.utime(f"{tree}/{place}", ns=(_FAR, facts.st_mtime_ns))  # compiled files name this time
        os.chmod(f"{tree}/{place}", 0o555 if place.startswith("usr/bin/") or ".so" in place else 0o444)
    for place, text in made.texts.items():
        with open(f"{tree}/{place}", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(f"{tree}/{place}", 0o444)
    for place, target in made.links.items():
        os.symlink(target, f"{tree}/{place}")
    device = os.lstat(tree).st_dev
    for place in (*made.texts, *made.links, *sorted(folders)):
        facts = os.lstat(f"{tree}/{place}")
        if facts.st_dev == device:  # and not the machine's files, while they lie in a folder of the tree
            os.utime(f"{tree}/{place}", ns=(_FAR, facts.st_mtime_ns), follow_symlinks=False)


def _add(made: Plan, place: str, source: str) -> None:
    """A file, and beside a source its compiled form, if there is one."""
    made.copies[place] = source
    if source.endswith(".py"):
        compiled = importlib.util.cache_from_source(source)
        if os.path.isfile(compiled):
            made.copies[f"{os.path.dirname(place)}/__pycache__/{os.path.basename(compiled)}"] = os.path.realpath(
                compiled
            )


def _standard_library() -> Iterator[tuple[str, str]]:
    """Each file's real path and its place; of the top level only what Python itself says belongs there."""
    folder = sysconfig.get_path("stdlib")
    yield from _modules(folder, "")
    dynamic = os.path.join(folder, "lib-dynload")
    platform = os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload")
    yield from _modules(dynamic if os.path.isdir(dynamic) else platform, "lib-dynload/")


def _modules(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    known = sys.stdlib_module_names - LEFT_OUT
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        module = name.split(".")[0]
        if module not in known and not module.startswith("_sysconfigdata_"):
            continue
        if os.path.isdir(path):
            yield from ((source, f"{prefix}{name}/{place}") for source, place in _package(path))
        elif name.endswith((".py", ".so")):
            yield os.path.realpath(path), prefix + name


def _package(folder: str) -> Iterator[tuple[str, str]]:
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - {"__pycache__", "test", "tests"})
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(top, name)
                yield os.path.realpath(path), os.path.relpath(path, folder)


def _add_program(made: Plan) -> None:
    """The agent and the fork server themselves; of the packages around them only empty ones."""
    here = os.path.dirname(os.path.realpath(__file__))
    package = "mcpgym_environments/python_sandbox"
    made.texts[f"{PROGRAM}/mcpgym_environments/__init__.py"] = ""
    made.texts[f"{PROGRAM}/{package}/__init__.py"] = ""
    for name in sorted(os.listdir(here)):
        if name.endswith(".py"):
            _add(made, f"{PROGRAM}/{package}/jail/{name}", os.path.join(here, name))


def _add_libraries(made: Plan) -> None:
    """The dynamic loader, and every library that a binary of the plan needs and that is not in it."""
    executable = made.copies[PYTHON]
    loader, needed = _needs(executable)
    if not loader:
        return  # linked statically: it needs none
    real = os.path.realpath(loader)
    made.copies[f"usr/lib/{os.path.basename(loader)}"] = real
    if os.path.dirname(loader) not in ("/lib", "/lib64", "/usr/lib", "/usr/lib64"):
        made.links[loader.lstrip("/")] = f"/usr/lib/{os.path.basename(loader)}"
    have = {os.path.basename(place) for place in made.copies}
    for binary in [source for place, source in made.copies.items() if _is_binary(place)]:
        needed = needed if binary == executable else _needs(binary)[1]
        if not have.issuperset(needed):
            for name, path in _resolve(loader, binary):
                if name not in have:
                    have.add(name)
                    made.copies[f"usr/lib/{name}"] = os.path.realpath(path)
    for place in [place for place in made.copies if place.startswith("usr/lib/libc.so")]:
        beside = os.path.join(os.path.dirname(made.copies[place]), "libgcc_s.so.1")
        if "libgcc_s.so.1" not in have and os.path.exists(beside):
            made.copies["usr/lib/libgcc_s.so.1"] = os.path.realpath(beside)  # loaded when a thread ends


def _is_binary(place: str) -> bool:
    """Whether what lies there is an ELF file, by its name: to look into each would open a few thousand."""
    return place == PYTHON or ".so" in os.path.basename(place)


def _resolve(loader: str, binary: str) -> Iterable[tuple[str, str]]:
    """What the machine's loader finds for each library that the binary needs, those of its libraries included."""
    asked = subprocess.run(
        [loader, "--list", binary], capture_output=True, text=True, errors="replace", timeout=30, check=False
    )
    for line in asked.stdout.splitlines():
        name, arrow, path = line.strip().partition(" => ")
        path = path.rsplit(" (", 1)[0]
        if arrow and os.path.isabs(path):
            yield os.path.basename(name), path


def _shed_symbols(path: str) -> None:
    """Cut off what no loader reads: a binary's symbols for debuggers, behind all its segments. A tree is memory."""
    with open(path, "r+b") as file:
        segments = list(_segments(file))
        if segments:
            file.seek(40)
            file.write(bytes(8))  # there is no table of sections
            file.seek(58)
            file.write(bytes(6))
            file.truncate(max(64, *(at + length for _, at, _, length in segments)))


def _segments(file: IO[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """Kind, offset, address and length in the file of what an ELF header says is loaded or said to the loader.

    A file that is no 64-bit ELF binary of this machine's byte order has none.
    """
    head = file.read(64)
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return
    offset, size, count = (struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54))
    if size < 56 or offset + size * count > os.fstat(file.fileno()).st_size:
        return
    file.seek(offset)
    table = file.read(size * count)
    for number in range(count):
        kind, _, at, address, _, length, _, _ = struct.unpack_from("<IIQQQQQQ", table, number * size)
        yield kind, at, address, length


def _needs(path: str) -> tuple[str, list[str]]:
    """The loader that a binary names, if any, and the libraries it asks for: read from its ELF headers."""
    with open(path, "rb") as file:
        segments = list(_segments(file))
        loader, dynamic = "", b""
        for kind, at, _, length in segments:
            if kind in (2, 3):
                file.seek(at)
                held = file.read(length)
                if kind == 3:
                    loader = held.rstrip(b"\0").decode()
                else:
                    dynamic = held
        entries = list(struct.iter_unpack("<QQ", dynamic[: len(dynamic) // 16 * 16]))
        strings = next((value for tag, value in entries if tag == 5), 0)
        length = next((value for tag, value in entries if tag == 10), 0)
        loaded = [segment for segment in segments if segment[0] == 1]
        start = next((strings - to + at for _, at, to, size in loaded if to <= strings < to + size), None)
        if start is None:
            return loader, []
        file.seek(start)
        names = file.read(length)
        return loader, [names[value : names.index(b"\0", value)].decode() for tag, value in entries if tag == 1]

"""What a session sees of the machine's files, and that the folders of Landlock sessions go away."""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcpgym_environments.python_sandbox.jail import folders, root
from mcpgym_environments.python_sandbox.jail.allow import Allowed, NotInstalled, allowed

linux = pytest.mark.skipif(sys.platform != "linux", reason="the boundary is of Linux")


def install(site: Path, name: str, files: dict[str, str], requires: str = "", record: list[str] | None = None) -> None:
    """A distribution as pip leaves it; ``record`` are the files it declares, all of them by default."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    for path, text in files.items():
        place = (site / path).resolve() if path.startswith("..") else site / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
    declared = [*(files if record is None else record), f"{name}-1.0.dist-info/METADATA"]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in declared))


def places(found: Allowed) -> set[str]:
    return {place for _, place in found.files}


def test_only_declared_files_of_allowed_distributions(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    install(
        site,
        "good",
        {
            "good/__init__.py": "",
            "good/core.py": "",
            "good/tests/test_core.py": "",
            "good/core.pyi": "",
            "good/HIDDEN.py": "the answer",
            "../../bin/good": "#!python",
        },
        "Requires-Dist: needed>=1\nRequires-Dist: absent; sys_platform == 'win32'\nRequires-Dist: bad; extra == 'x'\n",
        record=["good/__init__.py", "good/core.py", "good/tests/test_core.py", "good/core.pyi", "../../bin/good"],
    )
    install(site, "needed", {"needed.py": ""})
    install(site, "bad", {"bad/__init__.py": "SECRET"})
    (site / "loose.py").write_text("SECRET")
    found = allowed(["Good"], [str(site)])
    assert places(found) == {
        "good/__init__.py",
        "good/core.py",
        "needed.py",
        "good-1.0.dist-info/METADATA",
        "needed-1.0.dist-info/METADATA",
    }
    assert list(found.modules) == ["good"]
    assert found.versions == {"good": "1.0"}


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="the distribution nothing-such is not installed"):
        allowed(["nothing_such"], [str(tmp_path)])
    install(tmp_path, "empty", {}, record=["gone.py"])
    (tmp_path / "empty-1.0.dist-info" / "RECORD").write_text("gone.py,,\n")
    with pytest.raises(NotInstalled, match="none of the files it declares is there"):
        allowed(["empty"], [str(tmp_path)])
    (tmp_path / "empty-1.0.dist-info" / "RECORD").unlink()
    with pytest.raises(NotInstalled, match="no list of its files"):
        allowed(["empty"], [str(tmp_path)])


def test_numpy_comes_with_its_libraries_and_nobody_else() -> None:
    found = allowed(["numpy"], sys.path)
    assert {place.split("/")[0] for place in places(found)} >= {"numpy"}
    assert found.versions == {"numpy": importlib.metadata.version("numpy")}
    others = {place for place in places(found) if place.split("/")[0].partition("-")[0] not in OF_NUMPY}
    assert others == set()
    assert not any("/tests/" in place or place.endswith((".pyi", ".h", ".a")) for place in places(found))


OF_NUMPY = {"numpy", "numpy.libs", "tzdata"}


@linux
def test_a_tree_holds_the_interpreter_and_every_library_it_needs() -> None:
    made = root.plan(allowed(["numpy"], sys.path))
    have = {Path(place).name for place in made.copies}
    binaries = [source for place, source in made.copies.items() if ".so" in place or place == root.PYTHON]
    missing = {(name, source) for source in binaries for name in root._needs(source)[1] if name not in have}
    assert missing == set()
    assert f"{root.STANDARD}/os.py" in made.copies
    assert f"{root.STANDARD}/json/decoder.py" in made.copies
    assert any(place.endswith("/__pycache__/decoder." + sys.implementation.cache_tag + ".pyc") for place in made.copies)
    unwanted = ("/test/", "/tests/", "/idlelib/", "/ensurepip/", "mcpgym/server", "/problems/", "/sessions/")
    assert [place for place in made.copies if any(word in f"/{place}" for word in unwanted)] == []
    assert not any(place.startswith("/") or ".." in place for place in (*made.copies, *made.links, *made.texts))
    assert made.texts["usr/lib/mcpgym/mcpgym_environments/__init__.py"] == ""  # the real one needs pydantic


@linux
def test_a_tree_has_no_symbols_for_debuggers_and_its_binaries_still_run(tmp_path: Path) -> None:
    """All of them are cut alike: the interpreter of the tree, run by its own loader, imports what is written in C."""
    planned = root.plan(allowed(["numpy"], sys.path))
    standard = {place: source for place, source in planned.copies.items() if root.SITE not in place}
    root.build(root.Plan(standard, planned.links, planned.texts), str(tmp_path))
    sizes = {
        place: ((tmp_path / place).stat().st_size, Path(source).stat().st_size) for place, source in standard.items()
    }
    assert all(mine <= theirs for mine, theirs in sizes.values())
    assert all(mine == theirs for place, (mine, theirs) in sizes.items() if place.endswith((".py", ".pyc")))
    assert any(mine < theirs for mine, theirs in sizes.values())
    (loader,) = [tmp_path / place for place in standard if Path(place).name.startswith(("ld-linux", "ld-musl"))]
    modules = "ctypes, sqlite3, ssl, decimal, zlib, lzma, bz2, hashlib, _json, pyexpat, unicodedata"
    command = [loader, "--library-path", tmp_path / "usr" / "lib", tmp_path / root.PYTHON, "-I", "-c"]
    shown = subprocess.run(
        [*command, f"import {modules}; print(sqlite3.connect(':memory:').execute('select 6 * 7').fetchone())"],
        capture_output=True,
        text=True,
        env={"PYTHONHOME": str(tmp_path / "usr")},
        timeout=60,
    )
    assert (shown.stdout, shown.returncode) == ("(42,)\n", 0), shown.stderr


@linux
@pytest.mark.parametrize(
    "content",
    [b"", b"\x7fELF", b"\x7fELF\x01\x01" + bytes(58), b"\x7fELF\x02\x01" + b"\xff" * 99, b"no binary at all" * 9],
)
def test_what_is_no_binary_is_copied_whole(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "odd.so").write_bytes(content)
    root.build(root.Plan({"usr/lib/odd.so": str(tmp_path / "odd.so")}), str(tmp_path / "tree"))
    assert (tmp_path / "tree" / "usr" / "lib" / "odd.so").read_bytes() == content


@linux
def test_a_built_tree_is_read_only_and_has_the_times_of_its_sources(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("1")
    os.utime(source, ns=(1, 1_234_567_890))
    made = root.Plan()
    made.copies["usr/lib/module.py"] = str(source)
    root.build(made, str(tmp_path / "tree"))
    copy = tmp_path / "tree" / "usr" / "lib" / "module.py"
    assert copy.stat().st_mtime_ns == 1_234_567_890  # or its compiled form would be thought stale
    assert stat.S_IMODE(copy.stat().st_mode) == 0o444
    assert (tmp_path / "tree" / "etc" / "passwd").read_text().startswith("sandbox:x:1000:")


@linux
def test_what_needs_no_library_is_known(tmp_path: Path) -> None:
    for number, content in enumerate(
        (b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(60), b"\x7fELF\x02\x01" + bytes(58))
    ):
        path = tmp_path / str(number)
        path.write_bytes(content)
        assert root._needs(str(path)) == ("", [])


@linux
def test_a_folder_is_removed_whatever_is_in_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "kept").write_text("kept")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "a").mkdir()
    (folder / "a" / "link").symlink_to(outside)
    (folder / "a" / "closed").mkdir()
    (folder / "a" / "closed" / "file").write_text("x")
    (folder / "a" / "closed").chmod(0)
    os.mkfifo(folder / "pipe")
    here = os.open(folder, os.O_RDONLY)
    at = os.dup(here)
    for _ in range(1500):  # a path longer than any call takes
        os.mkdir("deep", dir_fd=at)
        below = os.open("deep", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    os.close(here)
    folders.remove(str(folder))
    assert not folder.exists()
    assert (outside / "kept").read_text() == "kept"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o750


@linux
def test_folders_of_the_dead_are_swept_and_of_the_living_kept(tmp_path: Path) -> None:
    for name in ("dead", "living", "unlocked"):
        (tmp_path / (folders.PREFIX + name) / "tree").mkdir(parents=True)
    (tmp_path / "else").mkdir()
    for name in ("dead", "living"):
        (tmp_path / (folders.PREFIX + name) / folders.LOCK).write_text("")
    with (tmp_path / (folders.PREFIX + "living") / folders.LOCK).open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        folders.sweep(str(tmp_path))
    left = {path.name.removeprefix(folders.PREFIX) for path in tmp_path.iterdir()}
    assert left == {"living", "unlocked", "else"}


@linux
def test_a_folder_is_made_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder, lock = folders.make(1, others=False)
    try:
        assert Path(folder).parent == tmp_path.resolve()
        assert {path.name for path in Path(folder).iterdir()} == {folders.LOCK, "sessions", "tree"}
        folders.sweep(str(tmp_path))
        assert Path(folder).exists()
    finally:
        os.close(lock)
    folders.sweep(str(tmp_path))
    assert not Path(folder).exists()
    with pytest.raises(OSError, match="MB free where any program may be run"):
        folders.make(2**60, others=False)

"""Files of a session through its tools: what code did to them never leads out, hangs or breaks the session."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox_agents import INSIDE, LIMITS, with_session

from mcpgym_environments.python_sandbox.jail.files import Fault, Workspace, relative
from mcpgym_environments.python_sandbox.jail.tar import TarParts
from mcpgym_environments.python_sandbox.sessions.session import FileFault, Session


def test_files_go_in_and_out_whole_and_in_parts() -> None:
    data = bytes(range(256)) * 400

    async def act(session: Session) -> None:
        await session.write("a/b/data.bin", data)
        assert await session.read("a/b/data.bin", 0) == data[: LIMITS.read_bytes]
        assert await session.read_part("a/b/data.bin", 100_000) == (data[100_000:], 0)
        assert await session.read_part("/work/a/./b/../b/data.bin", 10, 20) == (data[10:30], len(data) - 30)
        assert await session.read_part("a/b/data.bin", len(data) + 5, 10) == (b"", 0)
        assert (await session.run("open('a/b/data.bin', 'rb').read() == bytes(range(256)) * 400")).output == b"True\n"
        await session.write("a/b/data.bin", b"")
        assert await session.read("a/b/data.bin") == b""
        await session.run("open('own.txt', 'w').write('é')")
        assert await session.read("own.txt") == "é".encode()

    with_session(act)


def test_a_listing_is_sorted_and_says_what_each_thing_is() -> None:
    async def act(session: Session) -> None:
        await session.write("b/c.txt", b"123")
        await session.write("a.txt", b"")
        await session.run("import os\nos.symlink('/etc/passwd', 'link')\nos.mkdir('empty')")
        found = [(entry.path, entry.kind, entry.size) for entry in await session.list()]
        assert found == [
            ("a.txt", "file", 0),
            ("b", "directory", 0),
            ("b/c.txt", "file", 3),
            ("empty", "directory", 0),
            ("link", "link", 0),
        ]
        assert [entry.path for entry in await session.list("b")] == ["b/c.txt"]
        assert "b/c.txt" not in [entry.path for entry in await session.list(depth=1)]

    with_session(act)


def test_a_listing_of_many_files_is_cut_and_says_so() -> None:
    code = "import os\nfor n in range(300): open(f'{n:03}', 'w').close()\nfor n in '0' * 90: os.mkdir(n); os.chdir(n)"

    async def act(session: Session) -> None:
        await session.run(code)
        entries, omitted = await session.list_part(depth=64)
        assert [entry.path for entry in entries[:2]] == ["0", "0/0"]
        assert sum(entry.kind == "file" for entry in entries) == 300
        assert sum(entry.kind == "directory" for entry in entries) == 64
        assert omitted == 0

    with_session(act)


READ = {
    "../x": "leads out of the workspace",
    "a/../../x": "leads out of the workspace",
    "/etc/passwd": "is outside of the workspace",
    "/workx": "is outside of the workspace",
    "": "is not a path",
    "a\0b": "is not a path",
    "x" * 5000: "is not a path",
    "\ud800": "holds half of a character",
    "\U0001f600" * 90: "' is too long a name",
    "a'\"" * 80: "there is no",
    "none.txt": "there is no 'none.txt'",
    ".": "is a folder, not a file",
    "folder": "is a folder, not a file",
    "file/x": "is a file, not a folder",
    "x" * 300: "too long a name",
    "out": "there is no 'out'",
    "up": "there is no 'up'",
    "circle": "is a link that leads out of the workspace or in a circle",
    "process": "there is no 'process'",
    "shut/file": "has no rights",
}
WRITTEN = {
    "../x": "leads out",
    ".": "is a folder",
    "folder": "is a folder",
    "file/x": "is a file, not a folder",
    "new/": "",
    "out": "there is no",
    "far/x": "there is no",
    "few/x": "has no rights",
}


def test_what_cannot_be_read_or_written_is_explained_and_leads_nowhere() -> None:
    code = """
import os
os.mkdir("folder"); open("file", "w").close()
os.symlink("/etc/passwd", "out"); os.symlink("../../etc/passwd", "up"); os.symlink("circle", "circle")
os.symlink("/proc/self/root/etc/passwd", "process"); os.symlink("folder", "into"); os.symlink("/tmp", "far")
os.mkdir("shut"); open("shut/file", "w").write("x"); os.chmod("shut/file", 0); os.chmod("shut", 0)
os.mkdir("few", 0o500)
open("folder/inside", "w").write("found")
"""

    async def act(session: Session) -> None:
        made = await session.run(code)
        assert made.status == "ok", made.output.decode()
        for path, words in READ.items():
            with pytest.raises(FileFault) as caught:
                await session.read(path)
            text = str(caught.value)
            assert words in text
            assert len(text) < 300
            assert text.isprintable()
        assert await session.read("into/inside") == b"found"
        for path, words in WRITTEN.items():
            if words:
                with pytest.raises(FileFault, match=words):
                    await session.write(path, b"written")
            else:
                await session.write(path, b"written")
        assert (await session.run("os.listdir('/tmp')")).output == b"[]\n"

    with_session(act, INSIDE)


def test_what_does_not_fit_is_refused_and_the_file_stays_as_it_was() -> None:
    async def act(session: Session) -> None:
        await session.write("kept", b"as it was")
        await session.run(
            f"for n in range(2): open(f'big{{n}}', 'wb').write(bytes({LIMITS.workspace_bytes * 9 // 20}))"
        )
        with pytest.raises(FileFault, match="no room: "):
            await session.write("kept", bytes(LIMITS.workspace_bytes // 5))
        assert await session.read("kept") == b"as it was"
        full = await session.run(f"open('more', 'wb').write(bytes({LIMITS.workspace_bytes // 5}))")
        assert b"No space left on device" in full.output
        many = await session.run(f"for n in range({LIMITS.workspace_files}): open(f'n{{n}}', 'w')")
        assert b"No space left on device" in many.output

    with_session(act, INSIDE)


def test_the_workspace_leaves_as_a_tar() -> None:
    async def act(session: Session) -> bytes:
        await session.write("a/b.txt", b"text")
        await session.run(
            "import os\nos.symlink('/etc', 'link'); os.chmod('a', 0o700); open('né', 'w').close()\n"
            "open('sparse', 'wb').truncate(3000000); open('shut', 'w').close(); os.chmod('shut', 0)"
        )
        return await session.export()

    with tarfile.open(fileobj=io.BytesIO(with_session(act, INSIDE))) as archive:
        kinds = {entry.name: (entry.type, entry.size, entry.linkname, entry.uid) for entry in archive}
        assert kinds == {
            "a": (tarfile.DIRTYPE, 0, "", 0),
            "a/b.txt": (tarfile.REGTYPE, 4, "", 0),
            "link": (tarfile.SYMTYPE, 0, "/etc", 0),
            "né": (tarfile.REGTYPE, 0, "", 0),
            "sparse": (tarfile.REGTYPE, 3_000_000, "", 0),
        }
        file = archive.extractfile("a/b.txt")
        assert file is not None
        assert file.read() == b"text"


def test_odd_numbers_and_long_names_are_explained_and_the_session_goes_on() -> None:
    code = """
import os
d = "/work"
for n in range(14):
    d += "/" + (b"\\xff" * 250).decode("utf-8", "surrogateescape"); os.mkdir(d)
for n in range(480): open(f"{d}/{n}", "w").close()
"""

    async def act(session: Session) -> None:
        await session.run(code)
        entries, omitted = await session.list_part(depth=64)
        assert len(entries) + omitted == 14 + 480
        assert omitted > 400
        for path, offset in (("a", -1), ("a", 2**63), ("a", 2**63 - 1), ("../a", -1)):
            with pytest.raises(FileFault):
                await session.read(path, offset)
        with pytest.raises(FileFault, match="depth is a whole number"):
            await session.list(depth=-1)
        await session.reset()
        assert await session.list() == []

    with_session(act, INSIDE)


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.chmod('/work', 0)",
        "import os\nos.chmod('/work', 0o555); os.chmod('/tmp', 0)",
        "import os\nd = 'd'\nfor n in range(400): os.mkdir(d, 0o777 if n % 3 else 0o700); os.chdir(d)",
        "import os\nos.makedirs('a/b/c'); os.chmod('a/b', 0); os.chmod('a', 0)",
        "import os\nos.makedirs('.0/b/c')\nfor n in range(9): open(f'.{n + 1}.1', 'w'); open(f'.{n + 1}.removed', 'w')",
        "import os\nfor n in range(300): os.symlink('/work', f'l{n}')",
        "import os\nos.mkdir('/tmp/x'); os.symlink('/work', '/tmp/x/y'); open('/dev/shm/s', 'w')",
    ],
    ids=["no rights", "few rights", "deep", "closed inside", "names", "links", "elsewhere"],
)
def test_a_reset_leaves_nothing_whatever_lies_there(code: str) -> None:
    look = "import os\n[os.listdir(d) for d in ('/work', '/tmp', '/dev/shm')], 'code' in globals(), os.getcwd()"

    async def act(session: Session) -> bytes:
        await session.run("code = 1\n" + code)
        await session.reset()
        await session.write("new/file", b"x")
        assert await session.read("new/file") == b"x"
        await session.reset(7)
        return (await session.run(look)).output

    assert with_session(act, INSIDE) == b"([[], [], []], False, '/work')\n"


# ---------------------------------------------------------------------- the functions themselves, on any system


@given(st.text(max_size=30) | st.lists(st.sampled_from(["..", ".", "", "a", "b c", "work", "\0"])).map("/".join))
def test_any_path_stays_inside_or_is_refused(path: str) -> None:
    try:
        name = relative(path)
    except Fault as fault:
        assert str(fault).isprintable()  # noqa: PT017 - either way is right
        return
    assert not name.startswith("/")
    assert ".." not in name.split("/")
    assert relative(name) == name


@pytest.fixture(params=["openat2", "one name at a time"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    made = Workspace(str(tmp_path / "work"), 10_000, False)
    if request.param != "openat2":
        made._kernel = False
    return made


def test_without_the_kernels_help_no_link_is_followed(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    work = tmp_path / "work"
    (work / "real").mkdir()
    (work / "real" / "file").write_text("inside")
    for name, target in {"up": "../secret", "abs": str(tmp_path / "secret"), "dir": "..", "root": "/"}.items():
        (work / name).symlink_to(target)
    paths = ("up", "abs", "dir/secret", "root" + str(tmp_path / "secret"), "../secret", "real/../../secret")
    for path in paths:
        with pytest.raises(Fault):
            workspace.read(path, 0, 100)
    for path in paths:
        with contextlib.suppress(Fault):  # the kernel takes the workspace for the root: then it is written in there
            workspace.write(path, b"overwritten")
    assert (tmp_path / "secret").read_text() == "secret"
    assert workspace.read("real/file", 2, 3) == (b"sid", 6)


def test_what_could_wait_or_act_when_it_is_opened_is_not_opened(workspace: Workspace, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "work" / "fifo")
    (tmp_path / "work" / "null").symlink_to("/dev/null")
    for path in ("fifo", "null"):
        with pytest.raises(Fault):
            workspace.read(path, 0, 1)
    with pytest.raises(Fault):
        workspace.write("fifo", b"")
    assert workspace.list(".", 1)[0].count(b'"other"') == 1
    with tarfile.open(fileobj=io.BytesIO(TarParts(workspace, 1 << 20).next(1 << 20)[0])) as archive:
        assert archive.getnames() == ["null"]


def test_what_the_kernel_does_not_limit_is_counted(workspace: Workspace, tmp_path: Path) -> None:
    workspace.write("a", bytes(4096))
    with pytest.raises(Fault, match=r"no room: 8192 bytes do not fit into the \d+ left"):
        workspace.write("b", bytes(8192))
    workspace.write("a", b"small")
    assert workspace.read("a", 0, 10) == (b"small", 5)
    assert json.loads(workspace.list(".", 8)[0])[0] == {"path": "a", "kind": "file", "size": 5}
    assert workspace.usage()[1] in (1, 2)


def test_a_workspace_that_was_replaced_is_made_anew(workspace: Workspace, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (tmp_path / "elsewhere").mkdir()
    work.rmdir()
    work.symlink_to("elsewhere")
    workspace.write("a", b"1")
    assert not work.is_symlink()
    assert (work / "a").read_bytes() == b"1"
    assert list((tmp_path / "elsewhere").iterdir()) == []

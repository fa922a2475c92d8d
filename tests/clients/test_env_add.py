"""``mcpgym env add``: packages in virtual environments of their own, by the real installer, without an index."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable, Mapping
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from isolated_venvs import make_venv
from mcpgym.errors import UnknownNameError
from mcpgym.isolated.home import home_of
from mcpgym.isolated.records import VARIABLE, added, data_folder, records, venvs
from mcpgym.registry import environment_names
from mcpgym_clients.failures import CommandFailed, UsageProblem
from mcpgym_clients.sharing import adding, installers
from mcpgym_clients.sharing.adding import add
from mcpgym_clients.sharing.installers import Installed
from mcpgym_clients.sharing.places import alone, sweep
from mcpgym_clients.sharing.removing import remove
from mcpgym_clients.sharing.specs import package_of, whole_spec, without_password

MODULE = '''
from mcpgym import Environment, LazyTasks, Task, reward, task_id, tool
from mcpgym.messages import user
import small_thing

class Made(Environment):
    name = "NAME"
    description = "Says which small-thing it has."
    max_turns = 2
    def tasks(self, split):
        return LazyTasks(5, lambda i: Task(task_id(split, i), split, [user(f"Ask ({split} {i}).")], {"i": i}))
    def reset(self, task, seed):
        return []
    @tool(inline=True)
    def ask(self, state) -> str:
        """Ask."""
        state.append(small_thing.VERSION)
        return small_thing.VERSION
    @reward
    def asked(self, state) -> float:
        """1 if it was asked."""
        return float(bool(state))
'''


def make_wheel(
    folder: Path, name: str, number: str, files: Mapping[str, str], needs: tuple[str, ...] = (), entries: str = ""
) -> Path:
    """A wheel as a build would make it."""
    stem = f"{name.replace('-', '_')}-{number}"
    about = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}", *(f"Requires-Dist: {need}" for need in needs)]
    content = {
        **files,
        f"{stem}.dist-info/METADATA": "\n".join(about) + "\n",
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/entry_points.txt": f"[mcpgym.environments]\n{entries}\n" if entries else "",
    }
    rows = [f"{stem}.dist-info/RECORD,,"]
    for place, text in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{place},sha256={digest},{len(text.encode())}")
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in {**content, f"{stem}.dist-info/RECORD": "\n".join(rows) + "\n"}.items():
            archive.writestr(place, text)
    return path


def game(folder: Path, name: str, *needs: str) -> Path:
    """A package with one environment, as a wheel."""
    module = name.replace("-", "_")
    files = {f"{module}.py": MODULE.replace("NAME", name)}
    return make_wheel(folder, name, "1.0", files, ("mcpgym", *needs), f"{name} = {module}:Made")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "data"))
    return data_folder()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_two_packages_that_could_not_be_installed_together_play_side_by_side(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., tuple[int, str, str]]
) -> None:
    index = tmp_path / "index"
    index.mkdir()
    see = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    for text in requires("mcpgym") or []:  # in place of each, one that shows what is installed here
        need = Requirement(text)
        if need.marker is None or need.marker.evaluate({"extra": ""}):
            make_wheel(index, need.name, version(need.name), {"ours.pth": see} if need.name == "mcp" else {})
    for number in ("1.0", "2.0"):
        make_wheel(index, "small-thing", number, {"small_thing.py": f'VERSION = "{number}"\n'})
    settings = {"PIP_NO_INDEX": "1", "PIP_NO_COMPILE": "1", "MCPGYM_INSTALLER": "pip", "PIP_FIND_LINKS": str(index)}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    made = installers.own_wheel(tmp_path)  # once: what it is made of does not change meanwhile
    monkeypatch.setattr(installers, "own_wheel", lambda folder: made)
    one = game(tmp_path, "game-one", "small-thing==1.0")
    game(index, "game-two", "small-thing>=2")
    code, printed, said = command("env", "add", str(one), "--json")
    assert code == 0, said
    assert json.loads(printed)["wheel_sha256"] == hashlib.sha256(one.read_bytes()).hexdigest()
    assert command("env", "add", "game-two")[0] == 0
    code, _, said = command("env", "add", "game-two")
    assert code == 1
    assert "game-two 1.0 was added already: --replace puts this in its place" in said
    code, _, said = command("env", "add", str(game(tmp_path, "game-three", "small-thing==3")))
    assert (code, "cannot be installed" in said, "small-thing" in said) == (1, True, True)

    listed = json.loads(command("env", "list", "--json")[1])
    assert [(row["package"], row["state"]) for row in listed] == [("game-one", "ready"), ("game-two", "ready")]
    assert len(list(venvs(data).iterdir())) == 2
    about = json.loads(command("env", "info", "game-two", "--json")[1])
    assert about["environments"][0]["schema_hash"] == listed[0]["environments"][0]["schema_hash"]
    assert Path(about["command"]).exists()
    for name, number in (("game-one", "1.0"), ("game-two", "2.0")):
        code, _, said = command("eval", name, "--policy", "random", "-n", "2", "--out", str(tmp_path / name))
        assert code == 0, said
        traces = (tmp_path / name / "traces.jsonl").read_text().splitlines()
        texts = {call["result"] for line in traces for call in json.loads(line)["calls"]}
        assert texts == {number}
    assert command("replay", str(tmp_path / "game-two"))[0] == 0
    home_of(added()["game-one"]).end()
    assert command("env", "remove", "game-one")[0] == 0
    assert "game-one" not in environment_names()
    assert len(list(venvs(data).iterdir())) == 1


def faked(modules: Mapping[str, str], entries: Mapping[str, str], package: str = "found") -> Callable[..., Installed]:
    """An installer that makes in a moment what pip would."""

    def install(folder: Path, spec: str, python: str | None, lock: int) -> Installed:
        make_venv(folder, package, "1.0", entries, modules)
        (about,) = folder.glob(f"lib/python*/site-packages/{package}-1.0.dist-info")
        (about / "direct_url.json").write_text('{"url": "https://me:secret@there/x.git", "vcs_info": {}}')
        return Installed("a test", None)

    return install


SMALL = MODULE.replace("import small_thing", "small_thing = type('S', (), {'VERSION': '1'})")
BAD = {
    "no environment": ({"found.py": ""}, {}, r"registers no environment: its pyproject.toml needs a table"),
    "installed name": ({"found.py": SMALL}, {"tic-tac-toe": "found:Made"}, "one of this name is installed here"),
    "other name": ({"found.py": SMALL}, {"found": "found:Made"}, "calls itself 'NAME'"),
    "import": ({"found.py": "1/0"}, {"found": "found:Made"}, "cannot be imported: ZeroDivisionError"),
    "ends": (
        {"found.py": "import os; os.write(2, b'farewell'); os._exit(5)"},
        {"found": "found:Made"},
        r"ended with exit code 5; it said last: .*farewell",
    ),
    "needs": (
        {"found.py": SMALL.replace("NAME", "found") + "    def __init__(self, config=None): raise OSError('no disk')"},
        {"found": "found:Made"},
        "cannot be described: OSError: no disk",
    ),
}


@pytest.mark.parametrize("what", list(BAD))
def test_what_may_not_be_added_is_refused_and_nothing_is_left(
    what: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules, entries, said = BAD[what]
    monkeypatch.setattr(adding, "install", faked(modules, entries))
    with pytest.raises(CommandFailed, match=said):
        add("git+https://there/x.git", None, replace=False, anyway=False, as_json=False)
    assert records() == []
    assert list(venvs(data).iterdir()) == []


def test_a_broken_environment_is_added_only_by_who_insists(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = SMALL.replace("NAME", "found").replace('{"i": i}', '{"i": __import__("random").random()}')
    monkeypatch.setattr(adding, "install", faked({"found.py": broken}, {"found": "found:Made"}))
    with pytest.raises(CommandFailed, match=r"found breaks the contract \(mcpgym check\), and its scores may be wrong"):
        add("git+https://me:secret@there/x.git", None, replace=False, anyway=False, as_json=False)
    assert "tasks-stable" in capsys.readouterr().err
    add("git+https://me:secret@there/x.git", None, replace=False, anyway=True, as_json=False)
    (record,) = records()
    assert "secret" not in record.path.read_text()
    assert record.environments["found"]["findings"][0]["rule"] == "tasks"

    others = faked({"found.py": SMALL.replace("NAME", "found")}, {"found": "found:Made"}, "another")
    monkeypatch.setattr(adding, "install", others)
    with pytest.raises(CommandFailed, match="and so has found, which was added: mcpgym env remove found"):
        add("git+https://there/y.git", None, replace=False, anyway=False, as_json=False)

    home_of(record).child()
    with pytest.raises(CommandFailed, match=rf"found is not removed: it is in use by process {os.getpid()} \("):
        remove("found")
    assert set(added()) == {"found"}
    home_of(record).end()
    remove("found")
    assert (records(), list(venvs(data).iterdir())) == ([], [])
    with pytest.raises(UnknownNameError, match="no environment that was added under the name 'found'"):
        remove("found")


ADDING = """
import os, sys, time
from pathlib import Path
from mcpgym_clients.sharing import adding, installers
def install(folder, spec, python, lock):
    folder.mkdir(parents=True)
    (folder / "half").write_text("x")
    return installers._run([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(WAIT)"], lock, spec)
adding.install = install
print("begun", flush=True)
adding.add("some-package", None, replace=False, anyway=False, as_json=False)
"""


@pytest.mark.flaky(reruns=1)  # it measures time
def test_a_killed_add_leaves_nothing_and_two_at_once_wait_for_each_other(data: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ADDING.replace("WAIT", "1.5")], stdout=subprocess.PIPE, env={**os.environ}
    )
    until = time.monotonic() + 60
    while not list(data.glob("venvs/*/half")) and time.monotonic() < until:
        time.sleep(0.02)
    assert records() == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    began = time.monotonic()
    with alone(data):  # the installer that outlives its command is waited for
        assert time.monotonic() - began < 60
        assert len(list(venvs(data).iterdir())) == 1
        sweep(data)
        assert list(venvs(data).iterdir()) == []


def test_nothing_is_swept_that_a_record_may_name(data: Path) -> None:
    folder = venvs(data) / ("a" * 16)
    folder.mkdir(parents=True)
    (venvs(data) / "mine").mkdir()
    (data / "newer.json").write_text('{"schema": "mcpgym.added/9"}')
    with alone(data):
        sweep(data)
        assert folder.exists()
        (data / "newer.json").unlink()
        sweep(data)
    assert [path.name for path in venvs(data).iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "names nothing to add"),
        ("--index-url=http://x", "names nothing to add"),
        ("./not-there", "there is no ./not-there"),
        ("x.whl", "there is no x.whl"),
        ("two words", "is no package's name"),
        ("https://me:pw@there/it", r"is that a repository\? Then write git\+https://there/it"),
    ],
)
def test_what_names_nothing_is_refused_before_anything_is_asked(spec: str, said: str) -> None:
    with pytest.raises(UsageProblem, match=said):
        whole_spec(spec)


def test_what_may_be_named(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"has no pyproject\.toml"):
        whole_spec(str(tmp_path))
    (tmp_path / "pyproject.toml").touch()
    assert whole_spec(str(tmp_path)) == str(tmp_path)
    for spec in ("my-env", "my_env[a,b]>=1,<2", "git+ssh://git@there/it.git@v1#subdirectory=x", "x @ git+https://a/b"):
        assert whole_spec(spec) == spec
    assert whole_spec("https://there/it.git") == "git+https://there/it.git"
    assert [package_of(spec) for spec in ("My_Env==1", "a/my_env-1-py3-none-any.whl", "git+https://x/y")] == [
        "my-env", "my-env", None,
    ]  # fmt: skip
    assert without_password("x @ git+https://me:pw@there/it") == "x @ git+https://there/it"
    assert without_password("git+ssh://git@there/it") == "git+ssh://git@there/it"


def test_our_own_wheel_is_what_runs_now(tmp_path: Path) -> None:
    path = installers.own_wheel(tmp_path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        import mcpgym.isolated.host as ours

        assert archive.read("mcpgym/isolated/host.py") == Path(ours.__file__).read_bytes()
    assert "mcpgym_environments/tic_tac_toe/recipe.toml" in names
    assert not [name for name in names if name.startswith(("tests", ".", "docs")) or name.endswith(".pyc")]

"""``mcpgym bundle``: one file that the official tool accepts, that starts, and that is the same file again."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from tests import node_tools

from mcpgym.environment import Config
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.schema import schema_hash
from mcpgym_clients.bundling.command import BundleOptions, run
from mcpgym_clients.bundling.contents import _server
from mcpgym_clients.bundling.distributions import home_of, needed
from mcpgym_clients.bundling.distributions import installed as installed_here
from mcpgym_clients.bundling.entry import words
from mcpgym_clients.bundling.icon import SIZE, icon
from mcpgym_clients.bundling.settings import settings_of
from mcpgym_clients.bundling.wheels import wheel
from mcpgym_environments.python_sandbox.config import PythonSandboxConfig
from mcpgym_environments.tic_tac_toe import TicTacToe

NAME = "tic-tac-toe"
CONFIG = ["--config", "policy_moves=second", "--config", "max_random_move_prob=0.25"]


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, unpacked into a folder with a space in its name; the file lies beside it."""
    folder = tmp_path_factory.mktemp("a bundle")
    run(BundleOptions(NAME, folder / "game.mcpb", CONFIG[1::2]))
    with zipfile.ZipFile(folder / "game.mcpb") as whole:
        whole.extractall(folder / "un packed")
    return folder / "un packed"


def read(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text("utf-8"))


def filled_in(folder: Path, chosen: Mapping[str, str]) -> dict[str, Any]:
    """The command of a bundle as a client makes it."""
    manifest = read(folder)
    values = {name: json.dumps(field["default"]).strip('"') for name, field in manifest["user_config"].items()}
    known = {"__dirname": str(folder)} | {f"user_config.{name}": text for name, text in (values | chosen).items()}
    made = manifest["server"]["mcp_config"]
    return made | {"args": [re.sub(r"\$\{([^}]+)\}", lambda found: known[found[1]], word) for word in made["args"]]}


def test_the_same_environment_gives_the_same_bytes(bundled: Path, command: Callable[..., tuple]) -> None:
    code, out, _ = command("bundle", NAME, *CONFIG)
    assert code == 0
    assert "It carries mcpgym " in out
    whole = (bundled.parent / "game.mcpb").read_bytes()
    assert Path(f"{NAME}.mcpb").read_bytes() == whole
    with zipfile.ZipFile(io.BytesIO(whole)) as opened:
        entries = opened.infolist()
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}


def test_the_manifest_says_what_the_server_has(bundled: Path) -> None:
    manifest = read(bundled)
    assert manifest["_meta"]["mcpgym"]["schema_hash"] == TicTacToe.schema_hash
    assert manifest["_meta"]["mcpgym"]["config"]["policy_moves"] == "second"
    form = manifest["user_config"]
    assert form["policy_moves"]["default"] == "second"
    assert form["policy_moves"]["description"].endswith("One of: first, second, either.")
    assert (form["max_random_move_prob"]["min"], form["max_random_move_prob"]["max"]) == (0, 1)
    assert form["illegal_move_loses"] | {"description": ""} == {
        "type": "boolean", "title": "Illegal move loses", "description": "", "default": False, "required": False,
    }  # fmt: skip


def carried_code(folder: Path, target: Path) -> Path:
    """The code that the bundle carries, installed alone: as pure Python, a wheel is what it unpacks to."""
    (carried,) = (folder / "wheels").iterdir()
    with zipfile.ZipFile(carried) as packed:
        packed.extractall(target)
    return target


def test_it_starts_by_exactly_its_command_and_plays_a_game(bundled: Path, tmp_path: Path) -> None:
    """By the real uv where it is, told to take this virtual environment for the bundle's own and to fetch nothing; else
    the same file is run by this Python. Either way the code is what the bundle carries."""
    code = carried_code(bundled, tmp_path / "code")
    made = filled_in(bundled, {"policy_moves": "first", "best_move": ""})
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert made["command"] == "uv"
    started = [
        found or sys.executable,
        *(made["args"] if found else made["args"][made["args"].index("src/server.py") :]),
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        **{"PYTHONPATH": str(code), "HOME": str(tmp_path), "UV_PROJECT_ENVIRONMENT": sys.prefix},
        **{"UV_NO_SYNC": "1", "UV_OFFLINE": "1", "UV_FROZEN": "1"},
    }

    async def play() -> tuple[list[Any], str]:
        server = StdioServerParameters(command=started[0], args=started[1:], env=environment, cwd=bundled)
        async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as client:
            await client.initialize()
            tools = (await client.list_tools()).tools
            said = await text_of(client, "start_episode", {})
            handle = said.split()[1]
            assert "You move first." in said, "as the person chose, not as the bundle was made"
            while "Game over" not in said:
                said = await text_of(
                    client, "play", {"episode": handle, "position": int(re.findall(r"free ([0-8])", said)[-1])}
                )
            return tools, said

    async def text_of(client: ClientSession, name: str, arguments: dict[str, Any]) -> str:
        (content,) = (await client.call_tool(name, arguments)).content
        return str(getattr(content, "text", ""))

    tools, said = asyncio.run(asyncio.wait_for(play(), 100))
    assert "Game over" in said
    assert read(bundled)["tools"] == [{"name": tool.name, "description": tool.description} for tool in tools]


def test_the_wheel_has_the_whole_package_and_nothing_of_the_machine(bundled: Path, tmp_path: Path) -> None:
    code, (carried,) = tmp_path / "code", (bundled / "wheels").iterdir()
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    start = [sys.executable, "-m"] if uv is None else [uv]
    install = [*start, "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*install, str(code), str(carried)], check=True, capture_output=True, timeout=100)
    assert (code / "mcpgym_environments" / "tic_tac_toe" / "models" / "default" / "model.safetensors").is_file()
    with zipfile.ZipFile(carried) as packed:
        names = packed.namelist()
        assert packed.testzip() is None
        record = packed.read(names[-1].rpartition("/")[0] + "/RECORD").decode().split()
        for name, digest, _ in (line.split(",") for line in record[:-1]):
            made = base64.urlsafe_b64encode(hashlib.sha256(packed.read(name)).digest()).decode().rstrip("=")
            assert digest == f"sha256={made}", name
    assert sorted(line.split(",")[0] for line in record) == sorted(names)
    assert not [name for name in names if "__pycache__" in name or name.endswith("direct_url.json")]
    own = {name for name in names if name.startswith(("mcpgym/", "mcpgym_rl/")) and name.endswith(".py")}
    here = Path(str(sys.modules["mcpgym"].__file__)).parent
    assert {f"mcpgym/{path.relative_to(here).as_posix()}" for path in here.rglob("*.py")} <= own
    everything = b"".join(path.read_bytes() for path in bundled.rglob("*") if path.suffix != ".whl" and path.is_file())
    assert str(Path.home()).encode() not in everything
    assert str(Path(sys.prefix)).encode() not in everything


@node_tools.needs_node()
def test_the_official_tool_takes_it_and_makes_the_same_command_of_it(bundled: Path, tmp_path: Path) -> None:
    def mcpb(*arguments: str | Path) -> str:
        made = [*node_tools.command("@anthropic-ai/mcpb"), *map(str, arguments)]
        done = subprocess.run(made, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    file = bundled.parent / "game.mcpb"
    assert "Manifest schema validation passes" in mcpb("validate", bundled / "manifest.json")
    assert "Not signed" in mcpb("info", file)
    mcpb("unpack", file, tmp_path / "theirs")
    files = {path.relative_to(bundled): path.read_bytes() for path in bundled.rglob("*") if path.is_file()}
    theirs = tmp_path / "theirs"
    assert {path.relative_to(theirs): path.read_bytes() for path in theirs.rglob("*") if path.is_file()} == files
    mcpb("pack", theirs, tmp_path / "again.mcpb")
    with zipfile.ZipFile(tmp_path / "again.mcpb") as again:
        assert {name: again.read(name) for name in again.namelist()} == {
            name.as_posix(): content for name, content in files.items()
        }
    library = node_tools.package("@anthropic-ai/mcpb") / "dist" / "index.js"
    choices: list[dict[str, Any]] = [{}, {"policy_moves": "first", "illegal_move_loses": True, "max_turns": 5}]
    asked = {"manifest": read(bundled), "extensionPath": str(bundled), "systemDirs": {}, "pathSeparator": "/"}
    script = (
        f"import {{ getMcpConfigForManifest as made }} from {json.dumps(library.as_uri())};"
        f"for (const chosen of {json.dumps(choices)})"
        f" console.log(JSON.stringify(await made({{ ...{json.dumps(asked)}, userConfig: chosen }})))"
    )
    node = [str(node_tools.node()), "--input-type=module", "-e", script]
    done = subprocess.run(node, capture_output=True, text=True, timeout=60, check=True)
    for chosen, line in zip(choices, done.stdout.splitlines(), strict=True):
        ours = filled_in(bundled, {name: json.dumps(value).strip('"') for name, value in chosen.items()})
        args = json.loads(line)["args"]
        for made_there, made_here in zip(args[4:], ours["args"][4:], strict=True):
            assert made_there in (made_here, made_here.removesuffix(".0"))
        assert args[:4] == ours["args"][:4]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tic-tac-to"], "did you mean 'tic-tac-toe'"),
        (["mcpgym_environments.double_check:DoubleCheck"], "register the class in a package"),
        ([NAME, "--out", "game.zip"], "write game.mcpb"),
        ([NAME, "--out", "no/where.mcpb"], "there is no folder no"),
        ([NAME, "--config", "policy_moves=third"], "policy_moves"),
        ([NAME, "--out", "b.mcpb", "--setting", "policy_move"], "did you mean 'policy_moves'"),
        ([NAME, "--setting", "max_turns", "--no-settings"], "leave one of them out"),
        ([NAME, "--out", "b.mcpb", "--extra", "wikki"], "did you mean 'wiki'"),
        ([NAME], "is there already; replace it with --force"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    command: Callable[..., tuple], arguments: Sequence[str], says: str
) -> None:
    Path(f"{NAME}.mcpb").write_text("mine")
    code, _, err = command("bundle", *arguments)
    assert (code, says in err) == (2, True), err
    assert [path.name for path in Path().iterdir()] == [f"{NAME}.mcpb"]
    assert Path(f"{NAME}.mcpb").read_text() == "mine"


def test_with_force_a_file_is_replaced_and_settings_are_those_wanted(command: Callable[..., tuple]) -> None:
    Path("b.mcpb").write_text("old")
    given = [
        "--out",
        "b.mcpb",
        "--force",
        "--setting",
        "max_turns",
        "--config",
        "policy_moves=second",
        "--extra",
        "wiki",
    ]
    assert command("bundle", NAME, *given)[0] == 0
    assert [path.name for path in Path().iterdir()] == ["b.mcpb"]
    with zipfile.ZipFile("b.mcpb") as whole:
        assert list(json.loads(whole.read("manifest.json"))["user_config"]) == ["max_turns"]
        assert "FIXED = ['policy_moves=second']" in whole.read("src/server.py").decode()
        assert (
            f'dependencies = ["mcpgym[wiki]=={installed_here("mcpgym").version}"]'
            in whole.read("pyproject.toml").decode()
        )


def test_what_a_client_left_out_or_could_not_fill_in_stays_as_it_was() -> None:
    settings = {"a": "1", "b": "x", "c": ""}
    given = ["a=", "b=${user_config.b}", "c=y=z", "d=4", "nonsense"]
    assert words("e", settings, ["f=2"], given) == [
        *("serve", "e", "--stdio", "--config", "f=2"),
        *("--config", "a=1", "--config", "b=x", "--config", "c=y=z"),
    ]


def test_only_what_a_form_can_show_is_offered_in_numbers_that_json_can_hold() -> None:
    made = settings_of(PythonSandboxConfig(), {"tasks": "open"}, None)
    assert set(made.form) == set(PythonSandboxConfig.model_fields)
    assert made.fixed == []
    assert all(abs(field.get("max", 0)) < 2**53 for field in made.form.values())
    assert settings_of(PythonSandboxConfig(), {"tasks": "open"}, []).fixed == ["tasks=open"]


class Injected(Config):
    """Values that would be others in a client that fills in what they name, or in a form of one line."""

    home: str = "${HOME}/x"
    other: str = "${user_config.quoted}"
    lines: str = "a\nb"
    quoted: str = """a "b" 'c' \\ {d} $e"""


def test_values_that_a_client_would_change_are_kept_out_of_its_hands() -> None:
    made = settings_of(Injected(), {"home": "${HOME}/x"}, None)
    assert {name for name, field in made.form.items() if "default" in field} == {"quoted"}
    assert set(made.form) == set(made.values) == set(Injected.model_fields)
    untouched = [f"{name}=${{user_config.{name}}}" for name in ("home", "other", "lines")]
    served = words("e", made.values, made.fixed, [*untouched, f"quoted={Injected().quoted}"])
    assert served[4::2] == [f"{name}={value}" for name, value in Injected().model_dump().items()]
    fixed = settings_of(Injected(), {"other": '"${HOME}"'}, [])
    written = _server("an-environment", fixed)
    found: dict[str, Any] = {}
    exec(written, found | {"__name__": "server"}, found)
    assert (found["FIXED"], found["SETTINGS"]) == (['other="${HOME}"'], {})


def installed(
    site: Path, name: str, files: Mapping[str, str], *, direct: str | None = None, needs: str = ""
) -> Distribution:
    """A package as an installer leaves it."""
    about = site / f"{name.replace('-', '_')}-1.2.dist-info"
    about.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.2", *([f"Requires-Dist: {needs}"] if needs else [])]
    (about / "METADATA").write_text("\n".join(lines) + "\n")
    (about / "entry_points.txt").write_text(f"[mcpgym.environments]\n{name} = {name.replace('-', '_')}:Game\n")
    if direct is not None:
        (about / "direct_url.json").write_text(direct)
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    record = [*files, f"{about.name}/METADATA", f"{about.name}/entry_points.txt", "../../bin/tool"]
    (about / "RECORD").write_text("".join(f"{file},,\n" for file in record))
    return next(found for found in distributions(path=[str(site)]) if found.name == name)


def test_a_package_from_an_index_is_asked_for_and_one_from_a_folder_is_carried(tmp_path: Path) -> None:
    files = {"my_game/__init__.py": "", "my_game/words.txt": "a", "my_game/__pycache__/x.pyc": ""}
    theirs = installed(tmp_path / "index", "my-game", files)
    assert [item.requirement for item in needed(theirs, "my_game", []) if item.wheel is None] == ["my-game==1.2"]
    ours = installed(
        tmp_path / "folder", "my-game", files, direct='{"url": "file:///x", "dir_info": {}}', needs="mcpgym"
    )
    made = needed(ours, "my_game", [])
    assert [(item.distribution.name, item.wheel is not None) for item in made] == [("my-game", True), ("mcpgym", True)]
    assert made[0].wheel is not None
    name, content = made[0].wheel
    assert name == "my_game-1.2-py3-none-any.whl"
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        assert packed.namelist() == [
            *("my_game/__init__.py", "my_game/words.txt"),
            *(f"my_game-1.2.dist-info/{file}" for file in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")),
        ]
    with pytest.raises(UnknownNameError, match="extra of my-game"):
        needed(ours, "my_game", ["fast"])
    assert home_of(NAME)[1] == "mcpgym_environments"


def test_hidden_files_of_a_source_folder_are_not_carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"kept_game/__init__.py": "", "kept_game/data/words.txt": "a"}
    hidden = {f"kept_game/{name}": "KEY=secret" for name in (".env", ".git/config", "data/.hidden")}
    direct = '{"url": "file:///x", "dir_info": {"editable": true}}'
    monkeypatch.syspath_prepend(str(tmp_path))
    made = wheel(installed(tmp_path, "kept-game", files | hidden, direct=direct), editable=True, modules=["kept_game"])
    with zipfile.ZipFile(io.BytesIO(made[1])) as whole:
        assert [name for name in whole.namelist() if name.startswith("kept_game/")] == sorted(files)


def test_compiled_code_and_code_that_is_not_found_are_refused(tmp_path: Path) -> None:
    direct = '{"url": "file:///x", "dir_info": {"editable": false}}'
    compiled = installed(tmp_path / "a", "fast-game", {"fast_game.cpython-311.so": ""}, direct=direct)
    with pytest.raises(ConfigurationError, match=r"fast-game has compiled code \(fast_game"):
        needed(compiled, "fast_game", [])
    gone = installed(tmp_path / "b", "gone-game", {}, direct=direct.replace("false", "true"))
    with pytest.raises(ConfigurationError, match="the code of gone-game is not found"):
        needed(gone, "no_such_module_of_anybodys", [])


def test_an_icon_is_a_whole_png_and_each_name_has_its_own() -> None:
    made = icon(NAME)
    assert made.startswith(b"\x89PNG\r\n\x1a\n")
    place, rows = 8, b""
    while place < len(made):
        (length,) = struct.unpack(">I", made[place : place + 4])
        kind, content = made[place + 4 : place + 8], made[place + 8 : place + 8 + length]
        assert struct.unpack(">I", made[place + 8 + length : place + 12 + length]) == (zlib.crc32(kind + content),)
        rows += content if kind == b"IDAT" else b""
        place += 12 + length
    assert len(zlib.decompress(rows)) == SIZE * (SIZE + 1)
    assert made == icon(NAME) != icon("wiki-search")
    assert schema_hash([]) != TicTacToe.schema_hash

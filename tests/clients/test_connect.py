"""``mcpgym connect``: each client's file where it lies on each platform, and nothing in it touched but our entry."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym_clients.connecting.json_text import BrokenJson, parse, set_member
from mcpgym_clients.connecting.known_clients import CLIENTS, KnownClient, Machine, Server, known_client
from mcpgym_clients.connecting.merging import merge
from mcpgym_clients.failures import UsageProblem

LINUX = Machine("linux", PurePosixPath("/home/a person"), {})
MAC = Machine("darwin", PurePosixPath("/Users/a person"), {})
WINDOWS = Machine("win32", PureWindowsPath(r"C:\Users\a person"), {"APPDATA": r"C:\Users\a person\AppData\Roaming"})
STORE = Machine("win32", WINDOWS.home, WINDOWS.environment, lambda parent, pattern: [parent / "Claude_pzs8"])
SERVER = Server(r"C:\Program Files\Python\Scripts\mcpgym.exe", ("serve", "tic-tac-toe", "--stdio"))

PLACES = [
    ("claude-desktop", LINUX, "/home/a person/.config/Claude/claude_desktop_config.json"),
    ("claude-desktop", MAC, "/Users/a person/Library/Application Support/Claude/claude_desktop_config.json"),
    ("claude-desktop", WINDOWS, r"C:\Users\a person\AppData\Roaming\Claude\claude_desktop_config.json"),
    (
        "claude-desktop",
        STORE,
        r"C:\Users\a person\AppData\Local\Packages\Claude_pzs8\LocalCache\Roaming\Claude\claude_desktop_config.json",
    ),
    ("claude-code", MAC, "/Users/a person/.claude.json"),
    ("claude-code", WINDOWS, r"C:\Users\a person\.claude.json"),
    ("cursor", LINUX, "/home/a person/.cursor/mcp.json"),
    ("cursor", WINDOWS, r"C:\Users\a person\.cursor\mcp.json"),
    ("vscode", LINUX, "/home/a person/.config/Code/User/mcp.json"),
    ("vscode", MAC, "/Users/a person/Library/Application Support/Code/User/mcp.json"),
    ("vscode", WINDOWS, r"C:\Users\a person\AppData\Roaming\Code\User\mcp.json"),
    ("codex", MAC, "/Users/a person/.codex/config.toml"),
    ("codex", WINDOWS, r"C:\Users\a person\.codex\config.toml"),
    ("gemini", LINUX, "/home/a person/.gemini/settings.json"),
    ("gemini", WINDOWS, r"C:\Users\a person\.gemini\settings.json"),
]


def of(name: str) -> KnownClient:
    """The client of this name."""
    client = known_client(name)
    assert client is not None
    return client


@pytest.mark.parametrize(("name", "machine", "place"), PLACES)
def test_a_clients_file_lies_where_its_platform_wants_it(name: str, machine: Machine, place: str) -> None:
    assert str(of(name).file(machine)) == place


def test_folders_that_variables_name_are_heeded_and_relative_ones_are_not() -> None:
    named = {"XDG_CONFIG_HOME": "/etc/mine", "CODEX_HOME": "/srv/codex", "CLAUDE_CONFIG_DIR": "/srv/claude"}
    machine = Machine("linux", LINUX.home, named)
    found = {client.name: str(client.file(machine)) for client in CLIENTS}
    assert found["vscode"] == "/etc/mine/Code/User/mcp.json"
    assert found["codex"] == "/srv/codex/config.toml"
    assert found["claude-code"] == "/srv/claude/.claude.json"
    odd = Machine("linux", LINUX.home, {"XDG_CONFIG_HOME": "mine"})
    assert str(of("vscode").file(odd)).startswith("/home/a person/.config/")


def test_entries_have_the_form_that_each_client_reads() -> None:
    remote = Server(url="http://127.0.0.1:8000/mcp")
    forms = {client.name: client.entry(SERVER).get("type") for client in CLIENTS}
    assert forms == {
        "claude-desktop": None, "claude-code": "stdio", "cursor": None, "vscode": "stdio", "codex": None,
        "gemini": None, "json": "stdio",
    }  # fmt: skip
    urls = {client.name: client.entry(remote) for client in CLIENTS if client.url_key}
    assert urls["gemini"] == {"httpUrl": remote.url}
    assert urls["claude-code"] == urls["vscode"] == {"type": "http", "url": remote.url}
    assert urls["codex"] == urls["cursor"] == {"url": remote.url}


KEYS = st.sampled_from(["servers", "a"]) | st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4), KEYS, VALUES, st.sampled_from([None, 1, 4, "\t"]), st.booleans())
def test_a_member_is_set_and_all_else_stays(whole: dict, name: str, value: Any, indent: Any, crlf: bool) -> None:
    text = json.dumps(whole, indent=indent, ensure_ascii=False).replace("\n", "\r\n" if crlf else "\n")
    if "servers" in whole and not isinstance(whole["servers"], dict):
        with pytest.raises(BrokenJson, match="servers is no object"):
            set_member(text, ("servers", name), value)
        return
    made = set_member(text, ("servers", name), value)
    wanted = {**whole, "servers": {**whole.get("servers", {}), name: value}}
    assert json.loads(made) == wanted == parse(made).value
    assert set_member(made, ("servers", name), value) == made


@given(st.text(alphabet='{}[]",:/*\\ \n\ta1', max_size=30))
def test_any_text_is_parsed_or_refused_by_its_place(text: str) -> None:
    problem = ""
    try:
        node = parse(text)
    except BrokenJson as error:
        problem = str(error)
    assert problem.startswith("line ") or 0 <= node.start <= node.end <= len(text)


KEPT_BY_HAND = """\
// My servers. Do not sort!
{
    "inputs": [],   /* none yet */
    "servers": {
        // finds things: {"not": "an object"}
        "search": {"type": "stdio", "command": "npx", "args": ["-y", "search // not a comment"]},
    },
}
"""


def test_comments_and_layout_stay_to_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(KEPT_BY_HAND)
    client = of("vscode")
    done = merge(client, file, "tic-tac-toe", client.entry(SERVER))
    assert done.what == "added"
    assert done.backup is not None
    assert done.backup.read_text() == KEPT_BY_HAND
    lines = iter(file.read_text().splitlines())
    assert all(line in lines for line in KEPT_BY_HAND.splitlines()), "every line is still there, in its order"
    assert parse(file.read_text()).value["servers"]["tic-tac-toe"]["command"] == SERVER.command
    assert merge(client, file, "tic-tac-toe", client.entry(SERVER)).what == "unchanged"
    other = client.entry(Server("/opt/mcpgym", ("serve", "tic-tac-toe", "--stdio")))
    assert merge(client, file, "tic-tac-toe", other).what == "replaced"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mcp.json", "mcp.json.before-mcpgym-1", "mcp.json.before-mcpgym-2",
    ]  # fmt: skip


def test_toml_keeps_its_comments_and_tables(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    before = '# mine\nmodel = "gpt"  # the good one\n\n[mcp_servers.docs]\nurl = "https://example.org/mcp" # docs\n'
    file.write_text(before)
    entry = of("codex").entry(Server("/opt/my tools/mcpgym", ("serve", "a:B", "--stdio"), {"PYTHONPATH": "/my work"}))
    merge(of("codex"), file, "tic-tac-toe", entry)
    assert file.read_text().startswith(before)
    assert tomllib.loads(file.read_text())["mcp_servers"]["tic-tac-toe"] == entry


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"mcpServers": {"a": 1,, }}', "line 1, column 24"),
        ('{"mcpServers": []}', "mcpServers is no table"),
        ("[1]", "mcpServers is no table"),
        ('{"mcpServers": {"a": {}}', "line 1, column 25"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"mcpServers": {"tic-tac-toe": {"command": "my-own-game"}}}', "another server called 'tic-tac-toe'"),
        ("[" * 2_000 + "]" * 2_000, "nested too deep"),
    ],
)
def test_a_file_that_will_not_do_is_refused_and_left_as_it_is(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(UsageProblem, match=says):
        merge(of("cursor"), file, "tic-tac-toe", of("cursor").entry(SERVER))
    assert file.read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["mcp.json"]


def test_links_modes_and_missing_folders(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "claude.json", tmp_path / "home" / ".claude.json"
    for path in (real, link):
        path.parent.mkdir()
    real.write_bytes(b"\xef\xbb\xbf{}")
    real.chmod(0o600)
    link.symlink_to(real)
    client = of("claude-code")
    merge(client, link, "tic-tac-toe", client.entry(SERVER))
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "dotfiles" / "claude.json.before-mcpgym-1").stat().st_mode) == 0o600
    assert real.read_bytes().startswith(b"\xef\xbb\xbf{")
    new = tmp_path / "not" / "there yet" / "mcp.json"
    merge(client, new, "tic-tac-toe", client.entry(SERVER))
    assert json.loads(new.read_text())["mcpServers"].keys() == {"tic-tac-toe"}


def test_the_command_shows_writes_and_refuses(command: Callable, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    code, out, _ = command("connect", "claude-code", "tic-tac-toe")
    assert code == 0
    assert '"tic-tac-toe"' in out
    assert "ENABLE_TOOL_SEARCH=false" in out
    assert list(tmp_path.iterdir()) == []
    given = ["--split", "test", "--index", "3", "--seed", "5", "--config", "max_turns=2"]
    assert command("connect", "Claude Code", "tic-tac-toe", *given, "--project", "--write")[0] == 0
    entry = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["tic-tac-toe"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-8:] == given
    for wrong, says in [
        (["claud", "tic-tac-toe"], "no client 'claud' is known"),
        (["cursor"], "name an environment"),
        (["cursor", "tic-tac-to"], "tic-tac-toe"),
        (["cursor", "tic-tac-toe", "--config", "max_turns=no"], "max_turns"),
        (["cursor", "tic-tac-toe", "--task", "test-999999999"], "test-999999999"),
        (["cursor", "tic-tac-toe", "--url", "http://127.0.0.1:8000/mcp"], "belongs to a command"),
        (["claude-desktop", "--url", "http://127.0.0.1:8000/mcp"], "commands only"),
        (["cursor", "--url", "127.0.0.1:8000"], "is no URL"),
        (["claude-desktop", "tic-tac-toe", "--project"], "leave --project out"),
        (["json", "tic-tac-toe", "--write"], "--file"),
    ]:
        code, _, err = command("connect", *wrong)
        assert (code, says in err) == (2, True), (wrong, err)


def test_an_environment_without_a_package_is_found_from_any_folder(command: Callable, tmp_path: Path) -> None:
    code, out, _ = command("connect", "json", "mcpgym_environments.double_check:DoubleCheck")
    assert code == 0
    entry = json.loads(out[out.index("{") : out.rindex("}") + 1])["mcpServers"].popitem()[1]
    assert entry["env"] == {"PYTHONPATH": str(Path.cwd())}
    assert Path(entry["command"]).parent == Path(sys.executable).parent

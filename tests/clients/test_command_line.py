"""The frame of the command line: help that starts fast, and errors that name the fix in one line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from mcpgym_clients import cli

COMMANDS = ("list", "check", "serve", "play", "eval", "show", "demo")
HEAVY = (
    "pydantic", "mcpgym", "mcpgym_rl", "mcp", "starlette", "fastapi", "uvicorn", "aiohttp", "openai", "httpx", "torch",
    "numpy", "asyncio",
)  # fmt: skip


def test_help_names_every_command(command: Callable) -> None:
    code, out, err = command("--help")
    assert (code, err) == (0, "")
    assert all(f" {name} " in out for name in COMMANDS)
    assert command()[:2] == (0, out)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(command: Callable, name: str) -> None:
    code, out, _ = command(name, "--help")
    assert code == 0
    assert f"mcpgym {name}" in out


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["eval", "--help"], ["serve", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from mcpgym_clients.cli import main; main(sys.argv[1:]); "
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    own = arguments[0] in COMMANDS  # typer itself loads pydantic to read a command's options
    assert done.stderr.strip() == ("['pydantic']" if own else "[]")


BARE = """
import typer
app = typer.Typer(rich_markup_mode="rich", help="Bare.", epilog="[cyan]Bare[/cyan]")
app.command("one")(lambda: None)
app.callback()(lambda: None)
app(["--help"], standalone_mode=False)
"""
OURS = "from mcpgym_clients.cli import main; main(['--help'])"
COUNTED = "import sys; print(len([name for name in sys.modules if not name.startswith('mcpgym')]), file=sys.stderr)"


def test_help_imports_what_a_bare_command_line_does() -> None:
    """What starting costs is what is imported: as many modules as Typer and Rich bring themselves, and a few.

    (`tests/bench` has the time.)
    """

    def modules(code: str) -> int:
        command = [sys.executable, "-c", f"{code}\n{COUNTED}"]
        return int(subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stderr)

    assert modules(OURS) <= modules(BARE) + 20


def test_help_reads_the_options_of_no_command() -> None:
    lean = cli._with_options_of("--help")
    group = typer.main.get_command(lean)
    assert {name for name, command in group.commands.items() if command.params} == set()
    one = typer.main.get_command(cli._with_options_of("eval"))
    assert {name for name, command in one.commands.items() if command.params} == {"eval"}
    whole = typer.main.get_command(cli.app)
    assert whole.commands.keys() == group.commands.keys() == one.commands.keys()
    assert {name: command.help for name, command in whole.commands.items()} == {
        name: command.help for name, command in group.commands.items()
    }


def test_version(command: Callable) -> None:
    assert command("--version")[:2] == (0, f"mcpgym {version('mcpgym')}\n")


def test_module_and_script_are_the_same_command(process: Callable) -> None:
    script = Path(sys.executable).with_name("mcpgym")
    by_script = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=30)
    assert process("--version").stdout == by_script.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["lst"], 2, "list"),
        (["list", "tic-tac-to"], 2, "did you mean 'tic-tac-toe'"),
        (["list", "--jsn"], 2, "--json"),
        (["check", "nothing"], 2, "tic-tac-toe"),
        (["check", "tic-tac-toe", "--config", "max_turns"], 2, "name=value"),
        (["check", "tic-tac-toe", "--config", "max_turn=1"], 2, "did you mean 'max_turns'"),
        (["check", "tic-tac-toe", "--config", "max_turns=many"], 2, "many"),
        (["check", "tic-tac-toe", "--config", "reverse-text.x=1"], 2, "no configuration field of tic-tac-toe"),
        (["eval", "tic-tac-toe"], 2, "--policy"),
        (["eval", "tic-tac-toe", "-p", "random", "-n", "0"], 2, "-n"),
        (["eval", "tic-tac-toe", "-p", "random", "--concurrency", "x"], 2, "--concurrency"),
        (["eval", "tic-tac-toe", "-p", "random", "--tool-mode", "magic"], 2, "native"),
        (["show", "nowhere"], 2, "there is no nowhere"),
        (["serve", "--port", "70000"], 2, "--port"),
        (["play", "tic-tac-toe", "--index", "-1"], 2, "--index"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_fix(
    command: Callable, arguments: list[str], code: int, says: str
) -> None:
    got, out, err = command(*arguments)
    assert got == code, err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert says in err
    assert "Traceback" not in err + out


def test_a_bug_keeps_its_traceback(process: Callable, tmp_path: Path) -> None:
    """Only mistakes of the user's are made short; what is ours must be findable."""
    code = (
        "import sys, mcpgym_clients.listing as l; from mcpgym_clients.cli import main\n"
        "def broken(*_): raise ZeroDivisionError('ours')\n"
        "l.list_environments = broken\n"
        "sys.exit(main(['list']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ours" in done.stderr


def test_case_09_a_group_of_errors_is_a_sentence() -> None:
    from mcpgym.errors import ConfigurationError, ServerUnavailable
    from mcpgym_clients.failures import explain

    group = BaseExceptionGroup(
        "", [ServerUnavailable("it is gone"), ExceptionGroup("", [ServerUnavailable("it is gone")])]
    )
    assert explain(group) == ("it is gone", 1)
    assert explain(ExceptionGroup("", [ConfigurationError("no")])) == ("no", 2)
    assert explain(ExceptionGroup("", [ConfigurationError("no"), KeyError("bug")])) is None


def test_an_error_cannot_command_the_terminal(command: Callable) -> None:
    code, _, err = command("list", "\x1b]0;owned\x07")
    assert code == 2
    assert "\x1b" not in err
    assert "\x07" not in err


def test_case_32_a_console_that_is_not_utf8_is_no_obstacle(process: Callable) -> None:
    for arguments in (["--help"], ["list"], ["list", "tic-tac-toe"]):
        done = process(*arguments, environment={"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0", "LC_ALL": "C"})
        assert done.returncode == 0, done.stderr


def test_case_32_boards_and_marks_stay_readable_on_a_console_of_ascii(process: Callable) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0", "LC_ALL": "C"}
    played = process("play", "tic-tac-toe", "--index", "3", "--seed", "1", stdin="4\n", environment=ascii_only)
    assert "---+---+---" in played.stdout
    assert " 0 | 1 | 2 " in played.stdout
    assert "?" not in played.stdout.partition("A new game begins")[2]
    checked = process("check", "reverse-text", environment=ascii_only)
    assert checked.stdout.startswith("ok reverse-text")


@pytest.mark.parametrize("columns", [30, 60, 80, 100])
def test_a_narrow_terminal_hides_nothing_of_the_list(process: Callable, columns: int) -> None:
    shown = process("list", environment={"COLUMNS": str(columns)}).stdout
    assert "…" not in " ".join(shown.split()).replace(", … (", "")  # an environment may have very many tools
    assert all(len(line.rstrip()) <= columns for line in shown.splitlines())
    words = " ".join(shown.split())
    assert "Tic-tac-toe as X, first or second to move, against opponents from perfect to purely random." in words
    assert "tools: play" in words


def test_output_into_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m mcpgym_clients list --json | head -c 1",
        shell=True, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.stdout == "["
    assert "Traceback" not in done.stderr


def test_list_says_what_is_installed(command: Callable) -> None:
    code, out, _ = command("list")
    assert code == 0
    for name in ("tic-tac-toe", "reverse-text", "double-check"):
        assert name in out
    assert "train 10,000" in out


def test_list_json_agrees_with_the_environments(command: Callable) -> None:
    from mcpgym import load_environment

    code, out, _ = command("list", "--json")
    assert code == 0
    listed = {item["name"]: item for item in json.loads(out)}
    game = load_environment("tic-tac-toe")
    assert listed["tic-tac-toe"]["schema_hash"] == game.schema_hash
    assert listed["tic-tac-toe"]["splits"] == {split: len(game.tasks(split)) for split in game.splits}
    assert listed["tic-tac-toe"]["rewards"]["format"]["weight"] == 0.2
    field = listed["tic-tac-toe"]["config"]["max_random_move_prob"]
    assert (field["type"], field["default"], field["maximum"]) == ("number", 1.0, 1)
    assert field["description"]
    code, out, _ = command("list", "tic-tac-toe", "--json")
    assert json.loads(out) == listed["tic-tac-toe"]


def test_list_of_one_says_all_about_it(command: Callable) -> None:
    from mcpgym import load_environment

    code, out, _ = command("list", "tic-tac-toe")
    assert code == 0
    game = load_environment("tic-tac-toe")
    assert game.schema_hash in out
    for word in (*game.tools, *game.rewards, *type(game).config_class.model_fields, *game.splits):
        assert word in out


def _install(folder: Path, name: str, value: str, module: str, source: str) -> dict[str, str]:
    """A third party's package, as far as an installation matters: its metadata and its module."""
    metadata = folder / f"{module}-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[mcpgym.environments]\n{name} = {value}\n")
    (folder / f"{module}.py").write_text(source)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise RuntimeError('no licence key')", "no licence key"),
        ("import sys; print('noise'); sys.exit(3)", "3"),
        ("Broken = 7", "not a subclass"),
        ("from mcpgym import Environment\nclass Broken(Environment):\n    name = 'broken'", "tasks"),
        ("from mcpgym import Environment\nclass Broken(Environment):\n    name = 'other'", "calls itself 'other'"),
    ],
)
def test_a_broken_environment_does_not_hide_the_others(
    process: Callable, tmp_path: Path, source: str, says: str
) -> None:
    variables = _install(tmp_path / "site", "broken", "broken_package:Broken", "broken_package", source)
    shown = process("list", environment=variables)
    assert shown.returncode == 0, shown.stderr
    assert "train 10,000" in shown.stdout
    assert says in shown.stdout
    listed = process("list", "--json", environment=variables)
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert says in rows["broken"]["error"]
    assert "error" not in rows["tic-tac-toe"]


def test_case_19_a_clash_of_names_is_that_names_fault_alone(process: Callable, tmp_path: Path) -> None:
    source = "from mcpgym import Environment\nclass Game(Environment):\n    name = 'tic-tac-toe'"
    variables = _install(tmp_path / "site", "tic-tac-toe", "rival:Game", "rival", source)
    listed = process("list", "--json", environment=variables)
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert "two packages register" in rows["tic-tac-toe"]["error"]
    assert "error" not in rows["reverse-text"]


BROKEN = """
from typing import Annotated
from mcpgym import Environment, LazyTasks, Task, reward, task_id, tool
from mcpgym.messages import user
class Leaky(Environment):
    "Puts its answer into the prompt, and pays what it never promised."
    name = "leaky"
    def tasks(self, split):
        return LazyTasks(3, lambda i: Task(
            task_id(split, i), split, (user(f"{split} {i}: the secret is swordfish-{i}"),),
            {"answer": f"swordfish-{i}"},
        ))
    def reset(self, task, seed):
        return {}
    @reward
    def pay(self, state) -> float:
        return 7.0
"""


def test_check_passes_what_keeps_the_contract(command: Callable) -> None:
    code, out, _ = command("check", "reverse-text")
    assert code == 0, out
    assert "keeps the contract" in out


def test_check_fails_what_breaks_it_and_names_the_fix(process: Callable, tmp_path: Path) -> None:
    (tmp_path / "leaky.py").write_text(BROKEN)
    done = process("check", "leaky:Leaky")
    assert done.returncode == 1, done.stderr
    assert "rewards" in done.stdout
    assert "outside its range" in done.stdout
    assert "fix:" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("error: leaky breaks its contract")


def test_a_command_ends_without_a_last_collection_of_garbage_and_loses_nothing_by_it(tmp_path: Path) -> None:
    code = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print('frozen', gc.get_freeze_count() > 1000))\n"
        "from mcpgym_clients.__main__ import main\n"
        "sys.argv = ['mcpgym', 'connect', 'json', 'tic-tac-toe']\n"
        "print('code', main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.endswith("code 0\nfrozen True\n")
    assert '"tic-tac-toe"' in done.stdout

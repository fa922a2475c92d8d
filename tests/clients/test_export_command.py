"""``mcpgym export``: what it writes, and what it refuses. That it plays is shown with the real programs elsewhere."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from mcpgym.registry import load_environment
from mcpgym_clients.exporting.facts import _without, facts_of
from mcpgym_clients.exporting.writing import inspect_file, verifiers_files

HERE = Path(__file__).parent
NAMES = ("tic-tac-toe", "reverse-text", "double-check", "wiki-search", "python-sandbox", "reverse-text+tic-tac-toe")
Command = Callable[..., tuple[int, str, str]]


def control_module(facts: dict[str, Any]) -> ModuleType:
    """The control plane's client as it is exported."""
    module = ModuleType("exported_control")
    text = (Path(__file__).parents[2] / "clients/mcpgym_clients/exporting/templates/control.py").read_text()
    sys.modules[module.__name__] = module
    exec(compile(text, "control.py", "exec"), module.__dict__)
    module.__dict__["facts"] = facts
    return module


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_whole_and_hides_what_is_hidden(name: str) -> None:
    facts = facts_of(name, [], None, 0, None)
    files = verifiers_files(facts, "mcpgym-thing", "mcpgym serve thing")
    for path, text in files.items():
        if path.endswith(".py"):
            ast.parse(text)
        assert "exported_env" not in text
    written = json.loads(files["mcpgym_thing/environment.json"])
    environment = load_environment(name)
    assert written["schema_hash"] == environment.schema_hash
    assert written["splits"] == {split: environment.size(split) for split in environment.splits}
    project = tomllib.loads(files["pyproject.toml"])["project"]
    assert project["name"] == "mcpgym-thing"
    assert environment.description.split()[0] in files["README.md"]
    whole = "\n".join(files.values()) + inspect_file(facts)
    for info in environment.tasks(facts.split)[0].info.values():
        assert not (isinstance(info, str) and len(info) > 8 and info in whole)
    assert not re.search(r"\b(ENVIRONMENT|PACKAGE|REWARDS|SERVE|SPLITS|TURNS)\b", files["README.md"])


@pytest.mark.parametrize("name", NAMES)
def test_the_task_file_stands_alone(name: str) -> None:
    text = inspect_file(facts_of(name, [], None, 0, None))
    tree = ast.parse(text)
    imported = {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not {module for module in imported if module.startswith(("mcpgym", "control"))}
    assert {"inspect_ai", "inspect_ai.tool"} <= imported
    tasks = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and ast.dump(node).count("id='task'")]
    assert tasks == [name.replace("-", "_").replace("+", "_")]


def test_options_are_carried_over(command: Command, tmp_path: Path) -> None:
    words = ("--split", "train", "--seed", "7", "--config", "max_turns=5", "--server", "http://127.0.0.1:9999")
    code, said, error = command("export", "verifiers", "tic-tac-toe", "--out", "made", "--name", "my-game", *words)
    assert code == 0, error
    facts = json.loads((tmp_path / "made" / "my_game" / "environment.json").read_text())
    assert facts["split"] == "train"
    assert facts["seed"] == 7
    assert facts["config"] == {"max_turns": 5}
    assert facts["max_turns"] == 5
    assert facts["server"] == "http://127.0.0.1:9999"
    assert "pip install made" in said
    (source,) = tomllib.loads((tmp_path / "made" / "rl.toml").read_text())["orchestrator"]["train"]["source"]
    assert source["env"]["taskset"] == {"id": "my-game", "split": "train"}


def test_what_cannot_be_is_refused_with_what_would_be_right(command: Command, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there.py").write_text("")
    wrong = {
        ("verifiers", "tic-tac-toe", "--out", "there"): "--out there is there already; name a folder that is not",
        ("verifiers", "tic-tac-toe", "--out", "a", "--name", "My Game"): "--name My Game: small letters, digits",
        ("verifiers", "tic-tac-toe", "--out", "a", "--name", "json"): "a module json is there already",
        ("verifiers", "tic-tac-toe", "--out", "a", "--split", "dev"): "--split dev: tic-tac-toe has train, test",
        ("verifiers", "tic-tac-toe", "--out", "a", "--server", "here"): "--server here: write http://127.0.0.1:8000",
        ("verifiers", "tic-tac-toes", "--out", "a"): "tic-tac-toe",
        ("verifiers", "tic-tac-toe", "--out", "a", "--config", "max_turn=5"): "max_turns",
        ("inspect", "tic-tac-toe", "--out", "a.txt"): "--out a.txt: Inspect reads Python files; write a.py",
        ("inspect", "tic-tac-toe", "--out", "there.py"): "replace it with --force",
        ("inspect", "tic-tac-toe", "--out", "nowhere/a.py"): "there is no folder nowhere",
    }
    for words, sentence in wrong.items():
        code, _, error = command("export", *words)
        assert code == 2, words
        assert sentence in error, (words, error)
        assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there", "there.py"]


def test_a_secret_is_taken_and_renamed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    control = control_module({})
    monkeypatch.setattr(os, "environ", dict(os.environ))  # it renames variables of the process for good
    for name in (*control.SECRET_NAMES, *control.SECRET_NAMES.values()):
        os.environ.pop(name, None)
    with pytest.raises(control.ServerTrouble, match="no control secret: set MCPGYM_CONTROL_SECRET"):
        control.take_secret()
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET", "from the environment")
    assert control.take_secret() == control.take_secret() == "from the environment"
    assert "MCPGYM_CONTROL_SECRET" not in control.os.environ
    monkeypatch.delenv("MCPGYM_CONTROL_API_KEY")
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET_FILE", str(tmp_path / "secret"))
    assert control.take_secret() == "from a file"
    monkeypatch.setenv("MCPGYM_CONTROL_API_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(control.ServerTrouble, match="cannot be read"):
        control.take_secret()


@pytest.mark.parametrize(
    ("there", "options", "said"),
    [
        ({}, None, None),
        ({"schema_hash": "b" * 64}, None, f"schema hash {'a' * 64} was exported .version 1.* has {'b' * 64}"),
        ({"version": "2"}, None, "is not what was exported: version 1, and there 2"),
        ({"version": "2"}, {"size": 4}, "version 1, and there 2"),
        ({"rewards": {"won": 0.5}}, None, "the reward won 1.0, and there 0.5"),
        ({"rewards": {}}, None, "the reward won 1.0, and there null"),
        ({"rewards": {"won": 1, "more": 1}}, None, "no reward more, which is there"),
        ({"config": {"size": 4, "part": {"deep": 1}}}, None, "size 3, and there 4. Scores of the two"),
        ({"config": {"size": 3, "part": {"deep": 2}}}, None, "part.deep 1, and there 2"),
        ({"config": {"size": 3, "part": {"deep": 1}, "new": 1}}, None, None),
    ],
)
def test_a_server_with_something_else_than_was_exported_is_refused(
    there: dict[str, Any], options: Any, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = control_module({})
    monkeypatch.setenv("MCPGYM_CONTROL_API_KEY", "x")
    alike = {"name": "e", "version": "1", "schema_hash": "a" * 64, "rewards": {"won": 1.0}}
    alike["config"] = {"size": 3, "part": {"deep": 1}}
    exported = {**alike, "environment": "e", "server": "unix:/x", "config": {}, "settings": alike["config"]}
    plane = control.Control(exported, options=options)
    answer = {"environments": [{**alike, **there}]}
    if said is None:
        plane._check(answer)
    else:
        with pytest.raises(control.ServerTrouble, match=said):
            plane._check(answer)


def test_fields_that_are_sent_may_differ_from_those_that_were_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    control = control_module({})
    monkeypatch.setenv("MCPGYM_CONTROL_API_KEY", "x")
    exported = {"environment": "e", "version": "1", "schema_hash": "a", "rewards": {}, "server": "unix:/x"}
    exported |= {"config": {}, "settings": {"size": 3, "part": {"deep": 1}, "more": 1}}
    played = {"size": 4, "part": {"deep": 2}, "more": 1}
    for options in ({"size": 4, "part": {"deep": 2}}, {"size": 4, "part.deep": 2}):
        control.Control(exported, options=options)._same("1", "a", played)
    with pytest.raises(control.ServerTrouble, match=r"more 1, and there 2\."):
        control.Control(exported, options=options)._same("1", "a", played | {"more": 2})


def test_all_fields_are_written_down_but_those_that_name_a_place() -> None:
    assert facts_of("tic-tac-toe", ["max_turns=5"], None, 0, None).settings["max_turns"] == 5
    facts = facts_of("reverse-text+tic-tac-toe", [], None, 0, None)
    assert facts.settings == load_environment("reverse-text+tic-tac-toe").config.model_dump(mode="json")
    assert _without({"a": 1, "b": {"c": 2, "d": 3}}, {"a", "b.c"}) == {"b": {"d": 3}}


@pytest.mark.parametrize("name", ["2048", "class", "scored", "print", "Control", 'x" * 2 + """\n1/0', "environment"])
def test_whatever_an_environment_is_called_its_task_is_a_function_of_its_own(name: str) -> None:
    facts = replace(facts_of("tic-tac-toe", [], None, 0, None), environment=name, description="The ENVIRONMENT.")
    text = inspect_file(facts)
    tree = ast.parse(text)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    (task,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and ast.dump(node).count("id='task'")]
    assert names.count(task.name) == 1
    assert len(re.findall(rf"\b{task.name}\b", text.replace(json.dumps(name), ""))) <= 2  # it, and the docstring
    assert "The ENVIRONMENT." in text
    assert not [node for node in tree.body if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)]
    module = ast.parse(verifiers_files(facts, "mcpgym-thing", "")["mcpgym_thing/__init__.py"])
    assert not [node for node in module.body if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)]


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("unix:/a/b.sock", ("/a/b.sock", "http://control")),
        ("unix:///a/b.sock", ("/a/b.sock", "http://control")),
        ("http://127.0.0.1:1/tic-tac-toe/mcp", (None, "http://127.0.0.1:1")),
        ("https://games.example.org", (None, "https://games.example.org")),
        ("ftp://games.example.org", None),
        ("", None),
    ],
)
def test_where_a_control_plane_is(text: str, base: tuple[str | None, str] | None) -> None:
    control = control_module({})
    if base is None:
        with pytest.raises(control.ServerTrouble, match="is no server"):
            control._address(text)
    else:
        assert control._address(text) == base


@pytest.mark.parametrize("name", NAMES)
def test_prime_rl_reads_its_configuration(name: str) -> None:
    text = verifiers_files(facts_of(name, [], None, 0, None), "mcpgym-thing", "")["rl.toml"]
    schema = json.loads((HERE / "prime_rl_schema.json").read_text())
    found = tomllib.loads(text)
    jsonschema.Draft202012Validator(schema).validate(found)
    assert found["orchestrator"]["batch_size"] % found["orchestrator"]["train"]["group_size"] == 0
    for mistake in (
        {"sources": []},
        {"source": [{"name": "x"}]},
        {"source": [{"env": {"taskset": {"id": "x"}}, "n": 1}]},
    ):
        found["orchestrator"]["train"] = mistake
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(found, schema)

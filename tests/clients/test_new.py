"""``mcpgym new``: each template is a package that is built, installed elsewhere, and passes its own tests unchanged."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.scaffolding.command import run
from mcpgym_clients.scaffolding.names import names_of
from mcpgym_clients.scaffolding.writing import TEMPLATES, template_names, write_package

QUIET = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONWARNINGS": "ignore"}


def command(*arguments: object, where: Path, python: str | Path = sys.executable) -> str:
    """What ``python -m …`` says; it must end well."""
    done = subprocess.run(
        [str(python), "-m", *map(str, arguments)], cwd=where, env=QUIET, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_templates_are_those_that_are_offered() -> None:
    assert template_names() == ["fastmcp", "game", "sandbox", "search", "single-turn"]


def test_a_name_in_its_three_forms() -> None:
    names = names_of("my-4th-game")
    assert (names.name, names.module, names.class_name) == ("my-4th-game", "my_4th_game", "My4thGame")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("My Game", "such as my-game"),
        ("my_game", "such as my-game"),
        ("my--game", "such as my-game"),
        ("4th", "such as my-game"),
        ("", "such as my-game"),
        ("../x", "such as x"),
        ("a" * 41, "40 at most"),
        ("json", "a module json is there already"),
        ("class", "a module class is there already"),
        ("mcpgym", "a module mcpgym is there already"),
    ],
)
def test_a_name_that_will_not_do_is_refused_with_one_that_does(name: str, said: str) -> None:
    with pytest.raises(UsageProblem, match=said):
        names_of(name)


def test_what_is_there_is_left_alone_and_an_unknown_template_is_refused(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(UsageProblem, match="is there already; --out names another"):
        run("my-game", "game", tmp_path / "there")
    with pytest.raises(UsageProblem, match="there is: fastmcp, game"):
        run("my-game", "gane", tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def lines_of_code(source: str) -> int:
    """Lines that are neither blank, comment, docstring nor import."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        for inner in node.body if isinstance(getattr(node, "body", None), list) else ():  # type: ignore[attr-defined]
            if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
                left_out |= set(range(inner.lineno, (inner.end_lineno or 0) + 1))
        if isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = enumerate(source.splitlines(), 1)
    return sum(bool(line.split("#")[0].strip()) for number, line in lines if number not in left_out)


def test_a_game_is_sixty_lines() -> None:
    files = (TEMPLATES / "game" / "my_env").glob("e*.py")
    assert 40 < sum(lines_of_code(path.read_text("utf-8")) for path in files) <= 60


@pytest.mark.parametrize("template", ["fastmcp", "game", "sandbox", "search", "single-turn"])
def test_no_word_of_the_template_is_left(template: str, tmp_path: Path) -> None:
    write_package(tmp_path, template, names_of("blue-nine"))
    assert (tmp_path / "blue_nine" / "environment.py").exists()
    assert (tmp_path / ".github" / "workflows" / "test.yml").exists()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            text = f"{path.relative_to(tmp_path)}\n{path.read_text('utf-8')}"
            assert not [
                word for word in ("my-env", "my_env", "MyEnv", "DESCRIPTION", "TRAINING", "DEPENDENCY") if word in text
            ]
            assert text.endswith("\n")
            assert not text.endswith("\n\n")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment, which has what this one has and nothing of the packages made here."""
    folder = tmp_path_factory.mktemp("elsewhere")
    command("venv", "--without-pip", folder, where=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "ours.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return folder / "bin" / "python"


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("template", ["fastmcp", "game", "sandbox", "search", "single-turn"])
def test_a_template_is_built_installed_and_passes_its_own_tests(template: str, elsewhere: Path, tmp_path: Path) -> None:
    name = f"our-{template}"
    told = command("mcpgym_clients", "new", name, "--template", template, where=tmp_path)
    assert "note:" not in told, told
    assert "**Rewards**" in (tmp_path / name / "README.md").read_text("utf-8")
    build = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path, "."]
    command(*build, where=tmp_path / name)
    (wheel,) = tmp_path.glob("*.whl")
    command("pip", "install", "-q", "--no-deps", "--no-index", wheel, where=tmp_path, python=elsewhere)
    for source in (tmp_path / name).glob("our_*"):
        shutil.rmtree(source)  # what is tested is what was installed
    command("pytest", "-q", "-p", "no:cacheprovider", "tests", where=tmp_path / name, python=elsewhere)
    if template == "game":
        command("mcpgym_clients", "check", name, where=tmp_path, python=elsewhere)
        short = ["--set", "warm_up.sft.steps=20", "--set", "rl.steps=1"]
        command("mcpgym_clients", "train", name, "--out", "run", *short, where=tmp_path, python=elsewhere)
        evaluate = ["eval", name, "--policy", "local:run/model", "-n", "8", "--out", "eval"]
        command("mcpgym_clients", *evaluate, where=tmp_path, python=elsewhere)
        assert json.loads((tmp_path / "eval" / "summary.json").read_text("utf-8"))["scored"] == 8

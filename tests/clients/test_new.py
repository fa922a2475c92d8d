"""``mcpgym new``: each template is a package that is built, installed elsewhere, and passes its own tests unchanged."""

from __future__ import annotations

import ast
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


def empty_environment(folder: Path) -> Path:
    """The interpreter of a fresh environment, which has what this one has and nothing of the packages made here."""
    command("venv", "--without-pip", folder, where=folder.parent)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "ours.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return folder / "bin" / "python"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_templates_are_built_and_installed_and_pass_their_own_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All at once, for what costs time is to start programs."""
    monkeypatch.chdir(tmp_path)
    names = [f"our-{template}" for template in template_names()]
    for name in names:
        run(name, name.removeprefix("our-"), None)
        said = capsys.readouterr().out
        assert "note:" not in said
        assert f"mcpgym env card {name} --write README.md" in said
        assert (f"mcpgym train {name}\n" in said) == bool(list(Path(name).rglob("recipe.toml")))
        assert "**Rewards**" in Path(name, "README.md").read_text("utf-8")
    built = [f"./{name}" for name in names]
    command("pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", ".", *built, where=tmp_path)
    elsewhere = empty_environment(tmp_path / "elsewhere")
    wheels = [path.name for path in tmp_path.glob("*.whl")]
    assert len(wheels) == len(names)
    command("pip", "install", "-q", "--no-deps", "--no-index", *wheels, where=tmp_path, python=elsewhere)
    for source in tmp_path.glob("our-*/our_*"):
        shutil.rmtree(source)  # what is tested is what was installed
    tests = [f"{name}/tests" for name in names]
    told = command("pytest", "-q", "-p", "no:cacheprovider", *tests, where=tmp_path, python=elsewhere)
    assert f"{3 * len(names)} passed" in told
    short = ["--set", "warm_up.sft.steps=20", "--set", "rl.steps=1"]
    command("mcpgym_clients", "train", "our-game", "--out", "run", *short, where=tmp_path, python=elsewhere)
    assert (tmp_path / "run" / "model" / "config.json").exists()

"""Any value of any option means the same as a flag, in a variable and in a file; the stronger of them counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomlkit
import typer
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mcpgym_clients.configuring.applying import bind
from mcpgym_clients.configuring.files import VARIABLE
from mcpgym_clients.configuring.names import key_of, kind_of, options_of, variable_of
from mcpgym_clients.configuring.secrecy import holds_secret
from mcpgym_clients.configuring.whole import all_commands, whole_command_line

ROOT, CONTEXT = whole_command_line()
COMMANDS = {" ".join(words): (words, command, own) for words, command, own in all_commands(ROOT, CONTEXT)}
OPTIONS = [
    pytest.param(name, key_of(option), id=f"{name} --{key_of(option)}".replace(" ", "-"))
    for name, (_, command, _) in COMMANDS.items()
    for option in options_of(command)
    if key_of(option) not in ("config", "canary")  # a table of its own; never in a file
]
LETTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0\n")
REFUSED = "refused"


def option_of(name: str, key: str) -> Any:
    return next(option for option in options_of(COMMANDS[name][1]) if key_of(option) == key)


def values_of(option: Any) -> st.SearchStrategy[Any]:
    """Values as TOML has them, some of which the option does not take."""
    if kind_of(option) == "flag":
        return st.booleans() if option.secondary_opts else st.just(True)
    one: st.SearchStrategy[Any] = st.text(LETTERS, min_size=1, max_size=12)
    if kind_of(option) == "number":
        edges = st.sampled_from([-1, 0, 1, 64, 65535, 65536, 0.1, 2.5, 1e300, float("inf")])
        one = edges | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
    elif kind_of(option) == "choice":
        one = st.sampled_from([choice.value for choice in option.type_descriptor.choices]) | st.just("none of them")
    elif kind_of(option) == "path" and option.multiple:
        one = one.filter(lambda text: os.pathsep not in text)
    return st.lists(one, min_size=1, max_size=3) if option.multiple else one


def text_of(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def flags(option: Any, value: Any) -> list[str]:
    name = f"--{key_of(option)}" if f"--{key_of(option)}" in option.opts else option.opts[0]
    if value is True:
        return [name]
    if value is False:
        return [option.secondary_opts[0]]
    items = value if isinstance(value, list) else [value]
    return [f"{name}={text_of(item)}" if name.startswith("--") else f"{name}{text_of(item)}" for item in items]


@pytest.fixture
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, no variable, and no argument or option that must be there."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("MCPGYM_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    needed = [item for _, command, _ in COMMANDS.values() for item in command.params if item.required]
    for item in needed:
        item.required = False
    yield tmp_path
    for item in needed:
        item.required = True


def parsed(name: str, key: str, arguments: list[str], variable: str | None = None, file: str | None = None) -> Any:
    """What the option is with these flags, this variable and this file."""
    words, command, own = COMMANDS[name]
    path = Path("given.toml")
    path.write_text(file or "", encoding="utf-8")
    os.environ[VARIABLE] = str(path)
    option = option_of(name, key)
    set_one = variable_of(words, option)
    assert set_one is not None
    if variable is not None:
        os.environ[set_one] = variable
    try:
        context = command.make_context(words[-1], list(arguments), parent=own.parent)
        return context.params[option.name], context.get_parameter_source(option.name).name
    except typer.BadParameter:
        return REFUSED, ""
    finally:
        os.environ.pop(set_one, None)
        del os.environ[VARIABLE]


def written(name: str, key: str, value: Any) -> str:
    document: Any = {key: value}
    for word in reversed(name.split()):
        document = {word: document}
    return tomlkit.dumps(document)


@pytest.mark.parametrize(("name", "key"), OPTIONS)
def test_a_value_means_the_same_wherever_it_stands(name: str, key: str, nothing_set: Path) -> None:
    option = option_of(name, key)

    @settings(max_examples=4, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(values_of(option))
    def same(value: Any) -> None:
        assume(not holds_secret(key, value))
        by_flag, _ = parsed(name, key, flags(option, value))
        lines = (os.pathsep if kind_of(option) == "path" else "\n").join
        variable = lines(map(text_of, value)) if isinstance(value, list) else text_of(value)
        by_variable, _ = parsed(name, key, [], variable=variable)
        by_file, _ = parsed(name, key, [], file=written(name, key, value))
        assert by_flag == by_variable == by_file
        assert type(by_flag) is type(by_variable) is type(by_file)

    same()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_stronger_one_counts(nothing_set: Path, data: st.DataObject) -> None:
    name, key, values, default = data.draw(
        st.sampled_from(
            [
                ("serve", "port", [9001, 9002, 9003], None),
                ("eval", "split", ["flagged", "varied", "filed"], "test"),
                ("eval", "lane", ["mcp", "control", "mcp"], None),
                ("top", "interval", [0.5, 1.5, 2.5], 1.0),
                ("doctor", "only", [["a"], ["b", "c"], ["d"]], ()),
                ("play", "open", [True, False, True], True),
                ("env add", "json", [True, True, True], False),
            ]
        )
    )
    option = option_of(name, key)
    given_by = data.draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    flag, variable, file = (
        value if here else None for value, here in zip(values, given_by, strict=True)
    )  # fmt: skip
    found, source = parsed(
        name,
        key,
        [] if flag is None else flags(option, flag),
        None if variable is None else "\n".join(map(text_of, variable if isinstance(variable, list) else [variable])),
        None if file is None else written(name, key, file),
    )
    strongest = next((value for value in (flag, variable, file) if value is not None), default)
    plain = getattr(found, "value", found)
    assert (plain or ()) == (strongest or ())
    sources = ["COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP"]
    assert source == next((name for name, here in zip(sources, given_by, strict=True) if here), "DEFAULT")


def test_every_option_has_a_variable_of_its_own() -> None:
    names = [
        name
        for words, command, own in COMMANDS.values()
        for option in options_of(command)
        if (name := variable_of(words, option)) is not None
    ]
    assert len(names) == len(set(names)) > 150
    ours = {"MCPGYM_CONFIG", "MCPGYM_CACHE", "MCPGYM_ENVIRONMENTS", "MCPGYM_INSTALLER", "MCPGYM_SIGNING_KEY"}
    ours |= {"MCPGYM_CONTROL_SECRET", "MCPGYM_CONTROL_SECRET_FILE", "MCPGYM_SCAN_CANARY", "MCPGYM_SCAN_CANARIES"}
    assert not ours & set(names), "they mean something else"


def test_help_shows_no_variables_and_no_two_options_share_a_key() -> None:
    for words, command, own in COMMANDS.values():
        bind(command, own, words, {})
        keys = [key_of(option) for option in options_of(command)]
        assert len(keys) == len(set(keys)), words
        assert "env var" not in command.get_help(own)

"""Finding environments by name, and configuring them: errors say what, where and what would be right."""

from __future__ import annotations

import sys
import time
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest
from check_toys import Doors
from pydantic import Field

from mcpgym import Config, ConfigurationError, Environment, environment_names, load_environment, registry
from mcpgym.errors import UnknownNameError
from mcpgym.registry import GROUP, configure, environment_class, parse_options


class Many(Config):
    """Fields of several kinds."""

    count: int = Field(default=3, ge=1, le=10)
    """How many."""
    share: float = 0.5
    """Which share."""
    loud: bool = False
    """Whether it is loud."""
    names: list[str] = []
    """Names."""


class Configured(Doors):
    name = "configured"
    config_class = Many  # type: ignore[assignment]


@pytest.fixture
def register(monkeypatch):
    """Register entry points for one test: name and what it loads."""

    def add(*entries: tuple[str, Any]) -> None:
        points = []
        for number, (name, loaded) in enumerate(entries):
            module = f"registered_{number}_{name.replace('-', '_')}"
            if isinstance(loaded, str):
                points.append(EntryPoint(name, loaded, GROUP))
                continue
            monkeypatch.setitem(sys.modules, module, ModuleType(module))
            sys.modules[module].thing = loaded  # type: ignore[attr-defined]
            points.append(EntryPoint(name, f"{module}:thing", GROUP))
        monkeypatch.setattr(registry, "entry_points", lambda group: points)
        registry._entries.cache_clear()

    yield add
    registry._entries.cache_clear()


def test_names_are_sorted_and_nothing_is_imported(register):
    register(("zebra", "no_such_module:X"), ("ant", "neither_this:Y"))
    assert environment_names() == ["ant", "zebra"]


def test_an_unknown_name_offers_the_nearest(register):
    register(("tic-tac-toe", Doors), ("doors", Doors))
    with pytest.raises(UnknownNameError, match="no environment 'tictactoe': did you mean 'tic-tac-toe'"):
        environment_class("tictactoe")
    with pytest.raises(UnknownNameError, match="there is: doors, tic-tac-toe"):
        environment_class("zzz")


def test_a_file_is_told_how_a_class_in_it_is_named(register, monkeypatch, tmp_path):
    register(("doors", Doors))
    (tmp_path / "my_game.py").write_text("")
    monkeypatch.chdir(tmp_path)
    for typed in ("my_game", "my_game.py", "./my_game.py"):
        with pytest.raises(ConfigurationError, match="name a class in it, as in my_game:MyEnvironment"):
            environment_class(typed)
    with pytest.raises(ConfigurationError, match="write a class as module:Class"):
        environment_class("my_game.py:MyGame")


def test_two_packages_with_one_name_are_refused(register):
    register(("doors", Doors), ("doors", Configured))
    with pytest.raises(ConfigurationError, match=r"two packages register the environment 'doors'.*uninstall one"):
        environment_class("doors")


def test_one_package_seen_twice_is_one(register):
    register(("doors", "check_toys:Doors"), ("doors", "check_toys:Doors"))
    assert environment_class("doors") is Doors


@pytest.mark.parametrize("target", ["no_such_module:X", "check_toys:Nothing"])
def test_a_broken_import_names_the_environment_and_the_cause(register, target):
    register(("broken", target))
    with pytest.raises(ConfigurationError, match=rf"environment 'broken' \({target}\) cannot be imported: \w+Error"):
        environment_class("broken")


@pytest.mark.parametrize("loaded", [dict, "text", 3, Doors(), lambda: Doors])
def test_what_is_no_environment_is_refused(register, loaded):
    if isinstance(loaded, str):
        register(("odd", "check_toys:HEALTHY"))
    else:
        register(("odd", loaded))
    with pytest.raises(ConfigurationError, match=r"is not a subclass of mcpgym\.Environment"):
        environment_class("odd")


def test_an_environment_without_a_name_or_with_another_is_refused(register):
    class Nameless(Environment):
        pass

    register(("nameless", Nameless), ("other", Doors))
    with pytest.raises(ConfigurationError, match="has no name"):
        environment_class("nameless")
    with pytest.raises(ConfigurationError, match="calls itself 'doors'"):
        environment_class("other")


def test_a_definition_error_inside_the_module_keeps_its_own_words(register, monkeypatch, tmp_path):
    (tmp_path / "badly_defined_toy.py").write_text(
        "from mcpgym import ConfigurationError\nraise ConfigurationError('write it so')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    register(("bad", "badly_defined_toy:X"))
    with pytest.raises(ConfigurationError, match=r"^write it so$"):
        environment_class("bad")


def test_text_is_converted_and_values_are_fixed():
    made = configure(Configured, {"count": "4", "share": "0.25", "loud": "true"})
    assert (made.config.count, made.config.share, made.config.loud) == (4, 0.25, True)
    with pytest.raises(ValueError, match="frozen"):
        made.config.count = 5


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"count": "many"}, ["configured: count", "valid integer", "'many'"]),
        ({"count": 0}, ["count", "greater than or equal to 1", "not 0"]),
        ({"share": None}, ["share", "valid number", "None"]),
        ({"loud": "perhaps"}, ["loud", "valid boolean", "'perhaps'"]),
        ({"names": "a"}, ["names", "valid list", "'a'"]),
        ({"count": 0, "loud": 7}, ["count", "loud", ";"]),
        ({"cuont": 1}, ["configuration field of configured 'cuont'", "did you mean 'count'"]),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_field_and_what_would(config, says):
    with pytest.raises(ConfigurationError) as caught:
        configure(Configured, config)
    for part in says:
        assert part in str(caught.value)


def test_loading_by_name_is_configuring(register):
    register(("configured", Configured))
    assert load_environment("configured", {"count": "7"}).config.count == 7
    assert load_environment("configured").config == Many()


def test_options_are_parsed_and_refused_with_their_form():
    assert parse_options(["a=1", "b-c=x=y", "d="]) == {"a": "1", "b_c": "x=y", "d": ""}
    for wrong in (["a"], ["=1"], [""]):
        with pytest.raises(ConfigurationError, match="write it as name=value"):
            parse_options(wrong)
    with pytest.raises(ConfigurationError, match="--config a_b is given twice"):
        parse_options(["a-b=1", "a_b=2"])


def test_a_class_can_be_named_without_a_package(monkeypatch, tmp_path):
    source = "from check_toys import Doors\nclass Mine(Doors):\n    name = 'mine'\n"
    (tmp_path / "my_unpackaged_game.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    assert environment_class("my_unpackaged_game:Mine").name == "mine"
    for wrong in ("my unpackaged:Mine", "a:b c", ":Mine", "x:"):
        with pytest.raises(ConfigurationError, match="module:Class"):
            environment_class(wrong)


@pytest.mark.flaky(reruns=1)  # it measures time
def test_an_unknown_name_of_a_megabyte_is_refused_at_once_and_not_repeated():
    started = time.process_time()
    message = str(UnknownNameError("task", "train-" * 200_000, [f"train-{i}" for i in range(20)]))
    assert time.process_time() - started < 0.5
    assert len(message) < 600

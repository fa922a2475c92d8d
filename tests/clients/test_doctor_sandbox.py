"""``mcpgym doctor --sandbox``: what installed environments need of a machine, told to people and programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcpgym import Environment, Requirement, Task, registry

ROWS: list[Any] = []


class Needy(Environment[Task, Any]):
    """Needs what the test says."""

    name = "needy"

    @classmethod
    def requirements(cls) -> Sequence[Requirement]:
        if ROWS == ["fault"]:
            raise ZeroDivisionError("a bug")
        return ROWS


@pytest.fixture
def needs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.setattr(registry, "environment_names", lambda: ["needy"])
    monkeypatch.setattr(registry, "environment_class", lambda name: Needy)

    def set_rows(*rows: Any) -> None:
        ROWS[:] = rows

    return set_rows


THERE = Requirement("a kernel", True, "Linux 6.1")
OPTIONAL = Requirement("a container engine", False, "no docker here", "Install docker.", needed=False)
MISSING = Requirement("a tier", False, "nothing:\x1b[31m no namespaces", "sysctl user.max_user_namespaces=1")


def test_what_is_there_and_what_could_be_is_shown_and_the_machine_is_fit(needs: Callable, command: Callable) -> None:
    needs(THERE, OPTIONAL)
    code, out, _ = command("doctor", "--sandbox")
    assert code == 0
    assert "✓ a kernel: Linux 6.1" in out
    assert "- a container engine: no docker here" in out
    assert "→ Install docker." in out
    assert "It runs here." in out


def test_what_is_missing_is_shown_with_its_remedy_and_the_machine_is_not_fit(
    needs: Callable, command: Callable
) -> None:
    needs(THERE, MISSING, OPTIONAL)
    code, out, _ = command("doctor", "--sandbox", "needy")
    assert code == 1
    assert "✗ a tier: nothing:" in out
    assert "\x1b[31m" not in out
    assert "→ sysctl user.max_user_namespaces=1" in out
    assert "It does not run here as it is." in out


def test_a_program_reads_it_as_json(needs: Callable, command: Callable, tmp_path: Path) -> None:
    needs(THERE, MISSING)
    file = tmp_path / "machine.json"
    code, out, _ = command("doctor", "--sandbox", "--json", str(file))
    assert code == 1
    assert "a kernel" in out
    found = json.loads(file.read_text())
    assert (found["schema"], found["ready"]) == ("mcpgym.requirements/1", False)
    (environment,) = found["environments"]
    assert environment["environment"] == "needy"
    assert [(row["name"], row["met"], row["needed"]) for row in environment["requirements"]] == [
        ("a kernel", True, True),
        ("a tier", False, True),
    ]
    code, out, _ = command("doctor", "--sandbox", "--json", "-")
    assert code == 1
    assert json.loads(out) == found


def test_an_environment_that_cannot_say_what_it_needs_is_not_fit(needs: Callable, command: Callable) -> None:
    needs("fault")
    code, out, _ = command("doctor", "--sandbox")
    assert code == 1
    assert "ZeroDivisionError: a bug" in out
    needs("a kernel")
    code, out, _ = command("doctor", "--sandbox")
    assert code == 1
    assert "must return a list of mcpgym.Requirement" in out


def test_where_nothing_is_needed_all_is_well_and_asking_for_one_by_name_says_so(
    needs: Callable, command: Callable
) -> None:
    needs()
    code, out, _ = command("doctor", "--sandbox")
    assert code == 0
    assert "needs anything of this machine" in out
    code, _, err = command("doctor", "--sandbox", "needy")
    assert code == 2
    assert "says nothing of what it needs" in err


@pytest.mark.parametrize(
    "odd", [["--quick"], ["--call", "a={}"], ["--json", "/no/such/folder/x.json"], ["--title", "x"]]
)
def test_what_does_not_belong_is_refused(odd: list[str], needs: Callable, command: Callable) -> None:
    needs(THERE)
    code, _, err = command("doctor", "--sandbox", *odd)
    assert code == 2
    assert "--sandbox" in err or "there is no folder" in err


def test_without_it_something_to_examine_must_still_be_named(command: Callable) -> None:
    code, _, err = command("doctor")
    assert code == 2
    assert "name what to examine" in err


@pytest.mark.slow
def test_this_machine_is_explained(command: Callable) -> None:
    code, out, _ = command("doctor", "--sandbox", "--json", "-")
    found = json.loads(out)
    (sandbox,) = [row for row in found["environments"] if row["environment"] == "python-sandbox"]
    rows = {row["name"]: row for row in sandbox["requirements"]}
    tiers = [rows[f"the {tier} tier"]["met"] for tier in ("namespaces", "landlock")]
    assert rows["what backend=auto takes"]["met"] == any(tiers)
    assert code == (0 if found["ready"] else 1)
    for row in rows.values():
        assert row["met"] or row["remedy"] or row["found"]

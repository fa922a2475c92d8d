"""Which back-end: never a weaker one than was asked for, and always what to do where there is none."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from sandbox_fakes import FakeBackend, World

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_environments.python_sandbox.sessions import choosing, requirements
from mcpgym_environments.python_sandbox.sessions.backend import Level, SandboxSpec, Unavailable
from mcpgym_environments.python_sandbox.sessions.pool import Pool


class Tiers:
    """The automatic tiers of a machine: each has a world of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **unavailable: str) -> None:
        self.worlds = {name: World(unavailable=unavailable.get(name, "")) for name in choosing.AUTOMATIC}
        monkeypatch.setattr(choosing, "made", self.made)
        monkeypatch.setattr(requirements, "made", self.made)

    def made(self, name: str, image: str = "") -> FakeBackend:
        backend = FakeBackend(self.worlds[name], name)  # type: ignore[arg-type]
        backend.name = name
        return backend


def started(backend: Any) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        try:
            return dict(await backend.start(SandboxSpec()))
        finally:
            await backend.close()

    return asyncio.run(work())


def test_auto_takes_namespaces_where_they_work_and_then_is_that_back_end(monkeypatch: pytest.MonkeyPatch) -> None:
    tiers = Tiers(monkeypatch)
    chosen = choosing.choose()
    assert chosen.name == "auto"
    assert started(chosen)["isolation"] == "namespaces"
    assert (chosen.name, chosen.level) == ("namespaces", "namespaces")
    assert tiers.worlds["landlock"].starts == 0


def test_auto_falls_back_to_landlock_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    Tiers(monkeypatch, namespaces="user namespaces are switched off")
    chosen = choosing.choose("auto", "landlock")
    assert started(chosen)["isolation"] == "landlock"
    assert chosen.name == "landlock"


def test_auto_never_falls_below_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tiers = Tiers(monkeypatch, namespaces="user namespaces are switched off")
    with pytest.raises(Unavailable) as refused:
        started(choosing.choose("auto", "namespaces"))
    text = str(refused.value)
    assert "min_isolation=namespaces" in text
    assert "namespaces: user namespaces are switched off" in text
    assert "landlock is weaker than min_isolation=namespaces asks for" in text
    assert "backend=docker" in text
    assert "wasm" not in text  # which is weaker
    assert "mcpgym doctor --sandbox" in text
    assert tiers.worlds["landlock"].starts == 0


def test_where_nothing_works_every_reason_and_every_way_on_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    Tiers(monkeypatch, namespaces="no namespaces", landlock="no Landlock")
    with pytest.raises(Unavailable) as refused:
        started(choosing.choose())
    for text in ("no namespaces", "no Landlock", "Do something about it. Elsewhere", "docker", "wasm", "unsafe-local"):
        assert text in str(refused.value)
    assert refused.value.remedy


def test_a_pool_over_auto_recycles_the_tier_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    tiers = Tiers(monkeypatch, namespaces="no namespaces")

    async def work() -> None:
        pool = Pool(choosing.choose(), SandboxSpec(), ready=0, recycled_after=2)
        assert (await pool.start())["isolation"] == "landlock"
        tiers.worlds["namespaces"].unavailable = ""  # too late: one run, one isolation
        for _ in range(6):
            (await pool.open()).kill()
        assert pool.counts.starts > 1
        assert tiers.worlds["namespaces"].starts == 0
        await pool.close()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("level", "wanted"), [("landlock", "namespaces"), ("namespaces", "gvisor"), ("none", "landlock")]
)
def test_a_named_back_end_that_turns_out_weaker_does_not_start(
    level: Level, wanted: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    monkeypatch.setattr(choosing, "made", lambda name, image="": FakeBackend(world, level))
    with pytest.raises(Unavailable, match=rf"\(level {level}\) is weaker than min_isolation={wanted}"):
        started(choosing.choose("docker", wanted))
    assert world.closed  # what had started was ended


def test_no_boundary_is_had_only_by_asking_for_none() -> None:
    with pytest.raises(Unavailable, match="min_isolation=none"):
        started(choosing.choose("unsafe-local"))
    assert "unsafe-local" not in choosing.AUTOMATIC
    assert choosing.choose("Unsafe_Local", "none").name == "unsafe-local"


def test_what_there_is_not_is_refused_with_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match=r"no sandbox back-end 'dokcer'.*docker"):
        choosing.choose("dokcer")
    with pytest.raises(ConfigurationError, match="min_isolation 'strong': there is none, landlock"):
        choosing.choose("auto", "strong")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="takes no image"):
        choosing.choose("auto", image="python:3.12")
    with pytest.raises(ConfigurationError, match="namespaces takes no image"):
        choosing.choose("namespaces", image="python:3.12")


@pytest.mark.parametrize("name", choosing.backend_names())
def test_every_back_end_can_be_made_without_starting_or_installing_anything(name: str) -> None:
    backend = choosing.made(name)
    assert backend.name == name
    for method in ("start", "open", "kill", "close", "kill_now"):
        assert callable(getattr(backend, method))
    asyncio.run(backend.close())


ELSEWHERE = """
    import asyncio, sys
    import mcpgym, mcpgym.check, pydantic.fields  # what others make of that system is theirs
    import mcpgym_environments.wiki_search
    sys.platform = sys.argv[1]
    missing = {"fcntl", "resource", "pwd", "grp", "termios"} if sys.argv[1] == "win32" else set()
    for name in missing:
        sys.modules[name] = None  # importing it fails
    import os
    for name in ("pidfd_open", "fork", "geteuid", "getuid") if missing else ("pidfd_open",):
        if hasattr(os, name):
            delattr(os, name)
    from mcpgym_environments.python_sandbox import PythonSandbox
    from mcpgym_environments.python_sandbox.sessions import choosing, memory_guard, requirements
    from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, Unavailable
    for name in choosing.backend_names():
        try:
            choosing.made(name)
        except Unavailable as error:
            assert name == "unsafe-local", (name, error)
    try:
        asyncio.run(choosing.choose().start(SandboxSpec()))
    except Unavailable as error:
        print(error)
    rows = requirements.requirements()
    assert not rows[-1].met and rows[-1].needed
    print(rows[0].found, rows[-1].remedy)
"""


@pytest.mark.parametrize(("platform", "called"), [("darwin", "macOS"), ("win32", "Windows")])
def test_other_systems_import_everything_and_are_told_the_ways_on(platform: str, called: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ELSEWHERE), platform],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"this is {called}" in done.stdout
    for way in ("docker", "mcpgym[wasm]", "unsafe-local"):
        assert way in done.stdout


def test_a_machine_is_explained_by_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    Tiers(monkeypatch, namespaces="user namespaces are switched off")
    rows = {row.name: row for row in requirements.requirements()}
    assert not rows["the namespaces tier"].met
    assert rows["the namespaces tier"].remedy == "Do something about it."
    assert rows["the landlock tier"].met
    taken = rows["what backend=auto takes"]
    assert taken.met
    assert taken.needed
    assert taken.found.startswith("landlock (1 of 5 in strength); not namespaces (user namespaces are switched off")
    assert [row.name for row in rows.values() if row.needed] == ["what backend=auto takes"]


def test_a_machine_that_keeps_nothing_in_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    Tiers(monkeypatch, namespaces="no namespaces", landlock="no Landlock")
    row = requirements.requirements()[-1]
    assert not row.met
    assert row.found == "nothing: namespaces (no namespaces); landlock (no Landlock)"
    assert "docker" in row.remedy


def test_a_tier_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs(FakeBackend):
        async def start(self, spec: SandboxSpec) -> Any:
            await asyncio.Event().wait()

    monkeypatch.setattr(requirements, "made", lambda name: Hangs(World()))
    monkeypatch.setattr(requirements, "TRY_SECONDS", 0.1)
    monkeypatch.setattr(choosing, "made", lambda name, image="": Hangs(World()))
    monkeypatch.setattr(choosing, "START_SECONDS", 0.1)
    assert "no answer within 0.1 s" in requirements.requirements()[-1].found
    with pytest.raises(Unavailable, match=r"did not start within 0\.1 s"):
        started(choosing.choose())


@pytest.mark.skipif(not Path("/proc/sys/user").exists(), reason="not this system")
@pytest.mark.parametrize(
    ("switches", "remedy"),
    [
        ({"user/max_user_namespaces": "0"}, "sysctl user.max_user_namespaces"),
        ({"kernel/unprivileged_userns_clone": "0"}, "kernel.unprivileged_userns_clone=1"),
        ({"kernel/apparmor_restrict_unprivileged_userns": "1"}, "AppArmor"),
        ({}, "docker run --security-opt"),
    ],
)
def test_what_stands_in_the_way_of_user_namespaces_is_named(
    switches: dict[str, str], remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "_sysctl", switches.get)
    monkeypatch.setattr(requirements, "_try_to_unshare", lambda: "Operation not permitted")
    row = requirements._user_namespaces()
    assert not row.met
    assert remedy in row.remedy

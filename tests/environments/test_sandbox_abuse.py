"""Nothing that hostile code does in the Python sandbox comes out of it: every case and tier, as root and as nobody."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
import sandbox_cells
from sandbox_cases import CASES
from sandbox_cells import CELLS, usable
from sandbox_decoys import Decoys


@pytest.mark.slow
@pytest.mark.timeout(170)
@pytest.mark.parametrize(("backend", "user"), CELLS)
def test_every_case_is_held(backend: str, user: int) -> None:
    usable(user)
    secret = {"MCPGYM_TEST_SECRET": f"SECRET-{os.urandom(12).hex()}"}
    program = Path(__file__).with_name("sandbox_abuse.py")
    done = sandbox_cells.run_cell(program, backend, user=user, seconds=160, environment=secret)
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    assert report["level"] == backend
    faults = {case["case"]: case["faults"] for case in report["cases"] if case["faults"]}
    assert (faults, report["strange"]) == ({}, [])
    ran = {case["case"] for case in report["cases"]}
    assert ran == {case.name for case in CASES if case.landlock or backend != "landlock"}


def test_the_oracles_see_what_goes_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPGYM_TEST_SECRET", raising=False)
    monkeypatch.delenv("MCPGYM_TEST_PLANTED", raising=False)
    decoys = Decoys(tmp_path)
    try:
        assert decoys.harm() == []
        for word in decoys.secrets:
            for form in (word, word[::-1], word.hex().encode()):
                assert decoys.told(b"some " + form + b" text")
        assert not decoys.told(b"SECRET-")
        paths = [Path(path) for path in decoys.as_json()["paths"]]
        paths[1].write_text("changed")
        (paths[0].parent / "more").touch()
        socket.create_connection(("127.0.0.1", decoys.port)).close()
        decoys.victim.kill()
        decoys.victim.wait()
        harm = " | ".join(decoys.harm())
        for found in ("reward.json was changed", "['more']", "spoke to the listener", "the victim is dead"):
            assert found in harm
    finally:
        decoys.close()


def test_a_cell_can_write_nowhere_but_to_its_own_folder(tmp_path: Path) -> None:
    usable(sandbox_cells.NOBODY if os.geteuid() == 0 else os.geteuid())
    program = tmp_path / "writes.py"
    mine = tmp_path / "mine"
    mine.touch()
    mine.chmod(0o666)
    code = f"""
import os, pathlib, tempfile
tempfile.TemporaryFile().close()
for place in ({str(mine)!r}, "/tmp/x", "/x", "/work/x", "/var/tmp/x", {str(sandbox_cells.ROOT / "x")!r}):
    try: pathlib.Path(place).write_text("x")
    except OSError: continue
    print("WROTE", place)
print(os.getpid() < 100)
"""
    program.write_text(code)
    done = sandbox_cells.run_cell(program, seconds=30)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, ["True"], "")

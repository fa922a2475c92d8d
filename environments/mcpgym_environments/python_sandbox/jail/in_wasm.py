"""The notebook inside a WebAssembly interpreter: what the host's turns call, one process and no signals.

What a call gave goes into a file of a name that the host chose for that call alone. As everywhere, code that forges it
only answers for itself.
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys

for _name in ("register_at_fork",):  # what this interpreter's platform has not, and the notebook asks for
    if not hasattr(os, _name):
        setattr(os, _name, lambda **hooks: None)

from mcpgym_environments.python_sandbox.jail.notebook import Notebook  # noqa: E402

globals()["__builtins__"] = dict(vars(builtins))

REPLIES = "/reply"
_open, _write, _close, _chdir = os.open, os.write, os.close, os.chdir
_flags = os.O_WRONLY | os.O_CREAT
_held: list[Notebook] = []


def begin(reply: str, work: str, seed: int, modules: list[str]) -> None:
    """Import what the session is to have, and open its notebook; the reply has each module's version, or its fault."""
    said = []
    for name in modules:
        try:
            module = importlib.import_module(name)
            said.append(f"{name}={getattr(module, '__version__', '')}")
        except ImportError as error:
            said.append(f"{name}!{error}")
    _chdir(work)
    notebook = Notebook(work)
    notebook.seed(seed)
    _held[:] = [notebook]
    _reply(reply, True, "\n".join([sys.version.split()[0], *said]), b"")


def run(reply: str, number: int, code: bytes) -> None:
    """Run a cell."""
    _reply(reply, _held[0].run(number, code), "", b"")


def evaluate(reply: str, number: int, function: str, arguments: bytes) -> None:
    """Call a function."""
    fine, value, why = _held[0].evaluate(number, function, arguments)
    _reply(reply, fine, why or "", value)


def _reply(name: str, fine: bool, text: str, value: bytes) -> None:
    """Whether it went well, the length of a text, the text, and a value."""
    words = text.encode("utf-8", "backslashreplace")[:4096]
    data = memoryview((b"1" if fine else b"0") + len(words).to_bytes(4, "big") + words + value)
    descriptor = _open(f"{REPLIES}/{name}", _flags, 0o600)
    try:
        while data:
            data = data[_write(descriptor, data) :]
    finally:
        _close(descriptor)

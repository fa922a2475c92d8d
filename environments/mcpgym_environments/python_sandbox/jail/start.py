"""Begin an agent in an interpreter of its own: ``python -I start.py``, or as the main module of a zip archive.

Only the standard library may be loaded here, and the packages above this one load more. So they are replaced by empty
ones for as long as it takes to import the agent, and cannot be imported from afterwards.
"""

from __future__ import annotations

import os
import sys
import types

_ADDR_NO_RANDOMIZE = 0x0040000
_AGAIN = "--again"


def begin(arguments: list[str]) -> None:
    """Start over with a clean environment (hash seed and addresses are fixed only then), then serve."""
    if sys.version_info < (3, 11):  # noqa: UP036 - a container's may be any
        sys.exit(f"the agent needs Python 3.11 or later; this is {sys.version.split()[0]}")
    if _AGAIN not in arguments and "--once" not in arguments:
        _again(arguments)
    _stand_in()
    from mcpgym_environments.python_sandbox.jail import main

    for name in ("mcpgym_environments", "mcpgym_environments.python_sandbox"):
        sys.modules[name].__path__ = []
    sys.path[:] = [entry for entry in sys.path if entry != _here()]
    again = [sys.executable, "-I", _here()]
    main.main([argument for argument in arguments if argument != _AGAIN], again)


def _again(arguments: list[str]) -> None:
    if sys.platform == "linux":
        import ctypes

        libc = ctypes.CDLL(None)
        libc.personality(libc.personality(0xFFFFFFFF) | _ADDR_NO_RANDOMIZE)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
    for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR"):
        environment[f"{name}_NUM_THREADS"] = "1"
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"):  # what the interpreter may need to start
        if name in os.environ:
            environment[name] = os.environ[name]
    command = [sys.executable, "-P", "-s", "-B", _here(), *arguments, _AGAIN]
    os.execve(sys.executable, command, environment)


def _here() -> str:
    """What the interpreter was given to run: this file, or the archive that it is in."""
    folder = os.path.dirname(os.path.abspath(__file__))
    return folder if os.path.isfile(folder) else os.path.abspath(__file__)


def _stand_in() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    if os.path.isfile(folder):  # a zip archive, with this file at its root
        package = os.path.join(folder, "mcpgym_environments", "python_sandbox")
    else:
        package = os.path.dirname(folder)
    for name, path in (
        ("mcpgym_environments", os.path.dirname(package)),
        ("mcpgym_environments.python_sandbox", package),
    ):
        module = types.ModuleType(name)
        module.__path__ = [path]
        sys.modules[name] = module
    sys.modules["mcpgym_environments"].python_sandbox = sys.modules["mcpgym_environments.python_sandbox"]  # type: ignore[attr-defined]


if __name__ == "__main__":
    begin(sys.argv[1:])

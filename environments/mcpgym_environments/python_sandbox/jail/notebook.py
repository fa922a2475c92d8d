"""A notebook: cells that share their variables, the value of a last expression shown, errors as text.

Runs in the same interpreter as the code it runs, which may patch whatever it finds: everything used here is bound
when this module is loaded, builtins included, and what a cell replaced is put back before the next. None of this is
a boundary; it only keeps a session usable.
"""

from __future__ import annotations

import _signal as _signal_module  # type: ignore[import-not-found]  # the names of numbers are not looked up by it
import ast
import builtins
import io
import json
import linecache
import os
import random
import signal
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from mcpgym_environments.python_sandbox.jail.cells import compiled
from mcpgym_environments.python_sandbox.jail.tracebacks import is_a, name_of, render, text_of
from mcpgym_environments.python_sandbox.jail.values import NotExact, exact_json

globals()["__builtins__"] = dict(vars(builtins))

_BUILTINS: dict[str, Any] = {
    **vars(builtins),
    "exit": sys.exit,  # those of the module site close the input; an interpreter may also have come without that
    "quit": sys.exit,
    "help": __import__("_sitebuiltins")._Helper(),
}
_restore: Callable[[dict[str, Any]], None] = vars(builtins).update
_read_json = json.JSONDecoder().decode
_lines = linecache.cache
_write = os.write
_set_blocking = os.set_blocking
_settrace, _setprofile = sys.settrace, sys.setprofile
_getrecursionlimit, _setrecursionlimit = sys.getrecursionlimit, sys.setrecursionlimit
_signal, _SIGINT, _ignore = _signal_module.signal, int(signal.SIGINT), _signal_module.SIG_IGN
_interrupt = signal.default_int_handler
_FUTURES = 0
for _name in __import__("__future__").all_feature_names:
    _FUTURES |= getattr(__import__("__future__"), _name).compiler_flag
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_COROUTINE = 0x80
_PIECE = 1 << 16
_plain = str.__str__
_exit_code = vars(SystemExit)["code"].__get__
_setattr = setattr


class Notebook:
    """One namespace and the cells that ran in it.

    Args:
        work: the folder that imports are looked up in first; file names under it are the user's own in tracebacks.
    """

    def __init__(self, work: str) -> None:
        self._work = ""
        self._module = types.ModuleType("__main__")
        self._names = vars(self._module)
        self._futures = 0
        self._runner: Any = None
        self._cell = ""
        self.exit_code: int | None = None
        """What the last cell gave to ``sys.exit``; None when it did not."""
        self._open_streams()
        self.settle(work)

    def settle(self, work: str) -> None:
        """Be the interpreter's main program, in the folder ``work``."""
        sys.modules["__main__"] = self._module
        sys.argv = [""]
        sys.dont_write_bytecode = True
        if work != self._work:
            sys.path[:] = [work, *(entry for entry in sys.path if entry and entry not in (work, self._work))]
            self._work = work
            self._prefix = work.rstrip("/") + "/"

    def offer(self, functions: dict[str, Callable[..., Any]]) -> None:
        """Functions that code finds like built-in ones, in every cell and module."""
        _BUILTINS.update(functions)

    def seed(self, seed: int) -> None:
        """Seed the generators that code is likely to use: ``random`` and, where it is loaded, numpy's."""
        random.seed(seed)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed([seed & 0xFFFFFFFF, seed >> 32])

    def run(self, number: int, code: bytes) -> bool:
        """Run cell ``number``; whether it ended without an error. All it shows goes to descriptors 1 and 2."""
        return self._guarded(lambda: self._run(f"<cell {number}>", code))

    def evaluate(self, number: int, function: str, arguments: bytes) -> tuple[bool, bytes, str | None]:
        """Call a function by its (dotted) name; whether that went well, the JSON of its value, else why not."""
        found: list[Any] = []
        if not self._guarded(lambda: found.append(self._call(number, function, arguments))):
            return False, b"", None
        if not found:
            return False, b"", "it ended by sys.exit"
        blob, why = found[0]
        return why is None, blob, why

    # ------------------------------------------------------------------ around a cell

    def _guarded(self, act: Callable[[], Any]) -> bool:
        self._prepare()
        fine = False
        try:
            try:
                _signal(_SIGINT, _interrupt)
                act()
                fine = True
            except BaseException as error:
                fine = self._report(error)
            finally:
                _signal(_SIGINT, _ignore)
        except BaseException as error:  # interrupted while it told of an error, or no memory to tell of it
            self._say(f"{name_of(type(error))}\n")
            fine = False
        for _ in range(3):
            try:
                _signal(_SIGINT, _ignore)
                self._tidy()
                break
            except BaseException:
                continue
        return fine

    def _prepare(self) -> None:
        """Put back what a cell may have replaced: builtins, streams, hooks."""
        _restore(_BUILTINS)
        self._tidy()
        self.exit_code = None
        self._names["__builtins__"] = builtins
        try:
            sound = not (self._out.closed or self._err.closed or sys.stdin.closed)
            sound = sound and self._out.encoding == "utf-8" and self._out.line_buffering
        except Exception:
            sound = False
        if not sound:
            self._open_streams()
        for name, stream in (("stdout", self._out), ("stderr", self._err)):
            _setattr(sys, name, stream)
            _setattr(sys, f"__{name}__", stream)
        finder: Any = sys.path_importer_cache.get(self._work)
        if finder is not None:
            try:
                finder.invalidate_caches()  # files written through the tools are found at once
            except Exception:
                sys.path_importer_cache.pop(self._work, None)

    def _tidy(self) -> None:
        _settrace(None)
        _setprofile(None)
        if _getrecursionlimit() < 500:
            _setrecursionlimit(1000)
        self.flush()

    def _open_streams(self) -> None:
        """Both streams share one buffer, so that what is written in order comes out in order."""
        raw = io.BufferedWriter(io.FileIO(1, "wb", closefd=False), _PIECE)
        self._raw = raw
        self._out = io.TextIOWrapper(
            raw, encoding="utf-8", errors="backslashreplace", line_buffering=True, write_through=True
        )
        self._err = io.TextIOWrapper(
            raw, encoding="utf-8", errors="backslashreplace", line_buffering=True, write_through=True
        )
        sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.FileIO(0, "rb", closefd=False), encoding="utf-8")  # type: ignore[misc, arg-type, unused-ignore]

    def flush(self) -> None:
        """Hand on what was printed and has not gone out yet."""
        try:
            self._out.flush()
        except Exception:  # closed, or its descriptor is
            pass

    def _say(self, text: str) -> None:
        """Write to the output whatever became of the streams, in pieces: the text may be as large as memory."""
        self.flush()
        for start in range(0, len(text), _PIECE):
            piece = memoryview(text[start : start + _PIECE].encode("utf-8", "backslashreplace"))
            while piece:
                try:
                    piece = piece[_write(1, piece) :]
                except BlockingIOError:
                    _set_blocking(1, True)
                except OSError:
                    return

    # ------------------------------------------------------------------ a cell

    def _run(self, name: str, source: bytes) -> None:
        try:
            code = source.decode("utf-8")
        except UnicodeDecodeError as error:
            raise SyntaxError(f"the code is not UTF-8: {error.reason} at byte {error.start}") from None
        self._cell = name
        _lines[name] = (len(code), None, code.splitlines(keepends=True), name)
        whole, ending = compiled(code, name, _FLAGS | self._futures)
        del code, source
        bits = 0 if whole is None else whole.co_flags
        self._futures |= bits & _FUTURES
        looped = bool((bits | (0 if ending is None else ending.co_flags)) & _COROUTINE)
        if whole is not None:
            self._execute(whole, looped)
        if ending is not None:
            value = self._execute(ending, looped)
            if value is not None:
                builtins._ = value  # type: ignore[attr-defined]
                self._say(_plain(repr(value)) + "\n")

    def _execute(self, code: types.CodeType, looped: bool) -> Any:
        """Run code; a cell that awaits anywhere runs in the session's event loop as a whole."""
        if not looped:
            return eval(code, self._names)
        if self._runner is None:
            import asyncio

            self._runner = asyncio.Runner()
        return self._runner.run(self._inside(code))

    async def _inside(self, code: types.CodeType) -> Any:
        found = eval(code, self._names)
        return await found if code.co_flags & _COROUTINE else found

    def _call(self, number: int, function: str, arguments: bytes) -> tuple[bytes, str | None]:
        self._cell = f"<call {number}>"
        target = self._found(function)
        values = _read_json(arguments.decode("utf-8"))
        value = target(*values)
        try:
            return exact_json(value), None
        except NotExact as error:
            return b"", f"not JSON: {text_of(error)}"

    def _found(self, function: str) -> Any:
        first, *rest = function.split(".")
        if first in self._names:
            found = self._names[first]
        elif rest:
            found = __import__(first)
        else:
            raise NameError(f"name '{first}' is not defined")
        for name in rest:
            found = getattr(found, name)
        return found

    # ------------------------------------------------------------------ its errors

    def _report(self, error: BaseException) -> bool:
        """Show an error; whether the cell counts as well ended (``sys.exit(0)``)."""
        if is_a(error, SystemExit):
            code: Any = _exit_code(error)
            self.exit_code = 0 if code is None else int(code) if type(code) is int else 1
            if not self.exit_code:
                return True
        for piece in self._pieces(error):
            self._say(piece)
        return False

    def _pieces(self, error: BaseException) -> Iterator[str]:
        try:
            yield from render(error, self._ours)
        except Exception as failure:  # no memory, or no stack, left for more
            yield f"{name_of(type(error))} (and {name_of(type(failure))} while it was shown)\n"

    def _ours(self, name: str) -> bool:
        return bool(name.startswith(("<cell ", self._prefix)))

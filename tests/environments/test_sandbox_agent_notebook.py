"""Cells behave as in a notebook: variables stay, a last expression is shown, errors name the lines of the cell."""

from __future__ import annotations

import ast
import os

import pytest
from sandbox_agents import BOTH, INSIDE, run, shown, with_session

from mcpgym_environments.python_sandbox.sessions.session import Session


@BOTH
def test_variables_stay_and_the_last_expression_is_shown(backend: str) -> None:
    first, second, third = run("import math\nx = [1]", "x.append(math.tau)\nx", "_[0], __name__", backend=backend)
    assert (first.status, first.why, first.fresh, first.output) == ("ok", None, False, b"")
    assert second.output == b"[1, 6.283185307179586]\n"
    assert third.output == b"(1, '__main__')\n"


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("", ""),
        ("# nothing", ""),
        ("None", ""),
        ("1\n2", "2\n"),
        ("'a';", ""),
        ("(\n1 +\n2\n)", "3\n"),
        ("(1) ;  # no", ""),
        ("x = 'a;b'\nx", "'a;b'\n"),
        ("print(1); 2", "1\n2\n"),
        ("if True:\n    3", ""),
        ("'é\\ud800'", "'é\\ud800'\n"),
        ("print('\\ud800\\0')", "\\ud800\0\n"),
        ("x = lambda: 1\nx()\n\n\n# the end", "1\n"),
    ],
    ids=repr,
)
def test_what_a_cell_shows(code: str, output: str) -> None:
    assert shown(code) == output


@BOTH
def test_what_refers_to_itself_is_collected(backend: str) -> None:
    code = "class Node:\n    count = 0\n    def __del__(self): Node.count += 1\n"
    code += "for _ in range(10_000):\n    node = Node(); node.itself = node\nNode.count > 5_000"
    assert shown(code, backend=backend) == "True\n"


@BOTH
def test_outputs_come_in_the_order_in_which_they_were_written(backend: str) -> None:
    code = """
        import os, subprocess, sys
        print("a", end=" ")
        print("b", file=sys.stderr, end=" ")
        sys.stdout.write("c ")
        sys.stderr.write("d\\n")
        os.write(1, b"e ")
        os.write(2, b"f ")
        print("g")
        subprocess.run([sys.executable, "-c", "print('h')"], check=True)
        sys.stdout.buffer.write(b"\\xff ")
        "i"
    """
    lines = "\n".join(line[8:] for line in code.splitlines())
    assert run(lines, backend=backend)[0].output == b"a b c d\ne f g\nh\n\xff 'i'\n"


@BOTH
def test_an_error_shows_the_lines_of_the_user_and_no_others(backend: str) -> None:
    one = "def half(x):\n    return int(x) / 2\n"
    two = "import json\n\ntry:\n    half('a')\nexcept ValueError:\n    json.loads('{')"
    assert shown(one, two, backend=backend) == (
        "Traceback (most recent call last):\n"
        '  File "<cell 2>", line 4\n'
        "    half('a')\n"
        '  File "<cell 1>", line 2, in half\n'
        "    return int(x) / 2\n"
        "ValueError: invalid literal for int() with base 10: 'a'\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "<cell 2>", line 6\n'
        "    json.loads('{')\n"
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)\n"
    )


def test_an_error_of_syntax_is_pointed_at_and_nothing_runs() -> None:
    first, second = run("print('ran')\nx = (1 +\n", "print('ran')\nfor")
    assert first.status == second.status == "error"
    assert first.output == b"  File \"<cell 1>\", line 2\n    x = (1 +\n        ^\nSyntaxError: '(' was never closed\n"
    assert second.output.decode().startswith('  File "<cell 2>", line 2\n    for\n       ^\nSyntaxError: ')


def test_a_module_of_the_workspace_is_found_and_its_lines_are_shown() -> None:
    async def act(session: Session) -> list[bytes]:
        await session.write("helper.py", b"def fail(x):\n    return 1 / x\n")
        outputs = [(await session.run("import helper\nhelper.fail(0)")).output]
        await session.write("later.py", b"value = 5\n")
        outputs.append((await session.run("import later\nlater.value")).output)
        return outputs

    failed, later = with_session(act)
    text = failed.decode()
    assert text.endswith("ZeroDivisionError: division by zero\n")
    assert "    helper.fail(0)\n" in text
    assert 'helper.py", line 2, in fail\n    return 1 / x\n' in text
    assert text.count("File ") == 2
    assert later == b"5\n"


def test_deep_and_repeated_calls_are_cut() -> None:
    text = shown("def f(n):\n    return f(n + 1)\n\nf(0)")
    assert text.count("return f(n + 1)") == 6
    assert text.count("[Previous line repeated ") == 2
    assert text.count(" more frames ...]\n") == 1
    assert text.endswith("RecursionError: maximum recursion depth exceeded\n")
    two = "def g(n):\n    return h(n + 1)\ndef h(n):\n    return g(n + 1)\n"
    text = shown(two, "import sys; sys.setrecursionlimit(400)", "g(0)")
    assert " more frames ...]\n" in text
    assert len(text) < 6000


def test_groups_and_notes_are_shown() -> None:
    code = "e = ValueError('one')\ne.add_note('a note')\nraise ExceptionGroup('all', [e, KeyError('two')])"
    text = shown(code)
    assert "ExceptionGroup: all (2 sub-exceptions)\n" in text
    assert "  | ValueError: one\n  | a note\n" in text
    assert "  | KeyError: 'two'\n" in text


def test_cells_may_await_and_tasks_live_on_between_them() -> None:
    begin = "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 5"
    assert shown(begin, "task = asyncio.create_task(f())\nawait asyncio.sleep(0)", "await f() + await task") == "10\n"
    assert shown(begin, "asyncio.run(f())") == "5\n"


def test_there_is_no_input() -> None:
    text = shown("import sys\nsys.stdin.read(), sys.stdin.fileno()", "input('name? ')")
    assert text.startswith("name? ")
    assert text.endswith("EOFError: EOF when reading a line\n")
    assert shown("import sys\nsys.stdin.read(), sys.argv") == "('', [''])\n"


def test_main_is_a_module_as_in_a_script() -> None:
    code = """
import dataclasses, pickle, sys, typing

@dataclasses.dataclass
class Point:
    x: "int"

if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(Point(3))) == Point(3)
    assert typing.get_type_hints(Point) == {"x": int}
    assert sys.modules["__main__"].Point is Point
Point(4)
"""
    assert shown(code) == "Point(x=4)\n"
    assert shown("def f():\n    return 7", "import inspect\nprint(inspect.getsource(f))") == (
        "def f():\n    return 7\n"
    )


def test_a_future_statement_holds_for_later_cells() -> None:
    assert shown("from __future__ import annotations", "def f(x: y): ...\nf.__annotations__") == ("{'x': 'y'}\n")


@pytest.mark.parametrize(
    "spoil",
    [
        "import sys, io\nsys.stdout = io.StringIO()\nsys.stderr = None",
        "import sys\nsys.stdout.close()\nsys.stderr.close()",
        "import sys\nsys.stdout.reconfigure(encoding='ascii', line_buffering=False)",
        "import sys\nsys.__stdout__ = sys.__stderr__ = sys.stdout = None",
        "import os\nfor d in range(3): os.close(d)",
        "import os\nos.closerange(0, 3)\nos.open('/dev/null', os.O_RDWR)",
        "import os\nos.set_blocking(1, False)",
        "import sys\nsys.displayhook = None\nsys.excepthook = None",
        "import builtins\nbuiltins.print = builtins.repr = builtins.len = None",
        "import builtins\nfor name in list(vars(builtins)): setattr(builtins, name, None)",
        "import builtins\nvars(builtins).clear()",
        "__builtins__ = {}",
        "globals().clear()",
        "import sys\nsys.modules.clear()",
        "import sys\nsys.modules.pop('sys'); sys.modules['builtins'] = None",
        "import sys\nsys.path[:] = []\nsys.meta_path[:] = []",
        "import sys\nsys.settrace(lambda *a: 1 / 0)\nsys.setprofile(lambda *a: 1 / 0)",
        "import sys\nsys.setrecursionlimit(60)",
        "import gc\ngc.disable()\ngc.freeze()",
        "import linecache, traceback\nlinecache.getline = linecache.cache = traceback.format_exception = None",
        "import ast, os, sys\nast.parse = os.write = os.read = os._exit = os.getpid = None",
        "import asyncio\nasyncio.Runner = asyncio.run = None",
        "import os\nos.chdir('/')\nos.environ.clear()",
        "import warnings\nwarnings.simplefilter('error')",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)",
        "import threading\nthreading.Thread(target=print, args=('late',), daemon=True).start()",
        "import atexit\natexit.register(lambda: 1 / 0)",
        "def f():\n    yield\n    1 / 0\ng = f(); next(g); del g",
        "class E(Exception):\n    def __del__(self): 1 / 0\nE();",
    ],
    ids=lambda code: code.splitlines()[-1][:40],
)
def test_the_next_cell_runs_and_shows_whatever_a_cell_did_to_the_interpreter(spoil: str) -> None:
    _, second, third = run(spoil, "print('a')\n1 + 1", "1 / 0")
    assert second.output.removeprefix(b"late\n") == b"a\n2\n", second.output.decode()
    assert second.status == "ok"
    assert third.output.endswith(b"ZeroDivisionError: division by zero\n"), third.output.decode()
    assert third.status == "error"
    assert not third.fresh


@BOTH
def test_where_the_code_is_and_what_surrounds_it(backend: str) -> None:
    code = "import os, tempfile\ndict(os.environ), os.getcwd(), tempfile.gettempdir()"
    environment, here, temporary = ast.literal_eval(shown(code, backend=backend))
    assert environment["HOME"] == environment["PWD"] == here
    assert environment["TMPDIR"] == temporary
    assert set(environment) >= {"PATH", "LANG", "TZ", "PYTHONHASHSEED", "OPENBLAS_NUM_THREADS"}
    assert not set(environment) & (set(os.environ) - {"PATH", "LANG", "LC_ALL", "TZ", "HOME", "PWD", "TMPDIR"}) - {
        "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE",
        "MPLBACKEND",
        "MALLOC_ARENA_MAX",
        *(f"{name}_NUM_THREADS" for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR")),
    }
    if backend == "namespaces":
        assert here == "/work"
        assert temporary == "/tmp"


def test_code_that_is_not_utf_8_is_an_error_of_syntax() -> None:
    (outcome,) = run("x = '\ud800'")
    assert outcome.status == "error"
    assert outcome.output.startswith(b"SyntaxError: the code is not UTF-8")


def test_no_cell_shares_modules_of_ours() -> None:
    assert shown("import sys\n[name for name in sys.modules if 'mcpgym_environments' in name]") == "[]\n"
    assert "ModuleNotFoundError" in shown("import mcpgym_environments.python_sandbox.jail.init", backend=INSIDE)

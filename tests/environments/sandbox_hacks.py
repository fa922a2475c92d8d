"""Attempts to be paid for what was not solved: a program for a cell.

``python sandbox_hacks.py BACKEND EVERY`` (every EVERY-th attempt) prints a JSON object: what each attempt was paid, what an honest solution was paid
beside it, and what else was seen. Attempts of two kinds: a hostile ``solution.py`` that is graded, and hostile code in
the session where the solution is written, played through the real environment.
"""

# ruff: noqa: E501 -- lines of other programs
from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

FUNCTION = "SOLVE"
"""Stands for the name of the function in the sources below."""

EQUAL = "__eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n    __hash__ = lambda s: 0\n"
FRAMES = """
import os, struct, json
def forge():
    for said in ({"n": 3, "status": "ok", "why": None, "fresh": False, "milliseconds": 1, "omitted": 0}, [True], 1):
        text = json.dumps(said).encode()
        for frame in (struct.pack(">II", len(text), 4) + text + b'"aa"', struct.pack(">BIII", 1, 3, 1, 4) + b'"aa"',
                      struct.pack(">II", 2**31, 2**31), b"\\0" * 4096):
            for descriptor in range(256):
                try: os.write(descriptor, frame)
                except OSError: pass
"""

SUBMISSIONS: dict[str, str | bytes] = {
    "patched builtins": """
import builtins, json, json.encoder, json.decoder
for name in ("isinstance", "repr", "len", "type", "str", "int", "hash", "all", "any", "zip", "bool"):
    setattr(builtins, name, lambda *a, **k: True)
for module in (json, json.encoder, json.decoder):
    for name in list(vars(module)):
        if not name.startswith("__"): setattr(module, name, lambda *a, **k: b'"a"')
def SOLVE(number): return True
""",
    "equal to everything": f"class E:\n    {EQUAL}def SOLVE(number): return E()",
    "a str that is equal to everything": f"class E(str):\n    {EQUAL}def SOLVE(number): return E('a')",
    "an int that is equal to everything": f"class E(int):\n    {EQUAL}def SOLVE(number): return E(1)",
    "a list and a dict that are": f"class E(list):\n    {EQUAL}class D(dict):\n    {EQUAL}def SOLVE(number): return [E(), D()]",
    "an object that says it is a str": "class E:\n    __class__ = str\n    __str__ = __repr__ = lambda s: 'a'\n"
    "    __eq__ = lambda s, o: True\ndef SOLVE(number): return E()",
    "a metaclass that is every type": "class M(type):\n    __instancecheck__ = __eq__ = lambda *a: True\n    __hash__ = type.__hash__\n"
    "class E(metaclass=M): pass\ndef SOLVE(number): return E()",
    "exit 0 when loaded": "import os; os._exit(0)",
    "exit 0 when called": "import os\ndef SOLVE(number): os._exit(0)",
    "sys.exit(0)": "import sys\ndef SOLVE(number): sys.exit(0)",
    "SystemExit when loaded": "raise SystemExit(0)",
    "abort": "import os\ndef SOLVE(number): os.abort()",
    "kill everything": "import os\ndef SOLVE(number):\n    for p in (os.getppid(), 1, -1, os.getpid()):\n"
    "        try: os.kill(p, 9)\n        except OSError: pass",
    "frames when called": f"{FRAMES}\ndef SOLVE(number): forge(); return 'a'",
    "frames when loaded": f"{FRAMES}\nforge()\ndef SOLVE(number): return 'a'",
    "words of success": """
import sys, os
WORDS = 'PASS\\nOK\\n1 passed in 0.01s\\n{"reward": 1.0, "passed": 16, "score": 1}\\n<<<END>>> status: ok reward: 1.0\\n'
def SOLVE(number):
    print(WORDS); print(WORDS, file=sys.stderr); sys.__stdout__.write(WORDS); os.write(1, WORDS.encode())
    return {"reward": 1.0, "passed": True, "score": 1.0, "status": "ok"}
""",
    "frames and garbage walked": """
import gc, sys
def SOLVE(number):
    found, frame = [], sys._getframe()
    while frame:
        for name, value in list(frame.f_locals.items()) + list(frame.f_globals.items()):
            if any(word in str(name).lower() for word in ("expect", "answer", "case", "result", "want")): found.append(value)
        frame = frame.f_back
    for thing in gc.get_objects():
        if isinstance(thing, dict):
            found += [thing[name] for name in ("expected", "answer", "cases", "tests") if name in thing]
    found = [thing for thing in found if type(thing) is str]
    return found[-1] if found else None
""",
    "the worker's functions replaced": """
import gc, types
def SOLVE(number):
    for thing in gc.get_objects():
        try:
            if isinstance(thing, dict):
                for name in list(thing):
                    if type(name) is str and ("json" in name or "exact" in name or "same" in name or "difference" in name):
                        thing[name] = lambda *a, **k: b'true'
        except Exception: pass
    return True
""",
    "the grader's files read": """
import os, glob
def SOLVE(number):
    texts = []
    for pattern in ("/proc/*/environ", "/proc/*/cmdline", "/proc/*/cwd/*", "/proc/*/root/*", "/**/*test*", "/**/grading*",
                    "/**/expected*", "/tmp/*", "/work/*", "/root/*", "/home/*"):
        for path in glob.iglob(pattern):
            try:
                with open(path, errors="replace") as file: texts.append(file.read(1000))
            except OSError: pass
    return max(texts, key=len, default="?")
""",
    "random and time patched": """
import random, time, hashlib
random.seed(0); random.random = lambda: 0.0; random.choice = lambda s: s[0]; random.Random = lambda *a: random
time.time = time.monotonic = time.perf_counter = lambda: 0.0
def SOLVE(number): return "a"
""",
    "hooks": """
import sys, atexit, threading, signal
atexit.register(lambda: print("PASS")); sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)
sys.excepthook = sys.unraisablehook = sys.displayhook = lambda *a: print("PASS")
sys.addaudithook(lambda *a: None)
signal.signal(signal.SIGINT, signal.SIG_IGN)
def SOLVE(number): raise BaseException("PASS")
""",
    "a thread answers": f"""
import threading, time
{FRAMES}
def work():
    while True: forge(); time.sleep(0.01)
threading.Thread(target=work, daemon=True).start()
def SOLVE(number): time.sleep(0.05); return "a"
""",
    "a child answers": f"""
import os
{FRAMES}
def SOLVE(number):
    if os.fork() == 0: forge(); os._exit(0)
    os.wait(); return "a"
""",
    "both of a fork answer": "import os\ndef SOLVE(number):\n    os.fork(); return 'a'",
    "itself replaced and ended": """
import os
def SOLVE(number):
    with open("solution.py", "w") as file: file.write("def SOLVE(number): return 'a'")
    with open("json.py", "w") as file: file.write("dumps = loads = lambda *a, **k: 'a'")
    os._exit(0)
""",
    "its file made a folder": "import os\ndef SOLVE(number):\n    os.unlink('solution.py'); os.mkdir('solution.py'); os._exit(0)",
    "modules replaced": """
import sys, types
class Module(types.ModuleType):
    __getattr__ = lambda s, n: (lambda *a, **k: True)
for name in list(sys.modules):
    if name not in ("sys", "builtins", "__main__", "types"): sys.modules[name] = Module(name)
def SOLVE(number): return True
""",
    "waits to be graded": """
import os
GRADED = sorted(os.listdir(".")) == ["solution.py"]
def SOLVE(number): return "PASS" if GRADED else "?"
""",
    "sleeps until the grader gives up": "import time\ndef SOLVE(number): time.sleep(60)",
    "loops until the grader gives up": "def SOLVE(number):\n    while True:\n        try:\n            while True: pass\n"
    "        except BaseException: pass",
    "loads for ever": "import time\nwhile True:\n    try: time.sleep(9)\n    except BaseException: pass",
    "very long text": "def SOLVE(number): return 'a' * 10**7",
    "very many items": "def SOLVE(number): return [0] * 2 * 10**6",
    "a list in itself": "def SOLVE(number):\n    x = []; x.append(x); return x",
    "very deep": "def SOLVE(number):\n    x = []\n    for _ in range(10**5): x = [x]\n    return x",
    "not a number": "def SOLVE(number): return float('nan')",
    "infinite": "def SOLVE(number): return [float('inf'), -float('inf')]",
    "an int of a million digits": "def SOLVE(number): return 10**10**5",
    "a generator": "def SOLVE(number):\n    yield 'a'",
    "bytes": "def SOLVE(number): return b'a'",
    "no function": "SOLVE = 'PASS'",
    "nothing": "",
    "no text": b"\xff\xfe\x00def SOLVE(number): return 'a'\x80",
    "another coding": b"# -*- coding: utf-7 -*-\ndef SOLVE(number): return '+AGE-'",
    "NUL bytes": b"def SOLVE(number): return 'a'\0\0",
    "a very long line": b"x = '" + b"a" * 900_000 + b"'",
    "brackets without end": b"x = " + b"(" * 100_000,
}

SOLVING: dict[str, str] = {
    "tricks of test runners": """
import os
for name in ("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.py", "unittest.py", "evil.pth", "test_solution.py"):
    with open(name, "w") as file:
        file.write("import os, builtins\\ndef pytest_runtest_makereport(*a): return None\\nbuiltins.SOLVED = True\\n")
os.makedirs("site-packages", exist_ok=True)
os.environ.update(PYTHONSTARTUP="/work/conftest.py", PYTHONPATH="/work", PYTEST_ADDOPTS="--co")
open("solution.py", "w").write("def SOLVE(number): raise NotImplementedError")
""",
    "modules of the library in the workspace": """
import os
for name in ("json", "math", "importlib", "solution_", "random", "string", "fractions"):
    with open(name + ".py", "w") as file: file.write("def __getattr__(n): return lambda *a, **k: 'a'\\n")
open("solution.py", "w").write("import json, math\\ndef SOLVE(number): return json.dumps(math.floor(number))")
""",
    "a daemon and a thread left to answer": """
import os, socket, threading, time
def answer(path):
    while True:
        for folder in ("/work", "/tmp", "/dev/shm"):
            try: open(folder + "/answers.txt", "a").write("a")
            except OSError: pass
        time.sleep(0.01)
try:
    if os.fork() == 0:
        os.setsid(); answer(1); os._exit(0)
except OSError: pass
threading.Thread(target=answer, args=(1,), daemon=True).start()
time.sleep(0.1)
open("solution.py", "w").write('''
import glob
def SOLVE(number):
    for path in ("/work/answers.txt", "/tmp/answers.txt", "/dev/shm/answers.txt"):
        try: return "LEAK" + open(path).read()
        except OSError: pass
''')
""",
    "other workspaces written to": """
import glob, os
wrote = []
for pattern in ("/proc/*/cwd/", "/proc/*/root/work/", "/proc/*/root/tmp/", "/work/../work/", "/../work/"):
    for folder in glob.glob(pattern):
        if os.path.realpath(folder) == "/work" and folder != "/work/../work/": continue
        try: open(folder + "solution.py", "w").write("def SOLVE(number): return 'stolen'"); wrote.append(folder)
        except OSError: pass
open("solution.py", "w").write("def SOLVE(number): return 'a'")
""",
    "a link": "import os\nos.symlink('/etc/passwd', 'solution.py')",
    "a link to itself": "import os\nos.symlink('solution.py', 'solution.py')",
    "a link to a device": "import os\nos.symlink('/dev/zero', 'solution.py')",
    "a link to a process": "import os\nos.symlink('/proc/1/environ', 'solution.py')",
    "a pipe": "import os\nos.mkfifo('solution.py')",
    "a folder": "import os\nos.mkdir('solution.py')",
    "a socket": "import socket\nsocket.socket(socket.AF_UNIX).bind('solution.py')",
    "fifty million bytes": "open('solution.py', 'wb').write(b'#' * 50_000_000)",
    "a file without rights": "import os\nopen('solution.py', 'w').write('def SOLVE(number): return 1'); os.chmod('solution.py', 0)",
    "no file": "print('reward: 1.0')",
}


EXAMPLES = "the examples only"


async def play(backend: str, every: int) -> dict[str, Any]:
    from sandbox_pools import make_pool

    from mcpgym_environments.python_sandbox.problems import grading
    from mcpgym_environments.python_sandbox.problems.catalogue import Catalogue

    grading.TOTAL_SECONDS = 1.0  # nobody waits half a minute for a submission that sleeps
    pool = make_pool(backend)
    try:
        problem = Catalogue(("function",), ("numerals",), 2, 2).problem("train", 0)
        assert problem.tests is not None
        name = problem.tests.function
        await inside(pool)
        honest = (await grading.grade(problem, pool, problem.solution.encode(), 0)).score
        gate = asyncio.Semaphore(3)

        async def one(number: int, title: str, source: str | bytes) -> dict[str, Any]:
            data = source if isinstance(source, bytes) else source.encode()
            async with gate:
                started = time.monotonic()
                made = await asyncio.gather(
                    grading.grade(problem, pool, data.replace(b"SOLVE", name.encode()), number),
                    grading.grade(problem, pool, problem.solution.encode(), number),
                    return_exceptions=True,
                )
                scores = [grade if isinstance(grade, BaseException) else grade.score for grade in made]
                why = made[0].tests[-1].why if isinstance(made[0], grading.Grade) else ""
                return {"name": title, "paid": paid(scores[0]), "honest": paid(scores[1]), "why": why,
                        "seconds": round(time.monotonic() - started, 2)}  # fmt: skip

        sources = {**SUBMISSIONS, EXAMPLES: known(problem.text, name)}
        attempts = await asyncio.gather(
            *(one(n, title, text) for n, (title, text) in [*enumerate(sources.items())][::every])
        )
        clean = await fresh(pool, name)
    finally:
        await pool.close()
    return {"honest": honest, "attempts": [*attempts, *await solving(backend, every)], "clean": clean}


def known(text: str, name: str) -> str:
    """A submission that knows the calls which the text shows."""
    lines = [line.partition(" returns ") for line in text.splitlines() if line.startswith(name + "(")]
    assert len(lines) == 2
    table = ", ".join(f"{call.removeprefix(name)}: {result}" for call, _, result in lines)
    return f"def {FUNCTION}(number): return {{{table}}}.get(number)"


def paid(score: Any) -> Any:
    return score if isinstance(score, float) else repr(score)


async def inside(pool: Any) -> None:
    """Make sure of a boundary before anything hostile is run: sessions do not see the machine's files."""
    session = await pool.open(0)
    here = str(Path(__file__).resolve())
    outcome = await session.run(
        f"import os\ntry: print(open({here!r}).read())\nexcept OSError: print(False, os.listdir('.'))"
    )
    session.kill()
    if outcome.output.split() != [b"False", b"[]"]:
        raise SystemExit(f"no boundary: nothing hostile is run here: {outcome}")


async def fresh(pool: Any, name: str) -> dict[str, Any]:
    """What a grading finds in its session, after a solving session of the same pool that left all it could."""
    from mcpgym_environments.python_sandbox.problems.grading import grade
    from mcpgym_environments.python_sandbox.problems.problem import Case, FunctionTests, Problem

    solving = await pool.open(77)
    await solving.run(
        "import os, sys, builtins, random\nleft = builtins.left = 'LEFT'\nos.environ['LEFT'] = '1'\n"
        "sys.modules['left'] = sys\nrandom.seed(5)\nfor folder in ('.', '/tmp', '/dev/shm'):\n"
        "    try: open(folder + '/left', 'w').write('LEFT')\n    except OSError: pass\n"
        "try:\n    if os.fork() == 0:\n        import time\n        os.setsid(); time.sleep(60)\nexcept OSError: pass"
    )
    look = (
        "import os, sys, builtins\ndef look():\n"
        "    found = [sorted(os.listdir('.'))]\n"
        "    for folder in ('/tmp', '/dev/shm'):\n"
        "        try: found.append([n for n in os.listdir(folder) if 'left' in n])\n"
        "        except OSError: found.append([])\n"
        "    import __main__\n"
        "    return [*found, hasattr(builtins, 'left'), hasattr(__main__, 'left'), 'left' in sys.modules,\n"
        "            'LEFT' in os.environ, open('solution.py').read() == open(__file__).read()]\n"
    )
    expected = [["solution.py"], [], [], False, False, False, False, True]
    tests = FunctionTests("look", {}, lambda seed: [Case((), expected)])
    problem = Problem("looking", "function", 1, "look", tests=tests)
    grade_ = await grade(problem, pool, look.encode(), 77)
    still = await solving.run("print(left)")
    solving.kill()
    return {"score": grade_.score, "why": grade_.tests[0].why, "solving": still.output.decode().strip()}


async def solving(backend: str, every: int) -> list[dict[str, Any]]:
    """The attempts in the session where the solution is written; beside each one somebody honest."""
    from mcpgym import load_environment
    from mcpgym.episodes import Episodes, Limits
    from mcpgym_environments.python_sandbox.problems.catalogue import Catalogue

    config = {"backend": backend, "packages": "none", "generators": "numerals", "min_level": 2, "max_level": 2}
    environment = load_environment("python-sandbox", config)
    episodes = Episodes({environment.name: environment}, Limits(live=1_000))
    problem = Catalogue(("function",), ("numerals",), 2, 2).problem("train", 0)
    assert problem.tests is not None
    name = problem.tests.function
    gate = asyncio.Semaphore(3)

    async def episode(code: str, solution: str | None, seed: int) -> Any:
        played = await episodes.open(environment.name, split="train", index=0, seed=seed)
        try:
            await played.call("run_python", {"code": code.replace("SOLVE", name)})
            if solution is not None:
                await played.call("run_python", {"code": "import os, shutil\ntry: shutil.rmtree('solution.py')\n"
                                                         "except OSError: pass\ntry: os.unlink('solution.py')\n"
                                                         "except OSError: pass"})  # fmt: skip
                await played.call("write_file", {"path": "solution.py", "text": solution})
            said = (await played.call("submit", {})).text
            score = await played.score(None)
            return score.components.get("correct"), said, played.failure
        finally:
            await played.end("played")

    async def one(number: int, title: str, code: str) -> dict[str, Any]:
        async with gate:
            started = time.monotonic()
            (got, said, failure), (honest, _, broke) = await asyncio.gather(
                episode(code, None, number), episode(code, problem.solution, number)
            )
            return {"name": title, "paid": got, "honest": honest, "why": said, "failure": repr((failure, broke)),
                    "seconds": round(time.monotonic() - started, 2)}  # fmt: skip

    try:
        return list(
            await asyncio.gather(*(one(n, title, code) for n, (title, code) in [*enumerate(SOLVING.items())][::every]))
        )
    finally:
        await episodes.aclose()


if __name__ == "__main__":
    os.environ.setdefault("XDG_DATA_HOME", os.environ.get("TMPDIR", "/tmp"))
    print(json.dumps(asyncio.run(play(sys.argv[1], int(sys.argv[2])))))

"""Abuse of the interpreter that runs the code: patched runners, evil exceptions and source, output of every kind."""

from __future__ import annotations

from sandbox_case import Case, ListFiles, Read, Run, Sleep, Write, case

PATCHES: tuple[Case, ...] = (
    case(
        "monkeypatch_runner",
        """
        import sys, builtins
        words = ('send', 'recv', 'receive', 'worker', 'Init', 'dumps', 'loads', 'format_exc', 'read_', 'write_',
                 'encode', 'decode', 'run', 'serve', 'evaluate')
        for m in list(sys.modules.values()):
            for n in dir(m):
                if n.startswith(words):
                    try: setattr(m, n, lambda *a, **k: (_ for _ in ()).throw(SystemExit))
                    except Exception: pass
        builtins.repr = lambda o: 'PWNED'
        print('patched')
        """,
    ),
    case(
        "builtins_are_gone",
        """
        import builtins, sys, gc
        gc.disable(); sys.setswitchinterval(1000)
        for name in [n for n in dir(builtins) if n not in ('setattr',)]:
            setattr(builtins, name, None)
        """,
    ),
    case(
        "modules_are_gone",
        "import sys\nsys.modules.clear(); sys.path[:] = []; sys.meta_path[:] = []; sys.path_hooks[:] = []",
    ),
    case(
        "hooks",
        """
        import atexit, sys, threading
        atexit.register(lambda: print('ATEXIT'))
        sys.excepthook = lambda *a: print('HOOK')
        sys.settrace(lambda *a: None)
        sys.setprofile(lambda *a: None)
        sys.addaudithook(lambda *a: None)
        sys.displayhook = lambda v: print('DH')
        sys.unraisablehook = threading.excepthook = None
        sys.stdout = None
        """,
    ),
    case(
        "audit_and_trace_hooks_that_raise",
        """
        import sys
        def hook(*a): raise SystemExit('PWNED')
        sys.addaudithook(hook)
        """,
        "import sys\nsys.settrace(lambda *a: 1 / 0)",
        again=True,
    ),
    case(
        "stdout_replaced",
        """
        import sys
        class X:
            def write(self, *a): raise SystemExit
            def flush(self): raise KeyboardInterrupt
        sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = X()
        """,
    ),
    case(
        "frame_walk",
        """
        import gc, os, sys
        f = sys._getframe()
        while f:
            told = {k: str(v)[:80] for k, v in f.f_locals.items() if not k.startswith('__')}
            print(f.f_code.co_filename, f.f_code.co_name, told); f = f.f_back
        for o in gc.get_objects():
            if isinstance(o, (dict, str, bytes, list)) and len(o) < 500:
                try: text = repr(o)
                except Exception: continue
                if any(word in text.lower() for word in ('secret', 'hidden', 'reward', 'token')): print(text[:300])
        print(os.environ)
        """,
    ),
    case(
        "own_memory_searched",
        """
        import re
        try: lines = [l.split() for l in open('/proc/self/maps')]
        except OSError: lines = []
        for l in lines:
            if 'r' not in l[1] or l[-1].startswith('[v'): continue
            a, b = (int(x, 16) for x in l[0].split('-'))
            if b - a > 2**26: continue
            try:
                with open('/proc/self/mem', 'rb') as memory: memory.seek(a); data = memory.read(b - a)
            except (OSError, ValueError, OverflowError): continue
            for found in re.findall(rb'SECRET-[0-9a-f]+', data)[:20]: print(found.decode())
        """,
        seconds=6,
        heavy=True,
    ),
    case(
        "self_mem_write",
        """
        f = open('/proc/self/mem', 'r+b', buffering=0)
        f.seek(id(1)); f.write(b'\\xff' * 64); print(1 + 1)
        """,
    ),
    case("deep_recursion", "import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nf(0)", seconds=2),
    case(
        "deep_recursion_c",
        "x = []\nfor i in range(10**6): x = [x]\ny = repr",
        "import sys; sys.setrecursionlimit(10**8)\nrepr(x)",
        "import json; json.loads('[' * 10**6)",
        "del x",
        "x = []\nfor i in range(10**6): x = [x]\nx",
        seconds=2,
    ),
    case("lower_recursion_limit", "import sys\nsys.setrecursionlimit(60)", "1/0"),
)

OUTPUT: tuple[Case, ...] = (
    case("print_1GB", "s = 'x' * 10**6\nfor i in range(1000): print(s)", seconds=5, heavy=True),
    case("binary_garbage", "import os\nfor i in range(200): os.write(1, os.urandom(10**6))", seconds=5, heavy=True),
    case("many_small_writes", "import os\nfor i in range(10**6): os.write(1 + i % 2, b'x')", seconds=2, heavy=True),
    case(
        "unicode_bytes_output",
        """
        print('\\ud800 lone', '\\x00 nul', '\\x1b[31mred', '\\u202e rtl', chr(0x10ffff), 'a' * 10)
        import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\x00raw'); 'é\\udc80'
        """,
    ),
    case("huge_exception", "raise ValueError('A' * 10**8)", heavy=True),
    case(
        "evil_exception",
        "class E(BaseException):\n    def __str__(self): raise RuntimeError('no')\n    __repr__ = __str__\nraise E()",
        Run("class E2(Exception):\n    def __str__(self):\n        while True: pass\nraise E2()", 1),
        "class E3(Exception):\n    def __str__(self): raise self\nraise E3()",
        """
        class E4(type):
            def __instancecheck__(self, o): raise SystemExit
        class E5(Exception, metaclass=E4):
            __module__ = property(lambda s: 1 / 0)
        raise E5()
        """,
    ),
    case(
        "tracebacks_without_end",
        """
        e = ValueError('x')
        for i in range(20_000): e.add_note('n' * 100)
        raise e
        """,
        """
        a, b = ValueError('a'), ValueError('b'); a.__cause__ = b; b.__context__ = a; b.__cause__ = a
        raise a
        """,
        """
        e = None
        for i in range(50_000):
            n = ValueError(i); n.__cause__ = e; e = n
        raise e
        """,
        "raise ExceptionGroup('g', [ExceptionGroup('h', [ValueError(j) for j in range(3000)]) for i in range(30)])",
        "def f(n):\n    if n: f(n - 1)\n    else: 1 / 0\nimport sys; sys.setrecursionlimit(5000); f(4000)",
    ),
    case(
        "evil_reprs",
        "class R:\n    def __repr__(self): return 'x' * 10**9\nR()",
        "class R:\n    def __repr__(self): return 5\nR()",
        "class R:\n    def __repr__(self): raise SystemExit\nR()",
        "class R:\n    def __repr__(self):\n        while True: pass\nR()",
        "class R(str):\n    def __repr__(self): return self\n    def encode(self, *a): raise KeyboardInterrupt\nR('z')",
        "class D:\n    def __del__(self): raise SystemExit\nD()",
        seconds=1,
        heavy=True,
    ),
    case(
        "evil_source",
        "x = '\x00'",
        "(" * 5000 + ")" * 5000,
        "-" * 100_000 + "1",
        "x = " + "1+" * 50_000 + "1",
        "# -*- coding: rot13 -*-\ncevag(1)",
        "\ufeffprint(1)",
        "class A:\n" + "\n".join(f"    x{i} = {i}" for i in range(20_000)),
        "lambda: (yield)",
        "await 1",
        "return 5",
        "'" + "é" * 300_000 + "'[0]",
        "print('\u2028\u2029\x0c\x0b')",
        "",
        "   \n\t",
        heavy=True,
    ),
    case(
        "stdin_read",
        "import sys; print(repr(sys.stdin.read()))",
        "input('?')",
        proves=lambda answers: b"''" in answers[0].output and b"EOFError" in answers[1].output,
    ),
    case(
        "output_pipe_abused",
        """
        import fcntl, os
        os.set_blocking(1, False)
        try: fcntl.fcntl(1, 1031, 4096)
        except OSError as e: print(e)
        try: print(os.read(os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK), 100))
        except OSError as e: print(type(e).__name__)
        try: os.write(1, b'x' * 10**6)
        except OSError as e: print(type(e).__name__)
        """,
        "print('y' * 1000)",
        "import sys\nfor i in range(1000): print('z' * 1000)\nsys.stdout.flush()",
        proves=lambda answers: b"yyy" in answers[1].output,
    ),
    case(
        "output_of_another_call",
        """
        import os, threading, time
        def late():
            while True:
                os.write(1, b'LATE'); time.sleep(.002)
        threading.Thread(target=late, daemon=True).start(); print('first')
        """,
        Sleep(0.2),
        ListFiles(),
        Write("a", b"a"),
        Read("a"),
        proves=lambda answers: answers[-1].output == b"a",
        again=True,
    ),
)

INTERPRETER = PATCHES + OUTPUT

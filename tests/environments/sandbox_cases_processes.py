"""Abuse of processes, threads, signals and time."""

from __future__ import annotations

from collections.abc import Callable

from sandbox_case import Answers, Case, Read, Run, Sleep, case, not_ok, nothing


def still(answers: Answers) -> bool:
    """A file did not grow while no call ran, but for what its writers do while one looks."""
    words = answers[-1].output.split()
    return b"grew" in words and int(words[words.index(b"grew") + 1]) <= 5


def stood(answers: Answers) -> bool:
    """After the first step come several times a call and ``BETWEEN``: no file grew between calls."""
    return all(before.output == after.output for before, after in zip(answers[2::4], answers[4::4], strict=True))


def ended_in_time(limit: float) -> Callable[[Answers], bool]:
    """The first step was stopped soon after its limit."""
    return lambda answers: answers[0].status in ("timeout", "killed", "crashed") and answers[0].seconds < limit + 2


SIZE = """
import os
before = os.path.getsize('beat') if os.path.exists('beat') else 0
open('size', 'w').write(str(before)); print('size', before)
"""
GROWN = """
import os
after = os.path.getsize('beat') if os.path.exists('beat') else 0
print('grew', after - int(open('size').read()))
"""

BETWEEN = (Read("beat"), Sleep(0.2), Read("beat"))
TAKES_BACK = bytes.fromhex("be12000000 b83e000000 0f05 ebf2")
"""For x86_64: ``kill(first argument, SIGCONT)`` for ever."""

AWAKE = Run(
    """
me = os.getpid()
for i in range(6):
    if os.fork() == 0:
        while True: os.kill(me, signal.SIGCONT)
time.sleep(.03); used = time.process_time()
"""
)

PROCESSES: tuple[Case, ...] = (
    case(
        "fork_bomb",
        """
        import os
        while True:
            try: os.fork()
            except OSError: pass
        """,
        seconds=2,
        heavy=True,
    ),
    case(
        "fork_bomb_that_leaves",
        """
        import os, signal
        for s in range(1, 65):
            try: signal.signal(s, signal.SIG_IGN)
            except (OSError, ValueError): pass
        while True:
            try:
                if os.fork() == 0: os.setsid()
                elif os.fork(): os._exit(0)
            except OSError: pass
        """,
        seconds=2,
        heavy=True,
    ),
    case(
        "thread_bomb",
        """
        import threading, time
        n = 0
        try:
            while True:
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1
        except RuntimeError as e: print(n, e)
        """,
        seconds=2,
        heavy=True,
    ),
    case(
        "cpu_burn_children",
        """
        import os
        for i in range(8):
            if os.fork() == 0:
                while True: pass
        os.wait()
        """,
        seconds=3,
        heavy=True,
    ),
    case(
        "zombies",
        """
        import os
        n = 0
        try:
            for i in range(2000):
                if os.fork() == 0: os._exit(0)
                n += 1
        except OSError as e: print(e)
        print('zombies', n)
        """,
        proves=nothing(b"zombies 2000"),
    ),
    case(
        "daemon_child_survives",
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    time.sleep(.05)
                    try: open('beat', 'a').write('x')
                    except OSError: pass
            os._exit(0)
        os.wait(); time.sleep(.2)
        print(os.path.getsize('beat'))
        """,
        Sleep(0.5),
        SIZE,
        Sleep(0.5),
        GROWN,
        proves=lambda answers: b"grew 0" in answers[-1].output,
    ),
    case(
        "continue_what_is_stopped",
        """
        import os, signal, time
        for i in range(6):
            if os.fork() == 0:
                os.setsid()
                for s in (1, 2, 15, 17, 18, 20, 21, 22): signal.signal(s, signal.SIG_IGN)
                while True:
                    try: os.kill(-1, signal.SIGCONT)
                    except OSError: pass
                    try: os.write(os.open('beat', os.O_WRONLY | os.O_APPEND | os.O_CREAT), b'x')
                    except OSError: pass
                    os.closerange(3, 64)
        time.sleep(.3)
        """,
        Sleep(0.3),
        SIZE,
        Sleep(0.4),
        GROWN,
        proves=still,
        heavy=True,
    ),
    case(
        "woken_by_the_dying",
        """
        import os, signal, threading, time
        def spin():
            while True: pass
        threading.Thread(target=spin, daemon=True).start()
        """,
        *(
            step
            for _ in range(6)
            for step in (
                AWAKE,
                Sleep(0.15),
                Run("used = time.process_time() - used; print('RAN' if used > .06 else 'stood')"),
            )
        ),
        proves=nothing(b"RAN"),
        heavy=True,
        landlock=False,
    ),
    case(
        "a_fork_that_the_end_of_its_call_comes_upon",
        """
        import os, struct, time
        x = [bytearray(b'1' * 10**6) for i in range(300)]
        def leave(call):
            os.write(3, struct.pack('>BIII', 0, call, 0, 0))
            if os.fork() == 0:
                while True: open('beat', 'a').write('x'); time.sleep(.002)
        """,
        *(step for call in (2, 3, 4) for step in (f"leave({call})", *BETWEEN)),
        proves=stood,
        heavy=True,
        landlock=False,
    ),
    case(
        "a_thread_takes_back_what_stops_it",
        f"""
        import ctypes, mmap, os, platform, threading, time
        code = {TAKES_BACK!r}
        where = mmap.mmap(-1, 4096, prot=7)
        where.write(code)
        endless = ctypes.CFUNCTYPE(None, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(where)))
        def write():
            while True: open('beat', 'a').write('x'); time.sleep(.002)
        if platform.machine() == 'x86_64':
            for _ in range(2): threading.Thread(target=endless, args=(os.getpid(),), daemon=True).start()
            threading.Thread(target=write, daemon=True).start()
        """,
        *(step for _ in range(6) for step in ("1", *BETWEEN)),
        proves=stood,
        heavy=True,
    ),
    case(
        "timers_that_wake_what_is_stopped",
        """
        import ctypes, signal, struct, threading, time
        l = ctypes.CDLL(None)
        signal.signal(signal.SIGCONT, lambda *_: None)
        for n in range(1, 100):
            t = ctypes.c_void_p()
            if l.timer_create(1, struct.pack('qii48x', 0, signal.SIGCONT, 0), ctypes.byref(t)) == 0:
                l.timer_settime(t, 0, struct.pack('4q', 0, 0, 0, n * 10**7), None)
        def write():
            while True: open('beat', 'a').write('x'); time.sleep(.002)
        threading.Thread(target=write, daemon=True).start()
        """,
        *(step for _ in range(2) for step in ("1", *BETWEEN)),
        proves=stood,
    ),
    case(
        "time_bomb_thread",
        """
        import threading, time, os
        def bomb():
            time.sleep(.3)
            while True:
                try: os.write(1, b'BOOM\\n'); open('beat', 'a').write('x')
                except OSError: pass
                time.sleep(.01)
        threading.Thread(target=bomb, daemon=True).start()
        print('armed')
        """,
        Sleep(0.5),
        SIZE,
        Read("nothing"),
        Sleep(0.4),
        GROWN,
        proves=still,
    ),
    case(
        "alarms_between_calls",
        """
        import faulthandler, signal
        signal.setitimer(signal.ITIMER_REAL, .2, .0001)
        signal.setitimer(signal.ITIMER_VIRTUAL, .2, .0001)
        signal.setitimer(signal.ITIMER_PROF, .2, .0001)
        faulthandler.dump_traceback_later(.3, exit=True)
        """,
        Sleep(0.5),
        "print('here')",
    ),
    case("infinite_loop", "while True: pass", seconds=1, proves=ended_in_time(1)),
    case("regex_catastrophe", "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')", seconds=1, proves=ended_in_time(1)),
    case("sleep_forever", "import time; time.sleep(1e6)", seconds=0.5, proves=ended_in_time(0.5)),
    case(
        "interrupts_are_swallowed",
        """
        import time
        while True:
            try:
                while True: time.sleep(1e6)
            except BaseException: pass
        """,
        "print('here')",
        seconds=1,
        proves=lambda answers: answers[0].status == "killed" and answers[0].seconds < 3,
    ),
    case(
        "every_signal_is_blocked",
        """
        import signal
        for s in range(1, 65):
            try: signal.signal(s, signal.SIG_IGN)
            except (OSError, ValueError): pass
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        while True: pass
        """,
        seconds=1,
        proves=lambda answers: answers[0].status == "killed" and answers[0].seconds < 3,
    ),
    case(
        "cpu_time_in_short_lived_children",
        """
        import os, time
        while True:
            if os.fork() == 0:
                end = time.process_time() + .05
                while time.process_time() < end: pass
                os._exit(0)
            os.wait()
        """,
        seconds=2,
        heavy=True,
    ),
    case("sigstop_self", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", seconds=1, proves=ended_in_time(1)),
    case(
        "stop_everything",
        """
        import os, signal
        for p in (-1, 1, os.getppid(), 0):
            try: os.kill(p, signal.SIGSTOP)
            except OSError as e: print(e)
        """,
        seconds=1,
    ),
    case(
        "kill_parent",
        """
        import os
        for s in (2, 15, 9, 19, 10, 17):
            for p in (os.getppid(), 1):
                try: os.kill(p, s); print('sent', p, s)
                except Exception as e: print(type(e).__name__)
        """,
    ),
    case(
        "every_signal_to_init",
        """
        import ctypes, os
        l = ctypes.CDLL(None)
        for i in range(20):
            for s in range(1, 65):
                try: os.kill(1, s)
                except OSError: pass
        fd = l.syscall(434, 1, 0)
        print('pidfd', [l.syscall(424, fd, s, None, 0) for s in (2, 9, 15, 18, 19, 34)] if fd >= 0 else 'refused')
        print('tgkill', [l.syscall(234, 1, 1, s) for s in (9, 15, 18, 34, 64)])
        """,
    ),
    case(
        "queued_signals",
        """
        import ctypes, os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
        l, n = ctypes.CDLL(None), 0
        while n < 200_000 and l.sigqueue(os.getpid(), 34 + n % 30, None) == 0: n += 1
        timers, t = 0, ctypes.c_void_p()
        while timers < 200_000 and l.timer_create(1, None, ctypes.byref(t)) == 0: timers += 1
        print('queued', n, timers)
        """,
        proves=nothing(b"queued 200000", b" 200000"),
    ),
    case("kill_all", "import os\ntry: os.kill(-1, 9)\nexcept Exception as e: print(type(e).__name__)"),
    case(
        "kill_host_pids",
        """
        import os
        for p in [*DECOYS['pids'], *range(2, 400)]:
            if p in (os.getpid(), os.getppid()): continue
            for s in (19, 9):
                try: os.kill(p, s)
                except Exception as e: pass
        """,
    ),
    case("os__exit", "import os; os._exit(0)", proves=not_ok),
    case("sigkill_self", "import os; os.kill(os.getpid(), 9)", proves=not_ok),
    case("abort", "import os; os.abort()", proves=not_ok),
    case("sys_exit", "import sys; sys.exit(3)"),
    case("ctypes_segfault", "import ctypes; ctypes.string_at(0)", proves=not_ok),
    case(
        "exec_another_program",
        """
        import os, sys
        for program in (sys.executable, '/proc/self/exe', '/bin/sh', '/bin/true'):
            try: os.execv(program, [program, '-c', 'print(6 * 7)'])
            except Exception as e: print(program, type(e).__name__)
        """,
    ),
    case(
        "exec_a_forgetful_child",
        """
        import os, subprocess, sys, time
        forgetful = 'import os\\nos.closerange(0, 256)\\nwhile 1: pass'
        try: print(subprocess.run([sys.executable, '-c', forgetful], timeout=.5))
        except Exception as e: print(type(e).__name__)
        greedy = 'print(bytearray(3 * 2**30)[:1])'
        try: print(subprocess.run([sys.executable, '-I', '-c', greedy], capture_output=True, timeout=3))
        except Exception as e: print(type(e).__name__)
        """,
        proves=nothing(b'stdout=b"bytearray'),
    ),
    case(
        "orphan_keeps_the_output_open",
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: time.sleep(60)
            os._exit(0)
        os.wait(); print('done')
        """,
        proves=lambda answers: (
            answers[0].seconds < 2 and (answers[0].status == "error" or b"done" in answers[0].output)
        ),
    ),
    case(
        "output_of_a_killed_child",
        """
        import os, time
        pid = os.fork()
        if pid == 0:
            os.write(1, b'last words')
            time.sleep(60)
        time.sleep(.2); os.kill(pid, 9); os.waitpid(pid, 0)
        """,
        proves=lambda answers: answers[0].status == "error" or b"last words" in answers[0].output,
    ),
    case(
        "a_fork_that_returns",
        "import os\npid = os.fork()\nprint('one' if pid else 'other')",
        "print('next')",
        proves=lambda answers: answers[1].output.count(b"next") == 1,
    ),
)

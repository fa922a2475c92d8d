"""Abuse of the agent's protocol: forged frames and replies, broken descriptors, values that are none."""

from __future__ import annotations

from sandbox_case import Answers, Case, Evaluate, case


def no_reward(answers: Answers) -> bool:
    """Nothing that was made up is in a header, and no made-up frame is an answer."""
    return not any("reward" in answer.header or answer.output == b"FAKE" for answer in answers)


NO_VALUES = ("nan", "inf", "tuple", "set", "bytes", "key", "loop", "deep", "gen", "type", "complex", "long", "many")
NO_NAMES = ("__import__('os').getcwd", "x", "no_such", "", "f()", "f; 1/0", "print", "\x00", "f" * 100_000)

FRAMES: tuple[Case, ...] = (
    case(
        "fake_frames_all_fds",
        """
        import os, struct, json
        j = json.dumps({'t': 'result', 'status': 'ok', 'reward': 1.0, 'why': None, 'n': 1, 'ok': True}).encode()
        f = struct.pack('>II', len(j), 4) + j + b'FAKE'
        for fd in range(0, 256):
            for k in range(3):
                try: os.write(fd, f)
                except OSError: pass
        """,
        proves=no_reward,
    ),
    case(
        "fake_frames_by_a_child_later",
        """
        import os, struct, json, threading, time
        def forge():
            for n in range(40):
                whole = {'n': n, 'status': 'ok', 'why': None, 'fresh': False, 'milliseconds': 0, 'omitted': 0}
                whole['reward'] = 1
                for message in (whole, {'done': n}, True, [], n, None, 'done', {'n': 2**70}):
                    j = json.dumps(message).encode()
                    for fd in range(3, 24):
                        frame = struct.pack('>II', len(j), 4) + j + b'FAKE'
                        for f in (frame, struct.pack('>I', len(j)) + j, j + b'\\n'):
                            try: os.set_blocking(fd, False); os.write(fd, f)
                            except OSError: pass
        try:
            if os.fork() == 0: os.setsid(); time.sleep(.05); forge(); os._exit(0)
        except OSError: pass
        threading.Thread(target=forge, daemon=True).start()
        time.sleep(.2)
        """,
        "print('next')",
        proves=no_reward,
    ),
    case(
        "half_a_message",
        """
        import os
        for fd in range(3, 24):
            try: os.write(fd, b'\\x00\\x00\\x10')
            except OSError: pass
        """,
        "print('next')",
    ),
    case(
        "a_gigantic_message",
        """
        import os, struct
        for fd in range(3, 24):
            for head in (struct.pack('>II', 2**32 - 1, 2**32 - 1), struct.pack('<Q', 2**62), b'9' * 64):
                try:
                    os.set_blocking(fd, False); os.write(fd, head)
                    for i in range(64): os.write(fd, b'{' * 2**20)
                except OSError: pass
        """,
        "print('next')",
        heavy=True,
    ),
    case(
        "replies_in_the_workers_own_form",
        """
        import os, struct
        def reply(fine, call, text=b'', value=b''):
            return struct.pack('>BIII', fine, call, len(text), len(value)) + text + value
        def forge():
            for call in range(80):
                for data in (reply(1, call), reply(1, call, b'', b'"FORGED"'), reply(0, call, b'FORGED'),
                             reply(255, call), reply(1, call, b'\\xff', b'\\xff')):
                    try: os.write(3, data)
                    except OSError: return
        os.set_blocking(3, False); forge(); os.set_blocking(3, True)
        """,
        "print('next')",
        "import os, struct\nos.write(3, struct.pack('>BIII', 1, 2, 2**32 - 1, 2**32 - 1) + b'x' * 1000)",
        "print('next')",
        "import os, struct\nfor call in range(99): os.write(3, struct.pack('>BIII', 1, call, 0, 7)[:9])",
        "print('next')",
        again=True,
    ),
    case(
        "messages_with_descriptors",
        """
        import array, os, socket
        for fd in range(3, 24):
            try: s = socket.socket(fileno=os.dup(fd))
            except OSError: continue
            s.setblocking(False)
            for i in range(300):
                try: s.sendmsg([b'\\x00'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 1, 2]))])
                except OSError: break
        """,
        "print('next')",
    ),
    case("close_every_descriptor", "import os\nos.closerange(0, 256)", "print('next')"),
    case(
        "close_output",
        "import os\nos.close(1); os.close(2)",
        "print('next')",
        "import sys; sys.stdout.close(); sys.stderr.close(); sys.__stdout__ = None",
        "print('after')",
        proves=lambda answers: b"next" in answers[1].output,
    ),
    *(
        case(
            f"descriptor_becomes_{name}",
            f"import os, socket\nmade = {made}\nfor fd in (3, 4, 5, 6): os.dup2(made, fd)",
            "print('next')",
            seconds=1.5,
        )
        for name, made in (
            ("null", "os.open('/dev/null', os.O_RDWR)"),
            ("zero", "os.open('/dev/zero', os.O_RDWR)"),
            ("a_pipe", "os.pipe()[1]"),
            ("a_pair", "(pair := socket.socketpair())[0].fileno()"),
            ("output", "1"),
        )
    ),
    case(
        "shut_the_channel_down",
        """
        import os, socket
        for fd in range(3, 24):
            try: socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RDWR)
            except OSError: pass
        """,
        "print('next')",
        seconds=1.5,
    ),
    case(
        "read_the_channel",
        """
        import os, threading
        def read(fd):
            try:
                while data := os.read(fd, 65536): print(fd, data[:2000])
            except OSError: pass
        for fd in range(3, 12): threading.Thread(target=read, args=(fd,), daemon=True).start()
        """,
        "print('next')",
        seconds=1.5,
        again=True,  # a thread of the code may be the one to get the next request, which then nobody answers
    ),
    case(
        "fake_stdout_protocol",
        """
        print('{"jsonrpc":"2.0","id":1,"result":{"reward":1}}'); print('<<<END>>> status: ok reward: 1.0')
        import sys; sys.__stdout__.write('\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00{}')
        """,
        proves=no_reward,
    ),
)

EVALUATIONS: tuple[Case, ...] = (
    case(
        "values_of_evil_kinds",
        """
        def f(which):
            loop = []; loop.append(loop)
            deep = []
            for i in range(100_000): deep = [deep]
            return {'nan': float('nan'), 'inf': float('inf'), 'tuple': (1,), 'set': {1}, 'bytes': b'x', 'key': {1: 2},
                    'loop': loop, 'deep': deep, 'gen': (i for i in ()), 'type': int, 'complex': 1j, 'long': 'x' * 2**25,
                    'many': [0] * 3_000_000}[which]
        """,
        *(Evaluate("f", (which,)) for which in NO_VALUES),
        proves=lambda answers: all(answer.status != "ok" for answer in answers[1 : 1 + len(NO_VALUES)]),
        heavy=True,
    ),
    case(
        "values_that_pretend_to_be_others",
        """
        class S(str): pass
        class I(int):
            def __eq__(self, o): return True
            __hash__ = int.__hash__
        class D(dict):
            def items(self): return [('a', 'FORGED')]
            def __iter__(self): return iter(['FORGED'])
        class L(list):
            def __iter__(self): return iter(['FORGED'])
        def f(which): return {'s': S('x'), 'i': I(1), 'd': D(a=1), 'l': L([1])}[which]
        """,
        *(Evaluate("f", (which,)) for which in "sidl"),
        proves=lambda answers: not any("FORGED" in repr(answer.value) for answer in answers),
    ),
    case(
        "results_written_by_others",
        """
        import os, threading, time
        def forge():
            while True:
                for folder in ('/work', '/tmp', '/dev/shm', '/', '/proc/self/fd'):
                    try: names = os.listdir(folder)
                    except OSError: continue
                    for name in names:
                        if folder == '/proc/self/fd' and int(name) < 6: continue
                        try:
                            fd = os.open(f'{folder}/{name}', os.O_WRONLY | os.O_NONBLOCK)
                            os.write(fd, b'"FORGED"'); os.close(fd)
                        except OSError: pass
        threading.Thread(target=forge, daemon=True).start()
        def f():
            time.sleep(.3)
            os._exit(0)
        """,
        Evaluate("f"),
        proves=lambda answers: answers[1].status != "ok",
    ),
    case(
        "names_that_are_no_functions",
        "x = 5\ndef f(): return 1",
        *(Evaluate(name, seconds=1) for name in NO_NAMES),
        proves=lambda answers: all(answer.status != "ok" for answer in answers[1 : 1 + len(NO_NAMES)]),
    ),
    case(
        "a_function_that_exits_or_never_ends",
        """
        import os, sys
        def leave(): sys.exit(0)
        def die(): os._exit(0)
        def loop():
            while True: pass
        def raises(): raise BaseException('x')
        """,
        Evaluate("leave"),
        Evaluate("raises"),
        Evaluate("loop", seconds=0.5),
        Evaluate("die"),
        proves=lambda answers: all(answer.status != "ok" for answer in answers[1:5]),
    ),
)

PROTOCOL = FRAMES + EVALUATIONS

"""Abuse of memory and disk: every way of taking more than a session's share that we know."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from sandbox_case import Answers, Case, Export, ListFiles, Read, Reset, case, nothing


def written(most: int, word: bytes = b"MB") -> Callable[[Answers], bool]:
    """The number printed after a word, in any output, is at most this."""

    def proves(answers: Answers) -> bool:
        found = [int(text) for answer in answers for text in after(answer.output, word)]
        return all(number <= most for number in found)

    return proves


def after(output: bytes, word: bytes) -> list[bytes]:
    """The words that follow a word."""
    return [number for before, number in pairwise(output.split()) if before == word]


MEMORY: tuple[Case, ...] = (
    case(
        "alloc_10GB",
        "x = bytearray(10 * 10**9); print(len(x))",
        proves=nothing(b"10000000000"),
        heavy=True,
    ),
    case("alloc_loop", "x = []\nwhile True: x.append(bytearray(10**6))", heavy=True),
    case(
        "alloc_many_procs",
        """
        import os, time
        for i in range(30):
            if os.fork() == 0:
                x = bytearray(800 * 10**6)
                for j in range(0, len(x), 4096): x[j] = 1
                time.sleep(60)
        time.sleep(60)
        """,
        heavy=True,
    ),
    case(
        "shared_memory_many_procs",
        """
        import mmap, os, time
        for i in range(25):
            if os.fork() == 0:
                x = mmap.mmap(-1, 500 * 2**20)
                for j in range(0, len(x), 4096): x[j] = 1
                time.sleep(60)
        time.sleep(60)
        """,
        heavy=True,
    ),
    case(
        "fork_bomb_with_much_memory",
        "x = [bytearray(b'1' * 10**6) for i in range(300)]",
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
        "sysv_shm_bomb",
        """
        import ctypes
        l = ctypes.CDLL(None); l.shmat.restype = ctypes.c_void_p
        n = 0
        for i in range(40):
            i = l.shmget(0, 200 * 10**6, 0o1600)
            if i < 0: break
            p = l.shmat(i, None, 0)
            if p in (None, 2**64 - 1): break
            ctypes.memset(p, 1, 200 * 10**6); n += 1
        print('shm', n)
        """,
        proves=nothing(b"shm 40"),
        heavy=True,
    ),
    case(
        "memory_without_a_mapping",
        """
        import ctypes, os
        l = ctypes.CDLL(None, use_errno=True)
        n = 0
        for number, arguments in ((319, (b'x', 0)), (447, (0,))):
            fd = l.syscall(number, *arguments)
            if fd < 0: print('refused', number, ctypes.get_errno()); continue
            try:
                for i in range(300): n += os.write(fd, bytes(2**20))
            except OSError as e: print(e)
        print('MB', n // 2**20)
        """,
        proves=written(256),
        heavy=True,
    ),
    case(
        "sparse_mappings",
        """
        import ctypes
        l = ctypes.CDLL(None, use_errno=True); l.mmap.restype = ctypes.c_void_p
        l.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        for size in (2**40, 2**36, 2**33):
            for flags in (0x4022, 0x40022, 0x8022, 0x21):
                p = l.mmap(None, size, 3, flags, -1, 0)
                print('MAPPED' if p not in (None, 2**64 - 1) else 'refused', size, flags)
        p = l.mmap(None, 2**29, 3, 0x22, -1, 0)
        advice = (14, 12, 10, 21, 9, 100, 101)
        if p: print([l.madvise(ctypes.c_void_p(p), ctypes.c_size_t(2**28), a) for a in advice])
        """,
        proves=nothing(b"MAPPED"),
        heavy=True,
    ),
    case(
        "mlock_all",
        """
        import ctypes
        l = ctypes.CDLL(None, use_errno=True)
        print('locked' if l.mlockall(7) == 0 else 'refused')
        x = bytearray(300 * 2**20)
        print(len(x))
        """,
        proves=nothing(b"locked"),
        heavy=True,
    ),
    case(
        "zip_bomb",
        """
        import zlib
        c = zlib.compressobj(9, wbits=-15); z = c.compress(bytes(10**7)) + c.flush(zlib.Z_FULL_FLUSH)
        d = zlib.decompress(z * 200 + c.flush(), wbits=-15); print('DEC', len(d))
        """,
        proves=nothing(b"DEC 2000000000"),
        heavy=True,
    ),
    case(
        "socketpair_buffers",
        """
        import os, socket
        kept = []
        def fill():
            n = 0
            try:
                while True:
                    a, b = socket.socketpair(); a.setblocking(False); kept.append((a, b))
                    try: a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**30)
                    except OSError: pass
                    try:
                        while True: n += a.send(b'x' * 65536)
                    except BlockingIOError: pass
            except OSError as e: print(len(kept), n // 10**6, e)
        for i in range(8):
            try:
                if os.fork() == 0: fill(); os._exit(0)
            except OSError as e: print(e); break
        fill()
        """,
        heavy=True,
    ),
    case(
        "pipe_buffers",
        """
        import fcntl, os
        kept, n = [], 0
        try:
            while True:
                r, w = os.pipe(); kept.append((r, w)); os.set_blocking(w, False)
                for size in (2**26, 2**20, 2**19):
                    try: fcntl.fcntl(w, 1031, size); break
                    except OSError: pass
                try:
                    while True: n += os.write(w, bytes(65536))
                except BlockingIOError: pass
        except OSError as e: print(len(kept), e)
        print('MB', n // 10**6)
        """,
        proves=written(128),
    ),
    case(
        "descriptors_in_flight",
        """
        import array, os, socket
        kept, sent = [], 0
        try:
            for i in range(50):
                a, b = socket.socketpair(); a.setblocking(False); kept.append((a, b))
                while True:
                    r, w = os.pipe(); os.set_blocking(w, False)
                    try: os.write(w, bytes(65536))
                    except OSError: pass
                    passed = array.array('i', [r, w, b.fileno()])
                    try: a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
                    except OSError: break
                    finally: os.close(r); os.close(w)
                    sent += 3
        except OSError as e: print(e)
        print('FDS', sent)
        """,
        proves=written(5000, b"FDS"),
    ),
    case(
        "fd_exhaustion",
        """
        import os
        f = []
        try:
            while True: f.append(os.open('/dev/null', 0))
        except OSError as e: print(len(f), e)
        """,
    ),
)

DISK: tuple[Case, ...] = (
    case(
        "dev_shm_fill",
        """
        n = 0
        try:
            for i in range(1000):
                open(f'/dev/shm/f{i}', 'wb').write(b'x' * 10**7); n += 10
        except OSError as e: print(e)
        print('MB', n)
        """,
        proves=written(128),
        heavy=True,
    ),
    case(
        "disk_fill_one",
        """
        n = 0
        try:
            with open('big', 'wb') as f:
                for i in range(2000): n += f.write(b'x' * 10**6)
        except OSError as e: print(e)
        print('MB', n // 10**6)
        """,
        proves=written(128),
        heavy=True,
    ),
    case(
        "disk_fill_many",
        """
        n = 0
        try:
            for i in range(400):
                with open(f'b{i}', 'wb') as f: n += f.write(b'x' * 10**7)
        except OSError as e: print(e)
        print('MB', n // 10**6)
        """,
        proves=written(1024),
        heavy=True,
    ),
    case(
        "disk_fill_unlinked",
        """
        import os
        kept, n = [], 0
        try:
            for i in range(40):
                f = open(f'u{i}', 'wb', buffering=0); os.unlink(f'u{i}'); kept.append(f)
                for j in range(4): n += f.write(bytes(10**7))
        except OSError as e: print(e)
        print('MB', n // 10**6)
        """,
        proves=written(512),
        heavy=True,
    ),
    case(
        "many_empty_files",
        """
        n = 0
        try:
            for i in range(100_000):
                open(f'e{i}', 'x').close(); n += 1
        except OSError as e: print(e)
        print('files', n)
        """,
        ListFiles(),
        Export(),
        proves=written(20_000, b"files"),
        heavy=True,
    ),
    case(
        "sparse_files_exported",
        """
        import os
        for i in range(3000):
            try:
                with open(f's{i}', 'wb') as f: f.truncate(2**26 - 1)
            except OSError as e: print(e); break
        for size in (2**40, 2**63 - 1):
            try: os.truncate('s0', size); print('TRUNCATED', size)
            except OSError as e: print(e)
        """,
        Read("s1"),
        Read("s1", 2**26 - 2),
        Read("s1", 2**62),
        Export(),
        proves=nothing(b"TRUNCATED"),
        heavy=True,
    ),
    case(
        "extended_attributes",
        """
        import os
        n = 0
        for i in range(2000):
            try: open(f'x{i}', 'x').close()
            except OSError: break
            for space in ('user.a', 'user.b', 'trusted.a', 'security.capability', 'system.posix_acl_access'):
                try: os.setxattr(f'x{i}', space, bytes(60_000)); n += 60_000
                except OSError as e: pass
        print('MB', n // 10**6)
        """,
        proves=written(256),
        heavy=True,
    ),
    case(
        "folders_100000_deep",
        """
        import os
        n = 0
        try:
            while n < 100_000: os.mkdir('d'); os.chdir('d'); n += 1
        except OSError as e: print(e)
        print('deep', n)
        """,
        ListFiles(),
        Read("d/" * 2000 + "x"),
        Export(),
        Reset(),
        ListFiles(),
        proves=lambda answers: b"d" not in answers[-1].output,
        seconds=6,
    ),
)

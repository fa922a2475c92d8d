"""Abuse of files: reading what is none of a session's business, writing outside, turning the file tools against us."""

from __future__ import annotations

from collections.abc import Callable

from sandbox_case import Answers, Case, Export, ListFiles, Read, Reopen, Reset, Write, case, neighbour, nothing


def reads_last(data: bytes) -> Callable[[Answers], bool]:
    """The last read gave what was written: the tool still works for the honest."""
    return lambda answers: answers[-1].output == data


OUTSIDE: tuple[Case, ...] = (
    case(
        "read_etc",
        """
        for p in ['/etc/passwd', '/etc/shadow', '/etc/hostname', '/root/.bashrc', '/etc/ssh/ssh_host_ed25519_key',
                  '/work/../../etc/shadow', '/etc/machine-id', '/etc/resolv.conf', '/etc/hosts']:
            try: print(p, repr(open(p).read()[:300]))
            except Exception as e: print(p, type(e).__name__)
        """,
        proves=nothing(b"root:"),
    ),
    case(
        "host_tree_walk",
        """
        import os
        n = 0
        for r, d, f in os.walk('/'):
            if r.startswith(('/proc', '/sys', '/usr/share/doc')): d[:] = []; continue
            for x in f:
                n += 1
                if any(word in x for word in ('hidden', 'secret', 'reward', 'test_', 'LICENSE', '.pem', '.toml')):
                    try: print(os.path.join(r, x), open(os.path.join(r, x)).read()[:200])
                    except Exception as e: print(os.path.join(r, x), type(e).__name__)
        print(n)
        """,
    ),
    case(
        "hidden_test_read",
        """
        for p in DECOYS['paths']:
            try: print(p, open(p).read())
            except Exception as e: print(p, type(e).__name__)
        """,
    ),
    case(
        "write_outside",
        """
        for p in ['/etc/pwn', '/usr/pwn', '/usr/lib/pwn', '/root/pwn', '/pwn', '/bin/pwn', '/sys/kernel/pwn',
                  '/proc/sys/kernel/hostname', '/dev/pwn', '/etc/ld.so.preload', '/var/tmp/pwn', '/run/pwn',
                  DECOYS['venv'] + '/pwn.py', *(q + '.pwn' for q in DECOYS['paths']), *DECOYS['paths']]:
            for mode in ('w', 'r+', 'a'):
                try: open(p, mode).write('pwned'); print('WROTE', p)
                except Exception as e: print(p, type(e).__name__)
        """,
        proves=nothing(b"WROTE"),
    ),
    case(
        "change_what_is_read",
        """
        import os, sys
        files = [os.__file__, sys.executable, '/usr/lib', '/lib64', '/etc', '/', '/dev/null', *DECOYS['paths']]
        try: files += [line.split()[-1] for line in open('/proc/self/maps') if '/' in line]
        except OSError as e: print(e)
        tries = (
            lambda p: os.chown(p, os.getuid(), -1), lambda p: os.unlink(p), lambda p: os.truncate(p, 0),
            lambda p: os.rename(p, p + '2'), lambda p: os.setxattr(p, 'user.x', b'y'), lambda p: os.link(p, '/work/h'),
            lambda p: os.symlink('x', p + '3'), lambda p: os.close(os.open(p + '4', os.O_RDWR | os.O_CREAT)),
            lambda p: os.chmod(p, 0o777) or (os.stat(p).st_mode & 0o777 == 0o777) or 1 / 0)
        for p in dict.fromkeys(files):
            before = os.stat(p).st_mode & 0o777 if os.path.exists(p) else 0
            for i, t in enumerate(tries):
                try: t(p); print('CHANGED' if i < 8 or before != 0o777 else 'same', p, i)
                except Exception as e: pass
        """,
        proves=nothing(b"CHANGED"),
    ),
    case(
        "links_out_by_the_file_tools",
        """
        import os
        os.symlink(DECOYS['paths'][0], 'l1'); os.symlink('/', 'l2'); os.symlink('/proc/self/root', 'l3')
        os.symlink('/etc/shadow', 'l4'); os.symlink('../../../../..', 'l5'); os.symlink('/work/../etc', 'l6')
        os.symlink('l7', 'l7')
        """,
        Read("l1"),
        Read("l2/etc/shadow"),
        Read("l3/etc/shadow"),
        Read("l4"),
        Read("l5/etc/passwd"),
        Read("l6/passwd"),
        Read("l7"),
        Write("l1"),
        Write("l2/tmp/pwned"),
        Read("../../../../etc/shadow"),
        Read("/etc/shadow"),
        Read("/../etc/shadow"),
        Read("{0}"),
        Write("{0}"),
        Write("../pwned"),
        ListFiles("l2"),
        ListFiles("l3"),
        ListFiles("/"),
        proves=nothing(b"root:", b"nobody:"),
    ),
    case(
        "links_to_processes_by_the_file_tools",
        """
        import os
        for i in range(12): os.symlink(f'/proc/self/fd/{i}', f'fd{i}'); os.symlink(f'/proc/1/fd/{i}', f'one{i}')
        for name in ('root', 'cwd', 'exe', 'environ', 'mem', 'maps'):
            os.symlink(f'/proc/1/{name}', name); os.symlink(f'/proc/self/{name}', 's' + name)
        """,
        *(Read(f"fd{number}") for number in range(0, 12, 3)),
        *(Read(f"one{number}") for number in range(0, 12, 3)),
        *(Read(name) for name in ("root/etc/passwd", "sroot/etc/passwd", "exe", "environ", "senviron", "mem", "maps")),
        Write("fd3"),
        Write("one3"),
        proves=lambda answers: all(answer.status != "ok" for answer in answers[1:-2]),
    ),
    case(
        "links_that_change_while_they_are_read",
        """
        import os, threading, time
        open('inside', 'w').write('inside')
        def swap():
            while True:
                for target in (DECOYS['paths'][0], 'inside', '/proc/self/environ', '/etc/passwd'):
                    try: os.symlink(target, 'next'); os.rename('next', 'x')
                    except OSError: pass
        threading.Thread(target=swap, daemon=True).start()
        try:
            if os.fork() == 0: os.setsid(); swap()
        except OSError: pass
        time.sleep(.05)
        """,
        *[Read("x"), Write("x")] * 8,
        proves=nothing(b"root:", b"nobody:", b"HOME="),
    ),
    case(
        "folder_becomes_a_link",
        "import os\nos.mkdir('d'); open('d/f', 'w').write('x')",
        Write("d/f", b"inside"),
        "import shutil, os\nshutil.rmtree('d'); os.symlink('/tmp', 'd')",
        Write("d/f"),
        Read("d/f"),
        "import os\nos.unlink('d'); os.symlink(os.path.dirname(DECOYS['paths'][0]), 'd')",
        Write("d/f"),
        ListFiles("d"),
    ),
    case(
        "hard_links",
        """
        import os, sys
        for i, p in enumerate([*DECOYS['paths'], os.__file__, sys.executable, '/dev/null', '/dev/zero', '/etc/passwd',
                               '/proc/self/environ', '/proc/1/environ']):
            try: os.link(p, f'h{i}'); print('LINKED', p)
            except OSError as e: print(type(e).__name__)
        """,
        Read("h0"),
        Read("h6"),
        proves=nothing(b"LINKED"),
    ),
)

TOOLS: tuple[Case, ...] = (
    case(
        "tool_fifo",
        "import os\ntry: os.mkfifo('p')\nexcept Exception as e: print(type(e).__name__)",
        Read("p"),
        Write("p"),
        proves=lambda answers: answers[1].status == "error" and answers[1].seconds < 2 and answers[2].seconds < 2,
    ),
    case(
        "tool_special_files",
        """
        import os, socket
        for name, mode in (('c', 0o20666), ('b', 0o60666), ('s', 0o140666)):
            try: os.mknod(name, mode, os.makedev(1, 5))
            except OSError as e: print(type(e).__name__)
        try: a = socket.socket(socket.AF_UNIX); a.bind('u'); a.listen()
        except OSError as e: print(type(e).__name__)
        os.symlink('/dev/zero', 'zero'); os.symlink('/dev/full', 'full'); os.symlink('/dev/urandom', 'random')
        """,
        *(Read(name) for name in ("c", "b", "s", "u", "zero", "full", "random")),
        *(Write(name) for name in ("c", "s", "u", "full")),
        ListFiles(),
        Export(),
        proves=lambda answers: all(answer.status == "error" for answer in answers[1:8]),
    ),
    case(
        "odd_names",
        """
        import os
        for name in (b'new\\nline', b'\\xff\\xfe', b'-rf', b'a' * 255, b' ', b'\\x1b[31m', '\\u202e'.encode(), b'...',
                     b'\\\\', b'"', b'{}', b'%s', b'C:\\\\x'):
            try: open(name, 'w').write('x'); os.makedirs(b'folder/' + name)
            except OSError as e: print(e)
        """,
        ListFiles(),
        ListFiles("folder"),
        Read("new\nline"),
        Read("-rf"),
        Read("nul\x00"),
        Read("a" * 256),
        Read("a/" * 3000),
        Read(""),
        Read("."),
        Write(""),
        Write("."),
        Write("folder"),
        Write("no/such/folder/x"),
        Write("x" * 5000),
        Write("\x00"),
        Write("fine", b"fine"),
        Export(),
        Read("fine"),
        proves=reads_last(b"fine"),
    ),
    case(
        "no_rights_on_own_files",
        """
        import os
        os.umask(0o777)
        os.makedirs('a/b'); open('f', 'w').close(); open('g', 'w').write('x')
        os.chmod('g', 0); os.chmod('a', 0); os.chmod('.', 0)
        """,
        ListFiles(),
        ListFiles("a"),
        Read("g"),
        Write("g", b"x"),
        Write("new", b"new"),
        Export(),
        Reset(),
        ListFiles(),
        Write("new", b"new"),
        Read("new"),
        proves=reads_last(b"new"),
    ),
    case(
        "cwd_rmtree",
        "import shutil, os\nos.chmod('.', 0)\nshutil.rmtree(os.getcwd(), ignore_errors=True)\nos.chdir('/')",
        ListFiles(),
        Write("a.txt", b"x"),
        Read("a.txt"),
        proves=reads_last(b"x"),
    ),
    case(
        "workspace_moved_away",
        """
        import os
        here = os.getcwd()
        for old, new in ((here, here + '2'), (here, '/tmp/work'), ('/tmp', here + '/tmp'), ('/dev/shm', here + '/shm')):
            try: os.rename(old, new); print('MOVED', old)
            except OSError as e: print(type(e).__name__)
            try: os.rmdir(old); print('GONE', old)
            except OSError as e: print(type(e).__name__)
        """,
        Write("a.txt", b"x"),
        Read("a.txt"),
        proves=reads_last(b"x"),
    ),
    case(
        "modules_in_the_workspace",
        """
        import os
        for name in ('json', 'struct', 'ast', 'traceback', 'linecache', 'codeop', 'os', 'random', 'signal', 'tarfile',
                     'numpy', 're', 'tokenize', 'encodings', 'sitecustomize', 'usercustomize', 'mcpgym_environments',
                     'unicodedata', 'stat', 'errno', 'io', 'resource', 'select'):
            open(name + '.py', 'w').write("open('loaded', 'a').write(__name__)\\nraise SystemExit('PWNED')")
        import sys; sys.path.insert(0, os.getcwd()); sys.path_importer_cache.clear()
        """,
        "1/0",
        "def f(:\n",
        ListFiles(),
        Export(),
        "import os; os._exit(1)",
        "print('here'); 1/0",
        Read("loaded"),
        proves=lambda answers: b"here" in answers[-2].output and b"ZeroDivisionError" in answers[-2].output,
    ),
)


def knows_no_folder_of_others(answers: Answers) -> bool:
    """What the second step found in its memory does not name the folder that the neighbour works in."""
    folder = answers[0].output.strip().removesuffix(b"/work").rpartition(b"/")[2]
    return b"scanned" in answers[1].output and not (folder and folder in answers[1].output)


SHARED: tuple[Case, ...] = (
    case(
        "folders_of_others_in_memory",
        neighbour("import os; print(os.getcwd())"),
        """
        import ctypes, os, re
        library = ctypes.CDLL(None)
        reader, writer = os.pipe()
        found = set()
        for name, first, last in (('heap', 0x555555554000, 0x555559554000), ('mapped', 0x7ffff4000000, 0x7ffff7fff000)):
            parts = [b'']
            for place in range(first, last, 4096):
                there = library.write(writer, ctypes.c_void_p(place), 4096) > 0
                parts.append(os.read(reader, 4096) if there else b' ')
            found |= set(re.findall(rb'sess[i]ons/([-\\w]{20,80})', b''.join(parts)))
        print('scanned', found)
        """,
        proves=knows_no_folder_of_others,
        heavy=True,
    ),
    case(
        "channels_between_sessions",
        """
        import os
        for folder in ('/tmp', '/dev/shm', '/var/tmp', '/run', '/dev', '/', '/proc', '/etc', '/home', '.',
                       os.path.dirname(os.__file__), os.environ.get('TMPDIR', '/')):
            try: open(folder + '/channel', 'w').write('MESSAGE'); os.chmod(folder + '/channel', 0o777)
            except OSError: pass
        """,
        neighbour(
            """
            import os
            for folder in ('/tmp', '/dev/shm', '/var/tmp', '/run', '/dev', '/', '/proc', '/etc', '/home', '.', '..',
                           '../..', os.path.dirname(os.__file__), os.environ.get('TMPDIR', '/')):
                try: print(open(folder + '/channel').read())
                except OSError: pass
            for pid in os.listdir('/proc') if os.path.exists('/proc/1') else ():
                for name in ('cwd', 'root/tmp', 'root/work', 'root/dev/shm'):
                    try: print(open(f'/proc/{pid}/{name}/channel').read())
                    except OSError: pass
            """
        ),
        proves=nothing(b"MESSAGE"),
    ),
    case(
        "watching_the_neighbour",
        """
        import ctypes, os
        l = ctypes.CDLL(None, use_errno=True)
        fd = l.inotify_init1(0o4000)
        print('fanotify', l.syscall(300, 0, 0))
        for p in (os.path.dirname(os.__file__), os.__file__, '/', '/dev/null', '/etc'):
            if fd >= 0: print(l.inotify_add_watch(fd, p.encode(), 0xfff))
        """,
        neighbour("import os\nfor i in range(3): open(os.__file__).read()\nopen('/dev/null').close()"),
        """
        import os
        try: events = os.read(fd, 4096)
        except OSError as e: events = b''
        print('EVENTS' if events else 'none')
        """,
        proves=nothing(b"EVENTS", b"fanotify 0"),
    ),
    case(
        "locks_on_shared_files",
        """
        import fcntl, os
        f = open(os.__file__)
        try: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); print('locked')
        except OSError as e: print(e)
        for command, argument in ((1024, 1), (1024, 0), (8, 1)):
            try: print('TAKEN', command, fcntl.fcntl(f, command, argument))
            except (OSError, ValueError) as e: print(command, e)
        for path in (os.path.dirname(os.__file__), '/', '/dev', '/etc'):
            try: print('TAKEN', fcntl.fcntl(os.open(path, os.O_RDONLY), 1026, 0x8000003f))
            except OSError as e: print(e)
        """,
        neighbour(
            """
            import fcntl, os
            try: fcntl.flock(open(os.__file__), fcntl.LOCK_SH | fcntl.LOCK_NB); print('free')
            except BlockingIOError: print('CHANNEL')
            except OSError as e: print(e)
            """
        ),
        proves=nothing(b"CHANNEL", b"TAKEN"),
    ),
    case(
        "nothing_of_an_earlier_session",
        """
        import os
        for folder in ('/work', '/tmp', '/dev/shm', '.', os.environ.get('TMPDIR', '/')):
            try: open(folder + '/mine', 'w').write('MESSAGE')
            except OSError: pass
        import builtins; builtins.message = 'MESSAGE'
        os.environ['MESSAGE'] = 'MESSAGE'
        try:
            if os.fork() == 0: os.setsid(); import time; time.sleep(60)
        except OSError: pass
        """,
        Reopen(),
        """
        import builtins, os
        for folder in ('/work', '/tmp', '/dev/shm', '.', os.environ.get('TMPDIR', '/')):
            try: print(folder, os.listdir(folder))
            except OSError as e: print(e)
        print(getattr(builtins, 'message', None), dict(os.environ))
        """,
        proves=lambda answers: b"mine" not in answers[-1].output and b"MESSAGE" not in answers[-1].output,
    ),
    case(
        "nothing_left_after_a_reset",
        """
        import os, random
        for folder in ('.', os.environ.get('TMPDIR', '/tmp')):
            try: open(folder + '/mine', 'w').write('x')
            except OSError as e: print(e)
        mine = 1; random.seed(5); here = os.getcwd(); os.chdir('/'); os.environ['HOME'] = '/mine'
        """,
        Reset(),
        "import os\nprint(os.listdir('.'), os.listdir(os.environ['TMPDIR']), 'mine' in globals(), os.environ['HOME'])",
        proves=lambda answers: b"[] [] False" in answers[-1].output and b"/mine" not in answers[-1].output,
    ),
)

FILES = OUTSIDE + TOOLS + SHARED

"""How the agent gets to a place that has only Python: as the first bytes of its own input.

Every container and every provider can start a command and write to it, and few things beyond that can be relied on in
all of them. So the command is a short program that reads the agent from its standard input, keeps it in a file and
becomes it; what follows in the same stream are frames. Nothing need be mounted, uploaded or built into an image.
"""

from __future__ import annotations

from mcpgym_environments.python_sandbox.jail.archive import agent_archive

BOOTSTRAP = """
import os, sys, tempfile
if "--work" not in sys.argv and os.path.isdir("/work") and os.listdir("/work"):
    sys.exit("there is something in /work already, and a sandbox empties its workspace: this is no place for one")
def take(count):
    parts = []
    while count:
        part = os.read(0, min(count, 65536))
        if not part:
            sys.exit("the agent did not arrive whole")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
data = take(int.from_bytes(take(4), "big"))
path = os.path.join(tempfile.mkdtemp(prefix=".agent-"), "agent.pyz")
with open(path, "wb") as file:
    file.write(data)
os.execv(sys.executable, [sys.executable, "-I", path, *sys.argv[1:]])
"""
"""Reads a length, the archive, and becomes ``python -I agent.pyz`` with the same streams and arguments.

Without ``--work`` the workspace is ``/work``, which must be empty or missing.
"""

RELAY = """
import base64, os, subprocess, sys, threading
pipe = subprocess.PIPE
child = subprocess.Popen([sys.executable, "-I", "-c", *sys.argv[1:]], stdin=pipe, stdout=pipe, bufsize=0)
def inward():
    try:
        for line in sys.stdin.buffer:
            data = memoryview(base64.b64decode(line))
            while data:
                data = data[child.stdin.write(data):]
    except (OSError, ValueError):
        pass
    child.kill()
threading.Thread(target=inward, daemon=True).start()
while True:
    data = os.read(child.stdout.fileno(), 24576)
    if not data:
        break
    line = memoryview(base64.b64encode(data) + b"\\n")
    while line:
        line = line[os.write(1, line):]
os._exit(child.wait() & 127)
"""
"""The same through streams that carry only text: lines of base64 both ways."""


def command(*, text: bool = False, python: str = "python3") -> list[str]:
    """The words that start an agent somewhere.

    Args:
        text: whether its streams carry only text.
        python: the interpreter there.
    """
    if text:
        return [python, "-I", "-u", "-c", RELAY, BOOTSTRAP]
    return [python, "-I", "-c", BOOTSTRAP]


def preamble() -> bytes:
    """What is written to that command first: the agent."""
    data = agent_archive()
    return len(data).to_bytes(4, "big") + data

"""Agents of a few lines, honest and hostile: ``small_agent.py MODE URL NOTES``; what one finds out it appends to NOTES.

They run as a brought agent does: ``--agent 'command:python -I -S small_agent.py MODE {url} NOTES'`` (so they start at
once).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

LEAN = ("-I", "-S")
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "small agent", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def note(**facts: Any) -> None:
    with Path(sys.argv[3]).open("a") as file:
        file.write(json.dumps(facts) + "\n")


def post(url: str, body: str, **headers: str) -> tuple[int, str]:
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body.encode(), sent), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def call(url: str, name: str, arguments: str) -> dict[str, Any]:
    params = f'{{"name": "{name}", "arguments": {arguments}, "_meta": {json.dumps(ENVELOPE)}}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
    return json.loads(post(url, body, **headers)[1])["result"]


def plays(url: str) -> None:
    """A whole game, first free cell."""
    for _ in range(12):
        for cell in range(9):
            answer = call(url, "play", json.dumps({"position": cell}))
            if "ended" in answer["content"][0]["text"] or "Game over" in answer["content"][0]["text"]:
                print("That was it.")
                return


def odd(url: str) -> None:
    """What a game's rules do not foresee, and then its end."""
    call(url, "play", '{"position": NaN}')
    call(url, "play", '{"position": {"a": [1e999]}}')
    call(url, "no_such_tool", "{}")
    print("a lone \\ud800 in JSON", "\ud800".encode("utf-8", "surrogatepass"))


def quiet(url: str) -> None:
    print("I would rather not.")


def dies(url: str) -> None:
    print("no key here:", os.environ.get("SMALL_KEY", ""), file=sys.stderr)
    sys.exit(3)


def once(url: str) -> None:
    """Fails in the first run for every other episode, and plays in the next."""
    marker = Path(sys.argv[3]).with_name("second")
    if not marker.exists() and "You move first" in sys.stdin.read():
        sys.exit(9)
    plays(url)


def deaf(url: str) -> None:
    """Never ends, and hears nothing; neither does its child."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.fork()
    note(pid=os.getpid())
    while True:
        time.sleep(1)


def leaves(url: str) -> None:
    """Leaves daemons: a new session each, forked twice, without a trace of our variables; and a folder shut tight."""
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.execve(sys.executable, [sys.executable, *LEAN, __file__, "sleeps", url, sys.argv[3]], {})
            os._exit(0)
    shut = Path.home() / "a" / "b"
    shut.mkdir(parents=True)
    (shut / "file").write_text("x")
    shut.parent.chmod(0)
    note(home=str(Path.home()))
    wait_for_notes("pid", 3)
    print("gone")


def wait_for_notes(of: str, count: int) -> None:
    """Wait until those that were started have written."""
    while not Path(sys.argv[3]).exists() or Path(sys.argv[3]).read_text().count(f'"{of}"') < count:
        time.sleep(0.02)


def sleeps(url: str) -> None:
    note(pid=os.getpid())
    time.sleep(600)


def kills(url: str) -> None:
    """Kills what keeps it, and leaves a child."""
    keeper = os.getppid()
    if b"keeper.py" not in Path(f"/proc/{keeper}/cmdline").read_bytes():
        sys.exit("this is for a keeper, and that is none")
    subprocess.Popen([sys.executable, *LEAN, __file__, "sleeps", url, sys.argv[3]], start_new_session=True)
    wait_for_notes("pid", 1)
    os.kill(keeper, signal.SIGKILL)
    time.sleep(600)


def floods(url: str) -> None:
    """Prints gigabytes."""
    part = b"x" * 1_000_000 + b"\n"
    for _ in range(5_000):
        sys.stdout.buffer.write(part)


def pries(url: str) -> None:
    """Looks for whatever is not its own."""
    host = url.split("/e/")[0]
    token = url.split("/e/")[1].split("/")[0]
    other = f"{host}/e/{'0' * 32}/mcp"
    paths = ["/control/v1/environments", f"/control/v1/episodes/{token}", f"/control/v1/episodes/{token}/score", "/mcp"]
    paths += [f"/control/v1/episodes/{token}/calls", "/tic-tac-toe/mcp", "/metrics", f"/e/{token}/score", "/"]
    for path in paths:
        note(path=path, status=post(host + path, "{}", Authorization="Bearer a-guess-of-a-secret")[0])
    note(other=post(other, '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}')[0])
    note(
        environment=sorted(os.environ),
        home=str(Path.home()),
        here=str(Path.cwd()),
        files=list(map(str, Path().iterdir())),
    )
    keeper = os.getppid()
    with contextlib.suppress(OSError):
        note(keepers=Path(f"/proc/{keeper}/environ").read_text())
    listening = []
    for line in Path("/proc/net/unix").read_text().splitlines():
        if "control-" in line:
            listening.append(line.split()[-1])
    note(sockets=listening)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])

"""The end of a stdio server: with its client, within two seconds, and all that it started with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence

import psutil  # type: ignore[import-untyped]

from mcpgym_clients.doctor.context import Context, list_page
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.processes import Stopwatch, alive, descendants
from mcpgym_clients.doctor.stdio_wire import StdioConnection
from mcpgym_clients.doctor.subjects import StdioSubject
from mcpgym_clients.doctor.wire import call, encode, message

SOON_SECONDS = 2.0
"""What the SDK's clients wait before they use force."""
LATE_SECONDS = 6.0
LINGER_SECONDS = 0.5
"""How long what a server started may take to go after it."""
PARENT_SECONDS = 60.0
"""How long a client and a server may take to start, one after the other."""
ENDS = "End when standard input closes: it is the only sign of a client that died."


async def shutdown(context: Context, outcome: Outcome) -> None:
    """Every way in which a client goes, and what is on standard output."""
    subject = context.subject
    assert isinstance(subject, StdioSubject)

    def closed(client: StdioConnection) -> None:
        client.close_input()

    def terminated(client: StdioConnection) -> None:
        assert client.process is not None
        with contextlib.suppress(ProcessLookupError):
            client.process.send_signal(signal.SIGTERM)

    started = time.monotonic()
    client = await subject.connect(context.era)
    starting = time.monotonic() - started
    await _end(outcome, "standard input closed after a session", client, closed, ENDS)
    client = await _silent(subject, context)
    await _end(outcome, "standard input closed before the first message", client, closed, ENDS, starting)
    client = await subject.connect(context.era)
    await _in_mid_call(context, client)
    await _end(outcome, "standard input closed in mid-call", client, closed, ENDS)
    if sys.platform != "win32":
        client = await subject.connect(context.era)
        await _end(outcome, "SIGTERM", client, terminated, "End at SIGTERM: clients send it next.")
        await _parent_killed(subject, outcome)
    await _plain_console(subject, context, outcome)
    noise = [line for connection in subject.started for line in connection.noise]
    if noise:
        outcome.fail(
            f"{len(noise)} lines on standard output are no protocol: {noise[0]!r}",
            "Print to standard error: some clients end a session over one such line.",
        )
    else:
        outcome.passed(f"nothing but protocol on standard output, of {len(subject.started)} processes")


async def _silent(subject: StdioSubject, context: Context) -> StdioConnection:
    client = await subject.made(context.era).start()
    await asyncio.sleep(0.3)
    return client


async def _in_mid_call(context: Context, client: StdioConnection) -> None:
    planned = context.slow or (context.plan[0] if context.plan else None)
    if planned is not None:
        params = {"name": planned.tool, "arguments": dict(planned.arguments)}
        with contextlib.suppress(OSError):
            await client.write(encode(message(client.era, 5005, "tools/call", params)))


async def _end(
    outcome: Outcome,
    case: str,
    client: StdioConnection,
    how: Callable[[StdioConnection], None],
    advice: str,
    starting: float = 0.0,
) -> None:
    """End it one way; judge how long it takes and what is left. ``starting``: seconds it may still need to start."""
    assert client.process is not None
    process, family = client.process, descendants(client.process.pid)
    watch = Stopwatch([process.pid, *family])
    how(client)
    ended = await watch.until(lambda: process.returncode is not None, LATE_SECONDS + starting)
    seconds, aside = watch.seconds, watch.aside()
    left = await _left(family) if ended else []
    if not ended:
        outcome.fail(f"{case}: still there after {LATE_SECONDS + starting:.3g} s{aside}", advice)
    elif left:
        outcome.fail(f"{case}: {len(left)} of its child processes stay", "End what you started before you end.")
    elif seconds > SOON_SECONDS + starting:
        outcome.warn(f"{case}: ended after {seconds:.1f} s{aside}", f"Clients use force after {SOON_SECONDS:g} s.")
    else:
        outcome.passed(f"{case}: ended after {seconds:.1f} s{aside}, exit code {process.returncode}")
    await client.abandon()


async def _left(family: Sequence[int]) -> list[int]:
    """Those that still run, once they have had the time to go."""
    await Stopwatch(family).until(lambda: not any(map(alive, family)), LINGER_SECONDS)
    return [pid for pid in family if alive(pid)]


async def _parent_killed(subject: StdioSubject, outcome: Outcome) -> None:
    """Its client is killed, with SIGKILL, so that nobody can end it."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mcpgym_clients.doctor.parent", *subject.command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=subject.environment,
        start_new_session=True,
    )  # fmt: skip
    family: list[int] = []
    try:
        assert parent.stdout is not None
        try:
            line = await asyncio.wait_for(parent.stdout.readline(), PARENT_SECONDS)
        except TimeoutError:
            line = b""
        if not line.strip().isdigit():
            outcome.skip("its client killed: the server did not answer initialize under a client of its own")
            return
        server = int(line)
        born = psutil.Process(server).create_time()
        family = [server, *descendants(server)]
        watch = Stopwatch(family)
        parent.kill()
        await watch.until(lambda: not any(map(alive, family)), LATE_SECONDS)
        seconds, aside = watch.seconds, watch.aside()
        left = [pid for pid in family if alive(pid)]
        if server in left and psutil.Process(server).create_time() == born:
            outcome.fail(f"its client killed (SIGKILL): still there after {LATE_SECONDS:g} s{aside}", ENDS)
        elif left:
            outcome.fail(f"its client killed (SIGKILL): {len(left)} of its child processes stay", ENDS)
        elif seconds > SOON_SECONDS:
            outcome.warn(f"its client killed (SIGKILL): ended after {seconds:.1f} s{aside}", ENDS)
        else:
            outcome.passed(f"its client killed (SIGKILL): ended after {seconds:.1f} s{aside}")
    except psutil.NoSuchProcess:
        outcome.skip("its client killed: the server had ended before")
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(parent.pid, signal.SIGKILL)  # the parent, the server, and what that started: all ours
        await parent.wait()


async def _plain_console(subject: StdioSubject, context: Context, outcome: Outcome) -> None:
    """A machine whose console is not UTF-8: protocol must be, whatever the locale says."""
    odd = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}
    client = await subject.made(context.era, environment={**subject.environment, **odd}).open()
    answer = await call(client, "no_such_tool_🎲_日本", {})
    listed = await list_page(client)
    if answer.answered and listed.result is not None:
        outcome.passed("under an ASCII locale it still takes and gives UTF-8")
    else:
        why = (answer if not answer.answered else listed).shown()
        outcome.fail(
            f"under an ASCII locale: {why}", "Read and write the standard streams as UTF-8, whatever the locale."
        )
    await client.close()

"""``mcpgym play --web``: its address, while it runs, as a process of its own or in a thread of this one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from mcpgym_clients.play import PlayOptions
from mcpgym_clients.web_play.command import Served, WebOptions, served


@contextlib.contextmanager
def served_page(*arguments: str) -> Iterator[str]:
    """As users run it. It must end well."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", "play", *arguments, "--web", "--no-open"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", said)
        assert found, said + (process.stderr.read() if process.poll() is not None else "")
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        _, wrong = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in wrong


@contextlib.contextmanager
def page_in_a_thread(
    environment: str,
    *,
    index: int | None = None,
    seed: int | None = None,
    against: str | None = None,
    watch: Sequence[str] = (),
    seat: str | None = None,
) -> Iterator[Served]:
    """The same page without a process, which takes seconds to start."""
    played = PlayOptions(environment, None, None, index, seed, (), None, None)
    options = WebOptions(played, against, watch, seat, 0, False)
    loop, ready, stop = asyncio.new_event_loop(), Future[Served](), asyncio.Event()

    async def main() -> None:
        try:
            async with served(options) as page:
                ready.set_result(page)
                await stop.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
    thread.start()
    try:
        yield ready.result(60)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        assert not thread.is_alive()
        loop.close()

"""``mcpgym top``: the picture again and again until Ctrl-C, or the figures once, for scripts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.live import Live

from mcpgym.control_client import HttpControl
from mcpgym.control_plane.address import resolve_control_address
from mcpgym.control_plane.secret import configured_secret
from mcpgym.errors import ServerUnavailable
from mcpgym_clients.console import out
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.top.figures import Moment, between, read
from mcpgym_clients.top.table import picture

DEFAULT = "http://127.0.0.1:8000"
WINDOW_SECONDS = 10.0
"""Rates and percentiles are of so long at most."""


@dataclass(frozen=True, slots=True)
class TopOptions:
    """What was typed; ``interval`` is in seconds."""

    server: str | None
    secret_file: Path | None
    interval: float
    once: bool
    json: bool


def run(options: TopOptions) -> int:
    """Watch until interrupted, which is no failure; the exit code.

    Raises:
        ConfigurationError: the address or the secret is none.
        ServerUnavailable: nothing answered there, the first time, or with ``once``.
        CommandFailed: what answers has other metrics.
    """
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError, BrokenPipeError):
        asyncio.run(_watch(options))
    return 0


async def _watch(options: TopOptions) -> None:
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # the terminal is put in order
    server = options.server or DEFAULT
    found = resolve_control_address(server, configured_secret(file=options.secret_file))
    async with HttpControl(found.url, found.secret, timeout=30.0) as control:
        first = await _moment(control)
        with _shown(options, server) as show:
            await _again_and_again(control, first, options, show)


async def _again_and_again(
    control: HttpControl, first: Moment, options: TopOptions, show: Callable[[Mapping[str, Any], str | None], None]
) -> None:
    moments = deque([first])
    figures: Mapping[str, Any] = between(first, first)
    while True:
        await asyncio.sleep(options.interval)
        trouble = None
        try:
            now = await _moment(control)
        except ServerUnavailable as error:
            if options.once:
                raise
            trouble = f"{error}; waiting for it (Ctrl-C ends this)"
        else:
            if now.began != moments[-1].began:  # another process: its counts begin anew
                moments.clear()
            while len(moments) > 1 and now.at - moments[0].at > WINDOW_SECONDS:
                moments.popleft()
            figures = between(moments[0] if moments else now, now)
            moments.append(now)
        show(figures, trouble)
        if options.once:
            return


async def _moment(control: HttpControl) -> Moment:
    text = await control.metrics()
    try:
        return read(text, time.monotonic())
    except ValueError as error:
        raise CommandFailed(f"{control.url}: {error}; is the server of an older version?") from None


@contextlib.contextmanager
def _shown(options: TopOptions, server: str) -> Any:
    """How figures are shown: as JSON, once, or in place."""
    console = out()

    def as_json(figures: Mapping[str, Any], trouble: str | None) -> None:
        found = figures if trouble is None else {}  # what is old is no figure of now
        print(json.dumps({"server": server, "trouble": trouble, **found}), flush=True)

    def printed(figures: Mapping[str, Any], trouble: str | None) -> None:
        console.print(picture(figures, server, console.width, trouble))

    if options.json:
        yield as_json
    elif options.once or not console.is_terminal:
        yield printed
    else:
        with Live(console=console, auto_refresh=False, screen=False) as live:
            yield lambda figures, trouble: live.update(picture(figures, server, console.width, trouble), refresh=True)
    sys.stdout.flush()

"""Clients that are Python libraries: each plays in a program of its own, with the packages that it wants."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.real_clients.clients import Client, Played, Seat
from tests.real_clients.fake_chat_completions import FakeChatCompletions, results, tools
from tests.real_clients.programs.player import InStep, next_call

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 90


def program(name: str, package: str, file: str, python: Path = Path(sys.executable), *, agent: bool = False) -> Client:
    """The client that ``programs/file`` is.

    Args:
        name: as the table has it.
        package: the distribution whose version counts.
        file: the program.
        python: the interpreter that has the package.
        agent: whether it brings a loop of its own, which asks a model what to do: then it gets one.
    """

    def version() -> str:
        code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
        found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout
        return f"{package} {found.strip()}"

    def missing() -> str | None:
        return None if python.exists() else f"{python} is not there: make test installs it"

    async def play(seats: Sequence[Seat]) -> Sequence[Played | Exception]:
        table = {f"seat-{place}": seat for place, seat in enumerate(seats)}
        if not agent:
            return [_played(answer) for answer in await run_program(file, table, "", python)]
        async with FakeChatCompletions(_Model(table).calls) as model:
            answers = await run_program(file, table, model.address, python)
        for name, answer in zip(table, answers, strict=True):
            if name in model.failures:
                answer["error"] = model.failures[name]
            elif name in model.last:
                answer |= {"tools": tools(model.last[name]), "texts": results(model.last[name])}
        return [_played(answer) for answer in answers]

    return Client(name, version, play, missing)


class _Model:
    """What agents ask: the model of :mod:`.programs.player`, with the games of each way kept in step."""

    def __init__(self, seats: Mapping[str, Seat]) -> None:
        self._seats = seats
        names: dict[str, list[str]] = {}
        for name, seat in seats.items():
            names.setdefault(seat.way, []).append(name)
        self._steps = {way: InStep(games) for way, games in names.items()}

    async def calls(self, name: str, texts: Sequence[str]) -> Sequence[tuple[str, Mapping[str, Any]]]:
        seat = self._seats[name]
        wanted = next_call(seat.way, seat.task, seat.cells, texts)
        if wanted is None:
            await self._steps[seat.way].leave(name)
            return []
        await self._steps[seat.way].move(name)
        return [wanted]


async def run_program(
    file: str, seats: Mapping[str, Seat], model: str, python: Path = Path(sys.executable)
) -> list[dict[str, Any]]:
    """Run ``programs/file`` on ``seats``, by name: one answer for each, which may be an ``error``.

    ``model`` is the base URL of what agents ask, where a seat's name is the model's; empty where there are none.

    Raises:
        RuntimeError: the program itself failed; the text is the end of what it wrote.
    """
    asked = [
        {
            "name": name,
            "way": seat.way,
            "url": seat.url,
            "command": list(seat.command),
            "task": seat.task,
            "cells": list(seat.cells),
            "home": str(seat.home),
        }
        for name, seat in seats.items()
    ]
    process = await asyncio.create_subprocess_exec(
        python,
        PROGRAMS / file,
        env={**without_keys(), "PYTHONUTF8": "1"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        line = json.dumps({"seats": asked, "model": model}).encode() + b"\n"
        out, err = await asyncio.wait_for(process.communicate(line), SECONDS)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    lines = [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]
    if process.returncode or len(lines) != len(seats):
        raise RuntimeError(f"{file} ended with {process.returncode}:\n{err.decode(errors='replace')[-2000:]}")
    return lines


def _played(answer: Mapping[str, Any]) -> Played | Exception:
    return RuntimeError(answer["error"]) if "error" in answer else Played(answer["tools"], answer["texts"])


def without_keys() -> dict[str, str]:
    """This process's environment, without proxies, which would only be in the way, and without keys of the user's."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith(("_proxy", "_api_key")) and not name.startswith(("OPENAI_", "LANGSMITH_"))
    }

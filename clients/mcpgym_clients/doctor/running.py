"""``mcpgym doctor``: finds out what was named, examines it, and reports."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import platform
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mcpgym.stopping import Stopping
from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.doctor.calls import Permission, parse_calls
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Examination, Verdict
from mcpgym_clients.doctor.subjects import (
    EnvironmentSubject,
    HttpSubject,
    StdioSubject,
    Subject,
    checked_url,
    served,
)
from mcpgym_clients.failures import FAILURE, USAGE, UsageProblem, fail

QUICK_SESSIONS = 60
SESSIONS = 1000


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What was typed. ``subject`` is a URL, an environment, or a command with its arguments."""

    subject: Sequence[str]
    json: Path | None = None
    markdown: Path | None = None
    title: str = ""
    quick: bool = False
    sessions: int | None = None
    calls: Sequence[str] = ()
    slow: str | None = None
    read_only: bool = False
    headers: Sequence[str] = ()
    places: Sequence[str] = ()
    timeout: float = 10.0
    config: Sequence[str] = ()
    only: Sequence[str] = field(default_factory=tuple)


def run(options: DoctorOptions) -> int:
    """Examine, print and write; 0 if nothing failed, 1 if something did, 2 if nobody could connect.

    Raises:
        UsageProblem: what was named is nothing that can be examined, or options do not fit it.
    """
    from mcpgym_clients.doctor.examination import CannotConnect

    _refuse(options)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)

    async def work(stopping: Stopping) -> None:
        examining = asyncio.ensure_future(examined(options))
        stopped = asyncio.ensure_future(stopping.wait())
        await asyncio.wait({examining, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not examining.done():
            examining.cancel()
            await asyncio.gather(examining, return_exceptions=True)
            return
        made.append(examining.result())

    made: list[Examination] = []
    try:
        code = Stopping().run(work)
    except CannotConnect as error:
        fail(f"no MCP client can connect to {' '.join(options.subject)}: {error}{_way_on(str(error))}")
        return USAGE
    if not made:
        return code or FAILURE
    _report(made[0], options)
    return FAILURE if made[0].verdict is Verdict.FAIL else 0


def _way_on(error: str) -> str:
    """What to do about a server that nobody can connect to, where its answer tells."""
    if "HTTP 401" in error or "HTTP 403" in error:
        return ". It wants a key: put MCPGYM_DOCTOR_HEADER='Authorization: Bearer KEY' into the environment"
    if any(f"HTTP {status}" in error for status in (301, 302, 303, 307, 308)):
        return ". It redirects, which is not followed: give the address that it leads to"
    return ""


async def examined(options: DoctorOptions) -> Examination:
    """The examination of what the options name.

    Raises:
        CannotConnect: no client can.
        UsageProblem, CommandFailed, ConfigurationError: it cannot be started.
    """
    from mcpgym_clients.doctor.examination import examine

    calls = parse_calls(options.calls)
    slow = parse_calls([options.slow], "--slow")[0] if options.slow else None
    sessions = options.sessions or (QUICK_SESSIONS if options.quick else SESSIONS)
    with talk().status("connecting …") as status:
        async with _subject(options) as subject:
            context = Context(subject, Permission(calls, options.read_only), options.quick, sessions, slow)
            context.facts |= _versions()
            made = await examine(context, options.only, lambda question: status.update(escaped(question)))
    made.subject = options.title or made.subject
    return made


@contextlib.asynccontextmanager
async def _subject(options: DoctorOptions) -> AsyncIterator[Subject]:
    first = options.subject[0]
    if is_url(first):
        others = [checked_url(place) for place in options.places]
        yield HttpSubject(checked_url(first), headers_of(options.headers), options.timeout, others)
    elif is_environment(options.subject):
        async with served(first, options.config) as server:
            subject = EnvironmentSubject(server, first, "", options.timeout)
            subject.url = await subject.new_place() or ""
            yield subject
    else:
        if shutil.which(first) is None:
            raise UsageProblem(
                f"{first} is no URL (http://…), no installed environment (see mcpgym list), no command that can be run"
            )
        stdio = StdioSubject(options.subject, options.timeout)
        try:
            yield stdio
        finally:
            await stdio.end()


def _refuse(options: DoctorOptions) -> None:
    from mcpgym_clients.doctor.examination import CHECKS

    if not options.subject:
        raise UsageProblem("name what to examine: a URL, an environment, or a command after --")
    first = options.subject[0]
    if is_url(first) and len(options.subject) > 1:
        raise UsageProblem(
            f"one URL at a time: {' '.join(options.subject[1:])} is too much (--place for another of it)"
        )
    if options.config and not is_environment(options.subject):
        raise UsageProblem("--config belongs to an environment, and none is named")
    if (options.headers or options.places) and not is_url(first):
        raise UsageProblem("--header and --place belong to a URL, and none is named")
    if unknown := sorted(set(options.only) - {check.name for check in CHECKS}):
        known = ", ".join(check.name for check in CHECKS)
        raise UsageProblem(f"--only {unknown[0]}: there is no such check; there are {known}")
    for file in (options.json, options.markdown):
        if file is not None and not file.absolute().parent.is_dir():
            raise UsageProblem(f"{file}: there is no folder {file.parent}")
    parse_calls(options.calls)
    parse_calls([options.slow] if options.slow else [], "--slow")
    headers_of(options.headers)


def _report(made: Examination, options: DoctorOptions) -> None:
    from mcpgym_clients.doctor.rendering import markdown, render

    render(out(), made)
    if options.json is not None:
        options.json.write_text(json.dumps(made.as_json(), indent=2) + "\n", encoding="utf-8")
    if options.markdown is not None:
        options.markdown.write_text(markdown(made, options.title), encoding="utf-8")


def headers_of(texts: Sequence[str]) -> dict[str, str]:
    """The headers of ``--header`` options.

    Raises:
        UsageProblem: one is not of the form NAME: VALUE.
    """
    found = {}
    for text in texts:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or any(ord(letter) < 32 for letter in text):
            raise UsageProblem("--header: write NAME: VALUE")  # what was written may be a secret
        found[name.strip()] = value.strip()
    return found


def is_url(text: str) -> bool:
    """Whether a word names a server by its address."""
    return text.lower().startswith(("http://", "https://"))


def is_environment(words: Sequence[str]) -> bool:
    """Whether what was typed names an environment: one word that is installed, ``module:Class``, or several as one."""
    from mcpgym.combined.naming import is_combined
    from mcpgym.registry import environment_names

    return len(words) == 1 and (
        words[0] in environment_names() or ((":" in words[0] or is_combined(words[0])) and not is_url(words[0]))
    )


def _versions() -> dict[str, str]:
    def of(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "not installed"

    return {"examined with": f"mcpgym {of('mcpgym')}, mcp {of('mcp')}, Python {platform.python_version()}"}
